"""Journal: what is known of sweeps, kept for the last of them and told to listeners when one has ended."""

from __future__ import annotations

import time
import warnings
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

KEPT = 256
"""Sweeps that are remembered."""


@dataclass
class Sweep:
    """One sweep of a dataflow: a view's, or that of an arrangement that views share."""

    name: str
    low: int
    """The first epoch that it brought."""
    high: int
    """The first epoch that it left to the next one."""
    rows: int
    """Changes of its sources that it began with."""
    jobs: list[str] = field(default_factory=list)
    """The groups of the Spark jobs that ran parts of it; none, if it ran in this process."""
    stages: int = 0
    """Stages of these jobs."""
    sent: int = 0
    """Rows that their shards sent each other."""
    written: int = 0
    """Bytes of the files that their tasks wrote."""
    why: str = ""
    """Why it ran where it did."""
    seconds: float = 0.0
    """From its beginning to its end, what others did meanwhile included."""
    began: float = field(default_factory=time.perf_counter, repr=False)

    @property
    def where(self) -> str:
        """`jobs` if a part of it ran as a Spark job, otherwise `driver`."""
        return "jobs" if self.jobs else "driver"


class Journal:
    """Remembers the last sweeps of an engine."""

    def __init__(self, why: str = "") -> None:
        """`why` says why sweeps run in this process."""
        self.sweeps: deque[Sweep] = deque(maxlen=KEPT)
        self.listeners: list[Callable[[Sweep], None]] = []
        self.why = why

    def ended(self, sweep: Sweep) -> None:
        """Take down a sweep that has ended. What a listener raises is a warning: it cannot undo the sweep."""
        sweep.seconds = time.perf_counter() - sweep.began
        sweep.why = sweep.why or self.why
        self.sweeps.append(sweep)
        for listener in list(self.listeners):
            try:
                listener(sweep)
            except Exception as error:
                warnings.warn(f"a listener to sweeps raised {error!r}", RuntimeWarning, stacklevel=2)
