"""Journal: records of the last sweeps. Listeners are called with each sweep that has ended."""

from __future__ import annotations

import time
import warnings
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from tektite.dataflow.work_log import WorkLog

KEPT = 256
"""The number of sweeps that are remembered."""


@dataclass
class Sweep:
    """One sweep of a dataflow, which computes a view or an arrangement that views share."""

    name: str
    low: int
    """The first epoch that it computed."""
    high: int
    """The first epoch after it, which it left to the next sweep."""
    rows: int
    """Changes of its sources that waited when it began."""
    jobs: list[str] = field(default_factory=list)
    """The groups of the Spark jobs that ran parts of it; empty if it ran in this process."""
    stages: int = 0
    """The number of stages of these jobs."""
    sent: int = 0
    """Rows that the shards of these jobs sent each other."""
    written: int = 0
    """Bytes of the files that the tasks of these jobs wrote."""
    why: str = ""
    """Why it ran where it did."""
    seconds: float = 0.0
    """Time from beginning to end, including other work in between."""
    began: float = field(default_factory=time.perf_counter, repr=False)

    @property
    def where(self) -> str:
        """`jobs` if a part of it ran as a Spark job, otherwise `driver`."""
        return "jobs" if self.jobs else "driver"


class Journal:
    """The last sweeps of an engine."""

    def __init__(self, why: str = "") -> None:
        """`why` is the reason that is recorded for sweeps that ran in this process."""
        self.sweeps: deque[Sweep] = deque(maxlen=KEPT)
        self.listeners: list[Callable[[Sweep], None]] = []
        self.work: WorkLog | None = None
        """The work of operators, if somebody wants it counted."""
        self.ended_sweeps = 0
        """How many sweeps have ended, those that are forgotten included."""
        self.why = why

    def ended(self, sweep: Sweep) -> None:
        """Record a sweep that has ended. An error of a listener becomes a warning, because it cannot undo the sweep."""
        sweep.seconds = time.perf_counter() - sweep.began
        sweep.why = sweep.why or self.why
        self.sweeps.append(sweep)
        self.ended_sweeps += 1
        for listener in list(self.listeners):
            try:
                listener(sweep)
            except Exception as error:
                warnings.warn(f"a listener to sweeps raised {error!r}", RuntimeWarning, stacklevel=2)
