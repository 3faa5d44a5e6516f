"""Evaluates a goal: its rules, rewritten for their arguments or not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tektite.datalog.evaluate.evaluation import Evaluation
from tektite.datalog.evaluate.kept_rows import Definitions, improvements
from tektite.datalog.evaluate.rule_store import RuleStore, close_names
from tektite.datalog.rules import expressions, magic, safety, strata
from tektite.datalog.rules.normal_form import normalise
from tektite.datalog.rules.subsumption import subsumed
from tektite.datalog.rules.types import Inference
from tektite.datalog.syntax import ir
from tektite.datalog.syntax.edn_queries import Find, Parameter
from tektite.errors import IncorrectError, NotFoundError
from tektite.query.collection import Collection
from tektite.values.schema import Schema
from tektite.values.types import Type

if TYPE_CHECKING:
    from tektite.engine.table import Table


def parameter_predicate(title: str, name: str) -> str:
    """The predicate that stands for a parameter."""
    return f"{title} parameter {name}"


def argument_rows(parameter: Parameter, given: Any) -> list[tuple[Any, ...]]:
    """Arguments as rows: a value, a tuple for several variables, or a list of these."""
    width = len(parameter.variables)
    listed = list(given) if isinstance(given, list | set | frozenset) else [given]
    rows = [tuple(value) if width > 1 else (value,) for value in listed]
    wrong = next((row for row in rows if len(row) != width), None)
    if wrong is not None:
        raise IncorrectError(f"parameter {parameter.name!r} takes {width} values at a time, not {wrong}")
    return rows


class Plan:
    """The plan of a query: its rules, rewritten for their arguments or not, and their evaluation."""

    def __init__(
        self, store: RuleStore, title: str, find: Find, as_set: bool, strategy: str, joins: str = "auto"
    ) -> None:
        self.joins = joins
        self.store = store
        self.title = title
        self.find = find
        self.as_set = as_set
        arguments = [ir.Atom(parameter_predicate(title, p.name), p.variables, find.position) for p in find.parameters]
        rule = ir.Rule(title, find.terms, (*arguments, *find.body), find.position)
        normal = normalise([rule], counted=not as_set)
        self.root = [r for r in normal if r.predicate == title]
        self.helpers: dict[str, list[ir.Rule]] = {}
        for other in normal:
            safety.check(other)
            if other.predicate != title:
                self.helpers.setdefault(other.predicate, []).append(other)
        for variable in find.extra:
            if not all(variable in safety.bound_by(rule.body) for rule in self.root):
                raise safety.unbound(rule, variable, ":with")
        self.rewriting: magic.Rewriting | None = None
        self._check_names()
        # Check the rules as written, so that errors name what the user wrote.
        self._definitions = Definitions({**self.helpers, title: self.root})
        self._inference({})
        self.rewriting = self._choose(strategy)
        self._definitions = self._defined()

    def _choose(self, strategy: str) -> magic.Rewriting | None:
        """The rewritten rules, if the query is to be answered for its arguments alone."""
        if strategy == "full":
            self.why = "strategy='full' says so"
            return None
        rules = {**self.store.state.definitions.rules, **self.helpers}
        kept = {name for name in rules if self.store.is_kept(name)} if strategy == "auto" else set()
        shared = {name for name, wanted in self.store.state.share.items() if wanted}
        # Choices and subsumptions depend on all candidates, not only on those that are asked for.
        shared |= {name for name in rules if subsumed(name) in rules}
        shared |= {d.predicate for d in self.store.state.definitions.declarations.values() if d.choices}
        given = frozenset(parameter_predicate(self.title, p.name) for p in self.find.parameters)
        # An aggregate that is all there is of a predicate is one that a loop may keep, too.
        alone = {name for name, said in rules.items() if len(said) == 1 and len(said[0].aggregates) == 1}
        improved = {*self._improved(), *alone}
        found = magic.rewrite(self.root, rules, lambda name: name in kept | shared, self._fixed(rules), improved, given)
        if not found.goals:
            named = [name for name in found.full if name in kept]
            self.why = f"{named[0]!r} is kept in full already" if named else "nothing that it gives reaches a rule"
            return None
        self.why = (
            "strategy='goal' says so" if strategy == "goal" else "its arguments reach rules that nobody keeps in full"
        )
        return found

    def _check_names(self) -> None:
        rules = {**self.store.state.definitions.rules, **self.helpers}
        own = {parameter_predicate(self.title, p.name) for p in self.find.parameters}
        for component in strata.components({**rules, self.title: self.root}, [self.title]):
            for name in component:
                if name not in rules and name not in own and name != self.title and self.store.stored(name) is None:
                    known = close_names(name, self.store.names())
                    raise NotFoundError(f"{self.title}: there is no relation {name!r}: {known}")

    def _fixed(self, rules: Mapping[str, Sequence[ir.Rule]]) -> dict[str, set[int]]:
        """The columns that cannot be asked for: aggregates, and least or greatest values."""
        found: dict[str, set[int]] = {}
        for name, said in rules.items():
            for rule in said:
                if rule.aggregates:
                    found.setdefault(name, set()).update(rule.aggregates)
        for name, (column, _) in self._improved().items():
            found.setdefault(name, set()).add(column)
        return found

    def _improved(self) -> dict[str, tuple[int, str]]:
        definitions = self.store.state.definitions
        found: dict[str, tuple[int, str]] = {}
        for component in strata.components(definitions.rules, list(definitions.rules)):
            found |= improvements(definitions, component)
        return found

    def _defined(self) -> Definitions:
        """The rules to evaluate beside those of the store."""
        if self.rewriting is None:
            return Definitions({**self.helpers, self.title: self.root})
        improved = self._improved()
        kept = {magic.adorned(goal): improved[goal[0]] for goal in self.rewriting.goals if goal[0] in improved}
        return Definitions({**self.helpers, **self.rewriting.rules}, {}, kept)

    def check(self, given: Mapping[str, Any]) -> None:
        """Refuse a query whose types do not fit."""
        self._inference(dict(self.parameter_schemas(given, strict=False)))

    def parameter(self, name: str) -> Parameter:
        """A parameter by its name."""
        return next(p for p in self.find.parameters if p.name == name)

    def _known(self) -> dict[str, tuple[Sequence[Type], str]]:
        """The types of everything that the query reads and does not define."""
        store = self.store
        inference = store.evaluation().inference
        known: dict[str, tuple[Sequence[Type], str]] = {}
        own = {parameter_predicate(self.title, p.name) for p in self.find.parameters}
        names = {
            name
            for rules in self._definitions.rules.values()
            for rule in rules
            for name, _ in strata.dependencies(rule)
        }
        for name in sorted(names - set(self._definitions.rules) - own):
            stored = store.stored(name)
            if stored is not None:
                known[name] = (stored.schema.types, f"what is stored as {name!r}")
            else:
                known[name] = (inference.types(name), f"the rules of {name!r}")
        if self.find.types is not None:
            known[self.title] = (self.find.types, f"the columns of {self.find.body[-1]}")
        for goal in self.rewriting.goals if self.rewriting is not None else []:
            if goal[0] not in self.helpers:
                types, where = inference.types(goal[0]), f"the rules of {goal[0]!r}"
                bound = tuple(type for type, mark in zip(types, goal[1], strict=True) if mark == "b")
                known |= {magic.adorned(goal): (types, where), magic.asked(goal): (bound, where)}
        return known

    def parameter_schemas(self, given: Mapping[str, Any], strict: bool = True) -> list[tuple[Parameter, Schema]]:
        """The columns of each parameter: typed by the rules that use it, or by the values given."""
        inference = Inference(self._known())
        inference.run([rule for rules in self._definitions.rules.values() for rule in rules])
        types: dict[ir.RuleVariable, Type] = {}
        for rule in self.root_rules():
            types |= inference.variables(rule)
        found = []
        for parameter in self.find.parameters:
            columns: dict[str, Type] = {}
            rows = argument_rows(parameter, given[parameter.name]) if parameter.name in given else []
            for at, variable in enumerate(parameter.variables):
                type = types.get(variable)
                if type is None and rows:
                    type = expressions.constant_type(rows[0][at])
                if type is None:
                    if strict:
                        raise IncorrectError(
                            f"{self.title}: the type of parameter {parameter.name!r} does not follow from the query; give a value"
                        )
                    continue
                columns[variable.name.removeprefix("$")] = type
            if len(columns) == len(parameter.variables):
                found.append((parameter, Schema(columns)))
        return found

    def _inference(self, parameters: Mapping[Parameter, Schema]) -> Inference:
        known = self._known()
        for parameter, schema in parameters.items():
            name = parameter_predicate(self.title, parameter.name)
            known[name] = (schema.types, f"parameter {parameter.name!r}")
        inference = Inference(known)
        inference.run([rule for rules in self._definitions.rules.values() for rule in rules])
        return inference

    def evaluation(self, inputs: Mapping[str, Table]) -> Evaluation:
        """The evaluation of the query's rules over its parameters."""
        store = self.store
        schemas = {p: inputs[parameter_predicate(self.title, p.name)].schema for p in self.find.parameters}
        inference = self._inference(schemas)

        def base(name: str) -> Collection | None:
            if name in inputs:
                return inputs[name]
            if name in self._definitions.rules:
                return None
            return store.collections([name], self.title)[0]

        def rounds(name: str) -> int:
            return store.rounds(magic.origin(name))

        found = Evaluation(store.engine, self._definitions, inference, base, rounds, joins=self._joins)
        # What the store unfolds, a query unfolds, too; it is built here so that the store knows.
        store.collections([name for name in self.relations_read() if store.known(name)], self.title)
        built = store.evaluation()
        found.unfolded |= built.unfolded
        found.collections |= built.collections
        for name, columns in built.inference.columns.items():
            inference.columns.setdefault(name, columns)
        return found

    def _joins(self, predicate: str) -> str:
        """The join strategy of a predicate's rules: that of the query, else that of its program."""
        return self.joins if self.joins != "auto" else self.store.state.joins.get(magic.origin(predicate), "auto")

    def asks(self, inputs: Mapping[str, Table]) -> dict[str, Collection]:
        """The goals that are known before the answers, as collections."""
        if self.rewriting is None:
            return {}
        evaluation = self.evaluation(inputs)
        wanted = [magic.asked(goal) for goal in self.rewriting.spreading()]
        evaluation.build(wanted)
        return {name: evaluation.collections[name] for name in wanted}

    def collection(self, inputs: Mapping[str, Table], kept: Mapping[str, Collection]) -> Collection:
        """The query's answer; `kept` are predicates that are maintained beside it."""
        evaluation = self.evaluation(inputs)
        evaluation.collections |= kept
        rules = self.root_rules()
        reads = dict.fromkeys(name for rule in rules for name, _ in strata.dependencies(rule))
        evaluation.build(list(reads))
        schema = Schema(dict(zip(self.find.names, evaluation.inference.types(self.title), strict=True)))
        if any(rule.aggregates for rule in rules):
            return evaluation.aggregated(rules, schema, as_sets=self.as_set)
        parts = [evaluation.rule(rule, schema) for rule in rules]
        found = parts[0].concat(*parts[1:]) if len(parts) > 1 else parts[0]
        return found if evaluation.is_set(rules) or not self.as_set else found.distinct()

    def domains(self) -> dict[str, list[tuple[str, int]]]:
        """For each collection of `asks`, the stored columns that its values come from."""
        found: dict[str, list[tuple[str, int]]] = {}
        for goal in self.rewriting.spreading() if self.rewriting is not None else []:
            name = magic.asked(goal)
            found[name] = []
            for rule in self._definitions.rules[name]:
                for literal in rule.body:
                    if isinstance(literal, ir.Atom) and literal.predicate not in self._definitions.rules:
                        places = [
                            (literal.predicate, at) for at, term in enumerate(literal.terms) if term in rule.terms
                        ]
                        found[name] += places if len(rule.terms) == 1 else []
        return found

    def is_constant(self) -> bool:
        """Whether the query reads nothing but its parameters that may change: it then has an answer before any epoch closes."""
        rules = {**self.store.state.definitions.rules, **self._definitions.rules}
        names = [name for component in strata.components(rules, [self.title]) for name in component]
        return all(self.store.stored(name) is None for name in names)

    def root_rules(self) -> Sequence[ir.Rule]:
        """The query's own rules, as they are evaluated."""
        return self._definitions.rules[self.title]

    def explain(self) -> str:
        """The choice, the reason for it, and the rules that are evaluated."""
        chosen = "in full" if self.rewriting is None else "for its arguments"
        lines = [f"{self.title}: derived {chosen}, because {self.why}"]
        if self.rewriting is not None:
            for goal in self.rewriting.goals:
                how = "by following its goals" if goal in self.rewriting.followed else "by magic sets"
                lines.append(f"  {magic.adorned(goal)}: derived anew for what is asked, {how}")
        for name in self.relations_read():
            lines.append(f"  {name}: {self.store.describe(name)}")
        lines += [f"  {rule}" for rules in self._definitions.rules.values() for rule in rules]
        return "\n".join(lines)

    def relations_read(self) -> Iterable[str]:
        """The relations that the query reads and does not define."""
        defined = self._definitions.rules
        found = dict.fromkeys(n for rules in defined.values() for rule in rules for n, _ in strata.dependencies(rule))
        own = {parameter_predicate(self.title, p.name) for p in self.find.parameters}
        return [name for name in found if name not in defined and name not in own]
