"""A key with most of the rows is the work of all workers, and answers are those of one."""

from __future__ import annotations

import random
import re
from collections import Counter

import numpy as np
import pytest

import tektite as tk
from tektite.dataflow import arrange, join, joined_rows, pipeline_actions, pipelines
from tektite.dataflow.arrange import consolidate
from tektite.dataflow.joined_rows import JoinedRows
from tektite.engine.core import core_of
from tektite.kernels.operators.join import join as join_kernel
from tektite.trace.chunk import Chunk
from tests.support.executors import make_engine
from tests.support.nightly import few_of

pytestmark = pytest.mark.executors


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pieces be so small that a few hundred pairs are many, and every node stops and shares what is left."""
    for module in (join, pipeline_actions, pipelines):
        monkeypatch.setattr(module, "PIECE", 32)
    for module in (join, pipelines):
        monkeypatch.setattr(module, "PIECES_PER_RUN", 2)
    for module in (joined_rows, pipeline_actions, pipelines):
        monkeypatch.setattr(module, "FEWEST", 4)
    monkeypatch.setattr(arrange, "COMBINE_FROM", 2)


def sorted_rows(rows: list[tuple[int, int]]) -> Chunk:
    columns = np.array([[x for x, _ in rows], [y for _, y in rows], [0] * len(rows), [1] * len(rows)], np.int64)
    return consolidate([Chunk.of_array(columns.reshape(4, -1))], (2, 1, 1), 0)


@pytest.mark.parametrize("seed", few_of(range(20), *range(8)))
def test_a_join_that_is_divided_again_and_again_has_the_same_pairs(
    seed: int, small_pieces: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joined_rows, "FEWEST", 1)
    numbers = random.Random(seed)

    def batches() -> list[list[tuple[int, int]]]:
        keys = numbers.choice([[1], [1, 2], range(6), range(50)])
        return [
            [(numbers.choice(keys), numbers.randrange(40)) for _ in range(numbers.choice([1, 3, 30, 80]))]
            for _ in range(numbers.randint(1, 3))
        ]

    near, far = batches(), batches()
    wanted = Counter((x, y, z) for part in near for x, y in part for other in far for w, z in other if x == w)
    waiting = [JoinedRows([sorted_rows(part) for part in near], [sorted_rows(part) for part in far])]
    found: Counter[tuple[int, ...]] = Counter()
    while waiting:
        rows = waiting.pop(numbers.randrange(len(waiting)))
        if numbers.random() < 0.5 and (part := rows.divided()) is not None:
            waiting.append(part)
        buf, head = join_kernel(
            rows.near, rows.far, 1, 2, 2, 1, 1, 1, np.array([0, 1, 3]), 0, numbers.choice([1, 7, 50]), 0, rows.state
        )
        for *row, _, diff in Chunk(head, buf).to_array().T.tolist():
            found[tuple(row)] += diff
        if not rows.state[0]:
            waiting.append(rows)
    assert found == wanted


@pytest.mark.executors("stages")
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_hubs_that_come_and_go_change_no_answer(workers: int, small_pieces: None) -> None:
    engine = make_engine(workers)
    edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
    ends = edges.select(middle="src", end="dst")
    hops = edges.join(ends, left_on="dst", right_on="middle")
    views = {
        "pairs": engine.install("pairs", hops.select("src", "end")),
        "count": engine.install("count", hops.count()),
        "by middle": engine.install("by middle", hops.count(by="dst")),
        "triangles": engine.install(
            "triangles", tk.match((edges, ("a", "b")), (edges, ("b", "c")), (edges, ("a", "c")))
        ),
        "walks": engine.install(
            "walks", tk.match((edges, ("a", "b")), (edges, ("b", "c")), (edges, ("c", "d")), find=["a", "d"]).distinct()
        ),
    }
    numbers = random.Random(workers)
    held: Counter[tuple[int, int]] = Counter()
    for hub in (None, 1, 1, 2, None, 3, 1):
        wanted: Counter[tuple[int, int]] = Counter((numbers.randrange(24), numbers.randrange(24)) for _ in range(30))
        if hub is not None:  # most edges begin or end at one node
            wanted += Counter((hub, node) for node in numbers.sample(range(40), 25))
            wanted += Counter((node, hub) for node in numbers.sample(range(40), 25))
        edges.remove(list((held - wanted).elements()))
        edges.insert(list((wanted - held).elements()))
        held = wanted
        engine.advance()
        after: dict[int, Counter[int]] = {}
        for (a, b), n in held.items():
            after.setdefault(a, Counter())[b] += n
        pairs: Counter[tuple[int, ...]] = Counter()
        middles: Counter[int] = Counter()
        triangles: Counter[tuple[int, ...]] = Counter()
        for (a, b), n in held.items():
            for c, m in after.get(b, Counter()).items():
                pairs[a, c] += n * m
                middles[b] += n * m
                if held[a, c]:
                    triangles[a, b, c] += n * m * held[a, c]
        assert Counter(views["pairs"].rows()) == pairs
        assert views["count"].rows() == [(pairs.total(),)]
        assert dict(views["by middle"].rows()) == middles
        assert Counter(views["triangles"].rows()) == triangles
        assert set(views["walks"].rows()) == {(a, d) for a, c in pairs for d in after.get(c, Counter())}
    engine.close()


@pytest.mark.executors("stages", "spark")
def test_a_key_with_all_rows_is_joined_wherever_shards_are() -> None:
    with make_engine(2) as engine:
        edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
        hops = edges.join(edges.select(middle="src", end="dst"), left_on="dst", right_on="middle")
        view = engine.install("count", hops.count(by="dst"))
        edges.insert([(0, node) for node in range(2, 102)] + [(node, 0) for node in range(2, 102)])
        engine.advance()
        assert dict(view.rows()) == {0: 10_000} | dict.fromkeys(range(2, 102), 1)
        edges.remove([(0, 2)])
        engine.advance()
        assert dict(view.rows()) == {0: 9_900} | dict.fromkeys(range(3, 102), 1)


def test_all_workers_find_the_pairs_of_one_key(executor: str) -> None:
    with make_engine(2) as engine:
        edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int}, order_by="src")
        edges.insert([(0, node) for node in range(2, 2002)] + [(node, 0) for node in range(2, 2002)])
        engine.advance()
        done: Counter[int] = Counter()
        threads = core_of(engine).coordinator.executor
        run = threads.map

        def counted(work: object, shards: int, rows: int) -> object:
            outboxes = run(work, shards, rows)  # type: ignore[arg-type]
            for worker, outbox in enumerate(outboxes):
                done[worker] += len(outbox)
            return outboxes

        threads.map = counted  # type: ignore[method-assign, assignment]
        hops = edges.join(edges.select(middle="src", end="dst"), left_on="dst", right_on="middle")
        view = engine.install("count", hops.count())
        engine.settle()
        assert view.rows() == [(2000 * 2000 + 2000,)]
        assert "whose joins all workers share" not in view.explain()
        edges.insert([(0, node) for node in range(2002, 22_002)])
        engine.advance()
        assert re.search(r"edges by \(src\): shared, there already; 9\d% of its rows are in one of 2", view.explain())
        pieces = sum(done.values())
        if executor == "threads":  # those of this process
            assert min(done[0], done[1]) > pieces // 4
