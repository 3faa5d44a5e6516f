"""The arguments of window functions, their constants and their types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from tektite.errors import UnsupportedError
from tektite.expr import Expr, lit
from tektite.expr.fold import folded as folded_constant
from tektite.expr.literals import literal_word, show_word
from tektite.query.window_calls import FROM_COLUMN
from tektite.values import types
from tektite.values.types import Type

if TYPE_CHECKING:
    from tektite.sql.bind.clause import ClauseContext
    from tektite.sql.bind.query import Binder

RANKS: dict[type[exp.Expr], tuple[str, Type]] = {
    exp.RowNumber: ("row_number", types.Int), exp.Rank: ("rank", types.Int), exp.DenseRank: ("dense_rank", types.Int),
    exp.PercentRank: ("percent_rank", types.Float), exp.CumeDist: ("cume_dist", types.Float),
}  # fmt: skip
TOTALS: dict[type[exp.Expr], str] = {
    exp.Sum: "sum", exp.Count: "count", exp.Avg: "avg", exp.Min: "min", exp.Max: "max", exp.LogicalAnd: "min",
    exp.LogicalOr: "max", exp.CountIf: "sum",
}  # fmt: skip
"""Aggregates, which take FILTER and DISTINCT."""
PICKED: dict[type[exp.Expr], str] = {
    exp.FirstValue: "first_value", exp.LastValue: "last_value", exp.First: "first_value", exp.Last: "last_value",
    exp.AnyValue: "first_value", exp.NthValue: "nth_value",
}  # fmt: skip
"""Functions that take a value of one row of the frame."""
INSTEAD: dict[type[exp.Expr], str] = {
    exp.GroupConcat: ": group in a subquery and join it", exp.Median: ": group in a subquery and join it",
    exp.ArgMax: ": first_value(x) OVER (... ORDER BY y DESC)", exp.ArgMin: ": first_value(x) OVER (... ORDER BY y)",
}  # fmt: skip


@dataclass
class Arguments:
    """The arguments of a call."""

    kind: str
    values: list[Expr]
    type: Type
    constants: tuple[Any, ...] = ()
    distinct: bool = False


def arguments_of(
    binder: Binder, clause: ClauseContext, call: exp.Expr, condition: Expr | None, ignores_nulls: bool
) -> Arguments:
    """The arguments of a window function over the rows for which a condition is true."""
    called, known = binder.source.called(call), type(call)
    if condition is not None and known not in TOTALS:
        raise binder.unsupported(f"FILTER with window function {called}", call)
    if ignores_nulls and known not in PICKED and known not in (exp.Lag, exp.Lead):
        raise binder.unsupported(f"IGNORE NULLS of window function {called}", call)
    if known in RANKS:
        return Arguments(RANKS[known][0], [], RANKS[known][1])
    if isinstance(call, exp.Lag | exp.Lead):
        refuse_order(binder, call, called)
        values, constants, kind = shifted(binder, call, clause)
        return Arguments(call.key, values, kind, constants)
    if isinstance(call, exp.Ntile):
        number = None if call.this is None else folded_constant(clause.bind(call.this))
        if number is None or number.op != "lit" or type(number.params[1]) is not int or number.params[1] < 1:
            raise binder.source.error("ntile takes a whole constant of at least 1", call)
        return Arguments("ntile", [], types.Int, (number.params[1],))
    if known in PICKED:
        return picked(binder, clause, call, called)
    if known in TOTALS:
        return total(binder, clause, call, condition)
    raise binder.unsupported(f"window function {called}", call, INSTEAD.get(known, ""), "undefined-function")


def refuse_order(binder: Binder, call: exp.Expr, called: str) -> None:
    """Refuse an ORDER BY among the arguments of a function whose result depends on it."""
    if isinstance(call.this, exp.Order):
        raise binder.unsupported(f"ORDER BY in the arguments of window function {called}", call, ": order its window")


def picked(binder: Binder, clause: ClauseContext, call: exp.Expr, called: str) -> Arguments:
    """The value of the first, last or n-th row of a frame."""
    refuse_order(binder, call, called)
    if call.this is None:
        raise binder.source.error(f"{called} needs a value", call)
    if isinstance(call.this, exp.Distinct):
        raise binder.unsupported(f"DISTINCT in window function {called}", call)
    values = [clause.bind(call.this)]
    kind = clause.scalars.type(values[0], call)
    if not isinstance(call, exp.NthValue):
        return Arguments(PICKED[type(call)], values, kind)
    tree = call.args.get("offset")
    number = None if tree is None else folded_constant(clause.bind(tree))
    if number is None or clause.scalars.type(number, call) != types.Int:
        raise binder.source.error("nth_value takes a value and a whole number", call)
    if number.op != "lit":
        return Arguments("nth_value", [*values, number], kind, (FROM_COLUMN,))
    if number.params[1] is None or number.params[1] < 1:
        raise binder.source.error("nth_value takes a number of at least 1", call)
    return Arguments("nth_value", values, kind, (number.params[1],))


def total(binder: Binder, clause: ClauseContext, call: exp.Expr, condition: Expr | None) -> Arguments:
    """An aggregate of a frame. Its result does not depend on an ORDER BY among its arguments."""
    kind, given, distinct = TOTALS[type(call)], call.this, False
    if isinstance(given, exp.Order):
        for ordered in given.expressions:
            clause.bind(ordered.this)
            binder.ordering(ordered, "")
        given = given.this
    if isinstance(given, exp.Distinct):
        if len(given.expressions) != 1 or given.args.get("on"):
            raise binder.source.error("DISTINCT of several values is not supported", call, UnsupportedError)
        given, distinct = given.expressions[0], True
    if call.args.get("expressions"):
        raise binder.source.error(f"{kind} with more than one value is not supported", call, UnsupportedError)
    values = [] if given is None or isinstance(given, exp.Star) else [clause.bind(given)]
    if isinstance(call, exp.CountIf) and values:
        found = clause.predicate(call.this)  # NULL where the condition is never known, as in a group
        values = [Expr("case", (found, lit(1), ~found, lit(0), lit(None)))]
    elif isinstance(call, exp.Sum) and values and clause.scalars.type(values[0], call) == types.Bool:
        values = [values[0].cast(types.Int)]  # how many are true
    type_found = total_type(binder, clause, kind, values, call)
    if isinstance(call, exp.LogicalAnd | exp.LogicalOr) and type_found != types.Bool:
        raise binder.source.error(f"{call.key} needs conditions, not {type_found}", call)
    if condition is not None:
        values = [Expr("case", (condition, values[0] if values else lit(1), lit(None)))]
    return Arguments(kind, values, type_found, (), distinct and kind not in ("min", "max"))


def shifted(
    binder: Binder, call: exp.Lag | exp.Lead, clause: ClauseContext
) -> tuple[list[Expr], tuple[Any, ...], Type]:
    """The arguments of lag and lead, their offset and default, and the type of the result."""
    value = clause.bind(call.this)
    kind = clause.scalars.type(value, call)
    arguments, constants = [value], []
    offset, default = call.args.get("offset"), call.args.get("default")
    number = lit(1) if offset is None else folded_constant(clause.bind(offset))
    if clause.scalars.type(number, call) != types.Int:
        raise binder.source.error(f"{call.key}: the offset is a whole number", call)
    otherwise = lit(None) if default is None else clause.bind(default)
    if default is not None and clause.scalars.type(otherwise, call) != kind:
        otherwise = default_of(binder, call, otherwise, clause.scalars.type(otherwise, call), kind)
    for given in (number, folded_constant(otherwise)):
        is_constant = given.op == "lit"
        constants.append(given.params[1] if is_constant else FROM_COLUMN)
        if not is_constant:
            arguments.append(given)
    if constants[0] is None:  # no row is an unknown number of rows away
        arguments[1:], constants = [], [0, None]
        arguments[0] = lit(None, kind)
    return arguments, tuple(constants), kind


def default_of(binder: Binder, call: exp.Expr, given: Expr, found: Type, kind: Type) -> Expr:
    """The default of lag and lead as a value of the column's type."""
    if given.op != "lit" or given.params[1] is None:
        return given if given.op == "lit" else given.cast(kind)
    if kind == types.String and not found.interned:
        return lit(show_word(literal_word(given.params[1], found), found))
    cast = folded_constant(given.cast(kind))
    if cast.op != "lit":
        message = f"{call.key}: the default is a {found} where the value is a {kind}: cast it"
        raise binder.source.error(message, call.args["default"])
    return cast


def total_type(binder: Binder, clause: ClauseContext, kind: str, arguments: list[Expr], call: exp.Expr) -> Type:
    """The type of an aggregate over a frame."""
    if kind == "count":
        return types.Int
    if not arguments:
        raise binder.source.error(f"{kind} needs a value", call)
    found = clause.scalars.type(arguments[0], call)
    if kind in ("sum", "avg") and (found.interned or found.kind not in ("int", "float", "decimal")):
        raise binder.source.error(f"{kind} needs numbers, not {found}", call)
    if kind == "avg":
        return types.Float
    return types.Decimal(18, found.scale) if kind == "sum" and isinstance(found, types.DecimalType) else found
