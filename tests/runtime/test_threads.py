"""A call that works in several threads ends when all of them have, whatever interrupts it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from tektite.dataflow.graph import Outbox
from tektite.runtime.threads import PARALLEL_FROM, Threads


@pytest.fixture
def threads() -> Iterator[Threads]:
    made = Threads(3)
    yield made
    made.close()


def test_ctrl_c_waits_for_the_other_threads(threads: Threads) -> None:
    ended: list[int] = []

    def work(shard: int, _: Outbox) -> None:
        if shard:
            os.kill(os.getpid(), signal.SIGINT)
            threading.Event().wait(0.1)
        ended.append(shard)

    with pytest.raises(KeyboardInterrupt):
        threads.map(work, 3, PARALLEL_FROM)
    assert sorted(ended) == [0, 1, 2]
    ended.clear()
    with pytest.raises(KeyboardInterrupt):
        threads.spread([lambda shard=shard: work(shard, []) for shard in range(3)])  # type: ignore[misc]
    assert sorted(ended) == [0, 1, 2]


def test_an_error_of_the_calling_thread_waits_for_the_other_threads(threads: Threads) -> None:
    ended: list[int] = []

    def work(shard: int, _: Outbox) -> None:
        if not shard:
            raise ValueError("of the first shard")
        threading.Event().wait(0.1)
        ended.append(shard)

    with pytest.raises(ValueError, match="of the first shard"):
        threads.map(work, 3, PARALLEL_FROM)
    assert sorted(ended) == [1, 2]


def test_an_error_of_another_thread_is_raised(threads: Threads) -> None:
    def work(shard: int, _: Outbox) -> None:
        if shard == 2:
            raise ValueError("of the last shard")

    with pytest.raises(ValueError, match="of the last shard"):
        threads.map(work, 3, PARALLEL_FROM)
    with pytest.raises(ValueError, match="of the last shard"):
        threads.spread([lambda shard=shard: work(shard, []) for shard in range(3)])  # type: ignore[misc]
