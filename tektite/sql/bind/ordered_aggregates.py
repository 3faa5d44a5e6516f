"""Binding aggregates of values in an order: string_agg, median and quantiles, mode, first and last, arg_min and arg_max."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from tektite.errors import UnsupportedError
from tektite.expr import Expr, lit
from tektite.expr.predicates import TRUE
from tektite.query import interned_aggregates
from tektite.query.aggregate_calls import AggregateCall, CallOrder
from tektite.sql.bind import zones
from tektite.values import types

if TYPE_CHECKING:
    from tektite.sql.bind.clause import ClauseContext

QUANTILES: dict[type[exp.Expr], str] = {
    exp.Median: "quantile_cont", exp.PercentileCont: "quantile_cont", exp.PercentileDisc: "quantile_disc",
    exp.Quantile: "quantile_disc",
}  # fmt: skip
ORDERED = (
    *QUANTILES,
    exp.GroupConcat,
    exp.ArrayAgg,
    exp.Mode,
    exp.First,
    exp.Last,
    exp.ArgMin,
    exp.ArgMax,
    exp.WithinGroup,
)


def ordered_call(clause: ClauseContext, tree: exp.Expr, condition: Expr) -> AggregateCall:
    """The aggregate that one of `ORDERED` is, of the rows for which a condition is true."""
    source = clause.binder.source
    name = source.called(tree.this if isinstance(tree, exp.WithinGroup) else tree)
    value_tree, order_trees = parts_of(tree)
    if isinstance(tree, exp.WithinGroup):
        inner = tree.this
        if not isinstance(inner, exp.PercentileCont | exp.PercentileDisc | exp.Mode) or len(order_trees) != 1:
            raise source.error(f"{name} WITHIN GROUP is not supported", tree, UnsupportedError)
        if isinstance(inner, exp.Mode) and (inner.this is not None or order_trees[0].args.get("desc")):
            raise source.error(f"{name} WITHIN GROUP of this is not supported: say mode(x)", tree, UnsupportedError)
        value_tree, share_tree, tree = order_trees[0].this, inner.this, inner
    else:
        share_tree = tree.args.get("quantile") or tree.args.get("expression")
        if type(tree) in QUANTILES and not isinstance(tree, exp.Median):
            if share_tree is None and len(order_trees) == 1:  # quantile_cont(0.75 ORDER BY x)
                value_tree, share_tree = order_trees[0].this, value_tree
            elif share_tree is None or order_trees:
                raise source.error(f"{name} takes a value and a constant between 0 and 1", tree)
        elif order_trees and isinstance(tree, exp.Median | exp.Mode | exp.ArgMin | exp.ArgMax):
            raise source.error(f"ORDER BY in {name} is not supported", tree, UnsupportedError)
    if value_tree is None:
        raise source.error(f"{name} needs a value", tree)
    distinct = isinstance(value_tree, exp.Distinct)
    if distinct and (len(value_tree.expressions) != 1 or value_tree.args.get("on")):
        raise source.error("DISTINCT of several values is not supported", tree, UnsupportedError)
    value = clause.bind(value_tree.expressions[0] if distinct else value_tree)
    order = tuple((clause.bind(o.this), bool(o.args.get("desc")), bool(o.args.get("nulls_first"))) for o in order_trees)
    if distinct and any(by.fingerprint != value.fingerprint for by, _, _ in order):
        raise source.error("ORDER BY of anything but the DISTINCT values is not supported", tree, UnsupportedError)
    if isinstance(tree, exp.ArrayAgg):
        if condition is not TRUE:  # what FILTER drops is not in the list, while NULL is
            value = Expr("case", (condition, Expr("list_item", (value,)), lit(None, types.String)))
        return AggregateCall("list", value, distinct, order)
    if isinstance(tree, exp.GroupConcat):
        return string_agg(clause, tree, value, distinct, order, condition)
    if type(tree) in QUANTILES or isinstance(tree, exp.Mode):
        return quantile(clause, tree, value, distinct, order, condition, share_tree)
    if distinct:
        raise source.error(f"{name}(DISTINCT) is not supported", tree, UnsupportedError)
    if isinstance(tree, exp.ArgMin | exp.ArgMax):
        if tree.expression is None:
            raise source.error(f"{name} takes two values", tree)
        by = clause.bind(tree.expression)
        known = chosen(value, by.is_not_null() if condition is TRUE else condition & by.is_not_null())
        return AggregateCall("earliest", known, order=((by, isinstance(tree, exp.ArgMax), False),))
    if not order:
        raise source.error(f"{name} without ORDER BY has no certain value: say {name}(x ORDER BY y)", tree)
    if isinstance(tree, exp.Last):
        order = tuple((by, not descending, not nulls_first) for by, descending, nulls_first in order)
    if isinstance(tree, exp.AnyValue):
        return AggregateCall("earliest", chosen(value, condition), order=order)
    # rows that FILTER drops come behind all others, whose values may be NULL
    if condition is not TRUE:
        order = ((Expr("coalesce", (condition, lit(False))), True, False), *order)
    return AggregateCall("first", chosen(value, condition), order=order)


def as_list(
    clause: ClauseContext, tree: exp.Expr, call: AggregateCall, named: interned_aggregates.ColumnOfCall
) -> Expr:
    """The column of ARRAY_AGG."""
    assert call.argument is not None
    value = call.argument
    if value.op == "case" and value.args[1].op == "list_item":
        inner = value.args[1].args[0]
        kind = clause.scalars.type(inner, tree)
        gathered = AggregateCall("string_agg", value, call.distinct, call.order or ((inner, False, False),), "")
        return Expr("reinterpret", (named(gathered),), (types.ListType("list", kind),))
    return interned_aggregates.listed(value, clause.scalars.type(value, tree), call.order, call.distinct, named)


def parts_of(tree: exp.Expr) -> tuple[exp.Expr | None, list[exp.Expr]]:
    """The value of an aggregate, and the members of its ORDER BY."""
    if isinstance(tree, exp.WithinGroup):
        return None, list(tree.expression.expressions)
    given = tree.this
    return (given.this, list(given.expressions)) if isinstance(given, exp.Order) else (given, [])


def chosen(value: Expr, condition: Expr) -> Expr:
    """A value where a condition is true, else NULL."""
    return value if condition is TRUE else Expr("case", (condition, value, lit(None)))


def string_agg(
    clause: ClauseContext, tree: exp.Expr, value: Expr, distinct: bool, order: tuple[CallOrder, ...], condition: Expr
) -> AggregateCall:
    """The texts of a group, one after the other; in their own order if none is given."""
    between = tree.args.get("separator")
    separator = lit(",") if between is None else clause.bind(between)
    if separator.op != "lit" or not isinstance(separator.params[1], str):
        raise clause.binder.source.error("string_agg takes a constant text between the others", tree)
    kind = clause.scalars.type(value, tree)
    text = value if kind == types.String else zones.localised(clause.scalars, value.cast(types.String), tree)
    text = chosen(text, condition)
    return AggregateCall("string_agg", text, distinct, order or ((text, False, False),), separator.params[1])


def quantile(
    clause: ClauseContext,
    tree: exp.Expr,
    value: Expr,
    distinct: bool,
    order: tuple[CallOrder, ...],
    condition: Expr,
    share_tree: exp.Expr | None,
) -> AggregateCall:
    """A median, a quantile, or the most frequent value."""
    source = clause.binder.source
    value = chosen(value, condition)
    if isinstance(tree, exp.Mode):
        return AggregateCall("mode", value, distinct, ((value, False, False),))
    kind = QUANTILES[type(tree)]
    found = clause.scalars.type(value, tree)
    if kind == "quantile_cont" and (found.interned or found.kind not in ("int", "float", "decimal")):
        raise source.error(
            f"{source.called(tree)} needs numbers, not {found}; quantile_disc takes anything that has an order", tree
        )
    share = lit(0.5) if isinstance(tree, exp.Median) or share_tree is None else clause.bind(share_tree)
    try:
        number = float(share.params[1]) if share.op == "lit" else -1.0
    except (TypeError, ValueError):
        number = -1.0
    if not 0 <= number <= 1:
        raise source.error(f"{source.called(tree)} takes a constant between 0 and 1", share_tree or tree)
    return AggregateCall(kind, value, distinct, ((value, bool(order) and order[0][1], False),), number)
