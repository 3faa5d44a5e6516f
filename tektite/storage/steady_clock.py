"""A clock that does not follow when somebody sets the system's: the time when the process began, and what has passed since."""

from __future__ import annotations

import time

_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Goes on while the machine sleeps, where there is such a clock."""
_START = time.time() - time.clock_gettime(_BOOT)


def steady_time() -> float:
    """Seconds since 1970, as the system's clock would say if nobody had set it since the process began."""
    return _START + time.clock_gettime(_BOOT)


class Ages:
    """When files were written, for a process that looks again and again: a file from the future was written when it was first
    seen.
    """

    def __init__(self) -> None:
        self._seen: dict[str, float] = {}

    def corrected(self, ages: dict[str, float]) -> dict[str, float]:
        """Times of writing by name, none of them in the future. Names that are gone are forgotten."""
        now = steady_time()
        self._seen = {name: self._seen.get(name, now) for name in ages}
        return {name: min(at, self._seen[name]) for name, at in ages.items()}
