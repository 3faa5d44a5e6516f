"""Edges, nodes and requests that no graph takes: the error says which and why, and nothing has changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tektite as tk
from tektite import graph


@pytest.fixture
def engine() -> Iterator[tk.Engine]:
    with tk.Engine() as made:
        yield made


@pytest.fixture
def roads(engine: tk.Engine) -> graph.Graph:
    made = graph.Graph.create(engine, "roads", weight=tk.Int, nodes=True)
    made.add_nodes([1, 2, 3])
    made.add_edges([(1, 2, 5)])
    return made


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        ([(1, 3, 1), (1, 7, 2)], tk.NotFoundError, r"edge \(1, 7, 2\) has dst 7, which is no node; add the node first"),
        ([(1, 3, 1), (8, 9, 2), (9, 1, 2)], tk.NotFoundError, r"src 8, which is no node \(2 such ids in all\)"),
        ([(1, 3, -4)], tk.IncorrectError, r"edge \(1, 3, -4\) has a negative weight; weights are 0 or more"),
        ([(3, 3, 1)], tk.IncorrectError, r"edge \(3, 3, 1\) leads from a node to itself; leave it out, or create"),
        ([(1, None, 1)], tk.IncorrectError, r"edge \(1, None, 1\) has no dst; give every edge both ends and a weight"),
        ([(1, 2, None)], tk.IncorrectError, r"has no weight"),
        ([(1, 2)], tk.IncorrectError, r"a row is 3 values \(src, dst, weight\), not \(1, 2\)"),
        ([(1, 2, "far")], tk.IncorrectError, r"a weight is a number, not string"),
        ([("a", "b", 1)], tk.IncorrectError, r"expected int, found 'a'"),
        ({"src": [1], "dst": [2]}, tk.NotFoundError, r"there is no column 'weight'; the columns are src, dst"),
        ("1-2", tk.IncorrectError, r"rows are tuples, columns or a data frame, not '1-2'"),
    ],
)
def test_wrong_edges_change_nothing(
    engine: tk.Engine, roads: graph.Graph, rows: Any, error: type[Exception], message: str
) -> None:
    time = engine.next_epoch
    with pytest.raises(error, match=message):
        roads.add_edges(rows)
    assert roads.edge_table is not None and roads.edge_table.rows() == [(1, 2, 5)]
    assert engine.next_epoch == time


def test_dangling_edges_are_found_among_many(roads: graph.Graph) -> None:
    roads.add_nodes(range(1000))
    fine = [(n, n + 1, 1) for n in range(500)]
    roads.add_edges(fine)
    with pytest.raises(tk.NotFoundError, match=r"dst 1000, which is no node"):
        roads.add_edges([(n, n + 2, 1) for n in range(999)])
    assert roads.edge_table is not None and len(roads.edge_table) == 500


def test_nodes_and_edges_may_come_in_one_transaction(engine: tk.Engine, roads: graph.Graph) -> None:
    with engine.transaction():
        roads.add_nodes([10])
        roads.add_edges([(10, 1, 1)])
    assert roads.edge_table is not None and sorted(roads.edge_table.rows()) == [(1, 2, 5), (10, 1, 1)]


def test_nodes_with_edges_stay(roads: graph.Graph) -> None:
    for node in (1, 2):
        with pytest.raises(tk.ConflictError, match=rf"node {node} has the edge \(1, 2, 5\); remove its edges first"):
            roads.remove_nodes([3, node])
    roads.remove_edges([(1, 2)])
    roads.remove_nodes([1, 3])
    assert roads.node_table is not None and roads.node_table.rows() == [(2,)]


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda g, _: graph.k_core(g, 0), r"k_core: k is a number of edges from 1 on, not 0"),
        (lambda g, s: graph.k_hop(g, s, -1), r"k_hop: k is a number of edges from 0 on, not -1"),
        (lambda g, s: graph.k_hop(g, s, True), r"not True"),
        (lambda g, _: graph.pagerank(g, damping=1.0), r"damping is a number from 0 to less than 1, not 1.0"),
        (lambda g, _: graph.pagerank(g, tolerance=0), r"tolerance is a number from 1e-9 to 0.1, not 0"),
        (lambda g, _: graph.label_propagation(g, 0), r"rounds is a number from 1 on, not 0"),
        (lambda g, _: graph.degree(g, "up"), r"direction is out, in or both, not 'up'"),  # type: ignore[arg-type]
        (lambda g, s: graph.bfs(g, s, direction="up"), r"direction is out, in or both"),  # type: ignore[arg-type]
        (lambda g, _: graph.bfs(g, [1]), r"bfs: sources are a collection of nodes"),  # type: ignore[arg-type]
        (
            lambda g, _: graph.reach(g, g.edges.select(a=tk.lit("x"))),
            r"column 'a' is string, but nodes of 'web' are int",
        ),
        (lambda g, s: graph.sssp(g, s), r"graph 'web' has no weights; name their column with weight=, or use bfs"),
        (
            lambda g, _: g.add_nodes([1]),
            r"the nodes of graph 'web' are the ends of its edges; create it with nodes=True",
        ),
        (lambda g, _: graph.Graph(g.edges).add_edges([(1, 2)]), r"is a query; write to the tables that it reads"),
        (lambda g, _: graph.Graph([(1, 2)]), r"see tektite.graph.from_frame"),  # type: ignore[arg-type]
        (lambda g, _: graph.Graph(g.edges, src="from"), r"from"),
        (
            lambda g, _: graph.Graph(g.edges.select("src", dst=tk.lit("x"))),
            r"src is int and dst is string; nodes are of one",
        ),
        (
            lambda g, _: graph.Graph(g.edges, g.edges.select(n=tk.lit("x"))),
            r"nodes are string, but the ends of edges are int",
        ),
        (
            lambda g, _: graph.Graph(g.edges.with_columns(w=tk.lit("far")), weight="w"),
            r"a weight is a number; w is string",
        ),
    ],
)
def test_wrong_requests_are_refused(
    engine: tk.Engine, ask: Callable[[graph.Graph, tk.Table], Any], message: str
) -> None:
    web = graph.Graph.create(engine, "web")
    sources = engine.create_table("sources", {"node": tk.Int})
    with pytest.raises(tk.TektiteError, match=message):
        ask(web, sources)


def test_levels_need_directions(engine: tk.Engine) -> None:
    friends = graph.Graph.create(engine, "friends", directed=False)
    for verb in (graph.levels, graph.acyclic):
        with pytest.raises(tk.IncorrectError, match="'friends' is undirected"):
            verb(friends)


def test_negative_weight_of_a_collection_is_an_error_while_it_is_there(engine: tk.Engine) -> None:
    table = engine.create_table("roads", {"a": tk.Int, "b": tk.Int, "km": tk.Int})
    start = engine.create_table("start", {"node": tk.Int})
    view = engine.install("far", graph.sssp(graph.Graph(table, src="a", dst="b", weight="km"), start))
    table.insert([(1, 2, 3), (2, 3, -4)])
    start.insert([(1,)])
    with pytest.raises(tk.TektiteError, match="negative weight"):
        view.rows()
    table.remove([(2, 3, -4)])
    assert sorted(view.rows()) == [(1, 0), (2, 3)]


def test_a_graph_that_cannot_be_created_leaves_no_table(engine: tk.Engine) -> None:
    engine.create_table("web_nodes", {"x": tk.Int})
    with pytest.raises(tk.ConflictError, match="web_nodes"):
        graph.Graph.create(engine, "web", nodes=True)
    with pytest.raises(tk.IncorrectError, match="a weight is a number; weight is string"):
        graph.Graph.create(engine, "streets", weight=tk.String)
    assert engine.tables == ("web_nodes",)


def test_a_pattern_in_a_graph_without_labels_says_what_has_them(roads: graph.Graph) -> None:
    with pytest.raises(tk.IncorrectError, match="in a PropertyGraph, which has labels; found Graph: PropertyGraph"):
        graph.graph_table(roads, "MATCH (a)->(b) COLUMNS (a.id)")  # type: ignore[arg-type]
