"""Binding window functions. `tektite.query.window_functions` computes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from tektite.expr import Expr, col, lit
from tektite.query import interned_aggregates
from tektite.query.aggregate_calls import AggregateCall
from tektite.query.expression_aggregates import spread
from tektite.query.window_calls import Frame, WindowCall, WindowOptions, of_frame
from tektite.sql.bind.clause import SPREADS, ClauseContext, Grouping
from tektite.sql.bind.scope import NameScope, folded
from tektite.sql.bind.window_arguments import Arguments, arguments_of
from tektite.sql.bind.window_frames import excluded, frame_of
from tektite.sql.logical import Node, Project, Window, columns_of
from tektite.sql.parse.read_arguments import copied, written
from tektite.values import types

if TYPE_CHECKING:
    from tektite.sql.bind.query import Binder


@dataclass
class Declared:
    """A window function as found in a clause."""

    name: str
    given: Arguments
    by: list[Expr]
    order: list[tuple[Expr, exp.Ordered]]
    frame: Frame[Expr]
    options: WindowOptions
    title: str


# ---------------------------------------------------------------------- binding


def declare(binder: Binder, node: exp.Window, clause: ClauseContext) -> Expr:
    """Note a window function; its result over the columns that there will be."""
    assert clause.windows is not None
    if (node.args.get("over") or "OVER") != "OVER":
        raise binder.unsupported(f"{node.args['over']} of a window function", node)
    node = resolved(binder, node)
    call, condition, ignores_nulls = node.this, None, False
    while isinstance(call, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        if isinstance(call, exp.Filter):
            condition = clause.predicate(call.expression.this)
        ignores_nulls = ignores_nulls or isinstance(call, exp.IgnoreNulls)
        call = call.this
    by = [clause.bind(tree) for tree in node.args.get("partition_by") or ()]
    ordered = node.args["order"].expressions if node.args.get("order") else []
    order = [(clause.bind(o.this), o) for o in ordered]
    frame, exclude = frame_of(binder, clause, node, order), excluded(binder, node)
    title = f"{written(call)[:60]} OVER (...)"

    def result(given: Arguments) -> Expr:
        """The column of one call over the window."""
        assert clause.windows is not None
        if any(of_windows(clause, part) for part in (*given.values, *by, *(part for part, _ in order))):
            raise binder.unsupported("a window function of a window function", node)
        name = binder.name(given.kind, given.type)
        options = WindowOptions(exclude, ignores_nulls, given.distinct)
        clause.windows.append(Declared(name, given, by, order, frame, options, title))
        return col(name)

    if type(call) in SPREADS:
        return spread_over(binder, clause, call, condition, result)
    if isinstance(call, exp.Sum | exp.Avg) and not isinstance(call.this, exp.Distinct | exp.Order | exp.Star | None):
        found = summed_over(clause, call, condition, result)
        if found is not None:
            return found
    return result(arguments_of(binder, clause, call, condition, ignores_nulls))


def summed_over(
    clause: ClauseContext, call: exp.Expr, condition: Expr | None, result: Callable[[Arguments], Expr]
) -> Expr | None:
    """The sum or average over a frame of values that no word holds, from sums of their parts; None for others."""
    value = clause.bind(call.this)
    kind = clause.scalars.type(value, call)
    if not interned_aggregates.is_summable(kind):
        return None
    if condition is not None:
        value = Expr("case", (condition, value, lit(None)))

    def part(found: AggregateCall) -> Expr:
        assert found.argument is not None
        return result(Arguments(found.kind, [found.argument], types.Int))

    make = interned_aggregates.total if isinstance(call, exp.Sum) else interned_aggregates.average
    return make(value, kind, part)


def spread_over(
    binder: Binder, clause: ClauseContext, call: exp.Expr, condition: Expr | None, result: Callable[[Arguments], Expr]
) -> Expr:
    """Variance and standard deviation over a frame, from exact sums of the values and of their squares."""
    value = None if call.this is None else clause.bind(call.this)
    if value is None or clause.scalars.type(value, call).kind not in ("int", "float", "decimal"):
        raise binder.source.error(f"{binder.source.called(call)} needs numbers", call)
    value = value.cast(types.Float)
    if condition is not None:
        value = Expr("case", (condition, value, lit(None)))
    squares = result(Arguments("sum", [value * value], types.Float))
    total = result(Arguments("sum", [value], types.Float))
    count = result(Arguments("count", [value], types.Int))
    population, root = SPREADS[type(call)]
    return spread(squares, total, count, population, root)


def of_windows(clause: ClauseContext, expression: Expr) -> bool:
    """Whether an expression reads the result of a window function of its clause."""
    own = {found.name for found in clause.windows or ()}
    return any(name in own for name in expression.columns())


def resolved(binder: Binder, node: exp.Window) -> exp.Window:
    """A window with what a WINDOW clause says of the name it uses, and what it says itself beyond that."""
    alias = node.args.get("alias")
    if alias is None:
        return node
    select = node.find_ancestor(exp.Select)
    for window in (select.args.get("windows") if select is not None else None) or ():
        if window.name.lower() == alias.name.lower() and window is not node:
            found = copied(resolved(binder, window) if window.args.get("alias") else window)
            for part, called in (("partition_by", "PARTITION BY"), ("order", "ORDER BY"), ("spec", "frame")):
                if node.args.get(part):
                    if found.args.get(part) or part == "partition_by":
                        message = f"window {alias.name!r} cannot be given another {called}"
                        raise binder.source.error(message, node)
                    found.set(part, copied(node.args[part]))
            found.set("this", node.this)
            return found
    raise binder.source.error(f"there is no window {alias.name!r}", node)


def check_definitions(binder: Binder, select: exp.Select, scope: NameScope) -> None:
    """Bind the definitions of a WINDOW clause: those that nobody uses must make sense as well."""
    for window in select.args.get("windows") or ():
        folded(window.this)
        clause = ClauseContext(binder, scope, "WINDOW", Grouping(binder, ClauseContext(binder, scope, "an aggregate")))
        window = resolved(binder, window)
        for tree in window.args.get("partition_by") or ():
            clause.bind(tree)
        ordered = window.args["order"].expressions if window.args.get("order") else []
        order = [(clause.bind(o.this), o) for o in ordered]
        for tree in ordered:
            binder.ordering(tree, "")
        frame_of(binder, clause, window, order)


def apply(binder: Binder, plan: Node, clause: ClauseContext, over: Callable[[Expr], Expr]) -> Node:
    """The plan with the columns of all window functions of a clause."""
    assert clause.windows is not None
    more: list[tuple[str, Expr]] = []

    def column(expression: Expr) -> str:
        expression = over(expression)
        if expression.op == "col" and expression.params[0] in plan.columns:
            return str(expression.params[0])
        for name, known in more:
            if known.fingerprint == expression.fingerprint:
                return name
        name = binder.name("window", clause.scalars.type(expression, exp.Null()))
        more.append((name, expression))
        return name

    calls = []
    for found in clause.windows:
        order = tuple(binder.ordering(tree, column(expression)) for expression, tree in found.order)
        given = found.given
        call = WindowCall(
            given.kind, tuple(map(column, given.values)), tuple(map(column, found.by)), order,
            of_frame(found.frame, column), given.type, given.constants, found.title, found.options,
        )  # fmt: skip
        calls.append((found.name, call))
    with_values = Project(plan, (*columns_of(plan), *more)) if more else plan
    return Window(with_values, tuple(calls))
