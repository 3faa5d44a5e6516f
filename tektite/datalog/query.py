"""Queries: goals such as `tc("david", ?)` and `[:find ... :where ...]`, with arguments that may change.

A query is evaluated for its arguments alone where it has some (`tektite.datalog.magic`), against whatever is kept already, or
in full. Its parameters are inputs: one dataflow serves all values they ever have. The answer of a goal is a set, that of
a `:find` a multiset: a row is there as often as the body holds for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tektite.collection import ROUND_LIMIT, Collection
from tektite.datalog import ir, magic, safety, strata, terms
from tektite.datalog.evaluation import Definitions, Evaluation, improvements
from tektite.datalog.inference import Inference
from tektite.datalog.normal import normalise
from tektite.datalog.patterns import Find, Parameter, is_edn, parse_query
from tektite.datalog.store import Store, close_names
from tektite.datalog.textbook import parse_goal
from tektite.errors import IncorrectError, NotFoundError
from tektite.schema import Schema
from tektite.types import Type

if TYPE_CHECKING:
    from tektite.inputs import Input
    from tektite.views import Changes, View

STRATEGIES = ("auto", "goal", "full")


class Query:
    """A maintained answer. Made by `Engine.query`; drop it, or leave its `with` block, when it is not wanted any longer.

    >>> import tektite as tk
    >>> engine = tk.Engine()
    >>> edge = engine.input("edge", src=tk.String, dst=tk.String)
    >>> _ = engine.datalog("tc(x, y) :- edge(x, y).  tc(x, z) :- tc(x, y), edge(y, z).")
    >>> edge.insert([("david", "ann"), ("ann", "bea"), ("cid", "bea")])
    >>> _ = engine.advance()
    >>> sorted(engine.query('tc("david", ?)').rows())
    [('david', 'ann'), ('david', 'bea')]
    >>> query = engine.query("tc($x, ?)", x="cid")
    >>> query.rows()
    [('cid', 'bea')]
    >>> query.insert(x="ann")
    >>> _ = engine.advance()
    >>> sorted(query.rows())
    [('ann', 'bea'), ('cid', 'bea')]
    """

    def __init__(self, view: View, parameters: Mapping[str, Input], plan: Plan) -> None:
        self.view = view
        self.parameters = dict(parameters)
        self.plan = plan

    def rows(self) -> list[tuple[Any, ...]]:
        """The answer as tuples."""
        return self.view.rows()

    def snapshot(self) -> pa.Table:
        """The answer as a table."""
        return self.view.snapshot()

    def multiplicities(self) -> dict[tuple[Any, ...], int]:
        """How often each row is there."""
        return self.view.multiplicities()

    def changes(self, *, history: bool = True) -> Changes:
        """The answer's changes, as of any view."""
        return self.view.changes(history=history)

    def explain(self) -> str:
        """Whether the answer is derived for its arguments or in full, by which rules, and what it shares."""
        return self.plan.explain()

    def insert(self, **values: Any) -> None:
        """Ask for further arguments, from the next epoch that closes on: a value, or a list of them, by parameter."""
        for name, given in values.items():
            self._parameter(name).insert(argument_rows(self.plan.parameter(name), given))

    def remove(self, **values: Any) -> None:
        """Ask for some arguments no longer, from the next epoch that closes on."""
        for name, given in values.items():
            self._parameter(name).remove(argument_rows(self.plan.parameter(name), given))

    def _parameter(self, name: str) -> Input:
        if name not in self.parameters:
            raise NotFoundError(f"the query has no parameter {name!r}: {close_names(name, list(self.parameters))}")
        return self.parameters[name]

    def drop(self) -> None:
        """Stop maintaining the answer, and whatever was kept for it alone."""
        engine = self.view.engine
        self.view.drop()
        for source in self.parameters.values():
            engine.drop(source.name)

    def __enter__(self) -> Query:
        return self

    def __exit__(self, *_: object) -> None:
        if not self.view.dropped:
            self.drop()


def ask(store: Store, text: str, given: Mapping[str, Any], strategy: str = "auto", name: str | None = None) -> Query:
    """Install a query."""
    if strategy not in STRATEGIES:
        raise IncorrectError(f"query: strategy is one of {', '.join(STRATEGIES)}, not {strategy!r}")
    title = name or free_name(store, "query")
    find = parse_query(text, title) if is_edn(text) else goal_query(store, parse_goal(text, title), title)
    unknown = [name for name in given if name not in {p.name for p in find.parameters}]
    if unknown:
        known = [p.name for p in find.parameters]
        raise NotFoundError(f"{title}: there is no parameter {unknown[0]!r}: {close_names(unknown[0], known)}")
    plan = Plan(store, title, find, as_set=not is_edn(text), strategy=strategy)
    plan.check(given)
    inputs: dict[str, Input] = {}
    try:
        for parameter, schema in plan.parameter_schemas(given):
            made = store.engine.input(f"{title} ?{parameter.name}", schema, semantics="set")
            inputs[parameter.name] = made
            if parameter.name in given:
                made.begin_with(argument_rows(parameter, given[parameter.name]))
        collection = plan.collection({parameter_predicate(title, n): made for n, made in inputs.items()})
        view = store.engine.install(title, collection)
    except BaseException:
        for made in inputs.values():
            store.engine.drop(made.name)
        raise
    return Query(view, inputs, plan)


def free_name(store: Store, stem: str) -> str:
    """A name that no view has."""
    number = 1
    while f"{stem} {number}" in store.engine.views:
        number += 1
    return f"{stem} {number}"


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


def goal_query(store: Store, goal: ir.Atom, title: str) -> Find:
    """A goal as a query for all columns of its predicate."""
    name = goal.predicate
    if not store.known(name) and store.stored(name) is None:
        raise NotFoundError(f"{title}: there is no relation {name!r}: {close_names(name, store.names())}")
    (collection,) = store.collections([name], title)
    columns = collection.schema.names
    if len(columns) != len(goal.terms):
        raise IncorrectError(
            f"{title}: {name!r} has {len(columns)} columns ({', '.join(columns)}), not {len(goal.terms)}"
        )
    variables = tuple(ir.Variable(f"column {at}") for at in range(len(columns)))
    body: list[ir.Literal] = []
    parameters: list[Parameter] = []
    wanted: list[ir.Term] = []
    seen: set[ir.Variable] = set()
    for variable, term in zip(variables, goal.terms, strict=True):
        if isinstance(term, ir.Variable) and not term.anonymous:
            if term.name.startswith("$") and term not in seen:
                parameters.append(Parameter(term.name[1:], (term,), many=True))
            seen.add(term)
            wanted.append(term)
        elif isinstance(term, ir.Compute):
            raise IncorrectError(f"{title}: {term} in a goal: give its value")
        else:
            wanted.append(variable if isinstance(term, ir.Variable) else term)
    body.append(ir.Atom(name, tuple(wanted), goal.position))
    return Find(tuple(wanted), tuple(columns), (), tuple(parameters), tuple(body), goal.position)


class Plan:
    """How a query is answered: its rules, rewritten for their arguments or not, and the evaluation of them."""

    def __init__(self, store: Store, title: str, find: Find, as_set: bool, strategy: str) -> None:
        self.store = store
        self.title = title
        self.find = find
        self.as_set = as_set
        arguments = [ir.Atom(parameter_predicate(title, p.name), p.variables, find.position) for p in find.parameters]
        rule = ir.Rule(title, find.terms, (*arguments, *find.body), find.position)
        normal = normalise([rule])
        self.root = [r for r in normal if r.predicate == title]
        self.helpers: dict[str, list[ir.Rule]] = {}
        for other in normal:
            safety.check(other)
            if other.predicate != title:
                self.helpers.setdefault(other.predicate, []).append(other)
        for variable in find.keep:
            if not all(variable in safety.bound_by(rule.body) for rule in self.root):
                raise safety.unbound(rule, variable, ":with")
        self.rewriting = self._choose(strategy)
        self._definitions = self._defined()

    def _choose(self, strategy: str) -> magic.Rewriting | None:
        """The rewritten rules, if the query is to be answered for its arguments alone."""
        self._check_names()
        if strategy == "full":
            self.why = "strategy='full' says so"
            return None
        rules = {**self.store.state.definitions.rules, **self.helpers}
        kept = {name for name in rules if self.store.is_kept(name)} if strategy == "auto" else set()
        shared = {name for name, wanted in self.store.state.share.items() if wanted}
        given = frozenset(parameter_predicate(self.title, p.name) for p in self.find.parameters)
        found = magic.rewrite(self.root, rules, lambda name: name in kept | shared, self._fixed(rules), given)
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
        types: dict[ir.Variable, Type] = {}
        for rule in self.root_rules():
            types |= inference.variables(rule)
        found = []
        for parameter in self.find.parameters:
            columns: dict[str, Type] = {}
            rows = argument_rows(parameter, given[parameter.name]) if parameter.name in given else []
            for at, variable in enumerate(parameter.variables):
                type = types.get(variable)
                if type is None and rows:
                    type = terms.constant_type(rows[0][at])
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

    def collection(self, inputs: Mapping[str, Input]) -> Collection:
        """The query's answer."""
        store = self.store
        schemas = {p: inputs[parameter_predicate(self.title, p.name)].schema for p in self.find.parameters}
        inference = self._inference(schemas)

        def base(name: str) -> Collection | None:
            if name in inputs:
                return inputs[name]
            if name in self._definitions.rules:
                return None
            return store.collections([name], self.title)[0]

        rounds = max(store.state.rounds.values(), default=ROUND_LIMIT)
        evaluation = Evaluation(store.engine, self._definitions, inference, base, rounds)
        reads = dict.fromkeys(name for rule in self.root_rules() for name, _ in strata.dependencies(rule))
        evaluation.build(list(reads))
        schema = Schema(dict(zip(self.find.names, inference.types(self.title), strict=True)))
        rules = self.root_rules()
        if any(rule.aggregates for rule in rules):
            return evaluation.aggregated(rules, schema, as_sets=self.as_set)
        parts = [evaluation.rule(rule, schema) for rule in rules]
        found = parts[0].concat(*parts[1:]) if len(parts) > 1 else parts[0]
        return found.distinct() if self.as_set else found

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
        for name in self.reads():
            lines.append(f"  {name}: {self.store.describe(name)}")
        lines += [f"  {rule}" for rules in self._definitions.rules.values() for rule in rules]
        return "\n".join(lines)

    def reads(self) -> Iterable[str]:
        """The relations that the query reads and does not define."""
        defined = self._definitions.rules
        found = dict.fromkeys(n for rules in defined.values() for rule in rules for n, _ in strata.dependencies(rule))
        own = {parameter_predicate(self.title, p.name) for p in self.find.parameters}
        return [name for name in found if name not in defined and name not in own]
