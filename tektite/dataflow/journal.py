"""Journal: records of the last sweeps and of the last epochs. Listeners are called with each that has ended."""

from __future__ import annotations

import time
import warnings
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from tektite.dataflow.work_log import WorkLog
from tektite.former_names import former_name, without_former
from tektite.kernels.ready import calls

T = TypeVar("T")

KEPT = 256
"""The number of sweeps that are remembered, and that of epochs."""

PHASES = ("prepare", "apply", "merge", "sweep", "tell")
"""What closing an epoch consists of, in order: its rows are checked and sorted; tables take them; traces merge what these pay
for; views follow; subscribers are told.
"""


if TYPE_CHECKING:

    class SweepRecord:
        """The fields that every sweep records, in C; see native/agenda.c. Making the record begins its time."""

        began: float

        def __init__(self, name: str, first: int, time: int, rows: int) -> None: ...

    class JournalRecord:
        """The part of a journal that runs at the end of every sweep, in C; see native/agenda.c."""

        def ended(self, sweep: Sweep) -> None:
            """Record a sweep that has ended, and call listeners."""

else:
    SweepRecord = calls().SweepRecord
    JournalRecord = calls().JournalRecord


@dataclass(init=False)
class Sweep(SweepRecord):
    """One sweep of a dataflow, which computes a view or an arrangement that views share."""

    # There is one for each view in each epoch. What all have is in the record. What few have is in the class, until somebody
    # sets it.

    name: str
    first: int
    """The first epoch that it computed."""
    time: int
    """The last epoch that it computed."""
    rows: int
    """Changes of its sources that waited when it began."""
    why: str
    """Why it ran where it did."""
    seconds: float
    """Time from beginning to end, including other work in between."""
    jobs: tuple[str, ...] = ()
    """The groups of the Spark jobs that ran parts of it; empty if it ran in this process."""
    stages: int = 0
    """The number of stages of these jobs."""
    sent: int = 0
    """Rows that the shards of these jobs sent each other."""
    written: int = 0
    """Bytes of the files that the tasks of these jobs wrote."""

    @property
    @former_name("sweep.first")
    def low(self) -> int:
        """`first`, by its former name."""
        return self.first

    @property
    @former_name("sweep.time + 1")
    def high(self) -> int:
        """The first epoch after it, by a former name."""
        return self.time + 1

    def __dir__(self) -> list[str]:
        return without_former(type(self), super().__dir__())

    @property
    def where(self) -> str:
        """`jobs` if a part of it ran as a Spark job, otherwise `driver`."""
        return "jobs" if self.jobs else "driver"


@dataclass
class ClosedEpoch:
    """One epoch that was closed, and how long each of its phases took. Of several that close together, the last."""

    epoch: int
    rows: int = 0
    """Changes of tables, system relations left out."""
    phases: dict[str, float] = field(default_factory=dict)
    """Seconds by phase; one that an error cut short is missing."""
    at: float = field(default_factory=time.time)
    """When it began, in seconds since 1970."""
    _last: float = field(default_factory=time.perf_counter, repr=False)

    def end(self, phase: str) -> None:
        """A phase has ended, and the next one begins."""
        now = time.perf_counter()
        self.phases[phase] = now - self._last
        self._last = now

    @property
    def seconds(self) -> float:
        """The sum of the seconds of all phases."""
        return sum(self.phases.values())


class Journal(JournalRecord):
    """The last sweeps of an engine, and its last epochs."""

    def __init__(self, why: str = "") -> None:
        """`why` is the reason that is recorded for sweeps that ran in this process."""
        self.sweeps: deque[Sweep] = deque(maxlen=KEPT)
        self.listeners: list[Callable[[Sweep], None]] = []
        self.epochs: deque[ClosedEpoch] = deque(maxlen=KEPT)
        self.notes_epochs = False
        """Whether somebody wants to know of epochs."""
        self.epoch_listeners: list[Callable[[ClosedEpoch], None]] = []
        self.work: WorkLog | None = None
        """The work of operators, if somebody wants it counted."""
        self.ended_sweeps = 0
        """How many sweeps have ended, those that are forgotten included."""
        self.why = why

    def _tell(self, sweep: Sweep) -> None:
        """Call listeners with a sweep."""
        _tell(self.listeners, sweep, "sweeps")

    def closed(self, epoch: ClosedEpoch) -> None:
        """Record an epoch that has been closed."""
        self.epochs.append(epoch)
        if self.work is not None:
            self.work.close(epoch.epoch)
        _tell(self.epoch_listeners, epoch, "epochs")


def _tell(listeners: list[Callable[[T], None]], what: T, kind: str) -> None:
    """Call listeners. An error of one becomes a warning, because it cannot undo what has happened."""
    for listener in list(listeners):
        try:
            listener(what)
        except Exception as error:
            warnings.warn(f"a listener to {kind} raised {error!r}", RuntimeWarning, stacklevel=3)
