"""A clock that does not follow when somebody sets the system's: the time when the process began, and what has passed since."""

from __future__ import annotations

import math
import time

_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Goes on while the machine sleeps, where there is such a clock."""
_START = time.time() - time.clock_gettime(_BOOT)


def steady_time() -> float:
    """Seconds since 1970, as the system's clock would say if nobody had set it since the process began."""
    return _START + time.clock_gettime(_BOOT)


class Ages:
    """Corrects the times at which files were written, for a process that looks again and again while the system's clock may
    jump: a file that was not there at the last look was written since then, and none was written in the future.
    """

    def __init__(self) -> None:
        self._written: dict[str, float] = {}
        self._looked: float | None = None
        """When it last looked."""

    def corrected(self, ages: dict[str, float]) -> dict[str, float]:
        """Times of writing by name. Names that are gone are forgotten."""
        now = steady_time()
        earliest = -math.inf if self._looked is None else self._looked
        known = self._written
        self._written = {name: known.get(name, min(max(at, earliest), now)) for name, at in ages.items()}
        self._looked = now
        return self._written
