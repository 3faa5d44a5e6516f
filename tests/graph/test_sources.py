"""Graphs from data frames, NetworkX, Parquet, edge lists and Spark: all rows, or an error and nothing left behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tektite as tk
from tektite import graph

ROADS = {"a": ["Bonn", "Trier"], "b": ["Trier", "Ulm"], "km": [145, 400], "name": ["x", "y"]}
TOWNS = {"id": ["Bonn", "Trier", "Ulm", "Wesel"]}


@pytest.fixture
def engine() -> Iterator[tk.Engine]:
    with tk.Engine(2) as made:
        yield made


def edges(found: graph.Graph) -> list[tuple[Any, ...]]:
    assert found.edge_table is not None
    return sorted(found.edge_table.rows())


def nodes(found: graph.Graph) -> list[Any]:
    return sorted(found.nodes.collect().column("node").to_pylist())


@pytest.mark.parametrize("form", [dict, pa.table, pd.DataFrame])
def test_frames_of_any_kind(engine: tk.Engine, form: Any) -> None:
    roads = graph.from_frame(engine, "roads", form(ROADS), form(TOWNS), src="a", dst="b", weight="km", directed=False)
    assert edges(roads) == [("Bonn", "Trier", 145), ("Trier", "Ulm", 400)]
    assert nodes(roads) == ["Bonn", "Trier", "Ulm", "Wesel"]
    roads.add_edges(form({"src": ["Wesel"], "dst": ["Bonn"], "weight": [130]}))
    assert edges(roads) == [("Bonn", "Trier", 145), ("Bonn", "Wesel", 130), ("Trier", "Ulm", 400)]


def test_arrays_and_dicts(engine: tk.Engine) -> None:
    web = graph.from_frame(engine, "web", np.array([[1, 2], [2, 3]]))
    web.add_edges([{"src": 3, "dst": 4}])
    web.remove_edges(np.array([[1, 2]]))
    assert edges(web) == [(2, 3), (3, 4)]


def test_views_of_another_engine(engine: tk.Engine) -> None:
    with tk.Engine() as other:
        table = other.create_table("t", {"src": tk.Int, "dst": tk.Int})
        table.insert([(1, 2)])
        assert edges(graph.from_frame(engine, "web", table)) == [(1, 2)]


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph])
def test_networkx(engine: tk.Engine, kind: Any) -> None:
    source = kind([(2, 1, {"km": 3}), (1, 3, {"km": 4})])
    source.add_node(9)
    roads = graph.from_networkx(engine, "roads", source, weight="km")
    assert roads.directed == source.is_directed()
    assert edges(roads) == ([(1, 3, 4), (2, 1, 3)] if roads.directed else [(1, 2, 3), (1, 3, 4)])
    assert nodes(roads) == [1, 2, 3, 9]


def test_an_empty_graph_of_networkx(engine: tk.Engine) -> None:
    assert edges(graph.from_networkx(engine, "nothing", nx.Graph())) == []


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (nx.MultiGraph([(1, 2)]), r"a multigraph has parallel edges"),
        (nx.Graph([(1, "a")]), r"nodes are all int or all str, not int, str"),
        (nx.Graph([((1, 2), (3, 4))]), r"not tuple"),
        ([(1, 2)], r"takes a graph of NetworkX"),
    ],
)
def test_graphs_of_networkx_that_are_refused(engine: tk.Engine, source: Any, message: str) -> None:
    with pytest.raises(tk.TektiteError, match=message):
        graph.from_networkx(engine, "g", source)
    assert engine.tables == ()


def test_missing_weight_of_networkx(engine: tk.Engine) -> None:
    with pytest.raises(tk.IncorrectError, match=r"has no weight"):
        graph.from_networkx(engine, "g", nx.Graph([(1, 2, {"km": 3}), (2, 3)]), weight="km")
    assert engine.tables == ()


def test_parquet(engine: tk.Engine, tmp_path: Path) -> None:
    pq.write_table(pa.table(ROADS), tmp_path / "roads.parquet")
    pq.write_table(pa.table(TOWNS), tmp_path / "towns.parquet")
    roads = graph.from_parquet(
        engine, "roads", tmp_path / "roads.parquet", tmp_path / "towns.parquet", src="a", dst="b"
    )
    assert edges(roads) == [("Bonn", "Trier"), ("Trier", "Ulm")]
    assert "Wesel" in nodes(roads)
    with pytest.raises(tk.IncorrectError, match="cannot be read from Parquet"):
        graph.from_parquet(engine, "other", tmp_path / "nothing.parquet")


@pytest.mark.parametrize(
    ("text", "options", "found"),
    [
        ("# a comment\n# another\n1\t2\n3\t4\n", {}, [(1, 2), (3, 4)]),
        ("1 2\n2 1\n", {"directed": False}, [(1, 2)]),
        ("a,b,2.5\n", {"weighted": True}, [("a", "b", 2.5)]),
        ("1;x\n", {"delimiter": ";"}, [("1", "x")]),
        ("% c\n1 1\n", {"comment": "%", "self_loops": True}, [(1, 1)]),
    ],
)
def test_edge_lists(engine: tk.Engine, tmp_path: Path, text: str, options: dict[str, Any], found: Any) -> None:
    (tmp_path / "edges.txt").write_text(text)
    assert edges(graph.from_edge_list(engine, "web", tmp_path / "edges.txt", **options)) == found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\t2\n3\n", r"edges.txt is no edge list of 2 columns between '\\t'"),
        ("# nothing\n", r"edges.txt has no edges"),
        ("1 1\n", r"edge \(1, 1\) leads from a node to itself"),
    ],
)
def test_edge_lists_that_are_refused(engine: tk.Engine, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "edges.txt").write_text(text)
    with pytest.raises(tk.IncorrectError, match=message):
        graph.from_edge_list(engine, "web", tmp_path / "edges.txt")
    with pytest.raises(tk.NotFoundError, match="No such file"):
        graph.from_edge_list(engine, "web", tmp_path / "others.txt")
    assert engine.tables == ()


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"src": [1, 1], "dst": [2, 9]}, r"edge \(1, 9\) has dst 9, which is no node"),
        ({"src": [1], "dst": [1]}, r"leads from a node to itself"),
        ({"src": [1], "dst": ["2"]}, r"src is int64 and dst is string; nodes are of one type"),
        ({"source": [1], "dst": [2]}, r"there is no column 'src'; the columns are source, dst"),
    ],
)
def test_frames_that_are_refused_leave_nothing(engine: tk.Engine, frame: Any, message: str) -> None:
    with pytest.raises(tk.TektiteError, match=message):
        graph.from_frame(engine, "web", frame, {"id": [1, 2]})
    assert engine.tables == ()


@pytest.mark.spark
def test_frames_of_spark(spark: Any, tmp_path: Path) -> None:
    vertices = spark.createDataFrame([("a", 30), ("b", 40), ("c", 50)], "id string, age int")
    links = spark.createDataFrame([("a", "b", 3), ("c", "b", 4), ("b", "c", 4)], "src string, dst string, km int")
    with tk.Engine(2, spark=spark, storage=tmp_path) as engine:
        roads = graph.from_spark(engine, "roads", vertices, links, weight="km", directed=False)
        assert edges(roads) == [("a", "b", 3), ("b", "c", 4)]
        assert nodes(roads) == ["a", "b", "c"]
        far = engine.install("far", graph.sssp(roads, roads.nodes.filter(node="a")))
        assert sorted(far.rows()) == [("a", 0), ("b", 3), ("c", 7)]
        for rows, message in [
            ([("a", "x", 1)], r"edge \('a', 'x', 1\) has dst 'x', which is no node"),
            ([("y", "a", 1)], r"has src 'y'"),
            ([("a", "a", 1)], r"leads from a node to itself"),
            ([("a", "b", -1)], r"negative weight"),
            ([(None, "b", 1)], r"has no src"),
        ]:
            wrong = spark.createDataFrame(rows, "src string, dst string, km int")
            with pytest.raises(tk.TektiteError, match=message):
                graph.from_spark(engine, "wrong", vertices, wrong, weight="km")
        with pytest.raises(tk.NotFoundError, match="edges have no column 'm'"):
            graph.from_spark(engine, "wrong", vertices, links, weight="m")
        assert engine.tables == ("roads", "roads_nodes")
