"""Binding window functions. `tektite.query.window_functions` computes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from tektite.errors import UnsupportedError
from tektite.expr import Expr, lit
from tektite.expr.fold import folded as folded_constant
from tektite.expr.literals import literal_word, show_word
from tektite.query.window_calls import Edge, Frame, Reach, WindowCall, of_frame
from tektite.sql.bind.clause import ClauseContext, Grouping
from tektite.sql.bind.intervals import Interval
from tektite.sql.bind.scope import NameScope, folded
from tektite.sql.logical import Node, Project, Window, columns_of
from tektite.sql.parse.read_arguments import copied, written
from tektite.values import types
from tektite.values.types import Type

if TYPE_CHECKING:
    from tektite.sql.bind.query import Binder

RANKS: dict[type[exp.Expr], tuple[str, Type]] = {
    exp.RowNumber: ("row_number", types.Int), exp.Rank: ("rank", types.Int), exp.DenseRank: ("dense_rank", types.Int),
    exp.PercentRank: ("percent_rank", types.Float), exp.CumeDist: ("cume_dist", types.Float),
}  # fmt: skip
TOTALS: dict[type[exp.Expr], str] = {
    exp.Sum: "sum", exp.Count: "count", exp.Avg: "avg", exp.Min: "min", exp.Max: "max",
    exp.FirstValue: "first_value", exp.LastValue: "last_value", exp.LogicalAnd: "min", exp.LogicalOr: "max",
}  # fmt: skip
WHOLE: Frame[Any] = ("rows", None, None)
RUNNING: Frame[Any] = ("range", None, 0)


@dataclass
class Declared:
    """A window function as found in a clause."""

    name: str
    kind: str
    arguments: list[Expr]
    by: list[Expr]
    order: list[tuple[Expr, exp.Ordered]]
    frame: Frame[Expr]
    type: Type
    constants: tuple[Any, ...]
    title: str


# ---------------------------------------------------------------------- binding


def declare(binder: Binder, node: exp.Window, clause: ClauseContext) -> str:
    """Note a window function; the name of the column that will hold its result."""
    assert clause.windows is not None
    if (node.args.get("over") or "OVER") != "OVER":
        raise binder.unsupported(f"{node.args['over']} of a window function", node)
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
    frame = frame_of(binder, clause, node, order)
    title = f"{written(call)[:60]} OVER (...)"
    clause.windows.append(Declared(name, kind, arguments, by, order, frame, type, constants, title))
    return name


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


def shifted(binder: Binder, call: exp.Lag | exp.Lead, clause: ClauseContext) -> tuple[list[Expr], tuple[Any, ...]]:
    """The arguments of lag and lead: a value, and a constant offset and default."""
    value = clause.bind(call.this)
    kind = clause.scalars.type(value, call)
    constants: list[Any] = []
    for tree, otherwise in ((call.args.get("offset"), 1), (call.args.get("default"), None)):
        given = None if tree is None else clause.bind(tree)
        if given is not None and tree is call.args.get("default") and clause.scalars.type(given, call) != kind:
            given = default_of(binder, call, given, clause.scalars.type(given, call), kind)
        found = None if given is None else folded_constant(given)
        if found is not None and found.op != "lit":
            raise binder.unsupported(f"{call.key} with an offset or default that is not a constant", call)
        constants.append(otherwise if found is None else found.params[1])
    if type(constants[0]) is not int:
        raise binder.source.error(f"{call.key}: the offset is a whole number", call)
    return [value], tuple(constants)


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


def frame_of(
    binder: Binder, clause: ClauseContext, node: exp.Window, order: list[tuple[Expr, exp.Ordered]]
) -> Frame[Expr]:
    """The rows around a row that its result is computed of."""
    spec = node.args.get("spec")
    if spec is None:
        return RUNNING if order else WHOLE
    kind = (spec.args.get("kind") or "").lower()
    if spec.args.get("exclude"):
        raise binder.source.error(
            "EXCLUDE in a frame is not supported", binder.source.where("EXCLUDE"), UnsupportedError
        )
    if kind == "groups" and not order:
        raise binder.source.error("a GROUPS frame needs an ORDER BY", spec)

    def edge(which: str) -> Edge[Expr]:
        value, side = spec.args.get(which), (spec.args.get(f"{which}_side") or "").upper()
        if value is None or value == "CURRENT ROW":
            return 0
        if value == "UNBOUNDED":
            if (side == "PRECEDING") != (which == "start"):
                raise binder.unsupported(f"a frame whose {which} is UNBOUNDED {side}", spec)
            return None
        if kind == "range":
            return reach(binder, clause, value, side, order)
        number = folded_constant(clause.bind(value))
        if number.op != "lit" or type(number.params[1]) is not int or number.params[1] < 0:
            raise binder.source.error(f"{kind.upper()} takes a whole constant that is not negative", value)
        return -number.params[1] if side == "PRECEDING" else number.params[1]

    refuse_backwards(binder, spec)
    return kind, edge("start"), edge("end")


def place_in_frame(spec: exp.Expr, which: str) -> int:
    """Where an end of a frame lies: before the row (-1), at it (0) or behind it (1); UNBOUNDED is further."""
    value, side = spec.args.get(which), (spec.args.get(f"{which}_side") or "").upper()
    if value is None or value == "CURRENT ROW":
        return 0
    return (1 if side == "FOLLOWING" else -1) * (2 if value == "UNBOUNDED" else 1)


def refuse_backwards(binder: Binder, spec: exp.Expr) -> None:
    """Refuse a frame that ends before it begins, whatever the numbers in it are."""
    start, end = place_in_frame(spec, "start"), place_in_frame(spec, "end")
    if start > end:
        raise binder.source.error("the frame of a window ends before it begins", spec)


def reach(
    binder: Binder, clause: ClauseContext, offset: exp.Expr, side: str, order: list[tuple[Expr, exp.Ordered]]
) -> Reach[Expr]:
    """How far a RANGE frame goes that ends a constant before or behind the row's place in the order: the place is moved by
    that, in the arithmetic of its type.
    """
    if len(order) != 1:
        raise binder.source.error("a RANGE frame with an offset needs one column in its ORDER BY", offset)
    length = clause.scalars.any(offset)
    number = folded_constant(length.length() if isinstance(length, Interval) else length)
    if number.op != "lit" or not isinstance(number.params[1], int | float | Decimal):
        raise binder.unsupported("a RANGE frame whose offset is not a constant number or interval", offset)
    if not number.params[1] >= 0:
        raise binder.source.error("the offset of a RANGE frame is not negative", offset)
    place, ordered = order[0]
    further = (side == "FOLLOWING") != bool(ordered.args.get("desc"))
    moved = (exp.Add if further else exp.Sub)(
        this=exp.Paren(this=ordered.this.copy()), expression=exp.Paren(this=offset.copy())
    )
    bound = clause.bind(moved)
    kind = clause.scalars.type(bound, offset)
    return Reach(place if clause.scalars.type(place, ordered) == kind else place.cast(kind), bound)


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
        call = WindowCall(
            found.kind, tuple(map(column, found.arguments)), tuple(map(column, found.by)), order,
            of_frame(found.frame, column), found.type, found.constants, found.title,
        )  # fmt: skip
        calls.append((found.name, call))
    given = Project(plan, (*columns_of(plan), *more)) if more else plan
    return Window(given, tuple(calls))
