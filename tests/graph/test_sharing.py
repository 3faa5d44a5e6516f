"""All algorithms read two indexes of the edges: by source and by target."""

from __future__ import annotations

import pytest

import tektite as tk
from tektite import graph
from tests.support.executors import make_engine

pytestmark = pytest.mark.executors("stages")


def indexes_of_edges(engine: tk.Engine) -> dict[str, int]:
    """The arrangements of edges, with the number of their readers."""
    return {
        found.name: len(found.readers)
        for found in engine.indexes()
        if set(found.columns) >= {"src", "dst"} and found.name.split(" by ")[0] in ("roads", "edges of roads")
    }


@pytest.mark.parametrize("kind", ["a table", "a query"])
@pytest.mark.parametrize("workers", [1, 3])
def test_five_algorithms_keep_two_indexes_of_the_edges(kind: str, workers: int) -> None:
    with make_engine(workers, autocommit=True) as engine:
        if kind == "a table":
            roads = graph.Graph.create(engine, "roads", weight=tk.Int, directed=False)
            table = roads.edge_table
        else:
            table = engine.create_table("roads", {"src": tk.Int, "dst": tk.Int, "weight": tk.Int})
            roads = graph.Graph(table, weight="weight", directed=False)
        assert table is not None
        sources = engine.create_table("sources", {"node": tk.Int})
        engine.install("wcc", graph.wcc(roads))
        before = indexes_of_edges(engine)
        read = {name: readers for name, readers in before.items() if readers}
        size = len(engine.indexes())
        later = {
            "sssp": graph.sssp(roads, sources),
            "hops": graph.k_hop(roads, sources, 2, "both"),
            "ranks": graph.pagerank(roads),
            "labels": graph.label_propagation(roads),
            "colours": graph.colouring(roads),
        }
        for name, collection in later.items():
            engine.install(name, collection)
        after = indexes_of_edges(engine)
        assert list(after) == list(before)
        assert len(engine.indexes()) == size + len(later)  # what the views themselves keep
        by_target = [name for name in after if name.endswith("by (dst)")]
        assert len(by_target) == 1
        assert after[by_target[0]] == read[by_target[0]] + len(later)


def test_triangles_of_an_undirected_graph_read_the_same_two_indexes() -> None:
    with make_engine(2, autocommit=True) as engine:
        friends = graph.Graph.create(engine, "roads", directed=False)
        engine.install("wcc", graph.wcc(friends))
        before = indexes_of_edges(engine)
        view = engine.install("triangles", graph.triangles(friends))
        engine.install("clustering", graph.clustering(friends))
        assert list(indexes_of_edges(engine)) == list(before) == ["roads", "roads by (dst)"]
        friends.add_edges([(1, 2), (2, 3), (3, 1)])
        assert view.rows() == [(1, 2, 3)]
        assert "strategy hector" in view.explain()
