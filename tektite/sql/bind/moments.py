"""Binding functions that make intervals, times and moments, and functions of bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from tektite.expr import Expr, lit
from tektite.expr.interval_parts import IntervalParts, of_unit
from tektite.sql.bind import zones
from tektite.values import types
from tektite.values.interval_text import DAYS, MICROSECONDS, MONTHS

if TYPE_CHECKING:
    from tektite.sql.bind.scalar import Scalars

UNITS = (*MONTHS, *DAYS, *MICROSECONDS)
PLURALS = {"century": "centuries", "millennium": "millennia"}


def made_interval(scalars: Scalars, node: exp.MakeInterval) -> Expr:
    """MAKE_INTERVAL(years => 1, days => 3), or its parts in order."""
    found = IntervalParts()
    order = ("year", "month", "week", "day", "hour", "minute", "second")
    units = {"years": "year", "months": "month", "weeks": "week", "days": "day", "hours": "hour", "mins": "minute",
             "secs": "second"}  # fmt: skip
    for unit in order:
        given = node.args.get(unit)
        if given is None:
            continue
        if isinstance(given, exp.Kwarg):
            said = given.this.name.lower()
            if said not in units:
                raise scalars.error(f"make_interval takes {', '.join(units)}, not {said}", node)
            unit, given = units[said], given.expression
        amount = scalars.bind(given)
        if scalars.type(amount, node) != types.Int:
            raise scalars.unsupported("make_interval of anything but whole numbers", node)
        found = found.plus(of_unit(amount, unit))
    return found.value()


def to_unit(unit: str) -> Callable[[Expr], Expr]:
    """TO_DAYS and its like: an interval of so many of a unit."""
    return lambda amount: of_unit(amount, unit).value()


def made_time(scalars: Scalars, node: exp.TimeFromParts) -> Expr:
    """MAKE_TIME(hour, minute, second)."""
    parts = [scalars.bind(node.args[name]) for name in ("hour", "min", "sec")]
    from tektite.expr.ast import concat
    from tektite.expr.date_functions import digits

    if any(scalars.type(part, node) != types.Int for part in parts):
        raise scalars.unsupported("make_time of anything but whole numbers", node)
    return concat(digits(parts[0], 2), ":", digits(parts[1], 2), ":", digits(parts[2], 2)).cast(types.Time)


def from_epoch(scalars: Scalars, node: exp.UnixToTime) -> Expr:
    """TO_TIMESTAMP(seconds), a moment, and EPOCH_MS(milliseconds), a timestamp."""
    value = scalars.bind(node.this)
    scale = node.args.get("scale")
    micros = 1_000_000 if scale is None else 10 ** (6 - int(scale.name))
    kind = scalars.type(value, node)
    if kind.kind not in ("int", "float", "decimal"):
        raise scalars.error(f"{scalars.source.called(node)} needs a number, not {kind}", node)
    whole = (value * micros).round(0).cast(types.Int) if kind != types.Int else value * micros
    return Expr("reinterpret", (whole,), (types.TimestampTz if scale is None else types.Timestamp,))


def justified(scalars: Scalars, node: exp.JustifyDays | exp.JustifyHours | exp.JustifyInterval) -> Expr:
    """JUSTIFY_DAYS, JUSTIFY_HOURS, JUSTIFY_INTERVAL: days as months, hours as days, both."""
    months, days, micros = IntervalParts.of(scalars.bind(node.this)).each()
    from tektite.expr import truncdiv, truncmod

    if not isinstance(node, exp.JustifyDays):
        days, micros = days + truncdiv(micros, lit(86_400_000_000)), truncmod(micros, lit(86_400_000_000))
    if not isinstance(node, exp.JustifyHours):
        months, days = months + truncdiv(days, lit(30)), truncmod(days, lit(30))
    return Expr("interval", (months, days, micros))


def byte_length(value: Expr) -> Expr:
    """The number of bytes of a blob, whose text has two digits for each."""
    return Expr("reinterpret", (value,), (types.String,)).length() // 2


def unhexed(scalars: Scalars, node: exp.Unhex) -> Expr:
    return lit("\\x").concat(scalars.bind(node.this)).cast(types.Blob)


def hexed(scalars: Scalars, node: exp.Hex) -> Expr:
    """HEX of bytes, or of a whole number, as digits in upper case."""
    value = scalars.bind(node.this)
    if scalars.type(value, node) == types.Int:
        return Expr("hex_of", (value,)).upper()
    if scalars.type(value, node) != types.Blob:
        raise scalars.unsupported("hex of anything but bytes and whole numbers", node)
    return Expr("reinterpret", (value,), (types.String,)).upper()


def local_timestamp(scalars: Scalars, node: exp.Expr) -> Expr:
    return zones.now(scalars, node)


def current_time(scalars: Scalars, node: exp.Expr) -> Expr:
    return zones.now(scalars, node).cast(types.Time)


NODES: dict[type[exp.Expr], Callable[[Scalars, Any], Expr | None]] = {
    exp.MakeInterval: made_interval,
    exp.ToDays: lambda scalars, node: to_unit("day")(scalars.bind(node.this)),
    exp.TimeFromParts: made_time,
    exp.UnixToTime: from_epoch,
    **dict.fromkeys((exp.JustifyDays, exp.JustifyHours, exp.JustifyInterval), justified),
    exp.Unhex: unhexed,
    exp.Hex: hexed,
    exp.Localtimestamp: local_timestamp,
    exp.CurrentTime: current_time,
}
NAMED: dict[str, tuple[int, Callable[..., Expr]]] = {
    **{f"to_{PLURALS.get(unit, unit + 's')}": (1, to_unit(unit)) for unit in UNITS if unit != "day"},
    "octet_length": (1, byte_length),
}
