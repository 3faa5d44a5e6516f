"""Ticker: closes an epoch from time to time, so that `now()` moves though nobody writes.

Promise: while some query reads the time, an epoch closes every `seconds` or more often, until the engine is closed. While none
does, nothing happens. The thread keeps no engine alive.
"""

from __future__ import annotations

import datetime
import logging
import re
import threading
import weakref
from typing import TYPE_CHECKING

from tektite.engine.notices import ThreadWaiter
from tektite.engine.write_set import WriteSet
from tektite.errors import IncorrectError, TektiteError

if TYPE_CHECKING:
    from tektite.engine.engine_core import EngineCore

LOG = logging.getLogger("tektite")

_UNITS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0}
_LEAST = 0.001


def seconds_said(text: str) -> float:
    """The seconds of a text with a unit; 0 if it says no time.

    >>> seconds_said("500 ms"), seconds_said("1s"), seconds_said("10 parsecs")
    (0.5, 1.0, 0.0)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|min|h)\s*", text)
    return float(found[1]) * _UNITS[found[2]] if found else 0.0


def seconds_from(clock: object) -> float:
    """The interval of a clock, in seconds.

    >>> seconds_from("500 ms"), seconds_from(2), seconds_from(datetime.timedelta(minutes=1))
    (0.5, 2.0, 60.0)
    """
    seconds = 0.0
    if isinstance(clock, datetime.timedelta):
        seconds = clock.total_seconds()
    elif isinstance(clock, int | float) and not isinstance(clock, bool):
        seconds = float(clock)
    elif isinstance(clock, str):
        seconds = seconds_said(f"{clock}s" if clock.strip()[-1:].isdigit() else clock)
    if not _LEAST <= seconds < float("inf"):
        raise IncorrectError(
            f"clock is how often time passes by itself, a number of seconds or a text such as '1s' or '500 ms', not {clock!r}"
        )
    return seconds


class Ticker:
    """A thread that lets an engine's time pass."""

    def __init__(self, core: EngineCore, seconds: float) -> None:
        self._core = weakref.ref(core, lambda _: self._stopped.notify())
        self._seconds = seconds
        self._stopped = ThreadWaiter()
        self._thread = threading.Thread(target=self._run, name="tektite-clock", daemon=True)
        core.hooks.on_close.append(self.stop)
        self._thread.start()

    def stop(self) -> None:
        """Let no more time pass. Called by a listener in the thread itself, it does not wait."""
        self._stopped.notify()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(self._seconds):
            core = self._core()
            if core is None or core.is_closed:
                return
            if core.hooks.before_commit:
                try:
                    core.commit(WriteSet())
                except TektiteError as error:
                    if not core.is_closed:
                        LOG.warning("the clock could not close an epoch, and tries again: %s", error)
            del core
