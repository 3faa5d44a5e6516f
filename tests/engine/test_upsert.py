"""Set and upsert inputs hold what a Python dict would, whatever history lies below it."""

from __future__ import annotations

import random

import numpy as np
import pytest

import tektite as tk
from tests.support.executors import make_engine
from tests.support.row_changes import row_changes

pytestmark = pytest.mark.executors("stages")


@pytest.mark.executors(spark=["True-0"])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("held", [False, True])
def test_an_upsert_input_holds_the_last_value_of_each_key(seed: int, held: bool) -> None:
    """Several operations on a key in one epoch, keys that come and go, and, if an early epoch is held, many versions of each."""
    generator = random.Random(seed)
    with make_engine(1 + seed % 3) as engine:
        table = engine.create_table(
            "t", {"a": tk.Int, "b": tk.String, "v": tk.Int, "w": tk.Float}, mode="upsert", primary_key=("a", "b")
        )
        view = engine.install("v", table)
        expected: dict[tuple[int, str], tuple[int, float]] = {}
        hold = engine.hold(table) if held else None
        for _ in range(24):
            for _ in range(generator.choice([1, 3, 30])):
                key = (generator.randrange(2), generator.choice("xy"))
                if generator.random() < 0.3:
                    table.remove([key])
                    expected.pop(key, None)
                else:
                    value = (generator.randrange(4), generator.choice([0.5, 1.5]))
                    table.insert([(*key, *value)])
                    expected[key] = value
            engine.advance()
            engine.settle()
            assert sorted(view.snapshot().to_pylist(), key=str) == sorted(
                [{"a": a, "b": b, "v": v, "w": w} for (a, b), (v, w) in expected.items()], key=str
            )
        if hold is not None:
            hold.release()


@pytest.mark.parametrize("semantics", ["set", "upsert"])
def test_many_keys_are_looked_up_in_many_batches(semantics: str) -> None:
    """More keys than are sought at once, of which some are there, in batches that are large and small."""
    rng = np.random.default_rng(7)
    with make_engine() as engine:
        key = {"primary_key": "k"} if semantics == "upsert" else {}
        table = engine.create_table("t", {"k": tk.Int, "v": tk.Int}, mode=semantics, **key)  # type: ignore[arg-type]
        view = engine.install("v", table)
        expected: dict[tuple[int, ...], int] = {}
        for size in (20_000, 3_000, 40, 700, 5_000, 1):
            rows = np.stack([rng.integers(0, 15_000, size), rng.integers(0, 3, size)], 1)
            table.insert(rows)
            gone = rows[: size // 4] + [1, 0]
            table.remove(gone)
            for k, v in rows.tolist():
                expected[(k,) if key else (k, v)] = v
            for k, v in gone.tolist():
                expected.pop((k,) if key else (k, v), None)
            engine.advance()
            engine.settle()
            found = view.snapshot()
            pairs = sorted(zip(found["k"].to_pylist(), found["v"].to_pylist(), strict=True))
            assert pairs == sorted((at[0], v) for at, v in expected.items())


def test_updates_with_times_of_their_own_count_in_their_epochs() -> None:
    """Operations on one key at several epochs of one batch, out of order: each epoch has its own last value."""
    with make_engine() as engine:
        table = engine.create_table("t", {"k": tk.Int, "v": tk.Int}, mode="upsert", primary_key="k")
        view = engine.install("v", table)
        changes = row_changes(view)
        table.update([(1, 30), (1, 10), (2, 5), (1, 11), (1, 20)], times=[3, 1, 2, 1, 2])
        engine.advance(to=4)
        engine.settle()
        found = [(change.time, *change.row, change.diff) for change in changes]
        assert sorted(found) == [
            (1, 1, 11, 1),
            (2, 1, 11, -1),
            (2, 1, 20, 1),
            (2, 2, 5, 1),
            (3, 1, 20, -1),
            (3, 1, 30, 1),
        ]
