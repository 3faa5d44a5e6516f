"""Queries: goals such as `tc("david", ?)` and `[:find ... :where ...]`, with arguments that may change.

A query is evaluated for its arguments, if it has some (`tektite.datalog.rules.magic`), or in full. It reads predicates that are
already maintained. Its parameters are inputs, so one dataflow serves all their values. The answer of a goal is a set. That of a
`:find` is a multiset: a row occurs as often as the body holds for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tektite.datalog.evaluate.goals import Plan, argument_rows, parameter_predicate
from tektite.datalog.evaluate.pulls import Pull
from tektite.datalog.evaluate.rule_store import RuleStore, close_names
from tektite.datalog.rules.records import constant
from tektite.datalog.syntax import ir
from tektite.datalog.syntax.edn_queries import Find, Parameter, parse_query
from tektite.datalog.syntax.edn_rules import is_edn
from tektite.datalog.syntax.textbook import parse_goal
from tektite.engine.argument_tables import ArgumentTables
from tektite.engine.changes import Changes
from tektite.engine.core import core_of
from tektite.engine.versions import read_version
from tektite.errors import IncorrectError, NotFoundError
from tektite.former_names import former_name
from tektite.query.builders import derived
from tektite.query.match import check_strategy
from tektite.unknown_options import explains_options

if TYPE_CHECKING:
    from tektite.engine.subscription import Subscription
    from tektite.engine.view import View

STRATEGIES = ("auto", "goal", "full")
FEW = 64
"""A query with at most this many arguments is never switched to full evaluation: deriving for them is cheap."""
SHARE = 3
"""A query whose arguments ask for more than one in SHARE of all values is evaluated in full. Deriving a fact for an argument
costs two to three times as much as in full (same generation on a grid), because each rule also looks up what is asked for.
"""


@explains_options
class Query:
    """A maintained answer. Made by `Engine.query`; drop it, or leave its `with` block, when it is not wanted any longer.

    >>> import tektite as tk
    >>> engine = tk.Engine()
    >>> edge = engine.create_table("edge", {"src": tk.String, "dst": tk.String})
    >>> _ = engine.datalog("tc(x, y) :- edge(x, y).  tc(x, z) :- tc(x, y), edge(y, z).")
    >>> _ = edge.insert([("david", "ann"), ("ann", "bea"), ("cid", "bea")])
    >>> sorted(engine.query('tc("david", ?)').rows())
    [('david', 'ann'), ('david', 'bea')]
    >>> query = engine.query("tc($x, ?)", x="cid")
    >>> query.rows()
    [('cid', 'bea')]
    >>> _ = query.insert(x="ann")
    >>> sorted(query.rows())
    [('ann', 'bea'), ('cid', 'bea')]
    """

    def __init__(self, plan: Plan, arguments: ArgumentTables, watching: bool) -> None:
        """With `watching`, the query switches to full evaluation when its arguments ask for a large share of all values."""
        self.plan = plan
        self.arguments = arguments
        self._inputs = {parameter_predicate(plan.title, name): made for name, made in arguments.tables.items()}
        self._asks: list[View] = []
        self._over = False
        self._sizes: dict[tuple[str, int], tuple[int, int]] = {}
        engine = plan.store.engine
        kept = plan.asks(self._inputs) if watching and any(plan.domains().values()) else {}
        try:
            if kept:
                titles = {f"{plan.title} {name}": collection for name, collection in kept.items()}
                self._asks = core_of(engine).install_together(titles)
                for view in self._asks:
                    engine.finish(view)
                if self._asks_for_much():
                    self._plan_in_full()
                    kept = {}
                    self._forget_asks()
            views = dict(zip(kept, self._asks, strict=True))
            self.view = engine.install(plan.title, self.plan.collection(self._inputs, views))
        except BaseException:
            self._forget_asks()
            raise
        self._pulls: list[Pull] = []
        try:
            for place, patterns in plan.find.pulls:
                self._pulls.append(Pull(plan.store, plan.title, len(plan.find.terms), place, patterns))
        except BaseException:
            self._drop_views()
            raise
        if self._asks:
            core_of(self._asks[0]).flow.on_swept += (self._watch,)

    def __repr__(self) -> str:
        return f"<Query {self.view!r}>"

    def _repr_html_(self) -> str:
        """The HTML that a notebook shows: the first rows of the answer."""
        return self.view._repr_html_()

    # ------------------------------------------------------------------ how much is asked

    def _watch(self) -> None:
        """Called when the arguments have changed, before the answer follows: switch to full evaluation if they ask for much."""
        # Subscribers would lose their subscription with the view.
        view = core_of(self.view)
        if self._over or view.dropped or view.feeds or view.waiters or not self._asks_for_much():
            return
        self._over = True
        engine = self.view.engine
        self.view.drop()
        self._plan_in_full()
        self.view = engine.install(self.plan.title, self.plan.collection(self._inputs, {}))

    def _plan_in_full(self) -> None:
        plan = self.plan
        self.plan = Plan(plan.store, plan.title, plan.find, plan.as_set, "full")
        self.plan.why = f"its arguments come to ask for more than one in {SHARE} of all values"

    def _asks_for_much(self) -> bool:
        """Whether the goals ask some predicate for more than one in SHARE of its values."""
        for view, places in zip(self._asks, self.plan.domains().values(), strict=True):
            if core_of(view).trace.rows <= FEW or not places:
                continue
            asked = read_version(core_of(view).trace, core_of(view).low - 1).shape[1]
            if asked > FEW and asked * SHARE > min(self._values(name, column) for name, column in places):
                return True
        return False

    def _values(self, name: str, column: int) -> int:
        """The number of distinct values of a stored column."""
        found_there: Any = self.plan.store.stored(name)
        if found_there is None:
            return 1 << 62
        stored = core_of(found_there)
        rows, found = self._sizes.get((name, column), (-1, 0))
        if rows != stored.trace.rows:
            words = read_version(stored.trace, stored.low - 1)[stored.columns.index(column)]
            found = len(np.unique(words))
            self._sizes[name, column] = (stored.trace.rows, found)
        return found

    def _forget_asks(self) -> None:
        for view in self._asks:
            view.drop()
        self._asks = []

    def _current(self) -> View:
        """The view, after the arguments were checked. Views of arguments are dropped here, not within their own sweep."""
        for view in self._asks:
            if not self._over:
                view.engine.finish(view)
        if self._over:
            self._forget_asks()
        return self.view

    # ------------------------------------------------------------------ the answer

    def rows(self) -> list[tuple[Any, ...]]:
        """The answer as tuples."""
        return self._current().rows()

    def answer(self) -> Any:
        """The answer in the form that the query's :find asks for: rows, a list of values for `[?x ...]`, a row or None for `[?x
        ?y]`, a value or None for `?x .`; with dicts for what is pulled. Of several rows, one row is the least.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> _ = engine.attribute("name", tk.String, cardinality="one"), engine.attribute("knows", tk.Int)
        >>> _ = engine.transact('[1 :name "ann"] [2 :name "bob"] [1 :knows 2]')
        >>> engine.query('[:find ?e . :where [?e :name "bob"]]').answer()
        2
        >>> engine.query("[:find (pull ?e [:name {:knows [:name]}]) . :where [?e :knows]]").answer()
        {':name': 'ann', ':knows': [{':name': 'bob'}]}
        """
        shape = self.plan.find.shape
        rows = self.rows()
        if shape in ("row", "value"):
            rows = [min(rows)] if rows else []
        for pull in self._pulls:
            read = pull.read()
            rows = [(*row[: pull.place], read(row[pull.place]), *row[pull.place + 1 :]) for row in rows]
        match shape:
            case "values":
                return [row[0] for row in rows]
            case "row":
                return rows[0] if rows else None
            case "value":
                return rows[0][0] if rows else None
        return rows

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows())

    def __len__(self) -> int:
        return len(self._current())

    def snapshot(self) -> pa.Table:
        """The answer as a table."""
        return self._current().snapshot()

    def multiplicities(self) -> dict[tuple[Any, ...], int]:
        """The multiplicity of each row."""
        return self._current().multiplicities()

    @former_name("query.subscribe()")
    def changes(self, *, history: bool = True) -> Changes:
        """The answer's changes row by row, by a former name."""
        return Changes(self.subscribe(snapshot=history))

    def subscribe(
        self, *, snapshot: bool | None = None, progress: bool = False, since: int | None = None
    ) -> Subscription:
        """The answer's changes, time by time; see `View.subscribe`."""
        return self._current().subscribe(snapshot=snapshot, progress=progress, since=since)

    def explain(self, joins: bool = False) -> str:
        """Whether the answer is derived for its arguments or in full, by which rules, and what it shares; with `joins`, how
        the rules are joined, too.
        """
        view = self._current()
        lines = [self.plan.explain()]
        if joins:
            found = view.engine.explain(derived(core_of(view).definition, view))
            lines += ["joins", *(f"  {line}" for line in found.splitlines())]
        return "\n".join(lines)

    def insert(self, **values: Any) -> int | None:
        """Ask for further arguments: a value, or a list of them, by parameter. Returns what `Table.insert` does."""
        return self._write(values, 1, "insert")

    def remove(self, **values: Any) -> int | None:
        """Ask for some arguments no longer. Returns what `Table.insert` does."""
        return self._write(values, -1, "remove")

    def _write(self, values: Mapping[str, Any], diff: int, verb: str) -> int | None:
        """Write the arguments of all parameters together."""
        rows = {name: argument_rows(self._parameter(name), given) for name, given in values.items()}
        return self.arguments.write(rows, diff, verb)

    def _parameter(self, name: str) -> Parameter:
        known = self.arguments.tables
        if name not in known:
            raise NotFoundError(f"the query has no parameter {name!r}: {close_names(name, list(known))}")
        return self.plan.parameter(name)

    def drop(self) -> None:
        """Stop maintaining the answer, and whatever was kept for it alone."""
        self._drop_views()
        self._forget_asks()
        self.arguments.drop()

    def _drop_views(self) -> None:
        for pull in self._pulls:
            pull.drop()
        self._pulls = []
        self.view.drop()

    def __enter__(self) -> Query:
        return self

    def __exit__(self, *_: object) -> None:
        if not core_of(self.view).dropped:
            self.drop()


def ask(
    store: RuleStore,
    text: str,
    given: Mapping[str, Any],
    strategy: str = "auto",
    name: str | None = None,
    joins: str = "auto",
) -> Query:
    """Install a query."""
    check_strategy(joins, "query: joins")
    if strategy not in STRATEGIES:
        raise IncorrectError(f"query: strategy is one of {', '.join(STRATEGIES)}, not {strategy!r}")
    title = name or free_name(store, "query")
    if is_edn(text):
        find = parse_query(text, title)
        find = replace(find, body=store.patterns().body(find.body))
    else:
        find = goal_query(store, parse_goal(text, title), title)
    unknown = [name for name in given if name not in {p.name for p in find.parameters}]
    if unknown:
        known = [p.name for p in find.parameters]
        raise NotFoundError(f"{title}: there is no parameter {unknown[0]!r}: {close_names(unknown[0], known)}")
    plan = Plan(store, title, find, as_set=not is_edn(text), strategy=strategy, joins=joins)
    plan.check(given)
    arguments = ArgumentTables(core_of(store.engine))
    with arguments.kept_if_installed():
        for parameter, schema in plan.parameter_schemas(given):
            made = store.engine.create_table(f"{title} ?{parameter.name}", schema, mode="set")
            arguments.tables[parameter.name] = made
            if parameter.name in given:
                core_of(made).begin_with(argument_rows(parameter, given[parameter.name]), at_once=plan.is_constant())
        return Query(plan, arguments, strategy == "auto" and not find.pulls)


def free_name(store: RuleStore, stem: str) -> str:
    """A name that no view has, and no stored parameter of an earlier query."""
    taken = {*core_of(store.engine).views, *(name.split(" ?")[0] for name in store.engine.tables)}
    return next(name for number in count(1) if (name := f"{stem} {number}") not in taken)


def with_constant_records(goal: ir.Atom, title: str) -> ir.Atom:
    """A goal with its records as text constants."""
    terms: list[ir.Term] = []
    for term in goal.terms:
        found = constant(term) if isinstance(term, ir.Construct) else term
        if found is None:
            raise IncorrectError(
                f"{title}: {term} in a goal must be a record of constants; ask for the column, and filter"
            )
        terms.append(found)
    return replace(goal, terms=tuple(terms))


def goal_query(store: RuleStore, goal: ir.Atom, title: str) -> Find:
    """A goal as a query for all columns of its predicate."""
    name = goal.predicate
    goal = with_constant_records(goal, title)
    if not store.known(name) and store.stored(name) is None:
        raise NotFoundError(f"{title}: there is no relation {name!r}: {close_names(name, store.names())}")
    (collection,) = store.collections([name], title)
    columns = collection.schema.names
    if len(columns) != len(goal.terms):
        raise IncorrectError(
            f"{title}: {name!r} has {len(columns)} columns ({', '.join(columns)}), not {len(goal.terms)}"
        )
    variables = tuple(ir.RuleVariable(f"column {at}") for at in range(len(columns)))
    body: list[ir.Literal] = []
    parameters: list[Parameter] = []
    wanted: list[ir.Term] = []
    seen: set[ir.RuleVariable] = set()
    for variable, term in zip(variables, goal.terms, strict=True):
        if isinstance(term, ir.RuleVariable) and not term.anonymous:
            if term.name.startswith("$") and term not in seen:
                parameters.append(Parameter(term.name[1:], (term,), many=True))
            seen.add(term)
            wanted.append(term)
        elif isinstance(term, ir.Compute):
            raise IncorrectError(f"{title}: {term} in a goal: give its value")
        else:
            wanted.append(variable if isinstance(term, ir.RuleVariable) else term)
    body.append(ir.Atom(name, tuple(wanted), goal.position))
    types = collection.schema.types
    return Find(tuple(wanted), tuple(columns), (), tuple(parameters), tuple(body), goal.position, types)
