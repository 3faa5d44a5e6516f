"""Lengths of time as Python users give them: a `timedelta`, or a text such as `15m`, `1h30m`, `2 weeks` or `1mo`."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from typing import Any

from tektite.errors import IncorrectError
from tektite.values.interval_text import interval_of

DAY = 86_400_000_000  # microseconds
_MONTHS = re.compile(r"(?<=\d)(mo|q)(?![a-z])")
"""Short names of Polars that texts of intervals do not have."""
_LONG = {"mo": " month", "q": " quarter"}


@dataclass(frozen=True)
class Duration:
    """Months, days and microseconds."""

    months: int
    days: int
    microseconds: int

    @property
    def fixed(self) -> int:
        """Days and microseconds together, in microseconds."""
        return self.days * DAY + self.microseconds

    def sql(self) -> str:
        """The duration as a constant of SQL."""
        parts = [(self.months, "months"), (self.days, "days"), (self.microseconds, "microseconds")]
        return f"INTERVAL '{' '.join(f'{number} {unit}' for number, unit in parts if number)}'"


def duration(given: Any, what: str) -> Duration:
    """A length of time that is longer than nothing.

    >>> duration("1h30m", "truncate"), duration("1mo", "truncate").sql()
    (Duration(months=0, days=0, microseconds=5400000000), "INTERVAL '1 months'")
    """
    if isinstance(given, datetime.timedelta):
        found: tuple[int, int, int] | None = (0, given.days, given.seconds * 1_000_000 + given.microseconds)
    else:
        text = given if isinstance(given, str) else ""
        found = interval_of(_MONTHS.sub(lambda unit: _LONG[unit[0]], text))
    if found is None or min(found) < 0 or not any(found):
        raise IncorrectError(
            f"{what}: a length of time is a datetime.timedelta or a text such as '15m', '1h30m', '2d' or '1 week', longer than "
            f"nothing; not {given!r}"
        )
    return Duration(*found)


def fixed_duration(given: Any, what: str) -> Duration:
    """A length of time that is the same everywhere, which months and years are not."""
    found = duration(given, what)
    if found.months:
        raise IncorrectError(f"{what}: months are not all of one length; give days, hours, minutes or seconds")
    return found


UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
_OF_MONTHS = {1: "month", 3: "quarter", 12: "year"}
_OF_MICROSECONDS = {7 * DAY: "week", DAY: "day", 3_600_000_000: "hour", 60_000_000: "minute", 1_000_000: "second"}


def truncation(every: Any) -> tuple[str | None, int]:
    """The unit to whose start a moment is truncated, or a length of time in microseconds.

    >>> truncation("hour"), truncation("1h"), truncation("15m")
    (('hour', 0), ('hour', 0), (None, 900000000))
    """
    if (
        isinstance(every, str) and every.isalpha()
    ):  # which unit it is, and whether the value has it, is known with its type
        return every, 0
    try:
        found = duration(every, "truncate")
    except IncorrectError:
        raise IncorrectError(
            f"truncate takes one of {', '.join(UNITS)}, or a length of time such as '15m' or a datetime.timedelta, not {every!r}"
        ) from None
    if not found.months:
        unit = _OF_MICROSECONDS.get(found.fixed)
        return unit, found.fixed if unit is None else 0
    if found.months in _OF_MONTHS and not found.fixed:
        return _OF_MONTHS[found.months], 0
    raise IncorrectError(f"truncate: of months, one, a quarter or a year can be truncated to, not {every!r}")
