"""Aggregates of groups: what `group_by(...).agg(...)`, `agg(...)` and `over(...)` take.

They are expressions, so that `tk.sum("price") / tk.count()` is one too. A group exists while it has rows. NULL does
not count: an aggregate of nothing but NULL is NULL, and a count is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tektite.errors import IncorrectError
from tektite.expr import Expr, col
from tektite.unknown_options import explained
from tektite.values import types
from tektite.values.schema import Schema

LINEAR = ("count", "sum", "avg")
"""Aggregates that are computed from sums of diffs alone, so that a change costs the same in a group of any size."""
SUMMABLE = ("int", "float", "decimal")


@dataclass(frozen=True)
class ColumnAggregate:
    """An aggregate of a column, or of whole rows where `column` is None: how languages name them. `kind` is count, sum, avg, min,
    max, any, all or count_distinct.
    """

    kind: str
    column: str | None = None


@explained
def count(value: Expr | str | None = None) -> Expr:
    """The number of rows (also as `count("*")`), or of rows where a value is not NULL.

    >>> import tektite as tk
    >>> tk.count(), tk.count("x")
    (<Expr count()>, <Expr x.count()>)
    """
    if value is None or isinstance(value, str) and value == "*":
        return Expr("aggregate", (), ("count",))
    return taken("count", value)


@explained
def sum(value: Expr | str) -> Expr:
    """The exact sum of a column or an expression; NULL where all its values are NULL.

    A sum of floats is the double nearest to the exact sum of the present values. It depends neither on values that were
    removed, nor on the order of changes, nor on the number of workers. It is infinite if it exceeds the largest double or
    includes an infinity, and NaN if it includes NaN or both infinities.

    >>> import tektite as tk
    >>> engine = tk.Engine()
    >>> payments = engine.create_table("payments", {"shop": tk.String, "amount": tk.Float})
    >>> view = engine.install("totals", payments.group_by("shop").agg(total=tk.sum("amount")))
    >>> _ = payments.insert([("north", 0.1)] * 10 + [("north", 1e300)])
    >>> view.rows()
    [('north', 1e+300)]
    >>> _ = payments.remove([("north", 1e300)])
    >>> view.rows()
    [('north', 1.0)]
    """
    return taken("sum", value)


@explained
def mean(value: Expr | str) -> Expr:
    """The mean, as a float; NULL where all values are NULL.

    The mean of floats is the double nearest to the exact mean, even if the sum exceeds the largest double.

    >>> import tektite as tk
    >>> rows = tk.Engine().values({"shop": ["a", "a", "b"], "x": [3, 5, 4]})
    >>> rows.group_by("shop").agg(tk.mean("x")).sort("shop").collect().to_pylist()
    [{'shop': 'a', 'x': 4.0}, {'shop': 'b', 'x': 4.0}]
    """
    return taken("mean", value)


@explained
def avg(value: Expr | str) -> Expr:
    """The same as `mean`.

    >>> import tektite as tk
    >>> rows = tk.Engine().values({"shop": ["a", "a", "b"], "x": [3, 5, 4]})
    >>> rows.group_by("shop").agg(tk.avg("x")).sort("shop").collect().to_pylist()
    [{'shop': 'a', 'x': 4.0}, {'shop': 'b', 'x': 4.0}]
    """
    return taken("mean", value)


@explained
def min(value: Expr | str) -> Expr:
    """The least value; NULL where all values are NULL.

    >>> import tektite as tk
    >>> rows = tk.Engine().values({"shop": ["a", "a", "b"], "x": [3, 5, 4]})
    >>> rows.group_by("shop").agg(tk.min("x")).sort("shop").collect().to_pylist()
    [{'shop': 'a', 'x': 3}, {'shop': 'b', 'x': 4}]
    """
    return taken("min", value)


@explained
def max(value: Expr | str) -> Expr:
    """The greatest value; NULL where all values are NULL.

    >>> import tektite as tk
    >>> rows = tk.Engine().values({"shop": ["a", "a", "b"], "x": [3, 5, 4]})
    >>> rows.group_by("shop").agg(tk.max("x")).sort("shop").collect().to_pylist()
    [{'shop': 'a', 'x': 5}, {'shop': 'b', 'x': 4}]
    """
    return taken("max", value)


@explained
def median(value: Expr | str) -> Expr:
    """The median, as a float: of an even number of values the mean of the two in the middle.

    >>> import tektite as tk
    >>> rows = tk.Engine().values({"shop": ["a", "a", "b"], "x": [3, 5, 4]})
    >>> rows.group_by("shop").agg(tk.median("x")).sort("shop").collect().to_pylist()
    [{'shop': 'a', 'x': 4.0}, {'shop': 'b', 'x': 4.0}]
    """
    return taken("median", value)


@explained
def std(value: Expr | str, ddof: int = 1) -> Expr:
    """The standard deviation, as a float: of a sample, or with `ddof=0` of the whole.

    >>> import tektite as tk
    >>> rows = tk.Engine().values({"shop": ["a", "a", "b"], "x": [3, 5, 4]})
    >>> rows.group_by("shop").agg(tk.std("x")).sort("shop").collect().to_pylist()
    [{'shop': 'a', 'x': 1.4142135623730951}, {'shop': 'b', 'x': None}]
    """
    return operand("std", value).std(ddof)


@explained
def var(value: Expr | str, ddof: int = 1) -> Expr:
    """The variance, as a float: of a sample, or with `ddof=0` of the whole.

    >>> import tektite as tk
    >>> rows = tk.Engine().values({"shop": ["a", "a", "b"], "x": [3, 5, 4]})
    >>> rows.group_by("shop").agg(tk.var("x", ddof=0)).sort("shop").collect().to_pylist()
    [{'shop': 'a', 'x': 1.0}, {'shop': 'b', 'x': 0.0}]
    """
    return operand("var", value).var(ddof)


@explained
def first(value: Expr | str, order_by: Any = None, descending: bool | Sequence[bool] = False) -> Expr:
    """The value of the first row in an order.

    >>> import tektite as tk
    >>> rows = tk.Engine().values({"shop": ["a", "a"], "day": [2, 1], "x": [7, 8]})
    >>> rows.group_by("shop").agg(tk.first("x", order_by="day")).sort("shop").collect().to_pylist()
    [{'shop': 'a', 'x': 8}]
    """
    return operand("first", value).first(order_by, descending)


@explained
def last(value: Expr | str, order_by: Any = None, descending: bool | Sequence[bool] = False) -> Expr:
    """The value of the last row in an order.

    >>> import tektite as tk
    >>> rows = tk.Engine().values({"shop": ["a", "a"], "day": [2, 1], "x": [7, 8]})
    >>> rows.group_by("shop").agg(tk.last("x", order_by="day")).sort("shop").collect().to_pylist()
    [{'shop': 'a', 'x': 7}]
    """
    return operand("last", value).last(order_by, descending)


@explained
def any(value: Expr | str) -> Expr:
    """Whether a Bool is true in some row.

    >>> import tektite as tk
    >>> rows = tk.Engine().values({"shop": ["a", "a", "b"], "x": [3, 5, 4]})
    >>> rows.group_by("shop").agg(tk.any(tk.col("x") > 4)).sort("shop").collect().to_pylist()
    [{'shop': 'a', 'x': True}, {'shop': 'b', 'x': False}]
    """
    return taken("any", value)


@explained
def all(value: Expr | str) -> Expr:
    """Whether a Bool is true in every row.

    >>> import tektite as tk
    >>> rows = tk.Engine().values({"shop": ["a", "a", "b"], "x": [3, 5, 4]})
    >>> rows.group_by("shop").agg(tk.all(tk.col("x") > 3)).sort("shop").collect().to_pylist()
    [{'shop': 'a', 'x': False}, {'shop': 'b', 'x': True}]
    """
    return taken("all", value)


@explained
def n_unique(value: Expr | str) -> Expr:
    """The number of different values. NULL does not count.

    >>> import tektite as tk
    >>> rows = tk.Engine().values({"shop": ["a", "a", "b"], "x": [3, 5, 4]})
    >>> rows.group_by("shop").agg(tk.n_unique("x")).sort("shop").collect().to_pylist()
    [{'shop': 'a', 'x': 2}, {'shop': 'b', 'x': 1}]
    """
    return taken("n_unique", value)


@explained
def count_distinct(value: Expr | str) -> Expr:
    """The same as `n_unique`.

    >>> import tektite as tk
    >>> rows = tk.Engine().values({"shop": ["a", "a", "b"], "x": [3, 5, 4]})
    >>> rows.group_by("shop").agg(tk.count_distinct("x")).sort("shop").collect().to_pylist()
    [{'shop': 'a', 'x': 2}, {'shop': 'b', 'x': 1}]
    """
    return taken("n_unique", value)


@explained
def corr(x: Expr | str, y: Expr | str) -> Expr:
    """The correlation of two columns or expressions, from -1 to 1, over the rows that have both; NULL where one of them is the
    same in all rows.

    >>> import tektite as tk
    >>> rows = tk.Engine().values({"x": [1, 2, 3], "y": [2.0, 4.0, 6.0]})
    >>> rows.agg(c=tk.corr("x", "y").round(6)).collect().to_pydict()
    {'c': [1.0]}
    """
    from tektite.query.paired_aggregates import pair_sums

    return pair_sums(operand("corr", y), operand("corr", x), total_of).correlation.alias("corr")


@explained
def cov(x: Expr | str, y: Expr | str, ddof: int = 1) -> Expr:
    """The covariance of two columns or expressions, over the rows that have both: of a sample, or with `ddof=0` of the whole.

    >>> import tektite as tk
    >>> rows = tk.Engine().values({"x": [1, 2, 3], "y": [2.0, 4.0, 6.0]})
    >>> rows.agg(sample=tk.cov("x", "y"), whole=tk.cov("x", "y", ddof=0)).collect().to_pydict()
    {'sample': [2.0], 'whole': [1.3333333333333333]}
    """
    from tektite.query.paired_aggregates import pair_sums

    if ddof not in (0, 1) or isinstance(ddof, bool):
        raise IncorrectError(f"cov: ddof is 0, for the whole, or 1, for a sample, not {ddof!r}")
    return pair_sums(operand("cov", y), operand("cov", x), total_of).covariance(ddof == 0).alias("cov")


def total_of(kind: str, value: Expr) -> Expr:
    """A sum or a count as an aggregate."""
    return Expr("aggregate", (value,), (kind,))


def operand(kind: str, value: Expr | str) -> Expr:
    """The expression that an aggregate is taken of. Raises if the value is neither a column's name nor an expression."""
    if isinstance(value, str):
        return col(value)
    if not isinstance(value, Expr):
        raise IncorrectError(
            f"tk.{kind}(...) takes the name of a column, or an expression such as tk.col('x') * 2, not {value!r}"
        )
    return value


def taken(kind: str, value: Expr | str) -> Expr:
    """An aggregate of a value."""
    return Expr("aggregate", (operand(kind, value),), (kind,))


def result_type(aggregate: ColumnAggregate, schema: Schema) -> types.Type:
    """The type of an aggregate's result. Raises if the aggregate does not apply to its column."""
    if aggregate.column is None or aggregate.kind in ("count", "count_distinct"):
        if aggregate.column is not None:
            schema.index(aggregate.column)
        return types.Int
    found = schema.types[schema.index(aggregate.column)]
    if aggregate.kind in ("sum", "avg") and (found.interned or found.kind not in SUMMABLE):
        raise IncorrectError(f"{aggregate.kind}({aggregate.column!r}): the column is {found}, not a number")
    if aggregate.kind in ("any", "all") and found != types.Bool:
        raise IncorrectError(f"{aggregate.kind}({aggregate.column!r}): the column is {found}, not bool")
    if aggregate.kind == "avg":
        return types.Float
    if aggregate.kind == "sum" and isinstance(found, types.DecimalType):
        return types.Decimal(18, found.scale)
    return found
