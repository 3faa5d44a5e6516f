"""Intervals and bytes as people write them."""

from __future__ import annotations

import re
from fractions import Fraction

from tektite.values.intervals import IntervalValue

MICROSECONDS = {"microsecond": 1, "millisecond": 1000, "second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000}
DAYS = {"day": 1, "week": 7}
MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200, "millennium": 12000}
SHORT = {
    "y": "year", "yr": "year", "mon": "month", "mons": "month", "w": "week", "d": "day", "h": "hour", "hr": "hour", "hrs": "hour",
    "m": "minute", "min": "minute", "mins": "minute", "s": "second", "sec": "second", "secs": "second", "ms": "millisecond",
    "us": "microsecond", "centuries": "century", "millennia": "millennium",
}  # fmt: skip
UNITS = (*MONTHS, *DAYS, *MICROSECONDS)
_CLOCK = re.compile(r"(?<![\w.])([+-]?)(\d+):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?$")
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")
_PIECE = re.compile(r"([+-]?\d+)(?:\.(\d+))?\s*([A-Za-z]+)\s*")


def unit_name(text: str) -> str | None:
    """The unit that a word names, in the singular; None if it names none."""
    word = text.lower()
    if word in SHORT:
        return SHORT[word]
    return next((form for form in (word, word.removesuffix("s")) if form in UNITS), None)


def _split(amount: Fraction) -> tuple[int, Fraction]:
    """A number as a whole number towards zero and the rest."""
    return int(amount), amount - int(amount)


def interval_of(text: str) -> tuple[int, int, int] | None:
    """The months, days and microseconds that a text such as '1 year 2 months' or '3 days 04:05:06' says; None if it says none.
    A number alone is one of seconds.

    >>> interval_of("1 year 2 mons 3 days -04:05:06.7"), interval_of("90 minutes ago"), interval_of("soon")
    ((14, 3, -14706700000), (0, 0, -5400000000), None)
    >>> interval_of("1.5 years"), interval_of("1.5 days"), interval_of("2")
    ((18, 0, 0), (0, 1, 43200000000), (0, 0, 2000000))
    """
    rest = text.strip()
    if _NUMBER.fullmatch(rest):
        return 0, 0, round(Fraction(rest) * MICROSECONDS["second"])
    if rest.lower().endswith(" ago"):
        before = interval_of(rest[:-4])
        return None if before is None else (-before[0], -before[1], -before[2])
    months = days = micros = 0
    if not rest:
        return None
    clock = _CLOCK.search(rest)
    if clock:
        sign, hours, minutes, seconds, fraction = clock.groups()
        count = (int(hours) * 60 + int(minutes)) * 60 + int(seconds or 0)
        micros = count * 1_000_000 + int((fraction or "0").ljust(6, "0"))
        micros = -micros if sign == "-" else micros
        rest = rest[: clock.start()].strip()
    while rest:
        piece = _PIECE.match(rest)
        unit = unit_name(piece[3]) if piece else None
        if piece is None or unit is None:
            return None
        amount = Fraction(f"{piece[1]}.{piece[2] or 0}")
        if unit in MONTHS:  # a part of a month is days of which it has 30, and a part of a day is hours
            whole, amount = _split(amount * MONTHS[unit])
            months, amount, unit = months + whole, amount * 30, "day"
        if unit in DAYS:
            whole, amount = _split(amount * DAYS[unit])
            days, amount, unit = days + whole, amount * 24, "hour"
        micros += round(amount * MICROSECONDS[unit])
        rest = rest[piece.end() :]
    return months, days, micros


def parse_interval(text: str) -> IntervalValue:
    """The interval that a text says. Raises ValueError if it says none."""
    found = interval_of(text)
    if found is None:
        raise ValueError(text)
    return IntervalValue(*found)


def parse_bytes(text: str) -> bytes:
    r"""Bytes as PostgreSQL writes them (\x00ff), or as DuckDB does (\x00\xFF, and characters that stand for themselves).

    >>> parse_bytes(r"\x00ff"), parse_bytes(r"a\xFFb")
    (b'\x00\xff', b'a\xffb')
    """
    if re.fullmatch(r"\\x(?:[0-9a-fA-F]{2})*", text) and text.count("\\") == 1:
        return bytes.fromhex(text[2:])
    found = bytearray()
    at = 0
    while at < len(text):
        escape = re.compile(r"\\x([0-9a-fA-F]{2})").match(text, at)
        if escape:
            found.append(int(escape[1], 16))
            at = escape.end()
        elif text[at] == "\\" or not text[at].isascii():
            raise ValueError(text)
        else:
            found.append(ord(text[at]))
            at += 1
    return bytes(found)


def shown_bytes(data: bytes) -> str:
    r"""Bytes as DuckDB shows them.

    >>> print(shown_bytes(b"a\x00'"))
    a\x00\x27
    """
    return "".join(chr(b) if 32 <= b < 127 and b not in b"\\'\"" else f"\\x{b:02X}" for b in data)
