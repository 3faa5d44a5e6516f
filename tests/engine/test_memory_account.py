"""An engine accounts for all the memory it keeps indexed, and gives it back."""

from __future__ import annotations

import numpy as np
import pytest

import tektite as tk


def reach(engine: tk.Engine) -> tk.Collection:
    edges = engine.table("edges")
    start = edges.filter(tk.col("src") == 0).select(node="dst")

    def step(found: tk.Collection) -> tk.Collection:
        return found.join(edges, left_on="node", right_on="src").select(node="dst").concat(start).distinct()

    return start.iterate(step)


def engine_with_a_path(length: int) -> tk.Engine:
    engine = tk.Engine(autocommit=False)
    edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
    edges.insert({"src": np.arange(length), "dst": np.arange(1, length + 1)})
    engine.advance()
    return engine


def test_what_a_view_keeps_for_itself_counts_until_it_is_dropped() -> None:
    engine = engine_with_a_path(300)
    before = engine.bytes
    assert before == sum(a.bytes for a in engine.indexes())
    view = engine.install("reach", reach(engine))
    assert len(view.rows()) == 300
    shared = sum(a.bytes for a in engine.indexes())
    assert engine.bytes > shared + 8 * 300  # the loop's own arrangements hold each node with its round
    view.drop()
    assert engine.bytes == before


def test_idle_merges_what_a_loop_keeps() -> None:
    engine = engine_with_a_path(300)
    engine.install("reach", reach(engine)).rows()
    grown = engine.bytes
    while engine.idle():
        pass
    assert engine.bytes <= grown


def test_dropped_input_gives_back_its_memory_and_its_name() -> None:
    engine = engine_with_a_path(300)
    engine.drop("edges")
    assert (engine.bytes, engine.indexes()) == (0, [])
    edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
    edges.insert([(1, 2)])
    engine.advance()
    assert engine.install("all", edges).rows() == [(1, 2)]


def test_input_that_is_read_cannot_be_dropped() -> None:
    engine = engine_with_a_path(3)
    edges = engine.table("edges")
    view = engine.install("degrees", edges.count(by="src"))
    with pytest.raises(tk.ConflictError, match="cannot drop table 'edges': 'degrees' read it"):
        engine.drop("edges")
    view.drop()
    engine.drop("edges")
    with pytest.raises(tk.ConflictError, match="closed"):
        edges.insert([(1, 2)])
