"""Sums and averages of floats: the exact result, rounded once, whatever comes and goes in whatever order."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tektite as tk
from tektite.engine.core import core_of
from tektite.trace.spine import WAITING
from tests.support.executors import examples, make_engine
from tests.support.float_twin import LEAST, anything, expected, rounded, same, scaled
from tests.support.nightly import by_day_or_night
from tests.support.row_changes import row_changes

pytestmark = pytest.mark.executors

Row = tuple[int, int, float | None, float | None]


class Twin:
    """An engine with sums of one input, and what the input holds."""

    def __init__(self, workers: int, merging: str) -> None:
        self.engine = make_engine(workers, merging=merging)
        self.source = self.engine.create_table("s", {"k": tk.Int, "i": tk.Int, "x": tk.Float, "y": tk.Float})
        grouped = self.source.group_by("k").agg(
            n=tk.count(), i=tk.sum("i"), x=tk.sum("x"), x_seen=tk.count("x"), x_mean=tk.avg("x"), y_mean=tk.avg("y"),
            i_mean=tk.avg("i"), y=tk.sum("y"), y_most=tk.max("y"),
        )  # fmt: skip
        self.view = self.engine.install("sums", grouped)

    def check(self, held: list[Row]) -> None:
        found = {row[0]: row[1:] for row in self.view.rows()}
        assert found.keys() == {row[0] for row in held}
        for key, (n, i, x, x_seen, x_mean, y_mean, i_mean, y, _) in found.items():
            rows = [row for row in held if row[0] == key]
            x_count, x_sum, x_average = expected([row[2] for row in rows])
            _, y_sum, y_average = expected([row[3] for row in rows])
            whole = sum(row[1] for row in rows)
            assert (n, i, i_mean, x_seen) == (len(rows), whole, whole / len(rows), x_count)
            assert same(x, x_sum) and same(x_mean, x_average)
            assert same(y, y_sum) and same(y_mean, y_average)


one_row = st.tuples(st.integers(0, 2), st.integers(-9, 9), anything, st.one_of(st.none(), scaled))
epochs = st.lists(st.tuples(st.lists(one_row, max_size=6), st.integers(0, 2**16)), min_size=1, max_size=5)


@pytest.mark.executors("stages", spark=["3-eager"])
@pytest.mark.parametrize("workers,merging", [(1, "eager"), (1, "lazy"), (2, "default"), (3, "eager")])
def test_sums_are_exact_at_every_epoch(workers: int, merging: str) -> None:
    @settings(max_examples=examples(by_day_or_night(40, 150)))
    @given(epochs, st.integers(1, 3))
    def check(script: Any, batch: int) -> None:
        twin = Twin(workers, merging)
        held: list[Row] = []
        for inserted, seed in script:
            choices = np.random.default_rng(seed)
            choices.shuffle(held)
            stay = int(choices.integers(0, len(held) + 1))
            held, removed = held[:stay], held[stay:]
            for at in range(0, len(inserted), batch):
                twin.source.insert(inserted[at : at + batch])
            twin.source.remove(removed)
            held += inserted
            twin.engine.advance()
            twin.check(held)
        twin.source.remove(held)
        twin.engine.advance()
        assert twin.view.rows() == []
        twin.engine.close()

    check()


@pytest.mark.executors("stages")
def test_several_epochs_in_one_sweep_give_each_its_sum() -> None:
    @settings(max_examples=examples(by_day_or_night(40, 150)))
    @given(st.lists(st.tuples(one_row, st.integers(0, 5)), max_size=20))
    def check(rows: list[tuple[Any, int]]) -> None:
        twin = Twin(1, "default")
        changes = row_changes(twin.view)
        twin.source.update([row for row, _ in rows], times=[time for _, time in rows])
        twin.source.update([row for row, _ in rows], times=[time + 3 for _, time in rows], diffs=[-1] * len(rows))
        twin.engine.advance(10)
        found = [*changes]
        by_text = {repr(change.row): change.row for change in found}  # NaN does not equal itself
        for epoch in range(10):
            held = [row for row, time in rows if time <= epoch < time + 3]
            shown: Counter[str] = Counter()
            for change in found:
                if change.time <= epoch:
                    shown[repr(change.row)] += change.diff
            assert all(n in (0, 1) for n in shown.values())
            wanted = {k: expected([row[2] for row in held if row[0] == k]) for k in {row[0] for row in held}}
            results = [by_text[text] for text, n in shown.items() if n]
            assert len(results) == len(wanted)
            for row in results:
                assert (
                    row[4] == wanted[row[0]][0] and same(row[3], wanted[row[0]][1]) and same(row[5], wanted[row[0]][2])
                )
        assert twin.view.rows() == []
        twin.engine.close()

    check()


def accumulating_rows(engine: tk.Engine) -> int:
    """The rows of the arrangements that floats are exploded into."""
    traces = {
        id(h.trace): h.trace for flow in core_of(engine).coordinator.flows for h in flow.handles if h.trace.diffs > 1
    }
    assert traces
    return sum(trace.rows for trace in traces.values())


@pytest.mark.parametrize("workers", [1, 2])
def test_a_group_of_many_rows_costs_a_handful(workers: int) -> None:
    count = by_day_or_night(100_000, 1_000_000)
    engine = make_engine(workers)
    source = engine.create_table("s", {"id": tk.Int, "k": tk.Int, "x": tk.Float})
    view = engine.install("sums", source.group_by("k").agg(total=tk.sum("x"), mean=tk.avg("x")))
    rng = np.random.default_rng(workers)
    values = rng.uniform(-1e6, 1e6, count)
    rows = {"id": np.arange(count), "k": np.zeros(count, np.int64), "x": values}
    source.insert(rows)
    engine.advance()
    total = math.fsum(values)
    assert view.rows() == [(0, total, rounded(sum(map(Fraction, values), Fraction(0)) / count))]
    assert accumulating_rows(engine) <= 6 + WAITING
    source.remove({name: column[1:] for name, column in rows.items()})
    engine.advance()
    while engine.idle():
        pass
    assert view.rows() == [(0, values[0], values[0])]
    assert accumulating_rows(engine) <= 6 + WAITING
    engine.close()


def test_aggregates_without_floats_have_no_slots() -> None:
    engine = make_engine()
    source = engine.create_table("s", {"k": tk.Int, "i": tk.Int, "x": tk.Float})
    engine.install("sums", source.group_by("k").agg(n=tk.count("x"), total=tk.sum("i")))
    shapes = {(h.trace.data, h.trace.diffs) for flow in core_of(engine).coordinator.flows for h in flow.handles}
    assert (1, 5) in shapes and all(data != 2 or diffs == 1 for data, diffs in shapes)


@pytest.mark.executors("stages")
def test_too_large_a_multiplicity_is_an_error_and_no_wrong_sum() -> None:
    engine = make_engine()
    source = engine.create_table("s", {"k": tk.Int, "x": tk.Float})
    view = engine.install("sums", source.group_by("k").agg(total=tk.sum("x")))
    source.update([(1, 0.5)], diffs=[2**40])
    engine.advance()
    assert view.rows() == [(1, 2.0**39)]
    source.update([(1, 0.1)], diffs=[2**40])  # its limbs are large
    engine.advance()
    with pytest.raises(tk.TektiteError, match="64 bits"):
        view.rows()


@pytest.mark.executors("stages")
@pytest.mark.parametrize("together", [True, False])
def test_limbs_that_outgrow_a_word_are_an_error_and_no_wrong_sum(together: bool) -> None:
    full = (2.0**53 - 1) * 2.0**-18  # its mantissa begins at the foot of a bin: the lowest limb is 2**32 - 1
    engine = make_engine()
    source = engine.create_table("s", {"id": tk.Int, "x": tk.Float})
    view = engine.install("sums", source.select("x", k=tk.lit(0)).group_by("k").agg(total=tk.sum("x")))
    source.update([(0, full)], diffs=[2**30])
    engine.advance()
    assert view.rows() == [(0, full * 2.0**30)]
    for i in range(1, 4):
        source.update([(i, full)], diffs=[2**30])
        if not together:
            engine.advance()
    engine.advance()
    with pytest.raises(tk.TektiteError, match="64 bits"):
        view.rows()


@pytest.mark.executors("stages")
def test_sums_inside_a_loop() -> None:
    """Weights flow along edges, and are scaled and summed at each step; all is put right when an edge goes."""
    engine = make_engine()
    edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
    starts = engine.create_table("starts", {"node": tk.Int, "weight": tk.Float})
    with tk.Loop("flow") as loop:
        mass = loop.variable("mass", node=tk.Int, weight=tk.Float)
        moved = mass.join(edges, left_on="node", right_on="src").select(node="dst", weight=tk.col("weight") * 0.1)
        mass.set(starts.concat(moved).group_by("node").agg(weight=tk.sum("weight")))
        result = loop.leave(mass)
    view = engine.install("mass", result)

    def wanted(pairs: list[tuple[int, int]], first: dict[int, list[float]]) -> dict[int, float]:
        sums: dict[int, float] = {}
        for node in range(6):
            terms = first.get(node, []) + [sums[a] * 0.1 for a, b in pairs if b == node and a in sums]
            if terms:
                sums[node] = math.fsum(terms)
        return sums

    pairs = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (1, 4), (4, 5)]
    first = {0: [0.1, 0.2, 1e16, -1e16], 1: [1e-300], 3: [1.0, LEAST]}
    edges.insert(pairs)
    starts.insert([(node, weight) for node, weights in first.items() for weight in weights])
    engine.advance()
    assert dict(view.rows()) == wanted(pairs, first)
    edges.remove([(1, 3)])
    starts.remove([(0, 1e16)])
    engine.advance()
    first[0].remove(1e16)
    assert dict(view.rows()) == wanted([p for p in pairs if p != (1, 3)], first)
    starts.remove([(0, -1e16), (1, 1e-300)])
    edges.insert([(1, 3)])
    engine.advance()
    first = {0: [0.1, 0.2], 3: [1.0, LEAST]}
    assert dict(view.rows()) == wanted(pairs, first)
