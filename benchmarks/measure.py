"""What a benchmark measures with: a stopwatch that keeps every lap, percentiles of them, the process's memory, and how
much of the machine others used meanwhile.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
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
    """Durations of repeated work, in seconds, and the processor time that this process took for each (all its threads):
    on a busy machine that is the steadier figure.

    >>> laps = Laps()
    >>> for _ in range(3):
    ...     with laps.lap():
    ...         pass
    >>> sorted(laps.figures(updates=3))
    ['cpu_p50_us', 'cpu_p99_us', 'cpu_seconds', 'max_us', 'p50_us', 'p99_us', 'seconds', 'updates_per_s']
    """

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.cpu: list[float] = []

    @contextmanager
    def lap(self) -> Iterator[None]:
        """Time the block."""
        cpu, start = time.process_time(), time.perf_counter()
        yield
        self.seconds.append(time.perf_counter() - start)
        self.cpu.append(time.process_time() - cpu)

    def figures(self, updates: int | None = None) -> dict[str, float]:
        """The figures of a record; `updates` is how many updates all laps handled together."""
        ordered = sorted(self.seconds)
        found = self.total(updates)
        return found | {
            "p50_us": percentile(ordered, 0.5) * 1e6,
            "p99_us": percentile(ordered, 0.99) * 1e6,
            "max_us": ordered[-1] * 1e6,
            "cpu_p50_us": percentile(sorted(self.cpu), 0.5) * 1e6,
            "cpu_p99_us": percentile(sorted(self.cpu), 0.99) * 1e6,
        }

    def total(self, updates: int | None = None) -> dict[str, float]:
        """The figures of all laps together, for work that is done once."""
        total = sum(self.seconds)
        found = {"seconds": total, "cpu_seconds": sum(self.cpu)}
        if updates is not None:
            found["updates_per_s"] = updates / total
        return found


def ccdf(durations: Sequence[float], points: int = 200) -> list[tuple[float, float]]:
    """The distribution's tail: (microseconds, share of the durations that were at least that long), longest last.

    At most about `points` of them, dense in the tail, where each duration counts.

    >>> ccdf([0.001, 0.002, 0.004, 0.002])
    [(1000.0, 1.0), (2000.0, 0.75), (2000.0, 0.5), (4000.0, 0.25)]
    """
    ordered = sorted(durations, reverse=True)
    ranks = sorted({round(len(ordered) ** (i / points)) for i in range(points + 1)}, reverse=True)
    return [(ordered[rank - 1] * 1e6, rank / len(ordered)) for rank in ranks]


class Others:
    """How many cores other processes kept busy since this was made: a figure above some tenths spoils a measurement.

    Where the system does not tell, the figure is left out.
    """

    def __init__(self) -> None:
        self._start = self._now()

    def _now(self) -> tuple[float, float, float]:
        times = psutil.cpu_times()
        idle = times.idle + getattr(times, "iowait", 0.0)
        own = os.times()
        return time.perf_counter(), (psutil.cpu_count() or 1) * time.perf_counter() - idle, own.user + own.system

    def figures(self) -> dict[str, float]:
        """The figure `others_cores`."""
        start, now = self._start, self._now()
        elapsed, busy, own = (after - before for before, after in zip(start, now, strict=True))
        return {"others_cores": round(max(busy - own, 0.0) / elapsed, 2)} if elapsed > 0 else {}


def reset_peak() -> None:
    """Let `peak_mib` count from here on, where the system can do that (Linux)."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


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
