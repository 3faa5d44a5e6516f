"""Intervals while a statement is bound: their parts, each an expression. What is stored in a column is `Interval.value()`.

An interval that a moment moves by, or that is compared with another, never becomes a value: its parts are used as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tektite.expr import Expr, lit
from tektite.expr.interned_functions import parts_of
from tektite.values.interval_text import DAYS, MICROSECONDS, MONTHS, interval_of
from tektite.values.intervals import DAY
from tektite.values.types import Date, Int, Time, Timestamp, TimestampTz, Type


@dataclass(frozen=True)
class Interval:
    """Months, days and microseconds, each an Int; None where it is certainly none."""

    months: Expr | None = None
    days: Expr | None = None
    microseconds: Expr | None = None
    ends: tuple[Expr, Expr] | None = None
    """The later and the earlier timestamp of which this is the difference, if it is one."""

    @staticmethod
    def of(value: Expr) -> Interval:
        """The parts of an interval that is a value."""
        return Interval(*parts_of(value))

    def value(self) -> Expr:
        """The interval as a value."""
        parts = [lit(0) if part is None else part for part in (self.months, self.days, self.microseconds)]
        return Expr("interval", tuple(parts))

    def negated(self) -> Interval:
        return self.times(lit(-1))

    def times(self, factor: Expr) -> Interval:
        """Each part multiplied by an Int."""
        months, days, micros = (
            None if part is None else product(part, factor) for part in (self.months, self.days, self.microseconds)
        )
        return Interval(months, days, micros)

    def plus(self, other: Interval) -> Interval:
        def add(one: Expr | None, two: Expr | None) -> Expr | None:
            if one is None or two is None:
                return one if two is None else two
            return total(one, two)

        return Interval(
            add(self.months, other.months), add(self.days, other.days), add(self.microseconds, other.microseconds)
        )

    def length(self) -> Expr:
        """All of it in microseconds; a month counts as 30 days, as where intervals are compared."""
        if self.ends is not None:
            return self.ends[0] - self.ends[1]
        parts = [(self.months, 30 * DAY), (self.days, DAY), (self.microseconds, 1)]
        found = lit(0)
        for part, unit in parts:
            if part is not None:
                found = total(found, product(part, lit(unit)))
        return found

    def move(self, moment: Expr, kind: Type, zone: str = "UTC") -> Expr:
        """A moment that much later: a date becomes a timestamp, as in SQL, and a time goes round the clock. Months and days are
        those of the clocks of a zone.
        """
        if kind == Time:
            clock = Expr(
                "mod",
                (
                    Expr("reinterpret", (moment,), (Int,))
                    + (lit(0) if self.microseconds is None else self.microseconds),
                    lit(DAY),
                ),
            )
            return Expr("reinterpret", (clock,), (Time,))
        calendar = self.months is not None or self.days is not None
        if kind == TimestampTz and calendar and zone != "UTC":
            moment = Expr("in_zone", (moment,), (zone,))
        if self.months is not None:
            moment = moment.add_months(self.months)
        if self.days is not None:
            moment = moment.add_days(self.days)
        if kind == TimestampTz and calendar and zone != "UTC":
            moment = Expr("from_zone", (moment,), (zone,))
        if kind == Date:
            moment = moment.cast(Timestamp)
        if self.microseconds is not None:
            moment = moment + self.microseconds
        return moment


def product(one: Expr, two: Expr) -> Expr:
    known = constants_of(one, two)
    return one * two if known is None else lit(None, Int) if None in known else lit(known[0] * known[1])


def total(one: Expr, two: Expr) -> Expr:
    known = constants_of(one, two)
    return one + two if known is None else lit(None, Int) if None in known else lit(known[0] + known[1])


def constants_of(one: Expr, two: Expr) -> tuple[Any, Any] | None:
    """The values of two constants; None if one is no constant."""
    return (one.params[1], two.params[1]) if one.op == "lit" and two.op == "lit" else None


def of_unit(amount: Expr, unit: str) -> Interval:
    """So many of a unit."""
    if unit in MONTHS:
        return Interval(months=product(amount, lit(MONTHS[unit])))
    if unit in DAYS:
        return Interval(days=product(amount, lit(DAYS[unit])))
    return Interval(microseconds=product(amount, lit(MICROSECONDS[unit])))


def parse_interval(text: str) -> Interval | None:
    """What a text such as '1 year 2 months' or '3 days 04:05:06' says; None if it says none."""
    found = interval_of(text)
    if found is None:
        return None
    months, days, micros = (lit(part) if part else None for part in found)
    return Interval(months, days, micros)
