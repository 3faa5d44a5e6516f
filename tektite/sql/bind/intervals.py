"""Intervals: lengths of time that dates and timestamps move by. They live while a statement is bound, not in columns."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tektite.expr import Expr, lit
from tektite.values.types import Date, Timestamp, Type

MICROSECONDS = {"microsecond": 1, "millisecond": 1000, "second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000}
DAY = 86_400_000_000
DAYS = {"day": 1, "week": 7}
MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200}
SHORT = {
    "y": "year", "yr": "year", "mon": "month", "mons": "month", "w": "week", "d": "day", "h": "hour", "hr": "hour",
    "m": "minute", "min": "minute", "s": "second", "sec": "second", "ms": "millisecond", "us": "microsecond",
}  # fmt: skip
UNITS = (*MONTHS, *DAYS, *MICROSECONDS)


@dataclass(frozen=True)
class Interval:
    """Months, days and microseconds, each an Int; None where it is certainly none."""

    months: Expr | None = None
    days: Expr | None = None
    microseconds: Expr | None = None
    ends: tuple[Expr, Expr] | None = None
    """The later and the earlier timestamp of which this is the difference, if it is one."""

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

    def move(self, moment: Expr, kind: Type) -> Expr:
        """A date or timestamp that much later, as a timestamp: what SQL makes of both."""
        if self.months is not None:
            moment = moment.add_months(self.months)
        if self.days is not None:
            moment = moment.add_days(self.days)
        if kind == Date:
            moment = moment.cast(Timestamp)
        if self.microseconds is not None:
            moment = moment + self.microseconds
        return moment


def product(one: Expr, two: Expr) -> Expr:
    if one.op == "lit" and two.op == "lit":
        return lit(one.params[1] * two.params[1])
    return one * two


def total(one: Expr, two: Expr) -> Expr:
    if one.op == "lit" and two.op == "lit":
        return lit(one.params[1] + two.params[1])
    return one + two


def unit_name(text: str) -> str | None:
    """The unit that a word names, in the singular; None if it names none."""
    word = text.lower()
    if word in SHORT:
        return SHORT[word]
    for form in (word, word.removesuffix("s"), "century" if word == "centuries" else word):
        if form in UNITS:
            return form
    return None


def of_unit(amount: Expr, unit: str) -> Interval:
    """So many of a unit."""
    if unit in MONTHS:
        return Interval(months=product(amount, lit(MONTHS[unit])))
    if unit in DAYS:
        return Interval(days=product(amount, lit(DAYS[unit])))
    return Interval(microseconds=product(amount, lit(MICROSECONDS[unit])))


def parse_interval(text: str) -> Interval | None:
    """What a text such as '1 year 2 months', '3 days 04:05:06' or '90 minutes' says; None if it says none."""
    rest = text.strip()
    if rest.lower().endswith(" ago"):
        before = parse_interval(rest[:-4])
        return None if before is None else before.negated()
    found = Interval()
    clock = re.search(r"(?<![\w.])([+-]?)(\d+):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?$", rest)
    if clock:
        sign, hours, minutes, seconds, fraction = clock.groups()
        count = (int(hours) * 60 + int(minutes)) * 60 + int(seconds or 0)
        micros = count * 1_000_000 + int((fraction or "0").ljust(6, "0"))
        found = Interval(microseconds=lit(-micros if sign == "-" else micros))
        rest = rest[: clock.start()].strip()
    while rest:
        piece = re.match(r"([+-]?\d+)(?:\.(\d+))?\s*([A-Za-z]+)\s*", rest)
        unit = unit_name(piece[3]) if piece else None
        if piece is None or unit is None:
            return None
        if piece[2]:
            if unit not in MICROSECONDS:
                return None
            scale = MICROSECONDS[unit]
            amount = round(float(f"{piece[1]}.{piece[2]}") * scale)
            found = found.plus(Interval(microseconds=lit(amount)))
        else:
            found = found.plus(of_unit(lit(int(piece[1])), unit))
        rest = rest[piece.end() :]
    return found
