"""SQL's functions of dates and timestamps, in terms of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from tektite.errors import IncorrectError, UnsupportedError
from tektite.expr import Expr, lit
from tektite.expr.date_functions import CLOCK, FIELDS, elapsed, formatted, read_format, unknown_letter
from tektite.expr.fold import folded
from tektite.expr.interval_parts import IntervalParts, interval_field
from tektite.expr.number_functions import quotient, remainder
from tektite.sql.bind import zones
from tektite.values import types
from tektite.values.interval_text import MICROSECONDS, unit_name

if TYPE_CHECKING:
    from tektite.sql.bind.scalar import Scalars

DAY = 86_400_000_000
OTHER_NAMES = {
    "dayofweek": "dow", "weekday": "dow", "dayofyear": "doy", "weekofyear": "week", "centuries": "century",
    "millenniums": "millennium", "millennia": "millennium",
}  # fmt: skip
LONG = {"decade": 10, "century": 100, "millennium": 1000}
"""Units of so many years."""


def field_name(word: str) -> str:
    """The field that a word names, in the singular."""
    name = word.lower()
    name = OTHER_NAMES.get(name, name)
    known = (*FIELDS, *CLOCK)
    return name.removesuffix("s") if name not in known and name.removesuffix("s") in known else unit_name(name) or name


def extract(scalars: Scalars, node: exp.Expr, field: str, tree: exp.Expr) -> Expr:
    """EXTRACT and DATE_PART, of a moment or of an interval."""
    value, name = scalars.any(tree), field_name(field)
    kind = types.Interval if isinstance(value, IntervalParts) else scalars.type(value, node)
    if kind == types.Interval:
        found = interval_field(value if isinstance(value, IntervalParts) else IntervalParts.of(value), name)
        if found is None:
            raise scalars.unsupported(f"the field {name} of an interval", node)
        return found
    assert isinstance(value, Expr)
    if kind == types.TimestampTz:
        if name == "epoch":
            return CLOCK[name](value.cast(types.Timestamp))
        if name.startswith("timezone"):
            return zone_field(scalars, node, name, value)
        value, kind = zones.clock(scalars, value), types.Timestamp
    if kind not in MOMENTS:
        raise scalars.error(f"{field.lower()} needs a date or a timestamp, not {kind}", node)
    if kind == types.Time:
        if name not in CLOCK:
            raise scalars.error(f"a time has no {field.lower()}", node)
        return Expr("date_part", (value,), (name,))
    if name in FIELDS:
        return FIELDS[name](value if kind == types.Date else value.cast(types.Date))
    if name not in CLOCK:
        raise scalars.unsupported(f"the field {field.lower()} of a {kind}", node)
    return CLOCK[name](value if kind == types.Timestamp else value.cast(types.Timestamp))


MOMENTS = (types.Date, types.Time, types.Timestamp, types.TimestampTz)


def zone_field(scalars: Scalars, node: exp.Expr, name: str, value: Expr) -> Expr:
    """The offset of the session's zone from UTC at a moment: in seconds, or a part of that."""
    ahead = elapsed(zones.clock(scalars, value), value.cast(types.Timestamp)) // 1_000_000
    if name == "timezone_hour":
        return quotient(ahead, lit(3600))
    return remainder(quotient(ahead, lit(60)), lit(60)) if name == "timezone_minute" else ahead


def truncated(scalars: Scalars, node: exp.Expr, unit: str, value: Expr) -> Expr:
    """DATE_TRUNC: a timestamp gives a timestamp, a date a date."""
    name = field_name(unit)
    if scalars.type(value, node) == types.TimestampTz:  # by the clocks of the session's zone
        return zones.moment(scalars, truncated(scalars, node, unit, zones.clock(scalars, value)))
    if name in LONG:
        return value.truncate("year").add_months(value.year() % LONG[name] * -12)
    if name in ("millisecond", "microsecond") and scalars.type(value, node) == types.Timestamp:
        micros = MICROSECONDS[name]
        return value - elapsed(value, value.truncate("second")) % micros
    return value.truncate(name)


def difference(scalars: Scalars, node: exp.DateDiff) -> Expr:
    """DATE_DIFF: how many boundaries of a unit lie between two moments."""
    unit = field_name(node.args["unit"].name) if node.args.get("unit") is not None else "day"
    later, earlier = (in_session(scalars, scalars.bind(part), node) for part in (node.this, node.expression))
    if unit in ("year", "quarter", "month"):
        per_year = {"year": 1, "quarter": 4, "month": 12}[unit]
        part = {"year": None, "quarter": Expr.quarter, "month": Expr.month}[unit]
        counts = [m.year() * per_year + (0 if part is None else part(m)) for m in (later, earlier)]
        return counts[0] - counts[1]
    if unit in ("day", "week"):
        days = [m.truncate(unit).cast(types.Date) for m in (later, earlier)]
        return days[0] - days[1] if unit == "day" else (days[0] - days[1]) // 7
    if unit not in MICROSECONDS:
        raise scalars.unsupported(f"DATE_DIFF by {unit}", node)
    moments = [truncated(scalars, node, unit, m.cast(types.Timestamp)) for m in (later, earlier)]
    return elapsed(*moments) // MICROSECONDS[unit]


def in_session(scalars: Scalars, value: Expr, node: exp.Expr) -> Expr:
    """A moment as what the clocks of the session's zone show; anything else as it is."""
    return zones.clock(scalars, value) if scalars.type(value, node) == types.TimestampTz else value


def bucket(scalars: Scalars, node: exp.DateBin) -> Expr:
    """TIME_BUCKET: the start of the stretch of time, one of many of the same length, that a moment lies in. They are counted from
    a Monday, or from the moment given.
    """
    width = scalars.any(node.this)
    if not isinstance(width, IntervalParts) or width.months is not None:
        raise scalars.unsupported("time_bucket of anything but an interval of days or less", node)
    length = folded(width.length())
    if length.op != "lit" or not length.params[1] > 0:
        raise scalars.error("time_bucket takes a constant interval that is longer than nothing", node)
    value = scalars.bind(node.expression)
    kind = scalars.type(value, node)
    if kind not in (types.Date, types.Timestamp, types.TimestampTz):
        raise scalars.error(f"time_bucket needs a date or a timestamp, not {kind}", node)
    given = node.args.get("unit")
    origin = () if given is None else (scalars.bind(given),)
    return Expr("time_bucket", (value, *origin), (length.params[1],))


def moment_of(scalars: Scalars, node: exp.Expr, op: str, value: exp.Expr, format: exp.Expr) -> Expr:
    """STRPTIME and TRY_STRPTIME with a constant format."""
    if not isinstance(format, exp.Literal) or not format.is_string:
        raise scalars.unsupported(f"{op} with a format that is not a constant text", node)
    try:
        shape = read_format(format.this)
    except IncorrectError as error:
        raise scalars.source.error(f"{op}: {error}", node, UnsupportedError) from None
    return Expr(op, (scalars.bind(value),), (shape,))


def read_moment(scalars: Scalars, node: exp.StrToTime) -> Expr:
    """STRPTIME."""
    return moment_of(scalars, node, "strptime", node.this, node.args["format"])


def text_of(scalars: Scalars, node: exp.Expr) -> Expr:
    """STRFTIME with a constant format."""
    shape = node.args["format"]
    value = in_session(scalars, scalars.bind(node.this), node)
    if not isinstance(shape, exp.Literal) or not shape.is_string:
        raise scalars.unsupported("strftime with a format that is not a constant", node)
    kind = types.Timestamp if value.op == "lit" and value.params[1] is None else scalars.type(value, node)
    if kind not in MOMENTS:
        raise scalars.error(f"strftime needs a date or a timestamp, not {kind}", node)
    letter = unknown_letter(shape.this)
    if letter is not None:
        raise scalars.unsupported(f"%{letter} in strftime", node)
    return formatted(value, kind, shape.this)
