"""The aggregates of an expression: `sum(price) / count()` is two calls, and a quotient of their results."""

from __future__ import annotations

from collections.abc import Sequence

from tektite.errors import IncorrectError
from tektite.expr import Expr, col, greatest, lit
from tektite.expr import type_of as expression_type
from tektite.plan.names import free_name
from tektite.query import interned_aggregates
from tektite.query.aggregate_calls import AggregateCall, CallOrder
from tektite.values import types
from tektite.values.schema import Schema

PLAIN = {"sum": "sum", "mean": "avg", "min": "min", "max": "max", "count": "count", "any": "max", "all": "min"}
"""Aggregates that are calls of another name, or of their own."""
ONCE = ("std", "var", "first", "last", "max_by", "min_by")
"""Aggregates that are not taken of different values alone."""
NUMERIC = ("sum", "mean", "std", "var", "median", "quantile")


def spread(squares: Expr, total: Expr, count: Expr, population: bool, root: bool) -> Expr:
    """Variance, or standard deviation (`root`), from exact sums of the values as floats and of their squares."""
    spare = count if population else count - 1
    variance = greatest((squares - total * total / count) / spare, 0.0)
    return Expr("case", (spare > 0, variance.sqrt() if root else variance, lit(None)))


class Extraction:
    """The aggregates that some expressions over a schema mention, each once; `calls` has them by the name of their result."""

    def __init__(self, schema: Schema, keys: list[str]) -> None:
        self.schema = schema
        self.keys = keys
        self.calls: list[tuple[str, AggregateCall]] = []
        self._known: dict[tuple[object, ...], str] = {}

    def over_calls(self, expression: Expr) -> Expr:
        """The expression over the keys and the results of the calls."""
        for name in columns_outside(expression):
            if name not in self.keys:
                self.schema.index(name)
                raise IncorrectError(
                    f"agg: {expression}: column {name!r} has many values in a group. Aggregate it, as in tk.sum({name!r}), or "
                    "group by it; to have an aggregate in every row, add .over() to it"
                )
        return expression.replaced(lambda node: node if node.op == "over" else self._result(node))

    def _result(self, node: Expr) -> Expr | None:
        """The column that holds an aggregate's value; None for any other node."""
        if node.op != "aggregate":
            return None
        kind, *constants = node.params
        value = selected(node.args[0]) if node.args else None
        distinct = bool(node.args) and of_different(node.args[0])
        check(node, value, self.schema)
        value = as_number(kind, value, self.schema)
        if value is None:
            return self._named(AggregateCall("count"))
        if distinct and kind in ONCE:
            raise IncorrectError(f"{node}: {kind} of different values is not supported")
        match kind:
            case "n_unique":
                return self._named(AggregateCall("count", value, True))
            case "median" | "quantile":
                share = constants[0] if constants else 0.5
                return self._named(AggregateCall("quantile_cont", value, distinct, ((value, False, False),), share))
            case "mode":
                return self._named(AggregateCall("mode", value, distinct, ((value, False, False),)))
            case "max_by" | "min_by":
                return self._named(at_extreme(node.args[0], node.args[1], kind == "max_by"))
            case "std" | "var":
                number = value.cast(types.Float)
                squares, total, count = (
                    self._named(AggregateCall(*part))
                    for part in (("sum", number * number), ("sum", number), ("count", number))
                )
                return spread(squares, total, count, constants[0] == 0, kind == "std")
            case "join":
                is_text = expression_type(value, self.schema.positions) == types.String
                text = value if is_text else value.cast(types.String)
                order = ordered(node, constants[1], distinct)
                return self._named(AggregateCall("string_agg", text, distinct, order, constants[0]))
            case "first" | "last":
                last = kind == "last"
                order = tuple((by, down != last, last) for by, down in zip(node.args[1:], constants[0], strict=True))
                return self._named(AggregateCall("earliest" if constants[1:] else "first", value, False, order))
            case "list":
                order = ordered(node, constants[0], distinct)
                kind_of = expression_type(value, self.schema.positions)
                return interned_aggregates.listed(value, kind_of, order, distinct, self._named)
        if kind in ("sum", "mean"):
            kind_of = expression_type(value, self.schema.positions)
            if interned_aggregates.is_summable(kind_of):
                if distinct:
                    raise IncorrectError(f"{node}: {kind} of different {kind_of}s is not supported")
                make = interned_aggregates.total if kind == "sum" else interned_aggregates.average
                return make(value, kind_of, self._named)
        return self._named(AggregateCall(PLAIN[kind], value, distinct and PLAIN[kind] not in ("min", "max")))

    def _named(self, call: AggregateCall) -> Expr:
        print = call.printed(lambda scalar: scalar.fingerprint)
        if print not in self._known:
            self._known[print] = free_name(call.kind, {*self.keys, *self._known.values()})
            self.calls.append((self._known[print], call))
        return col(self._known[print])


def columns_outside(expression: Expr) -> list[str]:
    """The columns that an expression reads outside its aggregates."""
    if expression.op in ("aggregate", "over"):
        return []
    if expression.op == "col":
        return [str(expression.params[0])]
    return [name for arg in expression.args for name in columns_outside(arg)]


def selected(value: Expr) -> Expr:
    """The argument of an aggregate: NULL in rows that its `filter` leaves out."""
    if value.op == "unique":
        return selected(value.args[0])
    if value.op != "filter":
        return value
    inner, condition = value.args
    return Expr("case", (condition, selected(inner), lit(None)))


def of_different(value: Expr) -> bool:
    """Whether equal values of an aggregate's argument count once."""
    return value.op == "unique" or value.op == "filter" and of_different(value.args[0])


def ordered(node: Expr, descending: Sequence[bool], distinct: bool) -> tuple[CallOrder, ...]:
    """The order of an aggregate's values; of different ones, their own."""
    by = [selected(part) for part in node.args[1:]]
    if distinct and any(part.fingerprint != selected(node.args[0]).fingerprint for part in by):
        raise IncorrectError(f"{node}: different values can be in their own order alone")
    return tuple((part, down, False) for part, down in zip(by, descending, strict=True))


def at_extreme(value: Expr, by: Expr, greatest: bool) -> AggregateCall:
    """The value of the row in which another one is least or greatest: SQL's ARG_MIN and ARG_MAX. Rows in which either is NULL do
    not count.
    """
    known = by.is_not_null()
    inner = value
    while inner.op == "filter":
        known, inner = inner.args[1] & known, inner.args[0]
    return AggregateCall("earliest", Expr("case", (known, inner, lit(None))), order=((by, greatest, False),))


def as_number(kind: str, value: Expr | None, schema: Schema) -> Expr | None:
    """The number that an aggregate adds up. A condition is 1 or 0: `is_null().sum()` counts rows, `mean()` is their share."""
    if value is None or kind not in NUMERIC or expression_type(value, schema.positions) != types.Bool:
        return value
    return value.cast(types.Int)


def check(node: Expr, value: Expr | None, schema: Schema) -> None:
    """Raise if an aggregate does not apply to its argument."""
    kind = node.params[0]
    if value is None:
        return
    found = expression_type(value, schema.positions)
    summed = kind in ("sum", "mean") and interned_aggregates.is_summable(found)
    if kind in NUMERIC and not summed and (found.interned or found.kind not in ("int", "float", "decimal", "bool")):
        raise IncorrectError(f"{node}: {value} is {found}, not a number")
    if kind in ("any", "all") and found != types.Bool:
        raise IncorrectError(f"{node}: {value} is {found}, not bool")
    if kind in ("first", "last") and len(node.args) < 2:
        raise IncorrectError(
            f"{node}: the rows of a group have no order of their own: say which is {kind}, as in {value}.{kind}(order_by='day')"
        )
