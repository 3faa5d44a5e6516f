"""Giving freed memory back to the system, which the allocator of the C library would keep for later."""

from __future__ import annotations

import ctypes
import sys
import time

BULK = 1 << 20
"""Rows from which on an epoch leaves so much behind that looking for it, some milliseconds, does not count."""

# Seconds between two looks for memory to give back, at least, and as a multiple of what a look takes.
_PAUSE = 2.0
_SHARE = 200.0


def give_back() -> None:
    """Let the allocator return what it holds without need. Does nothing where it cannot be asked to."""
    if sys.platform.startswith("linux"):
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


class Tidying:
    """Gives memory back now and then, so rarely that it does not count: buffers of all sizes come and go with epochs,
    and what they leave between them grows for a long time.
    """

    def __init__(self) -> None:
        self._next = time.monotonic() + _PAUSE

    def soon(self) -> None:
        """Do so at the next chance: much was freed at once."""
        self._next = 0.0

    def chance(self) -> None:
        """Nothing is being waited for: give memory back if it is time."""
        now = time.monotonic()
        if now >= self._next:
            give_back()
            done = time.monotonic()
            self._next = done + max(_PAUSE, _SHARE * (done - now))
