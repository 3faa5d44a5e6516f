"""Limits how deep a statement may nest. The parser, the binder and rewrites recurse for each level.

Chains of one operator are no nesting: they are read in a loop. For the rest Python is allowed more calls than usual while a
statement is run, as many as fit the smallest stack that a thread has here; deeper ones are refused.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

CALLS = 6000
"""Python calls within each other: with what C code lies between, 1 kB each, within the 8 MB of a thread's stack. The parser
needs 23 for a parenthesis, so that 250 of them fit.
"""
_lock = threading.Lock()
_inside = 0
_before = 0


@contextmanager
def deep_calls() -> Iterator[None]:
    """Let Python calls nest deeper; the limit is as before when the last one who asked for it is through."""
    global _inside, _before
    with _lock:
        _inside += 1
        if _inside == 1:
            _before = sys.getrecursionlimit()
            sys.setrecursionlimit(max(CALLS, _before))
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                sys.setrecursionlimit(_before)
