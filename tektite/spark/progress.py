"""Progress of Spark jobs: tasks done of tasks in all, asked for while they run."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

SECONDS_BETWEEN = 0.2
Shown = Callable[[int, int], None]


@contextmanager
def watched(spark: SparkSession, group: str, title: str, progress: bool | Shown | None) -> Iterator[None]:
    """Report how the jobs of a group get on, until the block ends; the last report says that all is done."""
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
    """A line on standard error that is rewritten."""

    def show(done: int, total: int) -> None:
        width = 30 * done // total
        end = "\n" if done == total else ""
        sys.stderr.write(f"\r{title}: [{'#' * width}{'.' * (30 - width)}] {done}/{total} tasks{end}")
        sys.stderr.flush()

    return show
