"""Finisher: a thread that goes on with what others have begun, and not finished in their turn.

Whoever writes gives each dataflow a turn. Without this thread the next writer would go on with a heavy installation or with the
consequences of a large load, and in the event loop all clients would wait for that. So a writer leaves to the thread what is
running already, and what has many rows to take.
"""

from __future__ import annotations

import threading
from contextlib import suppress

from tektite.engine.engine_core import EngineCore
from tektite.errors import TektiteError

AT_ONCE = 0.2
"""Seconds after which the thread looks whether it is to end."""


class Finisher:
    """Finishes sweeps of an engine that were left unfinished, until it is closed."""

    def __init__(self, core: EngineCore) -> None:
        self._core = core
        self._wake = threading.Event()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="tektite-finisher", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()
        with self._core.lock.held:
            self._core.coordinator.on_left = self._wake.set
        self._wake.set()

    def _run(self) -> None:
        try:
            while not self._is_closed:
                self._wake.wait()
                self._wake.clear()
                # An engine that is broken says so to whoever calls it. What lacked memory is tried again when somebody writes.
                with suppress(TektiteError, MemoryError):
                    while not self._is_closed and self._core.finish_left(AT_ONCE):
                        pass
        finally:  # a callback may have ended the thread
            self._core.coordinator.on_left = None

    def close(self) -> None:
        """End the thread. What is unfinished is again everybody's."""
        if self._thread.is_alive():
            self._core.coordinator.on_left = None
            self._is_closed = True
            self._wake.set()
            self._thread.join()
