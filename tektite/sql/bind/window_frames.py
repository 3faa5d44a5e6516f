"""Binding the frames of window functions: which rows around a row its result is computed of."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from tektite.expr import Expr
from tektite.expr.fold import folded as folded_constant
from tektite.expr.interval_parts import IntervalParts
from tektite.query.window_calls import Away, Edge, Frame, Reach
from tektite.values import types

if TYPE_CHECKING:
    from tektite.sql.bind.clause import ClauseContext
    from tektite.sql.bind.query import Binder

WHOLE: Frame[Any] = ("rows", None, None)
RUNNING: Frame[Any] = ("range", None, 0)
EXCLUDED = {"NO OTHERS": "", "CURRENT ROW": "current row", "GROUP": "group", "TIES": "ties"}
FARTHEST = 2**40
"""More rows than a partition can have: places and distances are added without overflow."""


def excluded(binder: Binder, node: exp.Window) -> str:
    """The rows that EXCLUDE leaves out of the frame of a window."""
    spec = node.args.get("spec")
    said = None if spec is None else spec.args.get("exclude")
    if said is None:
        return ""
    word = said.name.upper() if isinstance(said, exp.Expr) else str(said).upper()
    if word not in EXCLUDED:
        raise binder.source.error(f"EXCLUDE takes {', '.join(EXCLUDED)}, not {word}", spec)
    return EXCLUDED[word]


def frame_of(
    binder: Binder, clause: ClauseContext, node: exp.Window, order: list[tuple[Expr, exp.Ordered]]
) -> Frame[Expr]:
    """The rows around a row that its result is computed of."""
    spec = node.args.get("spec")
    if spec is None:
        return RUNNING if order else WHOLE
    kind = (spec.args.get("kind") or "").lower()
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
        sign = -1 if side == "PRECEDING" else 1
        if clause.scalars.type(number, value) != types.Int:
            raise binder.source.error(f"the offset of a {kind.upper()} frame is a whole number", value)
        if number.op != "lit":
            return Away(number, sign)
        if number.params[1] is None or number.params[1] < 0:
            raise binder.source.error(f"the offset of a {kind.upper()} frame is a number that is not negative", value)
        return sign * min(int(number.params[1]), FARTHEST)

    refuse_backwards(binder, spec)
    return kind, edge("start"), edge("end")


def place_in_frame(spec: exp.Expr, which: str) -> int:
    """The place of an end of a frame: before the row (-1), at it (0) or behind it (1); UNBOUNDED is further."""
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
    """The reach of a RANGE frame that ends a value before or behind the row's place in the order: the place is moved by that
    value, in the arithmetic of its type. An offset that is not a constant and is negative gives an empty frame.
    """
    if len(order) != 1:
        raise binder.source.error("a RANGE frame with an offset needs one column in its ORDER BY", offset)
    length = clause.scalars.any(offset)
    number = folded_constant(length.length() if isinstance(length, IntervalParts) else length)
    if number.op == "lit" and not isinstance(number.params[1], int | float | Decimal):
        raise binder.source.error("the offset of a RANGE frame is a number or an interval", offset)
    if number.op == "lit" and not number.params[1] >= 0:
        raise binder.source.error("the offset of a RANGE frame is not negative", offset)
    place, ordered = order[0]
    further = (side == "FOLLOWING") != bool(ordered.args.get("desc"))
    moved = (exp.Add if further else exp.Sub)(
        this=exp.Paren(this=ordered.this.copy()), expression=exp.Paren(this=offset.copy())
    )
    bound = clause.bind(moved)
    kind = clause.scalars.type(bound, offset)
    return Reach(place if clause.scalars.type(place, ordered) == kind else place.cast(kind), bound, number.op == "lit")
