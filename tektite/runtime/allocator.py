"""The C library's allocator: what it keeps for later, and for whom."""

from __future__ import annotations

import ctypes
import sys
import time
from typing import Any

BULK = 1 << 20
"""Rows from which on an epoch leaves so much behind that looking for it, some milliseconds, does not count."""

_M_ARENA_MAX = -8

# Seconds between two looks for memory to give back, at least, and as a multiple of what a look takes.
_PAUSE = 2.0
_SHARE = 200.0


def give_back() -> None:
    """Let the allocator return what it holds without need. Does nothing where it cannot be asked to."""
    if (trim := _allocators("malloc_trim")) is not None:
        trim(0)


def share_between_threads() -> None:
    """Let threads take what others of them have freed. By default each keeps freed memory for itself, so that a worker goes to
    the system for pages that another one has just let go of: a load by two workers took 1.7 times as long, and a tenth
    more memory. Kernels ask for large pieces and seldom, so that waiting for each other does not count.
    """
    if (option := _allocators("mallopt")) is not None:
        option(_M_ARENA_MAX, 1)


def _allocators(function: str) -> Any:
    """A function of the allocator, where there is one."""
    return getattr(ctypes.CDLL(None), function, None) if sys.platform.startswith("linux") else None


class MemoryTrimmer:
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
