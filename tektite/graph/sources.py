"""Builds graphs from data frames, NetworkX, Parquet files, edge lists and Spark.

Each function creates the tables of a graph and fills them, or, if something is wrong with the data, leaves nothing behind.
The graph changes by `add_edges` and `remove_edges` from then on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import tektite as tk
from tektite.graph.checks import check_edges, check_ends, compute
from tektite.graph.graph import Graph
from tektite.graph.rows import as_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def from_frame(
    engine: tk.Engine,
    name: str,
    edges: Any,
    nodes: Any = None,
    *,
    src: str = "src",
    dst: str = "dst",
    node: str = "id",
    weight: str | None = None,
    directed: bool = True,
    self_loops: bool = False,
) -> Graph:
    """A graph from a data frame of edges, and one of nodes if there is one: pandas, Polars, Arrow, or a mapping of columns.

    Columns that are not named are left out; a property graph keeps them. Of parallel edges the last one counts.

    >>> import pandas as pd, tektite as tk
    >>> from tektite import graph
    >>> engine = tk.Engine()
    >>> frame = pd.DataFrame({"who": ["ann", "bob"], "whom": ["bob", "cid"]})
    >>> people = graph.from_frame(engine, "people", frame, src="who", dst="whom")
    >>> sorted(engine.install("degrees", graph.degree(people)).rows())
    [('ann', 1), ('bob', 1), ('cid', 0)]
    """
    columns = [src, dst, *([] if weight is None else [weight])]
    table = as_table(edges, columns, f"graph {name!r}").rename_columns(["src", "dst", "weight"][: len(columns)])
    ids = None if nodes is None else as_table(nodes, [node], f"nodes of graph {name!r}").rename_columns(["node"])
    return _filled(engine, name, table, ids, directed, self_loops)


def from_networkx(engine: tk.Engine, name: str, graph: Any, *, weight: str | None = None) -> Graph:
    """A graph with the nodes and edges of one of NetworkX's, directed or not as that is. `weight` names the attribute of
    edges that is their weight.

    Nodes are all whole numbers or all texts. A multigraph is refused: its edges have no one weight.

    >>> import networkx as nx, tektite as tk
    >>> from tektite import graph
    >>> engine = tk.Engine()
    >>> path = graph.from_networkx(engine, "path", nx.path_graph(3))
    >>> sorted(engine.install("degrees", graph.degree(path)).rows())
    [(0, 1), (1, 2), (2, 1)]
    """
    if not hasattr(graph, "is_directed") or not hasattr(graph, "is_multigraph"):
        raise tk.IncorrectError(f"graph {name!r}: from_networkx takes a graph of NetworkX, not {graph!r}")
    if graph.is_multigraph():
        raise tk.UnsupportedError(
            f"graph {name!r}: a multigraph has parallel edges; make it a nx.Graph or nx.DiGraph, which says which of them count"
        )
    nodes = list(graph.nodes)
    kinds = {type(found) for found in nodes}
    if not kinds <= {int} and not kinds <= {str}:
        raise tk.IncorrectError(
            f"graph {name!r}: nodes are all int or all str, not {', '.join(sorted(kind.__name__ for kind in kinds))}; relabel "
            "them with nx.convert_node_labels_to_integers"
        )
    ids = pa.table({"node": pa.array(nodes, pa.string() if kinds == {str} else pa.int64())})
    ends = list(graph.edges(data=weight)) if weight is not None else [(u, v, None) for u, v in graph.edges]
    columns: dict[str, Any] = {
        "src": pa.array([u for u, _, _ in ends], ids["node"].type),
        "dst": pa.array([v for _, v, _ in ends], ids["node"].type),
    }
    if weight is not None:
        columns["weight"] = [w for _, _, w in ends]
    return _filled(engine, name, pa.table(columns), ids, graph.is_directed(), self_loops=True)


def from_parquet(
    engine: tk.Engine, name: str, edges: str | Path, nodes: str | Path | None = None, **options: Any
) -> Graph:
    """A graph from Parquet files, or folders of them: one of edges, and one of nodes if there is one. Options are those of
    `from_frame`.

    >>> import tempfile, pyarrow as pa, pyarrow.parquet as pq, tektite as tk
    >>> from tektite import graph
    >>> folder = tempfile.mkdtemp()
    >>> pq.write_table(pa.table({"src": [1, 2], "dst": [2, 3], "km": [4.5, 1.0]}), f"{folder}/roads.parquet")
    >>> roads = graph.from_parquet(tk.Engine(), "roads", f"{folder}/roads.parquet", weight="km")
    >>> roads
    <Graph 'roads', directed, with weights, nodes are int>
    """
    import pyarrow.parquet as pq

    read: Any = pq.read_table
    try:
        tables = [None if path is None else read(str(path)) for path in (edges, nodes)]
    except (OSError, pa.ArrowInvalid) as error:
        raise tk.IncorrectError(f"graph {name!r}: cannot be read from Parquet: {error}") from None
    return from_frame(engine, name, tables[0], tables[1], **options)


def from_edge_list(
    engine: tk.Engine,
    name: str,
    path: str | Path,
    *,
    delimiter: str | None = None,
    comment: str = "#",
    weighted: bool = False,
    directed: bool = True,
    self_loops: bool = False,
) -> Graph:
    """A graph from a text file with an edge in each line: two nodes, and a weight if it has some. This is how SNAP and others
    publish graphs.

    Lines at the head that begin with `comment` are skipped. Without a `delimiter`, it is the tab, comma or space of the first
    edge. Nodes are whole numbers if all of them look like one, and texts otherwise.

    >>> import pathlib, tempfile, tektite as tk
    >>> from tektite import graph
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "web.txt"
    >>> _ = file.write_text("# from to\\n1\\t2\\n2\\t3\\n")
    >>> engine = tk.Engine()
    >>> web = graph.from_edge_list(engine, "web", file)
    >>> sorted(engine.install("edges", web.edges).rows())
    [(1, 2), (2, 3)]
    """
    from pyarrow import csv

    source, skipped, first = Path(path), 0, ""
    try:
        with source.open(encoding="utf-8") as lines:
            for line in lines:
                if line.strip() and not line.startswith(comment):
                    first = line.rstrip("\n")
                    break
                skipped += 1
    except OSError as error:
        raise tk.NotFoundError(f"graph {name!r}: {error}") from None
    names = ["src", "dst", *(["weight"] if weighted else [])]
    if not first:
        raise tk.IncorrectError(f"graph {name!r}: {source.name} has no edges, so that nothing says what its nodes are")
    found = delimiter or next((mark for mark in "\t, " if mark in first), "\t")
    reader: Any = csv
    try:
        table = reader.read_csv(
            str(source),
            read_options=reader.ReadOptions(column_names=names, skip_rows=skipped),
            parse_options=reader.ParseOptions(delimiter=found),
        )
    except pa.ArrowInvalid as error:
        raise tk.IncorrectError(
            f"graph {name!r}: {source.name} is no edge list of {len(names)} columns between {found!r}: {error}"
        ) from None
    if table["src"].type != table["dst"].type:
        table = table.set_column(0, "src", table["src"].cast(pa.string())).set_column(
            1, "dst", table["dst"].cast(pa.string())
        )
    return _filled(engine, name, table, None, directed, self_loops)


def from_spark(
    engine: tk.Engine,
    name: str,
    vertices: DataFrame | None,
    edges: DataFrame,
    *,
    weight: str | None = None,
    directed: bool = True,
    self_loops: bool = False,
) -> Graph:
    """A graph from Spark DataFrames as GraphFrames has them: vertices with the column `id`, and edges with `src` and `dst`.
    Spark's tasks check and encode the rows. Columns that are not named are left out.
    """
    columns = ["src", "dst", *([] if weight is None else [weight])]
    for frame, needed, what in ((vertices, ["id"], "vertices"), (edges, columns, "edges")):
        absent = [column for column in needed if frame is not None and column not in frame.columns]
        if frame is not None and absent:
            raise tk.NotFoundError(
                f"graph {name!r}: {what} have no column {absent[0]!r}; their columns are {', '.join(frame.columns)}"
            )
    wanted = edges.select("src", "dst", *([] if weight is None else [edges[weight].alias("weight")]))
    ids = None if vertices is None else vertices.select(vertices["id"].alias("node")).distinct()
    _check_on_spark(name, wanted, ids, self_loops)
    if not directed:
        from pyspark.sql import functions as f

        wanted = wanted.withColumns({"src": f.least("src", "dst"), "dst": f.greatest("src", "dst")})
    wanted = wanted.dropDuplicates(["src", "dst"])
    schema = wanted.limit(0).toArrow().schema
    with _created(engine, name, schema, vertices is not None, directed, self_loops) as graph:
        if graph.node_table is not None and ids is not None:
            graph.node_table.load(ids)
        if graph.edge_table is not None:
            graph.edge_table.load(wanted)
    return graph


def _check_on_spark(name: str, edges: DataFrame, nodes: DataFrame | None, self_loops: bool) -> None:
    """The checks of `check_edges` and `check_ends` for DataFrames. At most one offending row is fetched."""
    from pyspark.sql import functions as f

    wrong = edges["src"].isNull() | edges["dst"].isNull()
    if not self_loops:
        wrong = wrong | (edges["src"] == edges["dst"])
    if "weight" in edges.columns:
        wrong = wrong | edges["weight"].isNull() | (edges["weight"] < 0) | f.isnan(edges["weight"].cast("double"))
    check_edges(edges.filter(wrong).limit(1).toArrow(), f"graph {name!r}", self_loops)
    if nodes is None:
        return
    for column in ("src", "dst"):
        dangling = edges.join(nodes, edges[column] == nodes["node"], "left_anti").limit(1).toArrow()
        if dangling.num_rows:
            ends = nodes.filter(nodes["node"].isin(dangling["src"][0].as_py(), dangling["dst"][0].as_py()))
            check_ends(dangling, f"graph {name!r}", ends.toArrow()["node"])


def _filled(
    engine: tk.Engine, name: str, edges: pa.Table, nodes: pa.Table | None, directed: bool, self_loops: bool
) -> Graph:
    """A graph with these edges and nodes. Nothing is left behind if something is wrong with them."""
    check_edges(edges, f"graph {name!r}", self_loops)
    if nodes is not None:
        if compute.any(compute.is_null(nodes["node"])).as_py():
            raise tk.IncorrectError(f"graph {name!r}: a node is NULL; give every node an id")
        check_ends(edges, f"graph {name!r}", nodes["node"])
    with (
        _created(engine, name, edges.schema, nodes is not None, directed, self_loops) as graph,
        engine.transaction(),
    ):
        if nodes is not None:
            graph.add_nodes(nodes)
        if graph.edge_table is not None:
            graph.edge_table.insert(graph.oriented(edges))
    return graph


@contextmanager
def _created(
    engine: tk.Engine, name: str, schema: pa.Schema, nodes: bool, directed: bool, self_loops: bool
) -> Iterator[Graph]:
    """A new graph for edges of a schema. An exception in the block drops it."""
    weight = schema.field("weight").type if "weight" in schema.names else None
    graph = Graph.create(
        engine, name, schema.field("src").type, weight=weight, directed=directed, nodes=nodes, self_loops=self_loops
    )
    try:
        yield graph
    except BaseException:
        for table in (graph.edge_table, graph.node_table):
            if table is not None:
                engine.drop_table(table.name)
        raise
