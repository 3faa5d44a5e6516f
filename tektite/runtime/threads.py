"""Threads: the executor of this process. One thread per shard, or only the calling thread if there is little work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

from tektite.dataflow.flow import Dataflow
from tektite.dataflow.graph import Outbox
from tektite.dataflow.interrupts import held_interrupts
from tektite.runtime.allocator import share_between_threads

PARALLEL_FROM = 8192
"""From this many rows on, handing work to another thread (some tens of microseconds) pays."""


class Threads:
    """Runs shards in parallel. Kernels release the GIL.

    No call ends before all its threads have: they would go on changing what the caller, which was interrupted, tries again.
    """

    sends = False
    has_all_shards = True
    why = "the engine has no Spark session, or no storage"

    def __init__(self, workers: int) -> None:
        self.workers = workers
        if workers > 1:
            share_between_threads()
        self._pool = ThreadPoolExecutor(workers - 1, "tektite") if workers > 1 else None

    def map(self, work: Callable[[int, Outbox], None], shards: int, rows: int) -> list[Outbox]:
        """Run `work` on all shards. Returns their outboxes, in order."""
        outboxes: list[Outbox] = [[] for _ in range(shards)]
        if self._pool is None or rows < PARALLEL_FROM:
            for shard in range(shards):
                work(shard, outboxes[shard])
            return outboxes
        others: list[Future[None]] = []
        with held_interrupts():
            try:
                for shard in range(1, shards):
                    others.append(self._pool.submit(work, shard, outboxes[shard]))
                work(0, outboxes[0])
            finally:
                errors = ended(others)
        if errors:
            raise errors[0]
        return outboxes

    def spread(self, tasks: Sequence[Callable[[], None]]) -> None:
        """Run tasks in parallel."""
        if self._pool is None:
            for task in tasks:
                task()
            return
        others: list[Future[None]] = []
        with held_interrupts():
            try:
                for task in tasks[1:]:
                    others.append(self._pool.submit(task))
                for task in tasks[:1]:
                    task()
            finally:
                errors = ended(others)
        if errors:
            raise errors[0]

    def begin(self, flows: Sequence[Dataflow]) -> None:
        """Run all sweeps in this process."""

    def close(self) -> None:
        """Stop the threads."""
        if self._pool is not None:
            self._pool.shutdown()


def ended(futures: Sequence[Future[None]]) -> list[BaseException]:
    """Wait for all futures, whatever interrupts the wait. Returns their errors."""
    interrupt: BaseException | None = None
    while True:
        try:
            wait(futures)
            break
        except BaseException as found:
            interrupt = found
    if interrupt is not None:
        raise interrupt
    return [error for future in futures if (error := future.exception()) is not None]
