"""Intervals by their parts: months, days and microseconds, each an expression. `IntervalParts.value()` is what a column holds.

An interval that a moment moves by, or that is compared with another, need not become a value: its parts are used as they are.
"""

from __future__ import annotations

import decimal
from dataclasses import dataclass
from typing import Any

from tektite.expr.ast import Expr, lit
from tektite.expr.comparisons import MIRRORED, ORDERING
from tektite.expr.date_functions import elapsed
from tektite.expr.free_functions import truncdiv, truncmod
from tektite.values.interval_text import DAYS, MICROSECONDS, MONTHS, interval_of
from tektite.values.intervals import DAY, IntervalValue
from tektite.values.types import Date, Int, Time, Timestamp, TimestampTz, Type

ZERO = lit(0)


@dataclass(frozen=True)
class IntervalParts:
    """Months, days and microseconds, each an Int; None where it is certainly none."""

    months: Expr | None = None
    days: Expr | None = None
    microseconds: Expr | None = None
    ends: tuple[Expr, Expr] | None = None
    """The later and the earlier moment of which this is the difference, if it is one."""

    @staticmethod
    def of(value: Expr) -> IntervalParts:
        """The parts of an interval that is a value."""
        if value.op == "lit" and isinstance(value.params[1], IntervalValue):
            known = value.params[1]
            return constant_parts(known.months, known.days, known.microseconds)
        if value.op == "interval":
            months, days, micros = (None if part.fingerprint == ZERO.fingerprint else part for part in value.args)
            return IntervalParts(months, days, micros)
        return IntervalParts(*value_parts(value))

    @staticmethod
    def between(later: Expr, earlier: Expr, kind: Type) -> IntervalParts:
        """The difference of two moments, one of a type: days, and what is left. Times of day are no days apart."""
        length = elapsed(later, earlier)
        if kind == Time:
            return IntervalParts(None, None, length, (later, earlier))
        return IntervalParts(None, truncdiv(length, lit(DAY)), truncmod(length, lit(DAY)), (later, earlier))

    def each(self) -> tuple[Expr, Expr, Expr]:
        """All three parts."""
        months, days, micros = (ZERO if part is None else part for part in (self.months, self.days, self.microseconds))
        return months, days, micros

    def value(self) -> Expr:
        """The interval as a value: a constant, a difference, or one that is made of its parts."""
        if self.ends is not None:
            return self.ends[0] - self.ends[1]
        known = [part.params[1] for part in self.each() if part.op == "lit" and part.params[1] is not None]
        return lit(IntervalValue(*known)) if len(known) == 3 else Expr("interval", self.each())

    def negated(self) -> IntervalParts:
        return self.times(lit(-1))

    def times(self, factor: Expr) -> IntervalParts:
        """Each part multiplied by an Int."""
        months, days, micros = (
            None if part is None else product(part, factor) for part in (self.months, self.days, self.microseconds)
        )
        return IntervalParts(months, days, micros)

    def plus(self, other: IntervalParts) -> IntervalParts:
        def add(one: Expr | None, two: Expr | None) -> Expr | None:
            if one is None or two is None:
                return one if two is None else two
            return total(one, two)

        return IntervalParts(
            add(self.months, other.months), add(self.days, other.days), add(self.microseconds, other.microseconds)
        )

    def length(self) -> Expr:
        """All of it in microseconds; a month counts as 30 days, as where intervals are compared."""
        if self.ends is not None:
            return elapsed(*self.ends)
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
            clock = Expr("reinterpret", (moment,), (Int,)) + self.each()[2]
            return Expr("reinterpret", (Expr("mod", (clock, lit(DAY))),), (Time,))
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


def value_parts(value: Expr) -> tuple[Expr, Expr, Expr]:
    """The months, days and microseconds of a value: all NULL where it is NULL."""
    return Expr("interval_months", (value,)), Expr("interval_days", (value,)), Expr("interval_micros", (value,))


def constant_parts(months: int, days: int, microseconds: int) -> IntervalParts:
    """The parts of a constant interval."""
    parts = [lit(part) if part else None for part in (months, days, microseconds)]
    return IntervalParts(parts[0], parts[1], parts[2])


def isolated(comparison: Expr, kinds: tuple[Type, Type]) -> Expr:
    """`later - earlier < interval` as `later - interval < earlier`, so that each side reads one moment; any other comparison as
    it is. The types are those of the two moments.

    >>> from tektite.expr import col
    >>> isolated(col("now") - col("at") < lit(IntervalValue(days=1)), (Timestamp, Timestamp))
    <Expr now.add_days(-1) < at>
    """
    if comparison.op not in ORDERING or not set(kinds) <= {Timestamp, TimestampTz}:
        return comparison
    op, (difference, other) = comparison.op, comparison.args
    if difference.op != "sub":
        op, difference, other = MIRRORED[op], other, difference
    parts = IntervalParts.of(other) if other.op in ("lit", "interval") else None
    if parts is None or parts.months is not None:
        return comparison
    later, earlier = difference.args
    return Expr(op, (parts.negated().move(later, kinds[0]), earlier))


def product(one: Expr, two: Expr) -> Expr:
    known = constants_of(one, two)
    return one * two if known is None else lit(None, Int) if None in known else lit(known[0] * known[1])


def total(one: Expr, two: Expr) -> Expr:
    known = constants_of(one, two)
    return one + two if known is None else lit(None, Int) if None in known else lit(known[0] + known[1])


def constants_of(one: Expr, two: Expr) -> tuple[Any, Any] | None:
    """The values of two constants; None if one is no constant, or no number."""
    if one.op != "lit" or two.op != "lit":
        return None
    values = (one.params[1], two.params[1])
    numbers = all(value is None or isinstance(value, int | float | decimal.Decimal) for value in values)
    return values if numbers and not any(isinstance(value, bool) for value in values) else None


def of_unit(amount: Expr, unit: str) -> IntervalParts:
    """So many of a unit."""
    if unit in MONTHS:
        return IntervalParts(months=product(amount, lit(MONTHS[unit])))
    if unit in DAYS:
        return IntervalParts(days=product(amount, lit(DAYS[unit])))
    return IntervalParts(microseconds=product(amount, lit(MICROSECONDS[unit])))


def parse_interval(text: str) -> IntervalParts | None:
    """The interval of a text such as '1 year 2 months' or '3 days 04:05:06'; None if the text is no interval."""
    found = interval_of(text)
    return None if found is None else constant_parts(*found)


FIELDS = {
    "hour": None,
    "minute": 3_600_000_000,
    "second": 60_000_000,
    "millisecond": 60_000_000,
    "microsecond": 60_000_000,
}
"""Fields of the time of day of an interval, with the unit that each is counted in."""


def part_of(value: IntervalParts, name: str) -> Expr:
    """The months, days or microseconds of an interval: NULL if any of its parts is, and 0 if it certainly has none of them."""
    parts = {"months": value.months, "days": value.days, "microseconds": value.microseconds}
    own = parts.pop(name)
    found = ZERO if own is None else own
    for other in parts.values():
        if other is not None:
            found = found + other * 0
    return found


def interval_field(parts: IntervalParts, name: str) -> Expr | None:
    """A field of an interval: its years, months or days, one of its time of day, or all of it in seconds; None if there is none
    such.
    """
    months, days, clock = (part_of(parts, own) for own in ("months", "days", "microseconds"))
    if name == "epoch" and parts.months is None:
        return parts.length() / 1_000_000
    if name == "epoch":  # a year has 365.25 days, and a month that is left over 30
        rest = IntervalParts(None, parts.days, parts.microseconds).length()
        years, left = truncdiv(months, lit(12)), truncmod(months, lit(12))
        return (years * 31_557_600_000_000 + left * 2_592_000_000_000 + rest) / 1_000_000
    if name == "year":
        return truncdiv(months, lit(12))
    if name == "quarter":
        return truncdiv(truncmod(months, lit(12)), lit(3)) + 1
    if name == "month":
        return truncmod(months, lit(12))
    if name == "day":
        return days
    if name not in FIELDS:
        return None
    within = FIELDS[name]
    return truncdiv(clock if within is None else truncmod(clock, lit(within)), lit(MICROSECONDS[name]))
