"""The rule store of an engine: registered rules, the collections built from them, and their views.

Registering a text checks it against everything registered before and stores it. Nothing runs. A predicate is built, with
everything that it needs, when its facts are first wanted. The order follows from the rules alone. Predicates with several
readers are shared by the policy below, and dropped with their last reader. A refused registration changes nothing.

Policy, for a predicate that another query or rule reads:

* A **stored** relation (an input, an attribute, a view) is read in place.
* A predicate that needs **state** to be a set (recursion, alternatives, aggregates, projections) is maintained once, as a shared
  arrangement of the catalog. A copy for each reader would repeat that state.
* A predicate that needs **no state** is derived again by each reader. That costs no memory, and each reader's plan can use
its own
  constraints.
* If a query gives **arguments**, only the facts for these are derived, unless the predicate is maintained in full already
(`tektite.datalog.rules.magic`).

`share=` of `engine.datalog` decides otherwise for the predicates it names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING

from tektite.datalog.evaluate.evaluation import Evaluation, is_distinct
from tektite.datalog.evaluate.kept_rows import improvements
from tektite.datalog.evaluate.registered import (
    Registered,
    SharingDecision,
    State,
    check_choices,
    check_unsigned,
    credited,
    used_structures,
)
from tektite.datalog.rules import monotone, safety, strata
from tektite.datalog.rules.normal_form import normalise
from tektite.datalog.rules.patterns import PatternResolver
from tektite.datalog.rules.types import Inference
from tektite.datalog.rules.unify import unify
from tektite.datalog.syntax import ir, statements
from tektite.engine.core import core_of
from tektite.errors import ConflictError, IncorrectError, NotFoundError
from tektite.plan import algebra as plan
from tektite.query.builders import derived
from tektite.query.collection import ROUND_LIMIT, Collection
from tektite.query.match import check_strategy
from tektite.values.schema import Schema
from tektite.values.types import Type

if TYPE_CHECKING:
    from tektite.engine.engine import Engine
    from tektite.engine.view import View


def rule_store(engine: Engine) -> RuleStore:
    """The rule store of an engine. Each engine has one, made at its first use."""
    return core_of(engine).extension(RuleStore, lambda: RuleStore(engine))


class RuleStore:
    """The rules registered with an engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.state = State()
        self._evaluation: Evaluation | None = None
        self._stored: dict[str, Collection | None] = {}
        self.policy: dict[str, SharingDecision] = {}
        self._own = False
        hooks = core_of(engine).hooks
        hooks.name_claims.append(lambda name: "a Datalog rule" if self.known(name) and not self._own else None)
        hooks.view_builders.append(lambda name: self.view(name) if self.known(name) else None)

    # ------------------------------------------------------------------ registering

    def register(
        self,
        text: statements.Text,
        rounds: int = ROUND_LIMIT,
        share: Mapping[str, bool] | None = None,
        joins: str = "auto",
    ) -> list[str]:
        """Check a text and store it. Returns the predicates that it defines."""
        check_strategy(joins, "datalog: joins")
        state = self.state.copy()
        for declaration in text.declarations:
            before = state.definitions.declarations.setdefault(declaration.predicate, declaration)
            if before != declaration:
                raise ConflictError(
                    f"{declaration.position}: {declaration.predicate!r} is declared with other columns at {before.position}"
                )
        for structure in text.structures:
            if state.structures.setdefault(structure.name, structure) != structure:
                raise ConflictError(f"{text.source}: type {structure.name!r} is declared with other fields already")
        defined = self._add_rules(state, text, rounds)
        for predicate in defined:
            if state.joins.setdefault(predicate, joins) != joins:
                raise ConflictError(
                    f"the rules of {predicate!r} are registered with joins={state.joins[predicate]!r}, not {joins!r}; drop the "
                    "program that registered them first"
                )
            state.joins |= dict.fromkeys(state.registered[predicate].helpers, joins)
        for name, wanted in (share or {}).items():
            if name not in state.definitions.rules:
                raise NotFoundError(f"share: there is no rule for {name!r}")
            if name in self.state.registered and state.share.setdefault(name, wanted) != wanted:
                raise ConflictError(
                    f"the rules of {name!r} are registered with share={{{name!r}: {state.share[name]}}}; drop the program that "
                    "registered them first"
                )
            state.share[name] = wanted
        inputs = self._inputs_for(text, state)
        self._check_outputs(text, state, inputs)
        check_unsigned(text, state)
        check_choices(text, state)
        inference = self._check(state, {name: schema.types for name, schema in inputs.items()})
        for predicate in defined:
            for name in (predicate, *state.registered[predicate].helpers):
                rules = state.definitions.rules[name]
                state.definitions.rules[name] = [unify(r, inference.variables(r), keep_head=True) for r in rules]
        with self._owning():
            for name, schema in inputs.items():
                self.engine.create_table(name, schema, mode="set")
        self.state = state
        self._evaluation = None
        return defined

    def structures(
        self, text: statements.Text
    ) -> tuple[dict[str, Sequence[str | None]], dict[str, statements.Structure]]:
        """The structures of predicates' columns, and all structures: those registered, and those of a text."""
        declarations = (*self.state.definitions.declarations.values(), *text.declarations)
        columns: dict[str, Sequence[str | None]] = {d.predicate: d.structures for d in declarations if d.structures}
        return columns, {**self.state.structures, **{s.name: s for s in text.structures}}

    def attributes(self) -> list[str]:
        """The names of all attributes, sorted."""
        found = [(name, self.engine.table(name).schema.names) for name in self.engine.tables]
        return sorted(name for name, columns in found if columns in (("e",), ("e", "v")))

    def patterns(self) -> PatternResolver:
        """A resolver of patterns over the current attributes."""

        def types(name: str) -> tuple[Type, ...] | None:
            stored = self.stored(name)
            return None if stored is None else tuple(stored.schema.types)

        return PatternResolver(types, self.attributes())

    def _add_rules(self, state: State, text: statements.Text, rounds: int) -> list[str]:
        given: dict[str, list[ir.Rule]] = {}
        for rule in text.rules:
            given.setdefault(rule.predicate, []).append(rule)
        improved = {i.predicate: (i.column, i.kind) for i in text.improvements}
        for improvement in text.improvements:
            if improvement.predicate not in given:
                raise NotFoundError(
                    f"{improvement.position}: there is no rule for {improvement.predicate!r} in this text"
                )
        for predicate, rules in given.items():
            if predicate in core_of(self.engine).views and predicate not in state.registered:
                raise ConflictError(f"{rules[0].where()}: there is a view named {predicate!r} already")
            before = state.registered.get(predicate)
            if before is not None:
                if not before.means(rules, improved.get(predicate)):
                    raise ConflictError(
                        f"{rules[0].where()}: {predicate!r} is registered with another meaning, at {before.where}; give this "
                        "one another name, or drop the program that registered it"
                    )
                if state.rounds[predicate] != rounds:
                    raise ConflictError(
                        f"the rules of {predicate!r} are registered with max_rounds={state.rounds[predicate]}, not {rounds}; "
                        "drop the program that registered them first"
                    )
                before.users += 1
                continue
            normal = credited(normalise(rules), rules)
            for rule in normal:
                safety.check(rule)
                state.definitions.rules.setdefault(rule.predicate, [])
            for rule in normal:
                state.definitions.rules[rule.predicate].append(rule)
            helpers = tuple(dict.fromkeys(rule.predicate for rule in normal if rule.predicate != predicate))
            state.registered[predicate] = Registered(
                tuple(rules), improved.get(predicate), str(rules[0].position), helpers
            )
            if predicate in improved:
                state.definitions.improvements[predicate] = improved[predicate]
            state.rounds |= dict.fromkeys((predicate, *helpers), rounds)
        return list(given)

    def _inputs_for(self, text: statements.Text, state: State) -> dict[str, Schema]:
        """The inputs to create for a text: relations with `.input`, and declared relations without rules."""
        wanted = {d.predicate: d.position for d in text.directives if d.kind == "input"}
        for declaration in text.declarations:
            if declaration.predicate not in state.definitions.rules:
                wanted.setdefault(declaration.predicate, declaration.position)
        found: dict[str, Schema] = {}
        for name, position in wanted.items():
            declaration_of = state.definitions.declarations.get(name)
            existing = self.stored(name, state)
            if existing is not None:
                if declaration_of is not None and existing.schema.types != tuple(t for _, t in declaration_of.columns):
                    raise IncorrectError(
                        f"{position}: {name!r} is declared as {Schema(dict(declaration_of.columns))}, but what is stored under "
                        f"that name is {existing.schema}"
                    )
            elif declaration_of is None:
                raise IncorrectError(f"{position}: {name!r} is an input that is not declared; add .decl {name}(...)")
            else:
                found[name] = Schema(dict(declaration_of.columns))
        return found

    def _check_outputs(self, text: statements.Text, state: State, inputs: Mapping[str, Schema]) -> None:
        """Refuse a directive for a relation that does not exist."""
        for directive in text.directives:
            name = directive.predicate
            if name not in state.registered and name not in inputs and self.stored(name, state) is None:
                known = [*dict.fromkeys((*state.registered, *inputs, *self.names()))]
                raise NotFoundError(
                    f"{directive.position}: .{directive.kind}: there is no relation {name!r}: {close_names(name, known)}"
                )

    def _check(self, state: State, inputs: Mapping[str, Sequence[Type]]) -> Inference:
        """Check columns, types and cycles through negation. Returns the inferred types."""
        inference = self._inference(state, inputs)
        rules = state.definitions.rules
        for component in strata.components(rules, list(rules)):
            improved = improvements(state.definitions, component)
            strata.check(rules, component, improved)
            monotone.check(rules, component, improved)
        return inference

    def _inference(self, state: State, inputs: Mapping[str, Sequence[Type]] | None = None) -> Inference:
        known: dict[str, tuple[Sequence[Type], str]] = {}
        rules = [rule for found in state.definitions.rules.values() for rule in found]
        for rule in rules:
            for other in (rule.predicate, *(name for name, _ in strata.dependencies(rule))):
                stored = self.stored(other, state)
                if stored is not None:
                    known[other] = (stored.schema.types, f"what is stored as {other!r}")
        for name, types in (inputs or {}).items():
            known[name] = (types, f"the declaration of {name!r}")
        for name, declaration in state.definitions.declarations.items():
            known.setdefault(
                name, (tuple(type for _, type in declaration.columns), f"its declaration ({declaration.position})")
            )
        inference = Inference(known)
        inference.run(rules)
        return inference

    def unregister(self, predicates: Iterable[str]) -> None:
        """Forget predicates, unless somebody maintains them or other rules read them."""
        state = self.state.copy()
        going = []
        for predicate in predicates:
            found = state.registered.get(predicate)
            if found is None:
                continue
            found.users -= 1
            if not found.users:
                going.append(predicate)
        gone = {name for p in going for name in (p, *state.registered[p].helpers)}
        for predicate in going:
            if self.title(predicate) in core_of(self.engine).views:
                raise ConflictError(f"cannot drop the rules of {predicate!r}: its view is maintained; drop that first")
        for name, rules in state.definitions.rules.items():
            readers = [other for other in strata.predicates_of({name: rules}, name) if other in gone]
            if name not in gone and readers:
                raise ConflictError(f"cannot drop the rules of {readers[0]!r}: the rules of {name!r} read it")
        for name in gone:
            state.definitions.rules.pop(name, None)
            state.definitions.improvements.pop(name, None)
            state.definitions.declarations.pop(name, None)
            state.share.pop(name, None)
            state.joins.pop(name, None)
            state.rounds.pop(name, None)
        for predicate in going:
            del state.registered[predicate]
        state.structures = used_structures(state)
        self.state = state
        self._evaluation = None

    # ------------------------------------------------------------------ building

    def stored(self, name: str, state: State | None = None) -> Collection | None:
        """The table or view that the engine has under a name, unless it is a predicate's own view."""
        core = core_of(self.engine)
        if (name in core.inputs and not name.startswith("__")) or name in core.system.names():
            return self.engine.table(name)
        state = self.state if state is None else state
        if name in core.views and name not in state.definitions.rules:
            return self.engine.view(name)
        return None

    def known(self, name: str) -> bool:
        """Whether there are rules for a predicate."""
        return name in self.state.registered

    def names(self) -> list[str]:
        """Everything a rule or a goal may name."""
        return [*self.state.registered, *self.engine.tables, *(v for v in self.engine.views if not self.known(v))]

    def evaluation(self) -> Evaluation:
        """The current evaluation. It is built again if a stored relation was dropped and created anew."""
        fresh = {name: self.stored(name) for name in self._stored}
        if self._evaluation is None or any(fresh[name] is not self._stored[name] for name in fresh):
            self._stored = {}
            self.policy = {}
            self._evaluation = Evaluation(
                self.engine,
                self.state.definitions,
                self._inference(self.state),
                self._base,
                self.rounds,
                self._derived,
                lambda predicate: self.state.joins.get(predicate, "auto"),
            )
        return self._evaluation

    def rounds(self, predicate: str) -> int:
        """The number of rounds that the recursion of a predicate may take."""
        return self.state.rounds.get(predicate, ROUND_LIMIT)

    def _base(self, name: str) -> Collection | None:
        found = self._stored[name] = self.stored(name)
        return found

    def collections(self, names: Sequence[str], asked_by: str) -> list[Collection]:
        """The collections of some predicates. Builds those that do not exist."""
        rules = self.state.definitions.rules
        for component in strata.components(rules, names):
            for name in component:
                if name not in rules and self.stored(name) is None:
                    raise NotFoundError(f"{asked_by}: there is no relation {name!r}: {close_names(name, self.names())}")
        evaluation = self.evaluation()
        evaluation.build(names)
        return [evaluation.collections[name] for name in names]

    def _derived(self, predicate: str, found: Collection, recursive: bool) -> Collection:
        """Apply the sharing policy to a predicate: one shared arrangement, or a derivation for each reader."""
        wanted = self.state.share.get(predicate)
        stateless = not recursive and not has_state(found)
        if wanted is None:
            shared = not stateless
            why = "it is recursive" if recursive else "it keeps state of its own" if shared else "it needs no state"
        else:
            shared, why = wanted, f"share={{{predicate!r}: {wanted}}} says so"
        self.policy[predicate] = SharingDecision(shared, why)
        return shared_collection(predicate, found) if shared else found

    def is_kept(self, name: str) -> bool:
        """Whether a predicate is already maintained in full."""
        found = None if self._evaluation is None else self._evaluation.collections.get(name)
        if found is None:
            return False
        operator = found.operator
        while isinstance(operator, plan.Project):
            operator = operator.input
        return isinstance(operator, plan.Arrange) and core_of(self.engine).is_arranged(derived(operator, found))

    def describe(self, name: str) -> str:
        """The sharing decision for a relation, as text."""
        if name not in self.state.definitions.rules:
            return "stored; read where it lies"
        policy = self.policy[name]
        return ("kept once and shared" if policy.shared else "derived anew by each reader") + f", because {policy.why}"

    # ------------------------------------------------------------------ interest

    def view(self, name: str) -> View:
        """The view of a predicate. Installs it if it does not exist."""
        (view,) = self.views([name])
        return view

    def views(self, names: Sequence[str]) -> list[View]:
        """The views of several predicates. Missing ones are installed together, in one dataflow."""
        missing = [name for name in dict.fromkeys(names) if self.title(name) not in core_of(self.engine).views]
        found = self.collections(missing, "view")
        for name, collection in zip(missing, found, strict=True):
            if isinstance(collection.operator, plan.Read):
                raise IncorrectError(f"{name!r} has no rules: it is stored; read it as engine.table({name!r})")
        if missing:
            with self._owning():
                core_of(self.engine).install_together(dict(zip(map(self.title, missing), found, strict=True)))
        return [self.engine.view(self.title(name)) for name in names]

    def title(self, predicate: str) -> str:
        """The name of a predicate's view: the predicate's name, or `p in full` if an input has that name."""
        return f"{predicate} in full" if predicate in self.engine.tables else predicate

    @contextmanager
    def _owning(self) -> Iterator[None]:
        """Allow names of predicates for views and inputs that the store creates."""
        self._own = True
        try:
            yield
        finally:
            self._own = False


def has_state(found: Collection) -> bool:
    """Whether the last operator of a predicate's collection keeps state."""
    operator = found.operator
    while isinstance(operator, plan.Project):
        operator = operator.input
    return is_distinct(found) and not isinstance(operator, plan.Read | plan.Rows | plan.Match)


def shared_collection(title: str, found: Collection) -> Collection:
    """A collection as an arrangement of the catalog. A renaming stays outside, so that predicates of one loop share its run."""
    operator = found.operator
    if isinstance(operator, plan.Project) and isinstance(operator.input, plan.Leave):
        inner = derived(operator.input, found)
        arranged = inner.index_by(inner.schema.names[0], title=title)
        return derived(plan.Project(operator.schema, arranged.operator, operator.outputs, operator.predicate), found)
    return found.index_by(found.schema.names[0], title=title)


def close_names(name: str, known: Sequence[str]) -> str:
    """The closest known name, and all known names, for an error message."""
    close = get_close_matches(name, known, 1)
    meant = f"did you mean {close[0]!r}? " if close else ""
    return f"{meant}there are: {', '.join(map(repr, known)) or 'none'}"
