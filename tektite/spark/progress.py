"""Progress of Spark jobs (tasks done, all tasks), and figures of each epoch of a stream."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from tektite.former_names import former_name

SECONDS_BETWEEN = 0.2
Shown = Callable[[int, int], None]


@dataclass(frozen=True)
class EpochProgress:
    """One micro-batch of a followed stream, and the duration of each step."""

    table: str
    batch: int
    """Spark's number of the micro-batch."""
    epoch: int
    """The epoch of its rows."""
    rows: int
    encode: float
    """Seconds that Spark's tasks took to encode and deliver the rows."""
    update: float
    """Seconds to close the epoch and give views their first turn."""
    durable: float
    """Seconds until the epoch was durable; 0 without a storage."""
    views: float
    """Seconds of waiting for views that were more than `lag` epochs behind."""
    behind: int
    """How many closed epochs the slowest view lacks."""
    finished: float = field(default_factory=time.time)
    """When it was done, in seconds since 1970."""

    @property
    @former_name("progress.table")
    def input(self) -> str:
        """`table`, by its former name."""
        return self.table

    @property
    def seconds(self) -> float:
        """All steps together."""
        return self.encode + self.update + self.durable + self.views


OnProgress = Callable[[EpochProgress], None]


class Steps:
    """A stop watch: seconds since the last call.

    >>> steps = Steps()
    >>> steps.next() >= 0
    True
    """

    def __init__(self) -> None:
        self._last = time.perf_counter()

    def next(self) -> float:
        """Seconds of the step that ends with this call."""
        last, self._last = self._last, time.perf_counter()
        return self._last - last


@contextmanager
def watched(spark: SparkSession, group: str, title: str, progress: bool | Shown | None) -> Iterator[None]:
    """Report the progress of a group's jobs until the block ends. The last report says that all tasks are done."""
    if progress is None:
        progress = sys.stderr.isatty()
    if not progress:
        yield
        return
    show: Shown = bar(title) if progress is True else progress
    ended = threading.Event()
    tracker = spark.sparkContext.statusTracker()
    seen = [0, 0]

    def poll() -> None:
        while not ended.wait(SECONDS_BETWEEN):
            done, total = 0, 0
            for job in tracker.getJobIdsForGroup(group):
                info = tracker.getJobInfo(job)
                for stage in info.stageIds if info is not None else ():
                    found = tracker.getStageInfo(stage)
                    if found is not None:
                        done += found.numCompletedTasks
                        total += found.numTasks
            if total and [done, total] != seen:
                seen[:] = done, total
                show(done, total)

    thread = threading.Thread(target=poll, name="tektite-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    total = max(seen[1], 1)
    show(total, total)


def bar(title: str) -> Shown:
    """A progress bar on standard error."""

    def show(done: int, total: int) -> None:
        width = 30 * done // total
        end = "\n" if done == total else ""
        sys.stderr.write(f"\r{title}: [{'#' * width}{'.' * (30 - width)}] {done}/{total} tasks{end}")
        sys.stderr.flush()

    return show
