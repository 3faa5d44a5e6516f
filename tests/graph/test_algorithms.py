"""Every algorithm of `tektite.graph` follows the edges: at every epoch it is what NetworkX computes from scratch."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import networkx as nx
import pytest

import tektite as tk
from tektite import graph
from tests.support import graph_oracles
from tests.support.executors import examples, make_engine

pytestmark = pytest.mark.executors

Algorithm = Callable[[graph.Graph, tk.Table], tk.Collection]

ALGORITHMS: dict[str, Algorithm] = {
    "neighbours": lambda g, _: graph.neighbours(g),
    "degree": lambda g, _: graph.degree(g),
    "in_degree": lambda g, _: graph.degree(g, "in"),
    "reach": graph.reach,
    "reach_each": lambda g, sources: graph.reach(g, sources, each=True),
    "bfs": graph.bfs,
    "bfs_back": lambda g, sources: graph.bfs(g, sources, direction="in"),
    "k_hop": lambda g, sources: graph.k_hop(g, sources, 2),
    "sssp": graph.sssp,
    "sssp_each": lambda g, sources: graph.sssp(g, sources, each=True),
    "wcc": lambda g, _: graph.wcc(graph=g),
    "scc": lambda g, _: graph.scc(g),
    "levels": lambda g, _: graph.levels(g),
    "acyclic": lambda g, _: graph.acyclic(g),
    "k_core": lambda g, _: graph.k_core(g, 2),
    "triangles": lambda g, _: graph.triangles(g),
    "clustering": lambda g, _: graph.clustering(g),
    "label_propagation": lambda g, _: graph.label_propagation(g, rounds=3),
    "colouring": lambda g, _: graph.colouring(g),
    "maximal_matching": lambda g, _: graph.maximal_matching(g),
    "pagerank": lambda g, _: graph.pagerank(g),
    "personalised_pagerank": lambda g, sources: graph.personalised_pagerank(g, sources, tolerance=1e-3),
}
DIRECTED_ALONE = {"levels", "acyclic"}
CASES = [
    (name, kind)
    for name in ALGORITHMS
    for kind in ("directed", "undirected")
    if kind == "directed" or name not in DIRECTED_ALONE
]


class Changing:
    """A graph whose edges and sources come and go, and its copy in NetworkX."""

    def __init__(self, seed: int, engine: tk.Engine, directed: bool, weight: Any, loops: bool) -> None:
        self.rng = random.Random(seed)
        self.engine, self.directed = engine, directed
        self.graph = graph.Graph.create(engine, "g", weight=weight, directed=directed, self_loops=loops)
        self.sources = engine.create_table("sources", {"node": tk.Int}, mode="set")
        self.nodes = self.rng.randint(4, 9)
        self.edges: dict[tuple[int, int], int] = {}
        self.asked: set[int] = set()
        self.least = 0 if loops else 1

    def change(self, many: int) -> None:
        """An epoch: some edges are added, changed or removed, and a source may come or go."""
        rng = self.rng
        with self.engine.transaction():
            for _ in range(many):
                u = rng.randrange(self.nodes)
                v = (u + rng.randint(self.least, self.nodes - 1)) % self.nodes
                key = (u, v) if self.directed else (min(u, v), max(u, v))
                if key in self.edges and rng.random() < 0.7:
                    del self.edges[key]
                    self.graph.remove_edges([rng.choice([(u, v), key])])
                else:
                    self.edges[key] = rng.randint(0, 9)
                    self.graph.add_edges([(u, v, self.edges[key]) if self.graph.weighted else (u, v)])
            if rng.random() < 0.5:
                node = rng.randrange(self.nodes)
                (self.sources.remove if node in self.asked else self.sources.insert)([(node,)])
                self.asked ^= {node}

    def twin(self) -> tuple[Any, list[int]]:
        found = nx.DiGraph() if self.directed else nx.Graph()
        found.add_weighted_edges_from((u, v, weight) for (u, v), weight in sorted(self.edges.items()))
        return found, sorted(node for node in self.asked if node in found)


def rounded(rows: dict[tuple[Any, ...], int]) -> dict[tuple[Any, ...], int]:
    return {tuple(round(v, 9) if isinstance(v, float) else v for v in row): many for row, many in rows.items()}


@pytest.mark.executors(
    stages=[
        "bfs-directed",
        "levels-directed",
        "triangles-undirected",
        "k_core-undirected",
        "maximal_matching-undirected",
    ],
    spark=["clustering-undirected"],
)
@pytest.mark.parametrize(("name", "kind"), CASES, ids=lambda part: part)
def test_answer_is_that_of_networkx_at_every_epoch(name: str, kind: str) -> None:
    oracle: graph_oracles.Oracle = getattr(graph_oracles, name)
    for seed in range(examples(6)):
        with make_engine(workers=seed % 3 + 1, autocommit=True) as engine:
            weight = tk.Int if name.startswith("sssp") or seed % 2 else None
            changing = Changing(seed, engine, kind == "directed", weight, loops=seed % 3 == 2)
            if seed % 2:
                changing.change(6)  # a query may be installed on a graph that is there
            view = engine.install("view", ALGORITHMS[name](changing.graph, changing.sources))
            for epoch in range(6):
                changing.change(8 if epoch == 0 else changing.rng.randint(1, 3))
                assert rounded(view.multiplicities()) == dict.fromkeys(oracle(*changing.twin()), 1), (seed, epoch)


@pytest.mark.executors("stages")
@pytest.mark.parametrize("directed", [True, False], ids=["directed", "undirected"])
def test_parallel_edges_of_a_collection_count_once_with_the_least_weight(directed: bool) -> None:
    for seed in range(examples(6)):
        rng = random.Random(seed)
        with make_engine(workers=seed % 3 + 1) as engine:
            roads = engine.create_table("roads", {"a": tk.Int, "b": tk.Int, "km": tk.Int})
            towns = graph.Graph(roads, src="a", dst="b", weight="km", directed=directed)
            start = engine.create_table("start", {"town": tk.Int})
            views = {
                name: engine.install(name, ALGORITHMS[name](towns, start)) for name in ("degree", "sssp", "triangles")
            }
            start.insert([(0,), (0,)])
            rows: list[tuple[int | None, int | None, int]] = []
            for _ in range(4):
                for _ in range(6):
                    if rows and rng.random() < 0.3:
                        roads.remove([rows.pop(rng.randrange(len(rows)))])
                    else:
                        u, v = rng.sample(range(5), 2)
                        rows.append((u if rng.random() > 0.05 else None, v, rng.randint(1, 9)))
                        roads.insert([rows[-1]])
                engine.advance()
                twin = nx.DiGraph() if directed else nx.Graph()
                for u, v, km in sorted(((u, v, km) for u, v, km in rows if u is not None), key=lambda r: -r[2]):
                    twin.add_edge(u, v, weight=km)
                for name, view in views.items():
                    oracle: graph_oracles.Oracle = getattr(graph_oracles, name)
                    assert rounded(view.multiplicities()) == dict.fromkeys(oracle(twin, [0] if 0 in twin else []), 1)
