"""Moments in SQL: casts from and to them by the clocks of the session's time zone, and AT TIME ZONE."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlglot import exp

from tektite.errors import TektiteError
from tektite.expr import Expr, lit
from tektite.expr.fold import folded
from tektite.expr.zones import zone_named
from tektite.values import types
from tektite.values.types import Type

if TYPE_CHECKING:
    from tektite.sql.bind.scalar import Scalars

TYPES = {types.TimestampTz}
"""The types whose casts depend on the time zone."""


def clock(scalars: Scalars, moment: Expr) -> Expr:
    """The local time of a moment in the session's time zone."""
    return clock_in(moment, scalars.context.zone)


def moment(scalars: Scalars, shown: Expr) -> Expr:
    """The moment at which the clocks of the session's zone show a timestamp."""
    return moment_in(shown, scalars.context.zone)


def clock_in(moment: Expr, zone: str) -> Expr:
    """The local time of a moment in a time zone."""
    return moment.cast(types.Timestamp) if zone == "UTC" else Expr("in_zone", (moment,), (zone,))


def moment_in(shown: Expr, zone: str) -> Expr:
    """The moment at which the clocks of a zone show a timestamp."""
    return shown.cast(types.TimestampTz) if zone == "UTC" else Expr("from_zone", (shown,), (zone,))


def now(scalars: Scalars, node: exp.Expr) -> Expr:
    """NOW(): what the clocks of the session's zone show."""
    told_in_utc = scalars.context.now(node)
    return told_in_utc if scalars.context.zone == "UTC" else clock(scalars, told_in_utc.cast(types.TimestampTz))


def is_now(node: exp.Expr) -> bool:
    """Whether a tree is NOW() or CURRENT_TIMESTAMP, which is a moment for AT TIME ZONE."""
    while isinstance(node, exp.Paren):
        node = node.this
    return isinstance(node, exp.CurrentTimestamp) or isinstance(node, exp.Anonymous) and node.name.lower() == "now"


def cast(scalars: Scalars, value: Expr, target: Type, node: exp.Expr) -> Expr:
    """A cast, where one of the types may be that of moments."""
    kind = scalars.type(value, node)
    if kind == types.String and target == types.TimestampTz:
        return told(scalars, value, node)
    return converted(value, kind, target, scalars.context.zone)


def converted(value: Expr, kind: Type, target: Type, zone: str) -> Expr:
    """A value of one type as one of another; between moments and others by the clocks of a zone."""
    if kind == target:
        return value
    if kind == types.TimestampTz:
        if target in (types.String, types.Json):
            return Expr("zone_text" if target == types.String else "to_json", (value,), (zone,))
        return clock_in(value, zone) if target == types.Timestamp else clock_in(value, zone).cast(target)
    if target != types.TimestampTz:
        return value.cast(target)
    if kind == types.String:
        return told_in(value, zone, Expr.cast)
    return moment_in(value if kind == types.Timestamp else value.cast(types.Timestamp), zone)


def localised(scalars: Scalars, value: Expr, node: exp.Expr) -> Expr:
    """An expression in which moments become texts and JSON by the clocks of the session's zone, in lists and structs too."""
    zone = scalars.context.zone
    if zone == "UTC":
        return value
    args = tuple([localised(scalars, arg, node) for arg in value.args])
    if any(one is not other for one, other in zip(args, value.args, strict=True)):
        value = Expr(value.op, args, value.params)
    if value.op == "concat":
        return Expr("concat", tuple([_shown(scalars, arg, node) for arg in args]), value.params)
    if value.op in ("to_json", "list_join") and not value.params and _told(scalars, args[0], node):
        return Expr(value.op, args, (zone,))
    if value.op in ("cast", "try_cast"):
        (target,) = value.params
        if target == types.String:
            return _shown(scalars, value.args[0], node) if _told(scalars, args[0], node) else value
        if target == types.Json and _told(scalars, args[0], node):
            return Expr("to_json", args, (zone,))
        kind = scalars.type(args[0], node)
        check_nested(scalars, kind, target, node)
    return value


def check_nested(scalars: Scalars, kind: Type, target: Type, node: exp.Expr) -> None:
    """Refuse a cast that makes moments inside lists and structs, or makes something of them, by other clocks than UTC's."""
    zone = scalars.context.zone
    nested = {kind.kind, target.kind} & {"list", "struct"} and zone != "UTC"
    if nested and types.contains(kind, "timestamptz") != types.contains(target, "timestamptz"):
        what = f"a cast from {kind} to {target} by the clocks of {zone!r} (cast the elements, or SET timezone = 'UTC')"
        raise scalars.unsupported(what, node)


def _told(scalars: Scalars, value: Expr, node: exp.Expr) -> bool:
    return types.contains(scalars.type(value, node), "timestamptz")


def _shown(scalars: Scalars, value: Expr, node: exp.Expr) -> Expr:
    return Expr("zone_text", (value,), (scalars.context.zone,)) if _told(scalars, value, node) else value


def told(scalars: Scalars, text: Expr, node: exp.Expr) -> Expr:
    """The moment that a text says: by its own offset, or by the clocks of the session's zone."""
    tries = isinstance(node, exp.TryCast)
    parse = Expr.try_cast if tries else Expr.cast
    if text.op == "lit" and isinstance(text.params[1], str):
        try:
            said = lit(text.params[1], types.TimestampTz)
        except TektiteError as error:
            if tries:
                return lit(None, types.TimestampTz)
            raise scalars.source.placed(error, node) from None
        if scalars.context.zone == "UTC" or has_offset(text.params[1]):
            return said
        return moment(scalars, lit(text.params[1], types.Timestamp))
    return told_in(text, scalars.context.zone, parse)


def told_in(text: Expr, zone: str, parse: Callable[[Expr, Type], Expr]) -> Expr:
    """The moment that a text says: by its own offset, or by the clocks of a zone."""
    if zone == "UTC":
        return parse(text, types.TimestampTz)
    plain = moment_in(parse(text, types.Timestamp), zone)
    return Expr("case", (text.matches(OFFSET), parse(text, types.TimestampTz), plain))


OFFSET = r"(?:[Zz]|:\d\d(?:\.\d+)?\s*[+-]\d\d(?::?\d\d)?)\s*$"
"""A regular expression: the offset from UTC at the end of a text."""


def has_offset(text: str) -> bool:
    """Whether a text says an offset behind a time."""
    found = folded(lit(text).matches(OFFSET))
    return found.op == "lit" and bool(found.params[1])


def alike(scalars: Scalars, left: Expr, right: Expr, node: exp.Expr) -> tuple[Expr, Expr]:
    """Two sides of a comparison: beside a moment, a date, a timestamp or a constant text is one."""
    kinds = scalars.type(left, node), scalars.type(right, node)
    if types.TimestampTz not in kinds or kinds[0] == kinds[1]:
        return left, right
    told_as = [
        cast(scalars, side, types.TimestampTz, node)
        if kind in (types.Date, types.Timestamp) or kind == types.String and side.op == "lit"
        else side
        for side, kind in zip((left, right), kinds, strict=True)
    ]
    return told_as[0], told_as[1]


def at_time_zone(scalars: Scalars, node: exp.AtTimeZone) -> Expr:
    """AT TIME ZONE: what the clocks of a zone show at a moment, or the moment at which they show a timestamp."""
    value, zone = scalars.bind(node.this), folded(scalars.bind(node.args["zone"]))
    if zone.op != "lit" or not isinstance(zone.params[1], str):
        raise scalars.unsupported("AT TIME ZONE with a zone that is not a constant text", node)
    try:
        name = zone_named(zone.params[1])
    except TektiteError as error:
        raise scalars.source.placed(error, node) from None
    if is_now(node.this):
        value = moment(scalars, value)
    kind = scalars.type(value, node)
    if kind == types.TimestampTz:
        return Expr("in_zone", (value,), (name,))
    if kind == types.String and value.op == "lit":
        return scalars.checked(Expr("from_zone", (lit(value.params[1], types.Timestamp),), (name,)), node)
    if kind not in (types.Date, types.Timestamp):
        raise scalars.error(f"AT TIME ZONE needs a timestamp, not {kind}", node)
    return scalars.checked(Expr("from_zone", (value.cast(types.Timestamp),), (name,)), node)
