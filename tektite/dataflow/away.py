"""Absences: a part of a sweep that runs without the engine's lock, so that others use the engine meanwhile.

A node calls out (`Node.call_out`) what may take long and changes nothing: functions of users, sorting many rows. What it calls
has been given everything it needs. Traces, buffers and the agenda change afterwards, with the lock.

While a dataflow is away nobody else gives it a turn: its answers are those before the sweep. Whoever needs more waits for it to
come back. It may be dropped; then the sweep ends when it comes back.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from tektite.errors import ConflictError

LONG = 1 << 16
"""Rows from which on kernels are called out: sorting so many takes some milliseconds."""


class Absence:
    """One absence. It is over when the thread has left the block of `held`, which an interrupt cannot prevent."""

    __slots__ = ("held", "is_awaited", "name", "waits_for")

    def __init__(self, name: str) -> None:
        self.name = name
        """The dataflow that is away."""
        self.held: Any = threading.RLock()
        """Held by the thread that is away."""
        self.is_awaited = False
        """Whether somebody has left work to the thread."""
        self.waits_for: Absence | None = None
        """What the thread that is away waits for, if it does so without an end."""

    @property
    def is_mine(self) -> bool:
        """Whether the calling thread is the one that is away."""
        return bool(self.held._is_owned())

    @property
    def is_over(self) -> bool:
        """Whether the thread is back."""
        return not self.is_mine and self.wait(0)

    def wait(self, seconds: float) -> bool:
        """Wait until the thread is back, or for some seconds. Returns whether it is. The caller is another thread."""
        try:
            try:
                return bool(self.held.acquire(timeout=seconds))
            finally:
                self._let_go()
        finally:  # an interrupt may have come before
            self._let_go()

    def _let_go(self) -> None:
        if self.held._is_owned():
            self.held.release()


class CircularWaitError(ConflictError):
    """Functions of queries wait for each other."""


def check_no_circle(mine: Sequence[Absence], wanted: Absence) -> None:
    """Refuse to wait for an absence whose thread waits, itself or through others, for one of the calling thread. The caller holds
    the engine's lock.
    """
    if not mine:
        return
    away: Absence | None = wanted
    while away is not None and not away.is_over:
        if away in mine:
            raise CircularWaitError(
                f"a function that {mine[-1].name!r} calls waits for {wanted.name!r}, which itself waits for {away.name!r}: "
                "neither would ever end. Let functions of queries read no views; join their collections instead"
            )
        away = away.waits_for


class SweepAbandoned(Exception):
    """The dataflow was dropped while a part of its sweep was away."""
