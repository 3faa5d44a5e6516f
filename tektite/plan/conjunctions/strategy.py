"""Which strategy keeps a conjunction up to date."""

from __future__ import annotations

from dataclasses import dataclass

from tektite.errors import UnsupportedError
from tektite.plan.operators import Match


@dataclass(frozen=True)
class Choice:
    """A strategy and why it was chosen."""

    strategy: str
    reason: str


def choose(match: Match) -> Choice:
    """The strategy that was asked for, or the one that suits the conjunction."""
    if match.strategy in ("delta", "hector"):
        raise UnsupportedError(f"match: strategy {match.strategy!r} is not there yet; use binary or auto")
    if match.strategy != "auto":
        return Choice(match.strategy, "asked for")
    return Choice("binary", "the default")
