"""A clause of a query: the names that its expressions may use, and the subqueries, aggregates and windows in them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from tektite.errors import UnsupportedError
from tektite.expr import Expr, coalesce, col, concat, lit
from tektite.expr.predicates import TRUE, conjunction
from tektite.query import interned_aggregates
from tektite.query.aggregate_calls import AggregateCall
from tektite.query.columns import is_shown_apart
from tektite.query.expression_aggregates import spread
from tektite.sql.bind import nested, ordered_aggregates
from tektite.sql.bind.pair_aggregates import PAIRS, of_pairs
from tektite.sql.bind.scalar import Scalars
from tektite.sql.bind.scope import UNIQUE, NameScope, folded
from tektite.sql.catalog import catalog_lookup
from tektite.sql.catalog.contents import CatalogContents
from tektite.sql.catalog.set_functions import SetFunctions
from tektite.sql.logical import Aggregate, Apply, Distinct, Node, Project, Union, call_type, columns_of
from tektite.sql.parse.instead import FUNCTIONS, instead
from tektite.sql.parse.read_arguments import written
from tektite.values import types

if TYPE_CHECKING:
    from tektite.sql.bind.query import Binder
    from tektite.sql.bind.windows import Declared

AGGREGATES: dict[type[exp.Expr], str] = {
    exp.Count: "count", exp.Sum: "sum", exp.Avg: "avg", exp.Min: "min", exp.Max: "max",
    exp.LogicalAnd: "min", exp.LogicalOr: "max", exp.AnyValue: "min",
}  # fmt: skip


SPREADS: dict[type[exp.Expr], tuple[bool, bool]] = {
    exp.Variance: (False, False), exp.VariancePop: (True, False), exp.Stddev: (False, True), exp.StddevSamp: (False, True),
    exp.StddevPop: (True, True),
}  # fmt: skip
"""Whether a measure of spread is of the whole population, and whether it is a root."""


@dataclass
class Pending:
    """A subquery whose result an expression refers to as a column."""

    kind: str
    plan: Node
    name: str
    comparison: str
    tests: tuple[Expr, ...]
    tree: exp.Expr

    def over(self, plan: Node) -> Node:
        """A plan with the subquery's result as one more column."""
        return Apply(plan, self.plan, self.kind, self.name, self.comparison, self.tests)


class ClauseContext:
    """The context of one clause's expressions."""

    def __init__(self, binder: Binder, scope: NameScope, where: str, grouping: Grouping | None = None) -> None:
        self.binder = binder
        self.scope = scope
        self.where = where
        self.grouping = grouping
        self.windows: list[Declared] | None = None
        self.aliases: dict[str, Expr] = {}
        """The outputs of SELECT that a name may mean where there is no column of that name."""
        self.pending: list[Pending] = []
        self.sets = SetFunctions(self)
        self.scalars = Scalars(binder.source, self, binder.columns, binder.meanings)

    # ------------------------------------------------------------------ what expressions refer to

    def column(self, node: exp.Column) -> Expr:
        if isinstance(node.this, exp.Star):
            raise self.binder.source.error("* stands for columns only in SELECT and in count(*)", node)
        if node.args.get("catalog"):
            raise self.binder.source.error("names with more than three parts are not supported", node, UnsupportedError)
        if UNIQUE in node.meta:
            return col(str(node.meta[UNIQUE]))
        name = "" if node.args.get("table") else folded(node.this)
        if (
            name in ("user", "current_role")
            and not node.this.args.get("quoted")
            and not any(s.find(name, "") for s in self.scope.around())
        ):
            return catalog_lookup.session_value(self.scalars, "current_user")
        if name in self.aliases and not self.scope.find(name, ""):
            return self.aliases[name]
        part = self._field(node)
        if part is not None:
            return part
        number = self._table_oid(node)
        if number is not None:
            return number
        unique, _ = self.scope.resolve(node, self.binder.source)
        self.binder.places.setdefault(unique, node)
        return col(unique)

    def _table_oid(self, node: exp.Column) -> Expr | None:
        """The oid of the relation of pg_catalog whose row a column `tableoid` is of; None for any other column."""
        if folded(node.this) != "tableoid":
            return None
        table, schema = folded(node.args.get("table")), folded(node.args.get("db"))
        for scope in self.scope.around():
            if scope.find("tableoid", table, schema):
                return None
            found = [relation.catalog for relation in scope.relations if relation.is_called(table, schema)]
            if found:
                oid = self.contents().relation_oid(f"pg_catalog.{found[0]}") if len(found) == 1 and found[0] else None
                return None if oid is None else lit(oid)
        return None

    def _field(self, node: exp.Column) -> Expr | None:
        """s.a and t.s.a where s is a column with fields; None if they mean a column a of a table."""
        table, schema = node.args.get("table"), node.args.get("db")
        if table is None:
            return None
        scopes = list(self.scope.around())
        if any(relation.is_called(folded(table), folded(schema)) for scope in scopes for relation in scope.relations):
            return None
        owner = exp.Column(this=table, table=schema)
        if not any(scope.find(folded(table), folded(schema)) for scope in scopes):
            if schema is None or not any(scope.find(folded(schema), "") for scope in scopes):
                return None
            inner = self._field(owner) if schema is not None else None
            return None if inner is None else nested.field(self.scalars, inner, node.name, node)
        unique, _ = self.scope.resolve(owner, self.binder.source)
        self.binder.places.setdefault(unique, node)
        return nested.field(self.scalars, col(unique), node.name, node)

    def subquery(self, kind: str, node: exp.Expr, comparison: str, tests: tuple[Expr, ...]) -> Expr:
        bound = self.binder.query(node, self.scope)
        wanted = len(tests) if kind == "any" else 1
        if kind != "exists" and len(bound.names) != wanted:
            message = f"the subquery gives {len(bound.names)} columns where {wanted} can be used"
            raise self.binder.source.error(message, node)
        plan = bound.visible()
        result = types.Bool
        if kind == "scalar":
            ((given, result),) = plan.columns.items()
            name = self.binder.name(given, result)
        else:
            name = self.binder.name(kind, result)
        for test, type in zip(tests, plan.columns.values(), strict=kind == "any"):
            probe = self.binder.name("value", type)
            self.scalars.compare(comparison, test, col(probe), node)
        self.pending.append(Pending(kind, plan, name, comparison, tests, node))
        return col(name)

    def now(self, node: exp.Expr) -> Expr:
        plan = self.binder.tables.now(self.binder)
        name = self.binder.name("now", types.Timestamp)
        self.pending.append(Pending("scalar", plan, name, "eq", (), node))
        return col(name)

    def parameter(self, node: exp.Expr) -> Expr:
        return self.binder.parameter(node)

    @property
    def zone(self) -> str:
        return self.binder.tables.zone

    def contents(self) -> CatalogContents:
        return self.binder.tables.contents()

    def current_user(self) -> Expr:
        return self.binder.tables.current_user()

    def reads_system(self) -> bool:
        return self.binder.tables.reads_system

    def declare(self, expression: Expr, type: str) -> Expr:
        return self.binder.declare(expression, type)

    def declared(self, expression: Expr) -> str:
        return self.binder.declared(expression)

    def element_types(self) -> dict[int, str]:
        return self.binder.element_types

    @property
    def pause(self) -> Callable[[], None] | None:
        return self.binder.pause

    def set_function(self, node: exp.Expr, field: str = "") -> Expr | None:
        return self.sets.column(node, field)

    def aggregate(self, node: exp.Expr, scalars: Scalars) -> Expr:
        depth = self._depth(node)
        if depth:
            owner = next(itertools.islice(self.scope.around(), depth, None)).clause
            if owner is None:
                message = "an aggregate of columns of the query around cannot be used here"
                raise self.binder.source.error(message, node, condition="grouping-error")
            return owner.aggregate(node, owner.scalars)
        if self.grouping is None:
            raise self.binder.source.error(
                f"an aggregate cannot be used in {self.where}", node, condition="grouping-error"
            )
        return self.grouping.call(node)

    def _depth(self, node: exp.Expr) -> int:
        """The number of queries between an aggregate and the nearest query whose columns it reads; 0 if it reads none."""
        if self.scope.parent is None:
            return 0
        depths = []
        for found in node.find_all(exp.Column, exp.Query):
            if isinstance(found, exp.Query):
                return 0  # what reads it is bound by the aggregate's own query
            if (
                isinstance(found, exp.Column)
                and not isinstance(found.this, exp.Star)
                and folded(found.this) not in self.aliases
            ):
                depths.append(self.scope.resolve(found, self.binder.source)[1])
        return min(depths, default=0)

    def window(self, node: exp.Window, scalars: Scalars) -> Expr:
        if self.windows is None:
            raise self.binder.source.error(f"a window function cannot be used in {self.where}", node)
        return self.binder.window(node, self)

    # ------------------------------------------------------------------ binding

    def bind(self, node: exp.Expr) -> Expr:
        return self.scalars.bind(node)

    def predicate(self, node: exp.Expr) -> Expr:
        return self.scalars.predicate(node, self.where)

    def attach(self, plan: Node) -> Node:
        """The plan with a column for each subquery that was found."""
        for found in self.pending:
            plan = found.over(plan)
        self.pending.clear()
        return plan


@dataclass
class Grouping:
    """The groups of a query: keys, and the aggregates that its clauses mention."""

    binder: Binder
    inner: ClauseContext
    keys: list[tuple[str, Expr]] = field(default_factory=list)
    calls: list[tuple[str, AggregateCall]] = field(default_factory=list)
    outer: set[str] = field(default_factory=set)
    sets: list[set[tuple[Any, ...]]] = field(default_factory=list)
    """The grouping sets, each as the fingerprints of its keys; none for plain groups."""
    masks: list[tuple[str, list[Expr], exp.Expr]] = field(default_factory=list)
    """The columns of GROUPING: their names, keys and places."""
    shown: dict[str, str] = field(default_factory=dict)
    """For a key of which equal values may differ, the column of the value that stands for a group: the least of those there."""

    def key(self, expression: Expr, node: exp.Expr) -> None:
        """Group by an expression too."""
        if any(found.fingerprint == expression.fingerprint for _, found in self.keys):
            return
        if expression.op == "col":
            name = expression.params[0]
        else:
            name = self.binder.name("key", self.inner.scalars.type(expression, node))
        self.keys.append((name, expression))

    def call(self, node: exp.Expr) -> Expr:
        """The column of an aggregate, which is computed once however often it is mentioned."""
        condition: Expr = TRUE
        tree = node
        if isinstance(node, exp.Filter):
            condition = ClauseContext.predicate(self.inner, node.expression.this)
            tree = node.this
        if isinstance(tree, exp.IgnoreNulls) and isinstance(tree.this, exp.AnyValue):
            tree = tree.this  # which is how ANY_VALUE is read
        if type(tree) in SPREADS:
            return self.spread(tree, condition)
        if type(tree) in PAIRS:
            return of_pairs(self, tree, condition, self._named)
        if isinstance(tree, exp.Grouping | exp.GroupingId):
            return self.mask(tree)
        if (
            isinstance(tree, ordered_aggregates.ORDERED)
            or isinstance(tree, exp.AnyValue)
            and isinstance(tree.this, exp.Order)
        ):
            call = ordered_aggregates.ordered_call(self.inner, tree, condition)
            self._check(call, tree)
            if isinstance(tree, exp.ArrayAgg):
                return ordered_aggregates.as_list(self.inner, tree, call, self._named)
            return self._named(call)
        if isinstance(tree, exp.CountIf):
            # as DuckDB has it: NULL where the condition is never known
            found = self.inner.predicate(tree.this)
            counted = Expr(
                "case", (conjunction([condition, found]), lit(1), conjunction([condition, ~found]), lit(0), lit(None))
            )
            return self._named(AggregateCall("sum", counted))
        kind = AGGREGATES.get(type(tree))
        if kind is None:
            name = self.binder.source.called(tree)
            message = f"aggregate {name} is not supported{instead(FUNCTIONS, name)}"
            raise self.binder.source.error(message, tree, UnsupportedError)
        argument, distinct = self._argument(tree)
        if argument is None and kind != "count":
            called = self.binder.source.called(tree)
            raise self.binder.source.error(f"{called} needs a value, as in {called}(x)", tree)
        if tree.args.get("expressions"):
            raise self.binder.source.error(f"{kind} with more than one value is not supported", tree, UnsupportedError)
        if condition.fingerprint != TRUE.fingerprint:
            argument = Expr("case", (condition, lit(1) if argument is None else argument, lit(None)))
        if kind in ("sum", "avg") and argument is not None:
            of = self.inner.scalars.type(argument, tree)
            if interned_aggregates.is_summable(of):
                if distinct:
                    raise self.binder.source.error(
                        f"{kind} of different {of}s is not supported", tree, UnsupportedError
                    )
                make = interned_aggregates.total if kind == "sum" else interned_aggregates.average
                return make(argument, of, self._named)
        call = AggregateCall(kind, argument, distinct and kind not in ("min", "max"))
        if argument is not None:
            self._check(call, tree)
        return self._named(call)

    def spread(self, tree: exp.Expr, condition: Expr) -> Expr:
        """Variance and standard deviation, from exact sums of the values and of their squares."""
        argument, distinct = self._argument(tree)
        if argument is None or distinct:
            raise self.binder.source.error(f"{tree.key} of this is not supported", tree, UnsupportedError)
        if self.inner.scalars.type(argument, tree).kind not in ("int", "float", "decimal"):
            raise self.binder.source.error(f"{tree.key} needs numbers", tree)
        value = Expr("case", (condition, argument.cast(types.Float), lit(None)))
        parts = (("sum", value * value), ("sum", value), ("count", value))
        squares, total, count = (self._named(AggregateCall(*part)) for part in parts)
        population, root = SPREADS[type(tree)]
        return spread(squares, total, count, population, root)

    def mask(self, tree: exp.Expr) -> Expr:
        """GROUPING: a number with a bit for each of some keys, 1 where a grouping set has not got the key."""
        keys = [self.inner.bind(part) for part in tree.expressions]
        name = self.binder.name("grouping", types.Int)
        self.masks.append((name, keys, tree))
        return col(name)

    def masks_of(self, wanted: set[tuple[Any, ...]]) -> list[tuple[str, Expr]]:
        """The columns of GROUPING for a grouping set."""
        found: list[tuple[str, Expr]] = []
        for name, keys, tree in self.masks:
            number = 0
            for key in keys:
                if not any(key.fingerprint == known.fingerprint for _, known in self.keys):
                    raise self.binder.source.error("GROUPING takes what the query is grouped by", tree)
                number = 2 * number + (key.fingerprint not in wanted)
            found.append((name, lit(number)))
        return found

    def _named(self, call: AggregateCall) -> Expr:
        """The column of a call, which is computed once."""
        for name, known in self.calls:
            if same_call(known, call):
                return col(name)
        given = {name: found for name, (_, found) in self.binder.columns.items()}
        name = self.binder.name(call.kind, call_type(call, given))
        self.calls.append((name, call))
        return col(name)

    def _argument(self, tree: exp.Expr) -> tuple[Expr | None, bool]:
        given = tree.this
        if given is None or isinstance(given, exp.Star):
            return None, False
        distinct = isinstance(given, exp.Distinct)
        if distinct:
            if len(given.expressions) != 1 or given.args.get("on"):
                raise self.binder.source.error("DISTINCT of several values is not supported", tree, UnsupportedError)
            given = given.expressions[0]
        if distinct and isinstance(tree, exp.Count) and isinstance(given, exp.Tuple):
            return row_key([self.inner.bind(part) for part in given.expressions]), True
        if isinstance(given, exp.Order | exp.HavingMax):
            raise self.binder.source.error("ORDER BY in an aggregate is not supported", tree, UnsupportedError)
        value = self.inner.bind(given)
        if isinstance(tree, exp.Sum) and self.inner.scalars.type(value, tree) == types.Bool:
            value = value.cast(types.Int)  # how many are true
        return value, distinct

    def _check(self, call: AggregateCall, tree: exp.Expr) -> None:
        assert call.argument is not None
        found = self.inner.scalars.type(call.argument, tree)
        if call.kind in ("sum", "avg") and (found.interned or found.kind not in ("int", "float", "decimal")):
            raise self.binder.source.error(f"{call.kind} needs numbers, not {found}", tree)
        if isinstance(tree, exp.LogicalAnd | exp.LogicalOr) and found != types.Bool:
            raise self.binder.source.error(f"{tree.key} needs conditions, not {found}", tree)

    def apply(self, plan: Node) -> Node:
        """The plan's groups; those of all grouping sets, with NULL for the keys that a set has not."""
        source = self.inner.attach(plan)
        for name, key in self.keys:
            if is_shown_apart(self.binder.columns[name][1]):
                self.shown[name] = self._named(AggregateCall("min", key)).params[0]
        if (
            not self.keys and not self.calls
        ):  # HAVING alone: the one group is a row, though nobody asks for anything of it
            self._named(AggregateCall("count", None))
        if not self.sets:
            groups = Aggregate(source, tuple(self.keys), tuple(self.calls))
            masks = self.masks_of({key.fingerprint for _, key in self.keys})
            return Project(groups, (*columns_of(groups), *masks)) if masks else groups
        parts = []
        for wanted in self.sets:
            new = self.binder.name
            kinds = self.binder.columns
            keys = [(new(name, kinds[name][1]), key, key.fingerprint in wanted) for name, key in self.keys]
            calls = [(new(name, kinds[name][1]), call) for name, call in self.calls]
            grouped = Aggregate(source, tuple((name, key) for name, key, there in keys if there), tuple(calls))
            outputs = [(name, col(name) if there else lit(None, kinds[name][1])) for name, _, there in keys]
            missing = {self.shown.get(name) for name, key in self.keys if key.fingerprint not in wanted}
            for (known, _), (name, _) in zip(self.calls, calls, strict=True):
                outputs.append((name, lit(None, kinds[known][1]) if known in missing else col(name)))
            outputs += [(new(name, types.Int), mask) for name, mask in self.masks_of(wanted)]
            parts.append(Project(grouped, tuple(outputs)))
        names = [name for name, _ in (*self.keys, *self.calls)]
        return Union(tuple(parts), (*names, *(name for name, _, _ in self.masks)))

    def over_groups(self, expression: Expr) -> Expr:
        """An expression over the ungrouped columns as one over the groups' columns."""
        keys = {key.fingerprint: self.shown.get(name, name) for name, key in self.keys}

        def visit(node: Expr) -> Expr:
            name = keys.get(node.fingerprint)
            if name is not None:
                return col(name)
            if not node.args:
                return node
            return Expr(node.op, tuple(map(visit, node.args)), node.params)

        found = visit(expression)
        known = {name for name, *_ in (*self.keys, *self.calls, *self.masks)}
        for name in found.columns():
            if name in self.outer and name not in known:
                place = self.binder.places.get(name)
                shown = name if place is None else written(place)
                message = f"column {shown!r} is neither in GROUP BY nor in an aggregate"
                raise self.binder.source.error(message, place, condition="grouping-error")
        return found


def each_once(binder: Binder, plan: Node) -> Node:
    """Each row once. Of equal values that differ, such as `1 month` and `30 days`, a row has the least of those there."""
    apart = {name: kind for name, kind in plan.columns.items() if is_shown_apart(kind)}
    if not apart:
        return Distinct(plan)
    keys = {name: binder.name(name, kind) for name, kind in plan.columns.items()}
    least = {name: binder.name(name, kind) for name, kind in apart.items()}
    groups = Aggregate(
        plan,
        tuple((key, col(name)) for name, key in keys.items()),
        tuple((found, AggregateCall("min", col(name))) for name, found in least.items()),
    )
    return Project(groups, tuple((name, col(least.get(name, key))) for name, key in keys.items()))


def row_key(values: list[Expr]) -> Expr:
    """A text that tells rows of values apart: each value's text behind its length, and - for NULL."""
    texts = [value.cast(types.String) for value in values]
    return concat(*(coalesce(concat(text.length().cast(types.String), ":", text), "-") for text in texts))


def same_call(one: AggregateCall, other: AggregateCall) -> bool:
    """Whether two aggregates are the same."""
    return one.printed(lambda scalar: scalar.fingerprint) == other.printed(lambda scalar: scalar.fingerprint)
