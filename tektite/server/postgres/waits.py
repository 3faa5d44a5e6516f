"""Ways in which handling a message may end: at once, later by a callback, or with something to wait for."""

from __future__ import annotations

from collections.abc import Awaitable
from enum import Enum
from typing import TypeAlias


class Handled(Enum):
    """A message that no task has to wait for."""

    AT_ONCE = "at once"
    """The next message can be handled."""
    LATER = "later"
    """The next message waits until `PostgresConnection.resume` is called."""


Outcome: TypeAlias = Handled | Awaitable[None] | None
"""The result of a handler; None is `AT_ONCE`."""
