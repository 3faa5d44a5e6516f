"""Methods of expressions that make aggregates and window functions: `col("price").sum()`, `tk.rank().over(...)`.

Both are nodes of an expression, so that arithmetic goes on with them: `col("price").sum() / tk.count()`. No row has a value for
them. `agg` and `select` compute aggregates from groups, and `over` makes of either a value of each row, computed from the rows
around it.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from tektite.errors import IncorrectError
from tektite.unknown_options import explains_missing_calls, explains_options
from tektite.values.arguments import whole_number

if TYPE_CHECKING:
    from tektite.expr.ast import Expr, Scalar

CALLS = ("aggregate", "window")


@explains_missing_calls
@explains_options
class AggregateMethods:
    """Aggregates of an expression. NULL does not count, and an aggregate of nothing but NULL is NULL."""

    __slots__ = ()

    def _made(self, op: str, args: Sequence[Any], params: tuple[Any, ...] = ()) -> Expr:
        """A node over this module's operands. Python scalars become literals."""
        raise NotImplementedError

    # -- aggregates ------------------------------------------------------------------------------------------------

    def sum(self) -> Expr:
        """The exact sum; see `tektite.sum`.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": tk.String, "price": tk.Int, "quantity": tk.Int})
        >>> revenue = (tk.col("price") * tk.col("quantity")).sum()
        >>> totals = sales.group_by("shop").agg(revenue.alias("revenue"), mean=revenue / tk.count())
        >>> view = engine.install("totals", totals)
        >>> _ = sales.insert([("north", 3, 2), ("north", 4, 1), ("south", 5, 1)])
        >>> sorted(view.rows())
        [('north', 10, 5.0), ('south', 5, 5.0)]
        """
        return self._made("aggregate", (self,), ("sum",))

    def mean(self) -> Expr:
        """The mean, as a Float.

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"shop": ["a", "a", "b"], "x": [3, 5, 4]})
        >>> rows.group_by("shop").agg(tk.col("x").mean()).sort("shop").collect().to_pylist()
        [{'shop': 'a', 'x': 4.0}, {'shop': 'b', 'x': 4.0}]
        """
        return self._made("aggregate", (self,), ("mean",))

    def min(self) -> Expr:
        """The least value.

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"shop": ["a", "a", "b"], "x": [3, 5, 4]})
        >>> rows.group_by("shop").agg(tk.col("x").min()).sort("shop").collect().to_pylist()
        [{'shop': 'a', 'x': 3}, {'shop': 'b', 'x': 4}]
        """
        return self._made("aggregate", (self,), ("min",))

    def max(self) -> Expr:
        """The greatest value.

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"shop": ["a", "a", "b"], "x": [3, 5, 4]})
        >>> rows.group_by("shop").agg(tk.col("x").max()).sort("shop").collect().to_pylist()
        [{'shop': 'a', 'x': 5}, {'shop': 'b', 'x': 4}]
        """
        return self._made("aggregate", (self,), ("max",))

    def count(self) -> Expr:
        """The number of values that are not NULL.

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"shop": ["a", "a", "b"], "x": [3, 5, 4]})
        >>> rows.group_by("shop").agg(tk.col("x").count()).sort("shop").collect().to_pylist()
        [{'shop': 'a', 'x': 2}, {'shop': 'b', 'x': 1}]
        """
        return self._made("aggregate", (self,), ("count",))

    def n_unique(self) -> Expr:
        """The number of different values. NULL does not count.

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"shop": ["a", "a", "b"], "x": [3, 5, 4]})
        >>> rows.group_by("shop").agg(tk.col("x").n_unique()).sort("shop").collect().to_pylist()
        [{'shop': 'a', 'x': 2}, {'shop': 'b', 'x': 1}]
        """
        return self._made("aggregate", (self,), ("n_unique",))

    def any(self) -> Expr:
        """Whether a Bool is true in some row.

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"shop": ["a", "a", "b"], "x": [True, False, True]})
        >>> rows.group_by("shop").agg(tk.col("x").any()).sort("shop").collect().to_pylist()
        [{'shop': 'a', 'x': True}, {'shop': 'b', 'x': True}]
        """
        return self._made("aggregate", (self,), ("any",))

    def all(self) -> Expr:
        """Whether a Bool is true in every row.

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"shop": ["a", "a", "b"], "x": [True, False, True]})
        >>> rows.group_by("shop").agg(tk.col("x").all()).sort("shop").collect().to_pylist()
        [{'shop': 'a', 'x': False}, {'shop': 'b', 'x': True}]
        """
        return self._made("aggregate", (self,), ("all",))

    def median(self) -> Expr:
        """The median, as a Float: of an even number of values the mean of the two in the middle.

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"shop": ["a", "a", "b"], "x": [3, 5, 4]})
        >>> rows.group_by("shop").agg(tk.col("x").median()).sort("shop").collect().to_pylist()
        [{'shop': 'a', 'x': 4.0}, {'shop': 'b', 'x': 4.0}]
        """
        return self._made("aggregate", (self,), ("median",))

    def quantile(self, share: float) -> Expr:
        """The value below which a share of the values lies, as a Float; between two values in proportion.

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"shop": ["a", "a", "b"], "x": [3, 5, 4]})
        >>> rows.group_by("shop").agg(tk.col("x").quantile(0.75)).sort("shop").collect().to_pylist()
        [{'shop': 'a', 'x': 4.5}, {'shop': 'b', 'x': 4.0}]
        """
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
            raise IncorrectError(f"{self}.quantile(...) takes a number between 0 and 1, not {share!r}")
        return self._made("aggregate", (self,), ("quantile", float(share)))

    def mode(self) -> Expr:
        """The most frequent value, the least of them if there are several.

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"shop": ["a", "a", "a"], "x": [3, 5, 5]})
        >>> rows.group_by("shop").agg(tk.col("x").mode()).sort("shop").collect().to_pylist()
        [{'shop': 'a', 'x': 5}]
        """
        return self._made("aggregate", (self,), ("mode",))

    def std(self, ddof: int = 1) -> Expr:
        """The standard deviation, as a Float: of a sample, or with `ddof=0` of the whole.

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"shop": ["a", "a", "b"], "x": [3, 5, 4]})
        >>> rows.group_by("shop").agg(tk.col("x").std()).sort("shop").collect().to_pylist()
        [{'shop': 'a', 'x': 1.4142135623730951}, {'shop': 'b', 'x': None}]
        """
        return self._made("aggregate", (self,), ("std", _freedom(ddof, "std")))

    def var(self, ddof: int = 1) -> Expr:
        """The variance, as a Float: of a sample, or with `ddof=0` of the whole.

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"shop": ["a", "a", "b"], "x": [3, 5, 4]})
        >>> rows.group_by("shop").agg(tk.col("x").var()).sort("shop").collect().to_pylist()
        [{'shop': 'a', 'x': 2.0}, {'shop': 'b', 'x': None}]
        """
        return self._made("aggregate", (self,), ("var", _freedom(ddof, "var")))

    def max_by(self, by: Any) -> Expr:
        """The value of the row in which `by` is greatest: SQL's `arg_max`. Rows in which either is NULL do not count; of several
        greatest ones, any counts, but always the same.

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"shop": ["a", "a", "b"], "item": ["cup", "jug", "pan"], "x": [3, 5, 4]})
        >>> rows.group_by("shop").agg(tk.col("item").max_by("x")).sort("shop").collect().to_pylist()
        [{'shop': 'a', 'item': 'jug'}, {'shop': 'b', 'item': 'pan'}]
        """
        return self._made("aggregate", (self, _one(by, "max_by")), ("max_by",))

    def min_by(self, by: Any) -> Expr:
        """The value of the row in which `by` is least: SQL's `arg_min`.

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"shop": ["a", "a", "b"], "item": ["cup", "jug", "pan"], "x": [3, 5, 4]})
        >>> rows.group_by("shop").agg(tk.col("item").min_by("x")).sort("shop").collect().to_pylist()
        [{'shop': 'a', 'item': 'cup'}, {'shop': 'b', 'item': 'pan'}]
        """
        return self._made("aggregate", (self, _one(by, "min_by")), ("min_by",))

    def first(
        self, order_by: Any = None, descending: bool | Sequence[bool] = False, *, ignore_nulls: bool = False
    ) -> Expr:
        """The value of the first row in an order. Rows of a collection have no order of their own: say which, here or in `over`.
        With `ignore_nulls` rows in which it is NULL do not count.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> quotes = engine.create_table("quotes", {"stock": tk.String, "day": tk.Int, "price": tk.Int})
        >>> opening = quotes.group_by("stock").agg(opening=tk.col("price").first(order_by="day"))
        >>> view = engine.install("opening", opening)
        >>> _ = quotes.insert([("A", 2, 30), ("A", 1, 20), ("B", 1, 7)])
        >>> sorted(view.rows())
        [('A', 20), ('B', 7)]
        """
        by = expressions_of(order_by, "first")
        skipped = (True,) if ignore_nulls else ()
        return self._made("aggregate", (self, *by), ("first", directions(descending, len(by), "first"), *skipped))

    def last(
        self, order_by: Any = None, descending: bool | Sequence[bool] = False, *, ignore_nulls: bool = False
    ) -> Expr:
        """The value of the last row in an order; of the last in which it is not NULL, with `ignore_nulls`.

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"shop": ["a", "a"], "day": [2, 1], "x": [7, 8]})
        >>> rows.group_by("shop").agg(tk.col("x").last(order_by="day")).sort("shop").collect().to_pylist()
        [{'shop': 'a', 'x': 7}]
        """
        by = expressions_of(order_by, "last")
        skipped = (True,) if ignore_nulls else ()
        return self._made("aggregate", (self, *by), ("last", directions(descending, len(by), "last"), *skipped))

    def implode(self, order_by: Any = None, descending: bool | Sequence[bool] = False) -> Expr:
        """The values of a group as a list, NULLs too, in an order; in their own order if none is given. The opposite is
        `explode`.

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"shop": ["a", "a", "b"], "day": [2, 1, 1], "x": [3, 5, 4]})
        >>> rows.group_by("shop").agg(tk.col("x").implode(order_by="day")).sort("shop").collect().to_pylist()
        [{'shop': 'a', 'x': [5, 3]}, {'shop': 'b', 'x': [4]}]
        """
        by = expressions_of(order_by, "implode") or (self,)
        return self._made("aggregate", (self, *by), ("list", directions(descending, len(by), "implode")))

    def filter(self, condition: Expr) -> Expr:
        """The same values, of the rows alone for which a condition is true; for aggregates: `col("x").filter(c).sum()`.

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"shop": ["a", "a", "b"], "x": [3, 5, 4]})
        >>> rows.group_by("shop").agg(tk.col("x").filter(tk.col("x") > 3).sum()).sort("shop").collect().to_pylist()
        [{'shop': 'a', 'x': 5}, {'shop': 'b', 'x': 4}]
        """
        return self._made("filter", (self, condition))

    def unique(self) -> Expr:
        """The different values, each once; for aggregates: `col("x").unique().sum()` is SQL's `sum(DISTINCT x)`.

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"shop": ["a", "a", "b"], "x": [3, 3, 4]})
        >>> rows.group_by("shop").agg(tk.col("x").unique().sum()).sort("shop").collect().to_pylist()
        [{'shop': 'a', 'x': 3}, {'shop': 'b', 'x': 4}]
        """
        return self._made("unique", (self,))

    # -- window functions ------------------------------------------------------------------------------------------

    def lag(self, n: int = 1, default: Scalar = None, *, ignore_nulls: bool = False) -> Expr:
        """The value `n` rows before; `default` where there is none. Needs `.over(..., order_by=...)`. With `ignore_nulls` rows in
        which it is NULL do not count.

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"day": [1, 2, 3], "x": [10, 30, 20]})
        >>> rows.select("day", y=tk.col("x").lag().over(order_by="day")).sort("day").collect().to_pydict()
        {'day': [1, 2, 3], 'y': [None, 10, 30]}
        """
        skipped = (True,) if ignore_nulls else ()
        return self._made("window", (self,), ("lag", _distance(n, "lag"), default, *skipped))

    def lead(self, n: int = 1, default: Scalar = None, *, ignore_nulls: bool = False) -> Expr:
        """The value `n` rows behind; `default` where there is none. Needs `.over(..., order_by=...)`.

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"day": [1, 2, 3], "x": [10, 30, 20]})
        >>> rows.select("day", y=tk.col("x").lead(default=0).over(order_by="day")).sort("day").collect().to_pydict()
        {'day': [1, 2, 3], 'y': [30, 20, 0]}
        """
        skipped = (True,) if ignore_nulls else ()
        return self._made("window", (self,), ("lead", _distance(n, "lead"), default, *skipped))

    def nth_value(self, n: int, *, ignore_nulls: bool = False) -> Expr:
        """The value of the `n`-th row of the window's frame, counted from 1; NULL if there is none. Needs
        `.over(..., order_by=...)`.

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"day": [1, 2, 3], "x": [10, 30, 20]})
        >>> rows.select("day", y=tk.col("x").nth_value(2).over(order_by="day")).sort("day").collect().to_pydict()
        {'day': [1, 2, 3], 'y': [None, 30, 30]}
        """
        if _distance(n, "nth_value") < 1:
            raise IncorrectError(f"{self}.nth_value(...) takes a number of at least 1, not {n!r}")
        return self._made("window", (self,), ("nth_value", n, *((True,) if ignore_nulls else ())))

    def shift(self, n: int = 1) -> Expr:
        """The value `n` rows before, or behind if `n` is negative. Needs `.over(..., order_by=...)`.

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"day": [1, 2, 3], "x": [10, 30, 20]})
        >>> rows.select("day", y=tk.col("x").shift(-1).over(order_by="day")).sort("day").collect().to_pydict()
        {'day': [1, 2, 3], 'y': [30, 20, None]}
        """
        return self.lag(n) if _distance(n, "shift") >= 0 else self.lead(-n)

    def diff(self, n: int = 1) -> Expr:
        """The difference to the value `n` rows before. Needs `.over(..., order_by=...)`.

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"day": [1, 2, 3], "x": [10, 30, 20]})
        >>> rows.select("day", y=tk.col("x").diff().over(order_by="day")).sort("day").collect().to_pydict()
        {'day': [1, 2, 3], 'y': [None, 20, -10]}
        """
        return self._made("sub", (self, self.lag(n)))

    def cum_sum(self) -> Expr:
        """The sum of all rows up to this one. Needs `.over(..., order_by=...)`.

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"day": [1, 2, 3], "x": [10, 30, 20]})
        >>> rows.select("day", y=tk.col("x").cum_sum().over(order_by="day")).sort("day").collect().to_pydict()
        {'day': [1, 2, 3], 'y': [10, 40, 60]}
        """
        return self._made("window", (self,), ("cum_sum",))

    def cum_count(self) -> Expr:
        """The number of values that are not NULL up to this row. Needs `.over(..., order_by=...)`.

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"day": [1, 2, 3], "x": [10, 30, 20]})
        >>> rows.select("day", y=tk.col("x").cum_count().over(order_by="day")).sort("day").collect().to_pydict()
        {'day': [1, 2, 3], 'y': [1, 2, 3]}
        """
        return self._made("window", (self,), ("cum_count",))

    def cum_min(self) -> Expr:
        """The least value of all rows up to this one. Needs `.over(..., order_by=...)`.

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"day": [1, 2, 3], "x": [10, 30, 20]})
        >>> rows.select("day", y=tk.col("x").cum_min().over(order_by="day")).sort("day").collect().to_pydict()
        {'day': [1, 2, 3], 'y': [10, 10, 10]}
        """
        return self._made("window", (self,), ("cum_min",))

    def cum_max(self) -> Expr:
        """The greatest value of all rows up to this one. Needs `.over(..., order_by=...)`.

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"day": [1, 2, 3], "x": [10, 30, 20]})
        >>> rows.select("day", y=tk.col("x").cum_max().over(order_by="day")).sort("day").collect().to_pydict()
        {'day': [1, 2, 3], 'y': [10, 30, 30]}
        """
        return self._made("window", (self,), ("cum_max",))

    def over(
        self,
        *partition_by: str | Expr | Sequence[str | Expr],
        order_by: Any = None,
        descending: bool | Sequence[bool] = False,
        rows: tuple[int | None, int | None] | None = None,
        range: tuple[Any, Any] | None = None,
        groups: tuple[int | None, int | None] | None = None,
        exclude: Literal["current row", "group", "ties"] | None = None,
    ) -> Expr:
        """An aggregate or window function as a value of every row, computed from the rows of its partition.

        As in SQL, with `order_by` an aggregate takes the rows up to this one and its peers, and without it the whole partition.
        `rows=(-2, 0)` takes this row and the two before it; None is no end. `range=(-2, 0)` takes the rows whose ordering column
        is up to 2 less, in an order of timestamps `range=(-timedelta(hours=1), 0)`; `groups=(-1, 0)` counts peers instead of
        rows. `exclude` leaves the row itself, its peers or both out of that. NULLs come last in the order.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": tk.String, "day": tk.Int, "amount": tk.Int})
        >>> amount = tk.col("amount")
        >>> view = engine.install("shares", sales.select(
        ...     "shop", "day",
        ...     share=amount / amount.sum().over("shop"),
        ...     total=amount.cum_sum().over("shop", order_by="day"),
        ...     place=tk.rank().over("shop", order_by="amount", descending=True),
        ... ))
        >>> _ = sales.insert([("north", 1, 3), ("north", 2, 1), ("south", 1, 5)])
        >>> sorted(view.rows())
        [('north', 1, 0.75, 3, 1), ('north', 2, 0.25, 4, 2), ('south', 1, 1.0, 5, 1)]
        """
        by, order = expressions_of(partition_by, "over"), expressions_of(order_by, "over: order_by")
        downs = directions(descending, len(order), "over")
        frame = _frame(rows, range, groups, len(order))
        if exclude not in (None, "current row", "group", "ties"):
            raise IncorrectError(f"over: exclude is 'current row', 'group' or 'ties', not {exclude!r}")
        more = () if exclude is None else (exclude,)
        node: Any = self
        found = node.replaced(
            lambda inner: self._made("over", (inner, *by, *order), (len(by), downs, frame, *more))
            if inner.op in CALLS
            else inner if inner.op == "over" else None
        )  # fmt: skip
        if found is node:
            raise IncorrectError(
                f"{self}.over(...): over follows an aggregate or a window function, such as {self}.sum().over(...)"
            )
        return found  # type: ignore[no-any-return]


def expressions_of(given: Any, what: str) -> tuple[Expr, ...]:
    """Columns by name and expressions, one or several in lists, as expressions."""
    from tektite.expr.ast import Expr, col

    if given is None:
        return ()
    if isinstance(given, str):
        return (col(given),)
    if isinstance(given, Expr):
        return (given,)
    if isinstance(given, list | tuple):
        return tuple(found for part in given for found in expressions_of(part, what))
    raise IncorrectError(f"{what}: a column is a name or an expression, not {given!r}")


def directions(descending: Any, count: int, what: str) -> tuple[bool, ...]:
    """Whether each of some orders is descending: one direction for all, or one for each."""
    if isinstance(descending, bool):
        return (descending,) * count
    if not isinstance(descending, list | tuple) or not {type(down) for down in descending} <= {bool}:
        raise IncorrectError(f"{what}: descending is True, False, or a list of these, not {descending!r}")
    if len(descending) != count:
        raise IncorrectError(f"{what}: {count} ordering columns but {len(descending)} directions in descending")
    return tuple(descending)


def _freedom(ddof: Any, what: str) -> int:
    if ddof not in (0, 1) or not isinstance(ddof, int):
        raise IncorrectError(f"{what}: ddof is 1 (of a sample) or 0 (of the whole), not {ddof!r}")
    return int(ddof)


def _distance(n: Any, what: str) -> int:
    rows = whole_number(n)
    if rows is None:
        raise IncorrectError(f"{what} takes a whole number of rows, not {n!r}")
    return rows


def _one(by: Any, what: str) -> Expr:
    found = expressions_of(by, what)
    if len(found) != 1:
        raise IncorrectError(f"{what} takes one column or expression, not {by!r}")
    return found[0]


def _frame(rows: Any, range: Any, groups: Any, orders: int) -> tuple[Any, ...]:
    """The frame of a window: its kind and both ends, None for no end; empty if nobody says one."""
    said = [(kind, ends) for kind, ends in (("rows", rows), ("range", range), ("groups", groups)) if ends is not None]
    if not said:
        return ()
    if len(said) > 1:
        raise IncorrectError("over: a frame is one of rows=, range= and groups=, not several of them")
    kind, ends = said[0]
    if kind != "rows" and orders != 1:
        raise IncorrectError(f"over: {kind}= needs one ordering column in order_by=, not {orders}")
    fits = isinstance(ends, list | tuple) and len(ends) == 2
    if fits:
        ends = tuple(end if whole_number(end) is None else whole_number(end) for end in ends)
    allowed = {int, type(None)} if kind != "range" else {int, float, decimal.Decimal, datetime.timedelta, type(None)}
    if not fits or not {type(end) for end in ends} <= allowed:
        example = (
            "(-2, 0), from two rows before to this one" if kind != "range" else "(-2, 0) or (-timedelta(hours=1), 0)"
        )
        raise IncorrectError(f"over: {kind} is a pair such as {example}; None is no end; not {ends!r}")
    start, end = ends
    if start is not None and end is not None and _signed(start) > _signed(end):
        turned = (
            f"; what comes before is negative: {kind}={(-start, end)!r}" if _signed(start) > 0 == _signed(end) else ""
        )
        raise IncorrectError(f"over: {kind}={tuple(ends)!r} ends before it starts{turned}")
    return kind, start, end


def _signed(end: Any) -> Any:
    """An end of a frame as a number, to compare with the other one."""
    return end.total_seconds() if isinstance(end, datetime.timedelta) else end
