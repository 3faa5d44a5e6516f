"""Values of parameters as keys: lists and structs that can be hashed, and intervals that differ where their parts do.

`1 month` and `30 days` are equal, and move a date differently: a query has an answer for each.
"""

from __future__ import annotations

from typing import Any

from tektite.values.intervals import IntervalValue


class KeyList(list[Any]):
    """A list that can be part of a key."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))


class KeyStruct(dict[str, Any]):
    """A struct that can be part of a key."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self.items()))


class KeyInterval(IntervalValue):
    """An interval that is a key of its own, also beside others of its length."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyInterval) and self.parts == other.parts

    def __hash__(self) -> int:
        return hash(self.parts)

    @property
    def parts(self) -> tuple[int, int, int]:
        return self.months, self.days, self.microseconds


def as_key(value: Any) -> Any:
    """A value of a parameter that can be part of a key: nothing changes it."""
    if isinstance(value, IntervalValue):
        return KeyInterval(value.months, value.days, value.microseconds)
    if isinstance(value, list):
        return KeyList(map(as_key, value))
    return KeyStruct({name: as_key(part) for name, part in value.items()}) if isinstance(value, dict) else value
