"""The benchmarks of conjunctions run, and what they say about memory is so at any size."""

from __future__ import annotations

from benchmarks import arity, star, triangle
from benchmarks.conjunctions import rmat_edges


def test_delta_holds_no_tuples_of_its_own_at_any_arity() -> None:
    records = list(arity.run(subjects=300, batch=20, epochs=2, rounds=1, arities=(2, 3, 5)))
    held = {(record["arity"], record["strategy"]): record["own_tuples"] for record in records}
    assert {tuples for (_, strategy), tuples in held.items() if strategy != "binary"} == {0}
    assert 0 == held[2, "binary"] < held[3, "binary"] < held[5, "binary"]


def test_star_join_runs_with_every_strategy() -> None:
    records = list(star.run(subjects=200, batch=80))
    assert [record["strategy"] for record in records] == ["binary", "binary backwards", "delta", "hector"]
    assert {record["base_tuples"] for record in records} == {800}


def test_triangles_are_counted_right_by_every_strategy_and_order() -> None:
    records = [record for there in (0, 1_000) for record in triangle.run(2_000, scale=7, batch=500, history=there)]
    assert len(records) == 36
    assert len({record["triangles"] for record in records}) == 1


def test_edges_of_the_skewed_graph_are_different() -> None:
    src, dst = rmat_edges(1_000, 8)
    assert len(set(zip(src.tolist(), dst.tolist(), strict=True))) == 1_000
