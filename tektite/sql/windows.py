"""Binding window functions. `tektite.sql.frames` computes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from tektite import types
from tektite.expr import Expr, lit
from tektite.sql.known import check_arguments
from tektite.sql.logical import Node, Project, Window, WindowCall, columns_of
from tektite.sql.rules.fold_constants import folded as folded_constant
from tektite.types import Type

if TYPE_CHECKING:
    from tektite.sql.clause import Clause
    from tektite.sql.query import Binder

RANKS: dict[type[exp.Expr], tuple[str, Type]] = {
    exp.RowNumber: ("row_number", types.Int), exp.Rank: ("rank", types.Int), exp.DenseRank: ("dense_rank", types.Int),
    exp.PercentRank: ("percent_rank", types.Float), exp.CumeDist: ("cume_dist", types.Float),
}  # fmt: skip
TOTALS: dict[type[exp.Expr], str] = {
    exp.Sum: "sum", exp.Count: "count", exp.Avg: "avg", exp.Min: "min", exp.Max: "max",
    exp.FirstValue: "first_value", exp.LastValue: "last_value", exp.LogicalAnd: "min", exp.LogicalOr: "max",
}  # fmt: skip
Frame = tuple[str, int | None, int | None]
WHOLE: Frame = ("rows", None, None)
RUNNING: Frame = ("range", None, 0)


@dataclass
class Declared:
    """A window function as found in a clause."""

    name: str
    kind: str
    arguments: list[Expr]
    by: list[Expr]
    order: list[tuple[Expr, exp.Ordered]]
    frame: Frame
    type: Type
    constants: tuple[Any, ...]


# ---------------------------------------------------------------------- binding


def declare(binder: Binder, node: exp.Window, clause: Clause) -> str:
    """Note a window function; the name of the column that will hold its result."""
    assert clause.windows is not None
    node = resolved(binder, node)
    call = node.this
    condition = None
    if isinstance(call, exp.Filter):
        condition = clause.predicate(call.expression.this)
        call = call.this
        if call.__class__ not in TOTALS or TOTALS[call.__class__] in ("first_value", "last_value"):
            raise binder.unsupported(f"FILTER with window function {binder.source.called(call)}", call)
    if isinstance(call, exp.IgnoreNulls | exp.RespectNulls):
        raise binder.unsupported("IGNORE NULLS and RESPECT NULLS of a window function", call)
    check_arguments(binder.source, call)
    arguments: list[Expr] = []
    constants: tuple[Any, ...] = ()
    kind, type = RANKS.get(call.__class__, ("", types.Int))
    if kind:
        pass
    elif isinstance(call, exp.Lag | exp.Lead):
        kind = call.key
        arguments, constants = shifted(binder, call, clause)
        type = clause.scalars.type(arguments[0], call)
    elif isinstance(call, exp.Ntile | exp.NthValue):
        kind = "ntile" if isinstance(call, exp.Ntile) else "nth_value"
        tree = call.this if isinstance(call, exp.Ntile) else call.args.get("offset")
        number = None if tree is None else clause.bind(tree)
        if number is None or number.op != "lit" or not isinstance(number.params[1], int) or number.params[1] < 1:
            raise binder.source.error(f"{kind} takes a whole constant of at least 1", call)
        constants = (number.params[1],)
        if kind == "nth_value":
            arguments = [clause.bind(call.this)]
            type = clause.scalars.type(arguments[0], call)
    elif call.__class__ in TOTALS:
        kind = TOTALS[call.__class__]
        given = call.this
        if isinstance(given, exp.Distinct):
            raise binder.unsupported("DISTINCT in a window function", call)
        arguments = [] if given is None or isinstance(given, exp.Star) else [clause.bind(given)]
        type = total_type(binder, clause, kind, arguments, call)
        if condition is not None:
            arguments = [Expr("case", (condition, arguments[0] if arguments else lit(1), lit(None)))]
    else:
        raise binder.unsupported(f"window function {binder.source.called(call)}", call)
    by = [clause.bind(tree) for tree in node.args.get("partition_by") or ()]
    ordered = node.args["order"].expressions if node.args.get("order") else []
    order = [(clause.bind(o.this), o) for o in ordered]
    if any(of_windows(clause, part) for part in (*arguments, *by, *(part for part, _ in order))):
        raise binder.unsupported("a window function of a window function", node)
    name = binder.name(kind, type)
    clause.windows.append(
        Declared(name, kind, arguments, by, order, frame_of(binder, node, bool(order)), type, constants)
    )
    return name


def of_windows(clause: Clause, expression: Expr) -> bool:
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
            found = resolved(binder, window).copy() if window.args.get("alias") else window.copy()
            for part, called in (("partition_by", "PARTITION BY"), ("order", "ORDER BY"), ("spec", "frame")):
                if node.args.get(part):
                    if found.args.get(part) or part == "partition_by":
                        message = f"window {alias.name!r} cannot be given another {called}"
                        raise binder.source.error(message, node)
                    found.set(part, node.args[part].copy())
            found.set("this", node.this)
            return found
    raise binder.source.error(f"there is no window {alias.name!r}", node)


def shifted(binder: Binder, call: exp.Lag | exp.Lead, clause: Clause) -> tuple[list[Expr], tuple[Any, ...]]:
    """The arguments of lag and lead: a value, and a constant offset and default."""
    value = clause.bind(call.this)
    kind = clause.scalars.type(value, call)
    constants: list[Any] = []
    for tree, otherwise in ((call.args.get("offset"), 1), (call.args.get("default"), None)):
        given = None if tree is None else clause.bind(tree)
        if given is not None and tree is call.args.get("default") and clause.scalars.type(given, call) != kind:
            given = given if given.op == "lit" and given.params[1] is None else given.cast(kind)
        found = None if given is None else folded_constant(given)
        if found is not None and found.op != "lit":
            raise binder.unsupported(f"{call.key} with an offset or default that is not a constant", call)
        constants.append(otherwise if found is None else found.params[1])
    if type(constants[0]) is not int:
        raise binder.source.error(f"{call.key}: the offset is a whole number", call)
    return [value], tuple(constants)


def total_type(binder: Binder, clause: Clause, kind: str, arguments: list[Expr], call: exp.Expr) -> Type:
    """The type of an aggregate over a frame."""
    if kind == "count":
        return types.Int
    if not arguments:
        raise binder.source.error(f"{kind} needs a value", call)
    found = clause.scalars.type(arguments[0], call)
    if kind in ("sum", "avg") and found.kind not in ("int", "float", "decimal"):
        raise binder.source.error(f"{kind} needs numbers, not {found}", call)
    if kind == "avg":
        return types.Float
    return types.Decimal(18, found.scale) if kind == "sum" and isinstance(found, types.DecimalType) else found


def frame_of(binder: Binder, node: exp.Window, ordered: bool) -> Frame:
    """The rows around a row that its result is computed of: bounds relative to it, None for no bound."""
    spec = node.args.get("spec")
    if spec is None:
        return RUNNING if ordered else WHOLE
    kind = (spec.args.get("kind") or "").lower()
    if spec.args.get("exclude") or kind not in ("rows", "range"):
        raise binder.unsupported("EXCLUDE in a frame" if spec.args.get("exclude") else f"a {kind.upper()} frame", node)

    def bound(which: str, sign: int) -> int | None:
        value, side = spec.args.get(which), (spec.args.get(f"{which}_side") or "").upper()
        if value is None or value == "CURRENT ROW":
            return 0
        if value == "UNBOUNDED":
            if (side == "PRECEDING") != (which == "start"):
                raise binder.unsupported("this frame", node)
            return None
        if not isinstance(value, exp.Literal) or value.is_string or not value.this.isdigit():
            raise binder.unsupported("a frame bound that is not a whole constant", node)
        return -int(value.this) if side == "PRECEDING" else int(value.this)

    start, end = bound("start", -1), bound("end", 1)
    if kind == "range" and not {start, end} <= {0, None}:
        raise binder.unsupported("a RANGE frame with an offset", node)
    return kind, start, end


def apply(binder: Binder, plan: Node, clause: Clause, over: Callable[[Expr], Expr]) -> Node:
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
        call = WindowCall(
            found.kind, tuple(map(column, found.arguments)), tuple(map(column, found.by)), order, found.frame,
            found.type, found.constants,
        )  # fmt: skip
        calls.append((found.name, call))
    given = Project(plan, (*columns_of(plan), *more)) if more else plan
    return Window(given, tuple(calls))
