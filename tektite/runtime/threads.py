"""The in-process executor: one thread per shard where there is enough to do, the calling thread where there is not."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from tektite.dataflow.graph import Outbox
from tektite.runtime.allocator import share_between_threads

PARALLEL_FROM = 8192
"""Rows from which on handing work to another thread (some tens of microseconds) pays."""


class Threads:
    """Runs shards side by side; kernels release the GIL."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        if workers > 1:
            share_between_threads()
        self._pool = ThreadPoolExecutor(workers - 1, "tektite") if workers > 1 else None

    def map(self, work: Callable[[int, Outbox], None], shards: int, rows: int) -> list[Outbox]:
        """The outbox of each shard, in order."""
        outboxes: list[Outbox] = [[] for _ in range(shards)]
        if self._pool is None or rows < PARALLEL_FROM:
            for shard in range(shards):
                work(shard, outboxes[shard])
            return outboxes
        others = [self._pool.submit(work, shard, outboxes[shard]) for shard in range(1, shards)]
        try:
            work(0, outboxes[0])
        finally:
            errors = [error for other in others if (error := other.exception()) is not None]
        if errors:
            raise errors[0]
        return outboxes

    def close(self) -> None:
        """Stop the threads."""
        if self._pool is not None:
            self._pool.shutdown()
