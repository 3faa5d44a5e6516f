"""Giving freed memory back to the system, which the allocator of the C library would keep for later."""

from __future__ import annotations

import ctypes
import sys

BULK = 1 << 20
"""Rows from which on an epoch leaves so much behind that looking for it, some milliseconds, does not count."""


def give_back() -> None:
    """Let the allocator return what it holds without need. Does nothing where it cannot be asked to."""
    if sys.platform.startswith("linux"):
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
