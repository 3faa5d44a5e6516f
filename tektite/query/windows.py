"""Window functions of Python's expressions: `over(...)` as columns that the plan's window operator computes.

SQL binds its own syntax to the same calls, and `windowed` runs both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tektite.errors import IncorrectError
from tektite.expr import Expr, col
from tektite.expr import key as equal_key
from tektite.expr import type_of as expression_type
from tektite.expr.literals import literal_value
from tektite.expr.printing import SKIPPING
from tektite.plan.names import free_name
from tektite.query import interned_aggregates
from tektite.query.aggregate_calls import AggregateCall
from tektite.query.aggregates import operand
from tektite.query.aggregation import aggregate
from tektite.query.builders import project, reduce_groups
from tektite.query.collection import Collection
from tektite.query.column_aggregates import joined_parts
from tektite.query.columns import with_columns
from tektite.query.derived import derived
from tektite.query.expression_aggregates import PLAIN, Extraction, as_number, check, of_different, selected
from tektite.query.near_windows import NearWindows
from tektite.query.outputs import Outputs
from tektite.query.window_calls import Edge, Frame, Ordering, Reach, WindowCall, WindowOptions
from tektite.query.window_functions import Windows
from tektite.unknown_options import explained
from tektite.values import types
from tektite.values.arguments import whole_number
from tektite.values.types import Type

WHOLE: Frame[Any] = ("rows", None, None)
RUNNING: Frame[Any] = ("range", None, 0)
UP_TO_HERE: Frame[Any] = ("rows", None, 0)
FLOATS = ("percent_rank", "cume_dist")
GROUPED = ("n_unique", "median", "quantile", "mode", "join", "list")
"""Aggregates of whole partitions that may be taken of different values alone."""
CUMULATIVE = {"cum_sum": "sum", "cum_count": "count", "cum_min": "min", "cum_max": "max"}


@explained
def row_number() -> Expr:
    """The number of each row in its window, from 1 on. Needs `.over(..., order_by=...)`.

    >>> import tektite as tk
    >>> engine = tk.Engine()
    >>> sales = engine.create_table("sales", {"shop": tk.String, "amount": tk.Int})
    >>> first = tk.row_number().over("shop", order_by="amount", descending=True) == 1
    >>> view = engine.install("largest", sales.filter(first))
    >>> _ = sales.insert([("north", 3), ("north", 4), ("south", 5)])
    >>> sorted(view.rows())
    [('north', 4), ('south', 5)]
    """
    return Expr("window", (), ("row_number",))


@explained
def rank() -> Expr:
    """The rank of each row in its window: equal rows have one rank, and gaps follow them. Needs `.over(..., order_by=...)`.

    >>> import tektite as tk
    >>> rows = tk.Engine().values({"day": [1, 2, 3, 4], "x": [10, 30, 30, 40]})
    >>> rows.select("day", y=tk.rank().over(order_by="x")).sort("day").collect().to_pydict()
    {'day': [1, 2, 3, 4], 'y': [1, 2, 2, 4]}
    """
    return Expr("window", (), ("rank",))


@explained
def dense_rank() -> Expr:
    """The rank of each row in its window, without gaps. Needs `.over(..., order_by=...)`.

    >>> import tektite as tk
    >>> rows = tk.Engine().values({"day": [1, 2, 3, 4], "x": [10, 30, 30, 40]})
    >>> rows.select("day", y=tk.dense_rank().over(order_by="x")).sort("day").collect().to_pydict()
    {'day': [1, 2, 3, 4], 'y': [1, 2, 2, 3]}
    """
    return Expr("window", (), ("dense_rank",))


@explained
def percent_rank() -> Expr:
    """The share of rows with a lesser rank, from 0 to 1. Needs `.over(..., order_by=...)`.

    >>> import tektite as tk
    >>> rows = tk.Engine().values({"day": [1, 2, 3, 4], "x": [10, 30, 30, 40]})
    >>> rows.select("day", y=tk.percent_rank().over(order_by="x")).sort("day").collect().to_pydict()
    {'day': [1, 2, 3, 4], 'y': [0.0, 0.3333333333333333, 0.3333333333333333, 1.0]}
    """
    return Expr("window", (), ("percent_rank",))


@explained
def cume_dist() -> Expr:
    """The share of rows that are not behind this one. Needs `.over(..., order_by=...)`.

    >>> import tektite as tk
    >>> rows = tk.Engine().values({"day": [1, 2, 3, 4], "x": [10, 30, 30, 40]})
    >>> rows.select("day", y=tk.cume_dist().over(order_by="x")).sort("day").collect().to_pydict()
    {'day': [1, 2, 3, 4], 'y': [0.25, 0.75, 0.75, 1.0]}
    """
    return Expr("window", (), ("cume_dist",))


@explained
def ntile(buckets: int) -> Expr:
    """The number, from 1 on, of the part in which a row lies if its window is cut into so many equal parts. Needs `.over(...,
    order_by=...)`.

    >>> import tektite as tk
    >>> rows = tk.Engine().values({"day": [1, 2, 3, 4], "x": [10, 30, 30, 40]})
    >>> rows.select("day", y=tk.ntile(2).over(order_by="x")).sort("day").collect().to_pydict()
    {'day': [1, 2, 3, 4], 'y': [1, 1, 2, 2]}
    """
    parts = whole_number(buckets, 1)
    if parts is None:
        raise IncorrectError(f"tk.ntile(...) takes a positive number of parts, not {buckets!r}")
    return Expr("window", (), ("ntile", parts))


@explained
def lag(value: Expr | str, n: int = 1, default: Any = None) -> Expr:
    """The value `n` rows before. Needs `.over(..., order_by=...)`.

    >>> import tektite as tk
    >>> rows = tk.Engine().values({"day": [1, 2, 3], "x": [10, 30, 20]})
    >>> rows.select("day", y=tk.lag("x").over(order_by="day")).sort("day").collect().to_pydict()
    {'day': [1, 2, 3], 'y': [None, 10, 30]}
    """
    return operand("lag", value).lag(n, default)


@explained
def lead(value: Expr | str, n: int = 1, default: Any = None) -> Expr:
    """The value `n` rows behind. Needs `.over(..., order_by=...)`.

    >>> import tektite as tk
    >>> rows = tk.Engine().values({"day": [1, 2, 3], "x": [10, 30, 20]})
    >>> rows.select("day", y=tk.lead("x", default=0).over(order_by="day")).sort("day").collect().to_pydict()
    {'day': [1, 2, 3], 'y': [30, 20, 0]}
    """
    return operand("lead", value).lead(n, default)


def evaluated(collection: Collection, outputs: Outputs) -> tuple[Collection, Outputs]:
    """The collection with a column for each window function of some expressions, and the expressions over these columns."""
    if not any(node.op == "over" for _, expression in outputs for node in expression.walk()):
        return collection, outputs
    found = WindowColumns(collection)
    results = [(name, expression.replaced(found.result)) for name, expression in outputs]
    return found.finished(), results


class WindowColumns:
    """A collection that gains columns: what window functions read, and then their results."""

    def __init__(self, collection: Collection) -> None:
        self.collection = collection
        self._schema = collection.schema
        self._known: dict[tuple[object, ...], str] = {}
        self._values: dict[tuple[object, ...], str] = {}
        self._calls: list[tuple[str, WindowCall]] = []

    def result(self, node: Expr) -> Expr | None:
        """The column that holds the result of a window function; None for any other node."""
        if node.op != "over":
            return None
        summed = self._summed(node)
        if summed is not None:
            return summed
        if node.fingerprint not in self._known:
            partition, downs, frame, *excluded = node.params
            call, by, order = node.args[0], node.args[1 : 1 + partition], node.args[1 + partition :]
            taken = {*self._schema.names, *self._known.values()}
            self._known[node.fingerprint] = name = free_name(call.params[0], taken)
            self._compute(name, node, call, by, [*zip(order, downs, strict=True)], frame, *excluded)
        return col(self._known[node.fingerprint])

    def _summed(self, node: Expr) -> Expr | None:
        """The sum or average of values that no word holds, from sums of their parts; None for any other function."""
        call = node.args[0]
        if not call.args or call.params[0] not in ("sum", "mean", "cum_sum"):
            return None
        value = selected(call.args[0])
        kind = expression_type(value, self._schema.positions)
        if not interned_aggregates.is_summable(kind):
            return None
        if of_different(call.args[0]):
            raise IncorrectError(f"{node}: {call.params[0]} of different {kind}s is not supported")

        def part(found: AggregateCall) -> Expr:
            assert found.argument is not None
            of_part = Expr(call.op, (found.argument,), call.params if found.kind == "sum" else (found.kind,))
            if found.kind == "sum" and call.params[0] == "mean":
                of_part = Expr("aggregate", (found.argument,), ("sum",))
            column = self.result(Expr("over", (of_part, *node.args[1:]), node.params))
            assert column is not None
            return column

        make = interned_aggregates.average if call.params[0] == "mean" else interned_aggregates.total
        return make(value, kind, part)

    def _column(self, expression: Expr) -> str:
        """A column that holds an expression."""
        if expression.op == "col":
            self._schema.index(expression.params[0])
            return str(expression.params[0])
        if expression.fingerprint not in self._values:
            self._values[expression.fingerprint] = name = f"#value{len(self._values)}"
            self.collection = self.collection.with_columns(**{name: expression})
        return self._values[expression.fingerprint]

    def _compute(
        self,
        name: str,
        node: Expr,
        call: Expr,
        by: Sequence[Expr],
        order: Sequence[tuple[Expr, bool]],
        frame: tuple[Any, ...],
        exclude: str = "",
    ) -> None:
        kind, *constants = call.params
        keys = tuple(self._column(part) for part in by)
        value = selected(call.args[0]) if call.args else None
        distinct = bool(call.args) and of_different(call.args[0])
        ignores_nulls = kind in SKIPPING and len(constants) > SKIPPING[kind]
        if distinct and kind not in PLAIN and kind not in GROUPED:
            raise IncorrectError(f"{node}: {kind} of different values is not supported in a window")
        if call.op == "aggregate":
            if kind in ("first", "last"):
                order = order or [*zip(call.args[1:], constants[0], strict=True)]
                kind = f"{kind}_value"
                frame = frame or WHOLE
            else:
                check(call, value, self._schema)
                value = as_number(kind, value, self._schema)
            if kind not in PLAIN and kind not in ("first_value", "last_value"):
                self._of_groups(name, node, call, keys, bool(order or frame or exclude))
                return
        if not order and (call.op == "window" or kind in ("first_value", "last_value")):
            raise IncorrectError(
                f"{node}: the rows of a collection have no order of their own: say over(..., order_by=...)"
            )
        if kind in CUMULATIVE:
            if frame:
                raise IncorrectError(
                    f"{node}: {kind} takes all rows up to this one; for other rows, use {CUMULATIVE[kind]}()"
                )
            kind, frame = CUMULATIVE[kind], UP_TO_HERE
        elif call.op == "window" and kind != "nth_value" and (frame or exclude):
            raise IncorrectError(f"{node}: {kind} takes no frame: leave rows=, range=, groups= and exclude= out")
        type = self._type(call, PLAIN.get(kind, kind), value)
        if kind in ("lag", "lead"):
            assert value is not None
            constants = [constants[0], None if constants[1] is None else literal_value(constants[1], type)]
        elif call.op == "aggregate":
            constants = []
        elif kind == "nth_value":
            constants = constants[:1]
        call_of_columns = WindowCall(
            PLAIN.get(kind, kind),
            () if value is None else (self._column(value),),
            keys,
            tuple(Ordering(self._column(part), down) for part, down in order),
            self._frame(node, order, frame) if frame else RUNNING if order else WHOLE,
            type,
            tuple(constants),
            str(node),
            WindowOptions(exclude, ignores_nulls, distinct and PLAIN.get(kind, kind) not in ("min", "max")),
        )
        self._calls.append((name, call_of_columns))

    def _frame(self, node: Expr, order: Sequence[tuple[Expr, bool]], frame: tuple[Any, ...]) -> Frame[str]:
        """A frame over columns: an end of `range` that lies a value away is a column, the place in the order moved by it."""
        kind, *ends = frame
        if kind != "range" or not any(ends):
            return frame[0], frame[1], frame[2]
        place, descending = order[0]
        edges: list[Edge[str]] = []
        for end in ends:
            if not end:
                edges.append(end if end is None else 0)
                continue
            back = (end < type(end)(0)) != descending
            bound = place - abs(end) if back else place + abs(end)
            kinds = [expression_type(part, self._schema.positions) for part in (place, bound)]
            value = place if kinds[0] == kinds[1] else place.cast(kinds[1])
            edges.append(Reach(self._column(value), self._column(bound), steady=True))
        return kind, edges[0], edges[1]

    def finished(self) -> Collection:
        """The collection with all results. Calls over one partition are computed together, so that they agree on the order of
        rows that are equal in theirs.
        """
        return windowed(self.collection, self._calls)

    def _type(self, call: Expr, kind: str, value: Expr | None) -> Type:
        """The type of a result."""
        if value is None or kind == "count":
            return types.Float if kind in FLOATS else types.Int
        found = expression_type(value, self._schema.positions)
        if kind in ("sum", "avg") and (found.interned or found.kind not in ("int", "float", "decimal")):
            raise IncorrectError(f"{call}: {value} is {found}, not a number")
        if kind == "avg":
            return types.Float
        return types.Decimal(18, found.scale) if kind == "sum" and isinstance(found, types.DecimalType) else found

    def _of_groups(self, name: str, node: Expr, call: Expr, keys: tuple[str, ...], moving: bool) -> None:
        """An aggregate that frames do not have: computed for each partition, and joined to its rows."""
        if moving:
            raise IncorrectError(f"{node}: {call} is of whole partitions; leave order_by= and rows= out")
        partition = list(dict.fromkeys(keys)) or ["#whole"]
        rows = self.collection if keys else self.collection.with_columns(**{"#whole": 0})
        extraction = Extraction(self._schema, [])
        result = extraction.over_calls(call)
        found = aggregate(rows, [(key, col(key)) for key in partition], extraction.calls)
        found = project(found, [*((key, col(key)) for key in partition), (name, result)])
        self.collection = joined_parts([rows, found], partition, one_to_one=False)


def windowed(collection: Collection, calls: Sequence[tuple[str, WindowCall]]) -> Collection:
    """The rows with the results of window functions: those over one partition in one pass over it."""
    found = collection
    waiting = list(calls)
    while waiting:
        by = waiting[0][1].by
        chosen = [(name, call) for name, call in waiting if call.by == by]
        waiting = [(name, call) for name, call in waiting if call.by != by]
        names = found.schema.names
        told = {key: free_name(f"#{key}", names) for key in by if found.schema.types[found.schema.index(key)].has_keys}
        if told:  # rows keep their values: partitions are made by other columns, with one word for equal values
            found = derived(with_columns(found.operator, {told[key]: equal_key(col(key)) for key in told}), found)
        keys = list(dict.fromkeys(told.get(key, key) for key in by))
        kinds = dict(zip(found.schema.names, found.schema.types, strict=True))
        rest = {name: kind for name, kind in kinds.items() if name not in keys}
        of_keys = [call for _, call in chosen]
        function = Windows.over({name: kinds[name] for name in (*keys, *rest)}, len(keys), of_keys)
        # arranged in the order of the calls, a change can be looked at where it is
        ordered = {o.column: kinds[o.column] for o in of_keys[0].order if o.column not in keys} | rest
        near = NearWindows.of(Windows.over({name: kinds[name] for name in (*keys, *ordered)}, len(keys), of_keys))
        if near is not None:
            function, rest = near, ordered
            found = found.select([*keys, *ordered])
        columns = rest | {name: call.type for name, call in chosen}
        found = reduce_groups(found, function, keys, columns).select(list(names), [name for name, _ in chosen])
    return found
