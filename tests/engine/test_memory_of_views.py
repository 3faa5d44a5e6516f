"""What thousands of small views take in memory."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable

import pytest

import tektite as tk
from tektite.engine.core import core_of

VIEWS = 400
MOST = 8.5 * 1024
"""Bytes of a small view. What the allocator of CPython adds and what caches take is in it; other Pythons have other objects."""

Made = Callable[[tk.Table, tk.Table, int], tk.Collection]


@pytest.mark.parametrize(
    "made",
    [
        lambda t, u, n: t.filter(tk.col("k") == n),
        lambda t, u, n: t.filter(tk.col("k") == n).count(by="k"),
        lambda t, u, n: t.filter(tk.col("k") == n).join(u, on="k"),
    ],
    ids=["filter", "count", "join"],
)
def test_a_small_view_takes_about_eight_kilobytes(made: Made) -> None:
    with tk.Engine(autocommit=False) as engine:
        t = engine.create_table("t", {"k": tk.Int, "v": tk.Int})
        u = engine.create_table("u", {"k": tk.Int, "w": tk.Int})
        t.insert([(k, k) for k in range(10)])
        for number in range(50):  # what all of them share
            engine.install(f"first {number}", made(t, u, -number))
        engine.advance()
        gc.collect()
        tracemalloc.start()
        try:
            for number in range(VIEWS):
                engine.install(f"v{number}", made(t, u, 1000 + number))
            engine.advance()
            gc.collect()
            traces = tracemalloc.take_snapshot().traces
        finally:
            tracemalloc.stop()
        assert sum([-(trace.size // -16) * 16 for trace in traces]) / VIEWS < MOST


def test_a_view_names_what_its_operators_were_made_for_without_its_plan() -> None:
    engine = tk.Engine()
    t, u = (engine.create_table(name, {"k": tk.Int, name: tk.Int}) for name in "tu")
    view = engine.create_view("v", t.filter(tk.col("k") == 3).join(u, on="k"))
    flow = core_of(view).flow
    said = [flow.purpose_of(node) for node in flow.root.nodes]
    assert said == ["join on k = k", "join of (k, t), (k, u) to (k, t, u)"]
    assert [flow.purpose_of(step) for step in flow.root.nodes[0].port.edges[0].steps] == ["filter k == 3"]
