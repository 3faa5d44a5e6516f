"""SQL's functions of dates and timestamps, in terms of ours."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp

from tektite.expr import Expr, lit
from tektite.expr.date_functions import CLOCK, FIELDS, formatted, unknown_letter
from tektite.expr.fold import folded
from tektite.expr.number_functions import quotient, remainder
from tektite.sql.bind.intervals import MICROSECONDS, Interval, unit_name
from tektite.values import types

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
    if isinstance(value, Interval):
        return interval_field(scalars, node, name, value)
    kind = scalars.type(value, node)
    if kind.kind in ("int", "float", "decimal", "bool", "string"):
        raise scalars.error(f"{field.lower()} needs a date or a timestamp, not {kind}", node)
    if name in FIELDS:
        return FIELDS[name](value if kind == types.Date else value.cast(types.Date))
    if name not in CLOCK:
        raise scalars.unsupported(f"the field {field.lower()} of a {kind}", node)
    return CLOCK[name](value if kind == types.Timestamp else value.cast(types.Timestamp))


def interval_field(scalars: Scalars, node: exp.Expr, name: str, value: Interval) -> Expr:
    """A field of an interval: its days, or its time of day, or all of it in seconds."""
    if value.months is None and name == "epoch":
        return value.length() / 1_000_000
    if name == "day":
        return lit(0) if value.days is None else value.days
    within = {"hour": None, "minute": 3_600_000_000, "second": 60_000_000}
    if name not in within:
        raise scalars.unsupported(f"the field {name} of an interval", node)
    clock = lit(0) if value.microseconds is None else value.microseconds
    rest = clock if within[name] is None else remainder(clock, lit(within[name]))
    return quotient(rest, lit(MICROSECONDS[name]))


def truncated(scalars: Scalars, node: exp.Expr, unit: str, value: Expr) -> Expr:
    """DATE_TRUNC: a timestamp gives a timestamp, a date a date."""
    name = field_name(unit)
    if name in LONG:
        return value.truncate("year").add_months(value.year() % LONG[name] * -12)
    if name in ("millisecond", "microsecond") and scalars.type(value, node) == types.Timestamp:
        micros = MICROSECONDS[name]
        return value - (value - value.truncate("second")) % micros
    return value.truncate(name)


def difference(scalars: Scalars, node: exp.DateDiff) -> Expr:
    """DATE_DIFF: how many boundaries of a unit lie between two moments."""
    unit = field_name(node.args["unit"].name) if node.args.get("unit") is not None else "day"
    later, earlier = scalars.bind(node.this), scalars.bind(node.expression)
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
    return (moments[0] - moments[1]) // MICROSECONDS[unit]


def bucket(scalars: Scalars, node: exp.DateBin) -> Expr:
    """TIME_BUCKET: the start of the stretch of time, one of many of the same length, that a moment lies in. They are counted from
    a Monday, or from the moment given.
    """
    width = scalars.any(node.this)
    if not isinstance(width, Interval) or width.months is not None:
        raise scalars.unsupported("time_bucket of anything but an interval of days or less", node)
    length = folded(width.length())
    if length.op != "lit" or not length.params[1] > 0:
        raise scalars.error("time_bucket takes a constant interval that is longer than nothing", node)
    value = scalars.bind(node.expression)
    kind = scalars.type(value, node)
    if kind not in (types.Date, types.Timestamp):
        raise scalars.error(f"time_bucket needs a date or a timestamp, not {kind}", node)
    given = node.args.get("unit")
    origin = lit("2000-01-03", types.Timestamp) if given is None else scalars.bind(given).cast(types.Timestamp)
    moment = value.cast(types.Timestamp)
    return (moment - (moment - origin) % length).cast(kind)


READ = frozenset("YymdHIMSfpBbAajzuU W".replace(" ", "") + "%")
"""The letters behind a % of a format that strptime takes."""


def moment_of(scalars: Scalars, node: exp.Expr, op: str, value: exp.Expr, format: exp.Expr) -> Expr:
    """STRPTIME and TRY_STRPTIME with a constant format; a - behind the % means that there may be fewer digits, as anywhere."""
    if not isinstance(format, exp.Literal) or not format.is_string:
        raise scalars.unsupported(f"{op} with a format that is not a constant text", node)
    shape = format.this.replace("%-", "%")
    letter = next((part[:1] for part in re.findall(r"%(.?)", shape, re.DOTALL) if part not in READ), None)
    if letter is not None:
        raise scalars.unsupported(f"%{letter} in {op}", node)
    return Expr(op, (scalars.bind(value),), (shape,))


def read_moment(scalars: Scalars, node: exp.StrToTime) -> Expr:
    """STRPTIME."""
    return moment_of(scalars, node, "strptime", node.this, node.args["format"])


def text_of(scalars: Scalars, node: exp.Expr) -> Expr:
    """STRFTIME with a constant format."""
    shape = node.args["format"]
    value = scalars.bind(node.this)
    if not isinstance(shape, exp.Literal) or not shape.is_string:
        raise scalars.unsupported("strftime with a format that is not a constant", node)
    kind = scalars.type(value, node)
    if kind.kind in ("int", "float", "decimal", "bool", "string"):
        raise scalars.error(f"strftime needs a date or a timestamp, not {kind}", node)
    letter = unknown_letter(shape.this)
    if letter is not None:
        raise scalars.unsupported(f"%{letter} in strftime", node)
    return formatted(value, kind, shape.this)
