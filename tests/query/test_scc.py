"""Strongly connected components: a loop whose body holds two loops, over graphs whose edges come and go.

The outer loop keeps the edges that may lie on a cycle. Each of its rounds propagates least labels along them, drops the edges
between different labels and turns the rest around, twice.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tektite as tk
from tests.support.brute import Bag
from tests.support.executors import examples, make_engine
from tests.support.row_changes import row_changes

pytestmark = pytest.mark.executors

MOST = settings.default.max_examples if settings.default is not None else 100

Edge = tuple[int, int]


def trim(cycle: tk.Collection, edges: tk.Collection) -> tk.Collection:
    """The edges whose ends get the same least label along `cycle`, turned around."""
    nodes = edges.select(n="dst", label="dst").distinct()
    with tk.Loop("labels") as loop:
        labels = loop.variable("labels", initial=nodes)
        step = (
            labels.join(cycle, left_on="n", right_on="src")
            .select(n="dst", label="label")
            .concat(nodes)
            .min("label", by="n")
        )
        labels.set(step)
        found = loop.leave(step)
    both = edges.join(found, left_on="src", right_on="n").join(found, left_on="dst", right_on="n")
    return both.filter(tk.col("label") == tk.col("label_right")).select(src="dst", dst="src")


def components(edges: tk.Collection) -> tk.Collection:
    """The edges that lie on a cycle."""
    forward = edges.distinct()
    backward = forward.select(src="dst", dst="src")
    with tk.Loop("components") as loop:
        kept = loop.variable("kept", initial=forward)
        step = trim(trim(kept, forward), backward)
        kept.set(step)
        return loop.leave(step)


def brute_components(edges: set[Edge]) -> Bag:
    reach = set(edges)
    while True:
        more = reach | {(a, d) for a, b in reach for c, d in edges if b == c}
        if more == reach:
            return {(x, y): 1 for x, y in edges if (y, x) in reach}
        reach = more


def rings(rng: random.Random) -> tuple[int, set[Edge]]:
    """Rings of one to four nodes with a few bridges between them: several outer rounds are needed."""
    nodes = list(range(rng.randint(6, 12)))
    rng.shuffle(nodes)
    edges: set[Edge] = set()
    i = 0
    while i < len(nodes):
        ring = nodes[i : i + rng.randint(1, 4)]
        edges |= {(ring[j], ring[(j + 1) % len(ring)]) for j in range(len(ring))}
        i += len(ring)
    for _ in range(rng.randint(1, 4)):
        edges.add((rng.randrange(len(nodes)), rng.randrange(len(nodes))))
    return len(nodes), edges


def sparse(rng: random.Random) -> tuple[int, set[Edge]]:
    nodes = rng.randint(3, 7)
    return nodes, {(rng.randrange(nodes), rng.randrange(nodes)) for _ in range(rng.randint(0, 2 * nodes))}


@pytest.mark.executors(stages=["epoch by epoch-rings"])
@pytest.mark.parametrize("graph", [rings, sparse])
@pytest.mark.parametrize("together", [False, True], ids=["epoch by epoch", "several epochs at once"])
def test_components_follow_the_edges(graph: object, together: bool) -> None:
    @settings(max_examples=examples(max(MOST // 2, 5)))
    @given(seed=st.integers(0, 2**32 - 1))
    def check(seed: int) -> None:
        rng = random.Random(seed)
        nodes, edges = graph(rng)  # type: ignore[operator]
        with make_engine(workers=rng.choice([1, 2]), merging=rng.choice(["eager", "default", "lazy"])) as engine:
            source = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
            view = engine.install("components", components(source))
            changes = row_changes(view)
            said: dict[int, list[tuple[Edge, int]]] = {}
            states = []
            source.insert(sorted(edges), time=0)
            for epoch in range(6):
                states.append(set(edges))
                for _ in range(rng.randint(1, 2)):
                    if edges and rng.random() < 0.6:
                        gone = rng.choice(sorted(edges))
                        edges.discard(gone)
                        source.remove([gone], time=epoch + 1)
                    new = (rng.randrange(nodes), rng.randrange(nodes))
                    if new not in edges:
                        edges.add(new)
                        source.insert([new], time=epoch + 1)
            for stop in [rng.randint(1, 5), 6] if together else range(1, 7):
                engine.advance(stop)
                for row, time, diff in changes:
                    said.setdefault(time, []).append((row, diff))
                assert view.multiplicities() == brute_components(states[stop - 1])
            now: Bag = {}
            for epoch, state in enumerate(states):
                for row, diff in said.get(epoch, []):
                    now[row] = now.get(row, 0) + diff
                assert {row: many for row, many in now.items() if many} == brute_components(state)

    check()
