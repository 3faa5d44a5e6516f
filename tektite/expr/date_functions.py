"""Functions of dates and timestamps that are written in terms of others, by the type of their operand."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable

from tektite.errors import IncorrectError
from tektite.expr.ast import Expr, concat, lit
from tektite.values import types
from tektite.values.types import Type

DAY = 86_400_000_000  # microseconds


def elapsed(later: Expr, earlier: Expr) -> Expr:
    """The microseconds from one timestamp, moment or time of day to another; their difference is an interval."""
    return Expr("elapsed", (later, earlier))


FIELDS: dict[str, Callable[[Expr], Expr]] = {
    "year": Expr.year,
    "quarter": Expr.quarter,
    "month": Expr.month,
    "day": Expr.day,
    "dayofmonth": Expr.day,
    "dow": lambda day: (day.weekday() + 1) % 7,  # Sunday is 0
    "isodow": lambda day: day.weekday() + 1,
    "doy": lambda day: day - day.truncate("year") + 1,
    "week": lambda day: (thursday(day) - thursday(day).truncate("year")) // 7 + 1,
    "isoyear": lambda day: thursday(day).year(),
    "yearweek": lambda day: FIELDS["isoyear"](day) * 100 + FIELDS["week"](day),
    "decade": lambda day: day.year() // 10,
    "century": lambda day: (day.year() - 1) // 100 + 1,
    "millennium": lambda day: (day.year() - 1) // 1000 + 1,
}
"""The fields of a date."""
CLOCK: dict[str, Callable[[Expr], Expr]] = {
    "hour": Expr.hour,
    "minute": Expr.minute,
    "second": Expr.second,
    "millisecond": lambda moment: elapsed(moment, moment.truncate("minute")) // 1000,
    "microsecond": lambda moment: elapsed(moment, moment.truncate("minute")),
    "epoch": lambda moment: elapsed(moment, lit("1970-01-01", types.Timestamp)) / 1_000_000,
}
"""The fields of a time of day, which a date has at midnight."""


def thursday(day: Expr) -> Expr:
    """The Thursday of a date's week, which decides on the year that the week belongs to."""
    return day.truncate("week").add_days(3)


def last_day(value: Expr) -> Expr:
    """The last day of a date's month."""
    return value.cast(types.Date).truncate("month").add_months(1) - 1


def digits(number: Expr, width: int) -> Expr:
    """A number with zeros in front."""
    return number.cast(types.String).lpad(width, "0")


def made(year: Expr, month: Expr, day: Expr) -> Expr:
    """MAKE_DATE: a date from its parts, which fails where there is no such day."""
    return concat(digits(year, 4), "-", digits(month, 2), "-", digits(day, 2)).cast(types.Date)


def one_of(names: list[str], number: Expr) -> Expr:
    """The name with a number, counted from 0."""
    branches = [part for at, name in enumerate(names) for part in (number == at, lit(name))]
    return Expr("case", (*branches, lit(None)))


def day_name(value: Expr) -> Expr:
    """Monday, ..."""
    return one_of(list(calendar.day_name), value.weekday())


def month_name(value: Expr) -> Expr:
    """January, ..."""
    return one_of(list(calendar.month_name)[1:], value.month() - 1)


FORMATS: dict[str, Callable[[Expr], Expr]] = {
    "Y": lambda moment: moment.year().cast(types.String),
    "y": lambda moment: digits(moment.year() % 100, 2),
    "m": lambda moment: digits(moment.month(), 2),
    "d": lambda moment: digits(moment.day(), 2),
    "j": lambda moment: digits(FIELDS["doy"](moment.cast(types.Date)), 3),
    "H": lambda moment: digits(moment.hour(), 2),
    "I": lambda moment: digits((moment.hour() + 11) % 12 + 1, 2),
    "M": lambda moment: digits(moment.minute(), 2),
    "S": lambda moment: digits(moment.second(), 2),
    "f": lambda moment: digits(elapsed(moment, moment.truncate("second")), 6),
    "p": lambda moment: Expr("case", (moment.hour() < 12, lit("AM"), lit("PM"))),
    "B": month_name,
    "b": lambda moment: month_name(moment).substring(1, 3),
    "A": day_name,
    "a": lambda moment: day_name(moment).substring(1, 3),
    "V": lambda moment: digits(FIELDS["week"](moment.cast(types.Date)), 2),
    "G": lambda moment: FIELDS["isoyear"](moment.cast(types.Date)).cast(types.String),
    "u": lambda moment: (moment.weekday() + 1).cast(types.String),
    "%": lambda moment: lit("%"),
}
"""The expression for each letter after a %."""


def field(moment: Expr, kind: Type, name: str) -> Expr:
    """A field of a date or timestamp: one of `FIELDS` or `CLOCK`."""
    if name in FIELDS:
        return FIELDS[name](moment if kind == types.Date else moment.cast(types.Date))
    return CLOCK[name](moment if kind == types.Timestamp else moment.cast(types.Timestamp))


def moved(moment: Expr, kind: Type, microseconds: int) -> Expr:
    """A date some whole days later, or a timestamp some microseconds later."""
    return moment.add_days(microseconds // DAY) if kind == types.Date else moment + lit(microseconds)


def bucket(moment: Expr, kind: Type, length: int, origin: Expr | None = None) -> Expr:
    """The start of the stretch of time, one of many of the same length in microseconds, that a moment lies in. They are counted
    from a Monday, or from the moment given.
    """
    begin = lit("2000-01-03", types.Timestamp) if origin is None else origin.cast(types.Timestamp)
    at = moment.cast(types.Timestamp)
    return (at - elapsed(at, begin) % length).cast(kind)


READ = frozenset("YymdHIMSfpBbAajzuUW%")
"""The letters behind a % of a format that texts are read by."""


def read_format(shape: str) -> str:
    """A format that texts are read by, without the - behind a %, which changes nothing: there may always be fewer digits.

    Raises for a letter that stands for nothing, and for one that occurs twice, which `datetime.strptime` cannot read.
    """
    letters = re.findall(r"%-?(.?)", shape, re.DOTALL)
    for letter in letters:
        if letter not in READ:
            raise IncorrectError(f"%{letter} in the format {shape!r} is none of {', '.join(sorted(READ))}")
        if letter != "%" and letters.count(letter) > 1:
            raise IncorrectError(
                f"%{letter} occurs twice in the format {shape!r}: read the parts of the text one by one"
            )
    return re.sub(r"%-?(.)", r"%\1", shape, flags=re.DOTALL)


def _pieces(shape: str) -> list[str]:
    """The text before the first % of a format, then each letter with the text after it; %% is the letter %."""
    return [part.replace("\0", "%") for part in shape.replace("%%", "%\0").split("%")]


def unknown_letter(shape: str) -> str | None:
    """The first letter behind a % of a format that stands for nothing; None if there is none."""
    return next((part[:1] for part in _pieces(shape)[1:] if part[:1] not in FORMATS), None)


def formatted(moment: Expr, kind: Type, shape: str) -> Expr:
    """A date or timestamp as a text: the letters of the format are those of `FORMATS`."""
    moment = moment.cast(types.Timestamp) if kind == types.Date else moment
    first, *rest = _pieces(shape)
    pieces = [lit(first)]
    for part in rest:
        pieces += [FORMATS[part[0]](moment), lit(part[1:])]
    return Expr("case", (moment.is_null(), lit(None, types.String), concat(*pieces)))
