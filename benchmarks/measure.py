"""What a benchmark measures with: a stopwatch that keeps every lap, percentiles of them, and the process's memory."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

MIB = 1 << 20


def percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest element that at least `share` of the elements do not exceed. Never interpolates: it was measured.

    >>> [percentile([1.0, 2.0, 3.0, 4.0], share) for share in (0.5, 0.51, 0.99)]
    [2.0, 3.0, 4.0]
    """
    rank = -(-share * len(ordered) // 1)
    return ordered[max(int(rank) - 1, 0)]


class Laps:
    """Durations of repeated work, in seconds.

    >>> laps = Laps()
    >>> for _ in range(3):
    ...     with laps.lap():
    ...         pass
    >>> sorted(laps.figures(updates=3))
    ['max_us', 'p50_us', 'p99_us', 'seconds', 'updates_per_s']
    """

    def __init__(self) -> None:
        self.seconds: list[float] = []

    @contextmanager
    def lap(self) -> Iterator[None]:
        """Time the block."""
        start = time.perf_counter()
        yield
        self.seconds.append(time.perf_counter() - start)

    def figures(self, updates: int | None = None) -> dict[str, float]:
        """The figures of a record; `updates` is how many updates all laps handled together."""
        ordered = sorted(self.seconds)
        total = sum(ordered)
        found = {"seconds": total}
        if updates is not None:
            found["updates_per_s"] = updates / total
        return found | {
            "p50_us": percentile(ordered, 0.5) * 1e6,
            "p99_us": percentile(ordered, 0.99) * 1e6,
            "max_us": ordered[-1] * 1e6,
        }


def memory() -> dict[str, float]:
    """Memory of this process as the figures `rss_mib` and `peak_mib`."""
    return {"rss_mib": psutil.Process().memory_info().rss / MIB, "peak_mib": _peak() / MIB}


def _peak() -> int:
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        # Bytes on macOS, kibibytes elsewhere.
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return int(status.split("VmHWM:")[1].split()[0]) * 1024
