"""Moments and the clocks of time zones, over arrays of words.

A clock that is set back shows some times twice: they mean the later moment. One that is set forward leaves some out: they mean
what it would show without that. Both are as in PostgreSQL and DuckDB.
"""

from __future__ import annotations

import datetime
import re
import zoneinfo
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tektite.errors import IncorrectError
from tektite.expr.literals import DAY, literal_word, parse, says_offset, show_word
from tektite.values.types import Timestamp, TimestampTz
from tektite.values.words import NULL, Words

_OFFSET = re.compile(r"(?:utc|gmt)?([+-])(\d{1,2})(?::?(\d{2}))?", re.IGNORECASE)


def zone_named(name: str) -> str:
    """The zone that a name means, as the database of zones has it: any case will do, and offsets such as +02.

    >>> zone_named("europe/berlin"), zone_named("utc"), zone_named("+05:30")
    ('Europe/Berlin', 'UTC', '+05:30')
    """
    if not isinstance(name, str):
        raise IncorrectError(f"a time zone is named by a text such as 'Europe/Berlin', not {name!r}")
    return _known_zone(name)


@lru_cache(512)
def _known_zone(name: str) -> str:
    text = name.strip()
    if text.lower() in ("utc", "z", "zulu", "gmt", "default"):
        return "UTC"
    offset = _OFFSET.fullmatch(text)
    if offset is not None and int(offset[2]) <= 15:
        return f"{offset[1]}{int(offset[2]):02}:{offset[3] or '00'}"
    known = zoneinfo.available_timezones()
    if text in known:
        return text
    same = [zone for zone in known if zone.lower() == text.lower()]
    if same:
        return same[0]
    raise IncorrectError(
        f"there is no time zone {name!r}: name one of the zone database, such as 'Europe/Berlin', or an offset"
    )


def clock_of(zone: str) -> datetime.tzinfo:
    """The clock of a zone, for Python's moments."""
    fixed = _OFFSET.fullmatch(zone)
    if fixed is None:
        return zoneinfo.ZoneInfo(zone)
    ahead = datetime.timedelta(hours=int(fixed[2]), minutes=int(fixed[3] or 0))
    return datetime.timezone(-ahead if fixed[1] == "-" else ahead)


def offsets(moments: Words, zone: str) -> Words:
    """The offsets of a zone from UTC at some moments, in microseconds."""
    fixed = _OFFSET.fullmatch(zone)
    if fixed is not None:
        ahead = (int(fixed[2]) * 60 + int(fixed[3] or 0)) * 60_000_000
        return np.full(len(moments), -ahead if fixed[1] == "-" else ahead)
    if zone == "UTC":
        return np.zeros_like(moments)
    array: Any = pa.array(moments, pa.timestamp("us", zone))
    local: Words = pc.local_timestamp(array).view(pa.int64()).to_numpy()
    return local - moments


def _in_range(compute: Callable[[Words, str], Any]) -> Callable[[Words, str], Any]:
    """Applies a function to words that are not NULL."""

    def computed(given: Words, zone: str) -> Any:
        missing = given == NULL
        return np.where(missing, NULL, compute(np.where(missing, 0, given), zone))

    return computed


def _clock(moments: Words, zone: str) -> Words:
    return moments + offsets(moments, zone)


def _moment(clocks: Words, zone: str) -> Words:
    before, after = offsets(clocks - DAY, zone), offsets(clocks + DAY, zone)
    early, late = clocks - before, clocks - after
    # a time that is shown twice, or once: the candidate that the clock agrees with; the later one if both do
    agrees_late = offsets(late, zone) == after
    agrees_early = offsets(early, zone) == before
    both = np.maximum(early, late)
    found: Words = np.where(agrees_late & agrees_early, both, np.where(agrees_late, late, early))
    return found


def moment_said(text: str, zone: str) -> datetime.datetime:
    """The moment that a text says: by its own offset, or by the clocks of a zone. Raises ValueError if it says none.

    >>> moment_said("2024-07-01 12:00", "Europe/Berlin").isoformat()
    '2024-07-01T10:00:00+00:00'
    """
    found: datetime.datetime = parse(text, TimestampTz)
    if zone == "UTC" or says_offset(text):
        return found
    shown = np.array([literal_word(found, TimestampTz)])
    return found + datetime.timedelta(microseconds=int(_moment(shown, zone)[0] - shown[0]))


def moment_texts(moments: Words, zone: str) -> Any:
    """The local time of a time zone, and its offset from UTC."""
    texts: list[str | None] = []
    for moment, ahead in zip(
        moments.tolist(), offsets(np.where(moments == NULL, 0, moments), zone).tolist(), strict=True
    ):
        texts.append(None if moment == NULL else show_word(moment + ahead, Timestamp) + shown_offset(ahead))
    return pa.array(texts, pa.string())


def shown_offset(microseconds: int) -> str:
    """An offset as PostgreSQL shows it.

    >>> shown_offset(0), shown_offset(-19_800_000_000)
    ('+00', '-05:30')
    """
    minutes, seconds = divmod(abs(microseconds) // 1_000_000, 60)
    text = f"{'-' if microseconds < 0 else '+'}{minutes // 60:02}"
    text += f":{minutes % 60:02}" if minutes % 60 or seconds else ""
    return text + (f":{seconds:02}" if seconds else "")


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "in_zone": _in_range(_clock),
    "from_zone": _in_range(_moment),
}
