"""Intervals as Python values: months, days and microseconds, which are not converted to each other.

`1 month` and `30 days` are equal, and order by that length, as in SQL; yet they move a date differently.
"""

from __future__ import annotations

import datetime
from calendar import monthrange
from functools import total_ordering
from typing import Any, Final

import numpy as np

from tektite.errors import IncorrectError

DAY: Final = 86_400_000_000
_MICROSECOND: Final = datetime.timedelta(microseconds=1)


def show_clock(micros: int) -> str:
    """A time of day; what lies behind the second is shown if there is something."""
    seconds, rest = divmod(micros, 1_000_000)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return clock + (f".{rest:06}".rstrip("0") if rest else "")


def shown_interval(months: int, days: int, micros: int) -> str:
    """An interval as DuckDB shows it.

    >>> shown_interval(14, -3, 3_723_500_000), shown_interval(0, 0, 0), shown_interval(0, 1, -1_000_000)
    ('1 year 2 months -3 days 01:02:03.5', '00:00:00', '1 day -00:00:01')
    """
    years, left = divmod(abs(months), 12)
    sign = "-" if months < 0 else ""
    parts = [f"{sign}{n} {unit}{'s' * (n != 1)}" for n, unit in ((years, "year"), (left, "month")) if n]
    if days:
        parts.append(f"{days} day{'s' * (abs(days) != 1)}")
    if micros or not parts:
        parts.append(("-" if micros < 0 else "") + show_clock(abs(micros)))
    return " ".join(parts)


@total_ordering
class IntervalValue:
    """A value of a column of type `Interval`: whole months, days and microseconds.

    Add it to a date or a datetime, or take it from one: months first, then days, then the rest, as SQL does. It equals every
    interval of the same length, with months of 30 days, and every `datetime.timedelta` of that length.

    >>> import datetime
    >>> import tektite as tk
    >>> month = tk.IntervalValue(months=1)
    >>> print(datetime.datetime(2024, 1, 31, 12) + month, month, month == datetime.timedelta(days=30))
    2024-02-29 12:00:00 1 month True
    >>> tk.IntervalValue(days=2, microseconds=1).timedelta()
    datetime.timedelta(days=2, microseconds=1)
    """

    __slots__ = ("days", "microseconds", "months")

    def __init__(self, months: int = 0, days: int = 0, microseconds: int = 0) -> None:
        self.months = months
        self.days = days
        self.microseconds = microseconds

    @staticmethod
    def of(value: Any) -> IntervalValue:
        """The interval that a value says: a `timedelta`, NumPy's or Arrow's interval, or months, days and nanoseconds.

        >>> import datetime
        >>> import tektite as tk
        >>> tk.IntervalValue.of(datetime.timedelta(days=1, hours=2))
        IntervalValue(days=1, microseconds=7200000000)
        """
        if isinstance(value, IntervalValue):
            return value
        if isinstance(value, np.timedelta64):
            value = value.astype("m8[us]").item()
        if isinstance(value, datetime.timedelta):
            clock = value - datetime.timedelta(days=value.days)
            days = value.days
            if days < 0 and clock:  # as SQL subtracts timestamps: all parts have one sign
                days, clock = days + 1, clock - datetime.timedelta(days=1)
            return IntervalValue(0, days, clock // _MICROSECOND)
        months, days, nanos = value
        if nanos % 1000:
            raise IncorrectError(f"an interval has whole microseconds, found {nanos} nanoseconds: round it")
        return IntervalValue(months, days, nanos // 1000)

    def timedelta(self) -> datetime.timedelta:
        """The interval as a `timedelta`. Months have no length: an interval with months is refused.

        >>> import tektite as tk
        >>> tk.IntervalValue(months=1).timedelta()
        Traceback (most recent call last):
        tektite.errors.IncorrectError: 1 month has no length in days: ...
        """
        if self.months:
            raise IncorrectError(f"{self} has no length in days: add it to a date, or read its months and days")
        return datetime.timedelta(days=self.days, microseconds=self.microseconds)

    @property
    def _length(self) -> int:
        return (self.months * 30 + self.days) * DAY + self.microseconds

    def __eq__(self, other: object) -> bool:
        if isinstance(other, IntervalValue):
            return self._length == other._length
        return self._length == other // _MICROSECOND if isinstance(other, datetime.timedelta) else NotImplemented

    def __lt__(self, other: object) -> bool:
        if isinstance(other, IntervalValue):
            return self._length < other._length
        return self._length < other // _MICROSECOND if isinstance(other, datetime.timedelta) else NotImplemented

    def __hash__(self) -> int:
        try:
            return hash(datetime.timedelta(microseconds=self._length))
        except OverflowError:
            return hash(self._length)

    def __neg__(self) -> IntervalValue:
        return IntervalValue(-self.months, -self.days, -self.microseconds)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, datetime.date):
            return _moved(other, self)
        if not isinstance(other, IntervalValue | datetime.timedelta):
            return NotImplemented
        more = IntervalValue.of(other)
        return IntervalValue(self.months + more.months, self.days + more.days, self.microseconds + more.microseconds)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + -other if isinstance(other, IntervalValue | datetime.timedelta) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __str__(self) -> str:
        return shown_interval(self.months, self.days, self.microseconds)

    def __repr__(self) -> str:
        parts = [f"{name}={part}" for name in ("months", "days", "microseconds") if (part := getattr(self, name))]
        return f"IntervalValue({', '.join(parts)})"

    def __reduce__(self) -> tuple[type[IntervalValue], tuple[int, int, int]]:
        return IntervalValue, (self.months, self.days, self.microseconds)


def _moved(moment: datetime.date, by: IntervalValue) -> datetime.datetime:
    """A moment that much later; a date becomes a datetime, as in SQL."""
    if not isinstance(moment, datetime.datetime):
        moment = datetime.datetime(moment.year, moment.month, moment.day)
    year, month = divmod(moment.year * 12 + moment.month - 1 + by.months, 12)
    day = min(moment.day, monthrange(year, month + 1)[1])
    moved = moment.replace(year=year, month=month + 1, day=day)
    return moved + datetime.timedelta(days=by.days, microseconds=by.microseconds)
