"""The modes of a transaction, as BEGIN, START TRANSACTION and SET TRANSACTION write them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tektite.errors import IncorrectError

ISOLATION: Final = ("serializable", "repeatable read", "read committed", "read uncommitted")
"""The levels, strongest first."""
_MODES: Final = {
    **{f"isolation level {level}": ("isolation", level) for level in ISOLATION},
    "read only": ("read_only", True),
    "read write": ("read_only", False),
    "not deferrable": ("", None),
    "deferrable": ("", None),
}
"""The setting that each mode changes. No transaction waits before it begins, so DEFERRABLE changes nothing."""


@dataclass(frozen=True)
class TransactionModes:
    """The modes that a statement sets for a transaction; None for those that it does not mention."""

    isolation: str | None = None
    read_only: bool | None = None

    @property
    def wants_serializable(self) -> bool:
        """Whether the strongest level is asked for. Every transaction has the one below it, or more."""
        return self.isolation == ISOLATION[0]


ANY_MODES: Final = TransactionModes()


def transaction_modes(words: Sequence[str]) -> TransactionModes:
    """Modes from their words. Commas between them may be left out.

    >>> transaction_modes(["ISOLATION", "LEVEL", "SERIALIZABLE", ",", "READ", "ONLY"])
    TransactionModes(isolation='serializable', read_only=True)
    """
    found: dict[str, str | bool | None] = {}
    rest = " ".join(word.lower() for word in words if word != ",")
    while rest:
        mode = next((each for each in _MODES if rest == each or rest.startswith(f"{each} ")), None)
        if mode is None:
            modes = ", ".join(f"ISOLATION LEVEL {level.upper()}" for level in ISOLATION)
            raise IncorrectError(f"syntax error: expected a mode of transactions, found {rest.upper()[:50]!r}: "
                                 f"there are {modes}, READ ONLY and READ WRITE")  # fmt: skip
        what, value = _MODES[mode]
        if what and found.setdefault(what, value) != value:
            raise IncorrectError(f"a transaction has one mode of a kind: {mode.upper()} contradicts one before it")
        rest = rest[len(mode) :].strip()
    isolation, read_only = found.get("isolation"), found.get("read_only")
    assert isolation is None or isinstance(isolation, str)
    return TransactionModes(isolation, None if read_only is None else bool(read_only))
