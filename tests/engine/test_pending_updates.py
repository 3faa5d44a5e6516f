"""What waits for its epoch takes memory for what differs, not for how often it was said."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import tektite as tk
from tektite.engine import pending_updates
from tektite.engine.core import core_of
from tests.support.executors import make_engine

pytestmark = pytest.mark.executors("stages")


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds that small tests reach."""
    monkeypatch.setattr(pending_updates, "MOST_ROWS", 500)
    monkeypatch.setattr(pending_updates, "MOST_SMALL", 20)


def test_updates_that_cancel_do_not_pile_up() -> None:
    engine = make_engine()
    numbers = engine.create_table("numbers", {"n": tk.Int})
    for _ in range(100):
        numbers.update(np.arange(200), diffs=np.ones(200, np.int64))
        numbers.update(np.arange(200), diffs=-np.ones(200, np.int64))
        assert numbers.pending <= 500 + 400
    numbers.insert([(7,)])
    engine.advance()
    assert engine.install("all", numbers).rows() == [(7,)]


def test_distinct_updates_are_all_kept_and_sorted_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    sorted_rows = 0

    def counting(chunks, shape, low, memory=None):  # type: ignore[no-untyped-def]
        nonlocal sorted_rows
        sorted_rows += sum(chunk.n for chunk in chunks)
        return consolidate(chunks, shape, low, memory)

    consolidate = pending_updates.consolidate
    monkeypatch.setattr(pending_updates, "consolidate", counting)
    engine = make_engine()
    numbers = engine.create_table("numbers", {"n": tk.Int})
    for start in range(0, 40_000, 100):
        numbers.insert(np.arange(start, start + 100))
    assert numbers.pending == 40_000
    assert sorted_rows < 2 * 40_000  # small chunks once, and all of them at growing distances
    engine.advance()
    assert len(engine.install("all", numbers).rows()) == 40_000


def test_rows_that_come_one_by_one_become_few_chunks() -> None:
    engine = make_engine()
    numbers = engine.create_table("numbers", {"n": tk.Int})
    for n in range(300):
        numbers.insert([(n % 10,)])
    assert len(list(core_of(engine).writes.of(core_of(numbers)))) <= 40
    engine.advance()
    assert engine.install("all", numbers).multiplicities() == {(n,): 30 for n in range(10)}


@pytest.mark.parametrize("workers", [1, 2])
def test_each_update_keeps_its_time(workers: int) -> None:
    engine = make_engine(workers)
    numbers = engine.create_table("numbers", {"n": tk.Int})
    view = engine.install("all", numbers)
    random = np.random.default_rng(1)
    expected: Counter[tuple[int, int]] = Counter()
    for _ in range(60):
        n, times = random.integers(0, 20, 30), random.integers(0, 6, 30)
        numbers.update(n, times=times)
        expected.update(zip(n.tolist(), times.tolist(), strict=True))
    for epoch in range(6):
        engine.advance(epoch + 1)
        now = Counter({(n,): 0 for n, _ in expected})
        for (n, time), many in expected.items():
            now[(n,)] += many if time <= epoch else 0
        assert view.multiplicities() == +now


@pytest.mark.executors(spark=["upsert"])
@pytest.mark.parametrize("semantics", ["set", "upsert"])
def test_order_of_arrival_survives(semantics: str) -> None:
    engine = make_engine()
    key = ["k"] if semantics == "upsert" else []
    prices = engine.create_table("prices", {"k": tk.Int, "price": tk.Int}, mode=semantics, primary_key=key)
    for n in range(200):
        prices.insert([(n % 7, n)])
        if semantics == "set":
            prices.remove([(n % 7, n - 7)])
    engine.advance()
    assert sorted(engine.install("all", prices).rows()) == sorted((n % 7, n) for n in range(193, 200))


def test_sum_that_does_not_fit_is_reported_when_the_epoch_closes() -> None:
    engine = make_engine()
    numbers = engine.create_table("numbers", {"n": tk.Int})
    for _ in range(40):
        numbers.update(np.zeros(2000, np.int64), diffs=np.full(2000, 2**48))
    with pytest.raises(tk.IncorrectError, match="does not fit"):
        engine.advance()
    numbers.rollback()
    numbers.insert([(1,)])
    engine.advance()
    assert engine.install("all", numbers).rows() == [(1,)]
