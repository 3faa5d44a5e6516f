"""Stops sweeps where they are away, so that tests see what others do meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from tektite.dataflow.away import Absence
from tektite.runtime.coordinator import Coordinator

SECONDS = 120
"""After so long a test that hangs fails."""


class Stop:
    """Stops a dataflow the n-th time that it is away, before it does there what it was to do."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._is_set = False
        self.at = -1
        self.reached = threading.Event()
        """Set when it stops, or when nothing is left that could."""
        self.error: type[BaseException] | None = None
        self._goes_on = threading.Event()
        self._lock = threading.Lock()
        there = Coordinator._unlocked

        def unlocked(coordinator: Coordinator, away: Absence, function: Callable[[], None]) -> None:
            def stopped() -> None:
                if self._is_due():
                    self.reached.set()
                    if self.error is not None:
                        raise self.error
                    assert self._goes_on.wait(SECONDS)
                function()

            there(coordinator, away, stopped)

        monkeypatch.setattr(Coordinator, "_unlocked", unlocked)

    def _is_due(self) -> bool:
        with self._lock:
            if self._is_set:
                self.at -= 1
            return self._is_set and self.at == -1

    def set(self, at: int, error: type[BaseException] | None = None) -> None:
        self._is_set, self.at, self.error = True, at, error
        self.reached.clear()
        self._goes_on.clear()

    def go_on(self) -> None:
        self._is_set = False
        self._goes_on.set()
