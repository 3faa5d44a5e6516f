"""PropertyGraph: nodes and edges of several kinds, each kind a table with columns of its own.

A kind is called a *label*. An edge label leads from one node label to one node label. The model is that of property graphs in SQL
(SQL/PGQ): the tables are the data, and the graph is a way to look at them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import tektite as tk
from tektite.graph.checks import check_edges, check_ends, compute, shown
from tektite.graph.graph import Graph
from tektite.graph.rows import as_table


@dataclass(frozen=True)
class NodeTable:
    """A node label: its rows, and the column that tells nodes apart."""

    rows: tk.Collection
    key: str = "id"


@dataclass(frozen=True)
class EdgeTable:
    """An edge label: its rows, the node labels that it leads from and to, and the columns with their keys."""

    rows: tk.Collection
    source: str
    target: str
    src: str = "src"
    dst: str = "dst"


class PropertyGraph:
    """A graph with labels and properties, over tables, views or queries.

    `PropertyGraph(nodes, edges)` looks at collections that are there. `PropertyGraph.create` makes tables, and then refuses
    edges that lead to what is no node. `tektite.graph.graph_table` finds patterns in it, and `graph` has one edge label for
    algorithms.

    >>> import tektite as tk
    >>> from tektite import graph
    >>> engine = tk.Engine()
    >>> social = graph.PropertyGraph.create(
    ...     engine, "social",
    ...     nodes={"Person": {"id": tk.Int, "name": tk.String}, "City": {"id": tk.Int, "name": tk.String}},
    ...     edges={"Knows": ("Person", "Person", {"since": tk.Int}), "LivesIn": ("Person", "City", {})},
    ... )
    >>> _ = social.add_nodes("Person", [(1, "ann"), (2, "bob")]), social.add_nodes("City", [(1, "Bonn")])
    >>> _ = social.add_edges("Knows", [(1, 2, 2019)]), social.add_edges("LivesIn", [(2, 1)])
    >>> social.add_edges("LivesIn", [(2, 7)])
    Traceback (most recent call last):
    tektite.errors.NotFoundError: graph 'social', LivesIn: the edge (2, 7) has dst 7, which is no City; add the node first
    >>> sorted(engine.install("degrees", graph.degree(social.graph("Knows"))).rows())
    [(1, 1), (2, 0)]
    """

    checked = False
    """Whether every edge leads from a node to a node."""
    self_loops = True

    def __init__(self, nodes: Mapping[str, NodeTable], edges: Mapping[str, EdgeTable], name: str = "graph") -> None:
        self.name, self.nodes, self.edges = name, dict(nodes), dict(edges)
        for label, node in self.nodes.items():
            node.rows.schema.index(node.key)
            if label in self.edges:
                raise tk.ConflictError(f"graph {name!r}: {label} is a label of nodes and of edges; rename one")
        for label, edge in self.edges.items():
            for end, column in ((edge.source, edge.src), (edge.target, edge.dst)):
                key = self._key_type(self.node(end))
                found = edge.rows.schema.types[edge.rows.schema.index(column)]
                if found != key:
                    raise tk.IncorrectError(
                        f"graph {name!r}: {column} of {label} is {found}, but the key of {end} is {key}"
                    )

    @staticmethod
    def _key_type(node: NodeTable) -> tk.Type:
        return node.rows.schema.types[node.rows.schema.index(node.key)]

    def __repr__(self) -> str:
        edges = (f"({edge.source})-[{label}]->({edge.target})" for label, edge in self.edges.items())
        return f"<PropertyGraph {self.name!r}: {', '.join((*self.nodes, *edges))}>"

    def node(self, label: str) -> NodeTable:
        """A node label. Raises if there is none of this name."""
        if label not in self.nodes:
            raise tk.NotFoundError(f"graph {self.name!r} has no node label {label!r}; it has {_listed(self.nodes)}")
        return self.nodes[label]

    def edge(self, label: str) -> EdgeTable:
        """An edge label. Raises if there is none of this name."""
        if label not in self.edges:
            raise tk.NotFoundError(f"graph {self.name!r} has no edge label {label!r}; it has {_listed(self.edges)}")
        return self.edges[label]

    def graph(self, label: str, *, weight: str | None = None, directed: bool = True) -> Graph:
        """The nodes and edges of one edge label, which leads from a node label to the same one, for algorithms."""
        edge = self.edge(label)
        if edge.source != edge.target:
            raise tk.IncorrectError(
                f"graph {self.name!r}: {label} leads from {edge.source} to {edge.target}, whose keys may be the same; algorithms "
                "need edges between nodes of one label"
            )
        node = self.node(edge.source)
        merge = not (self.checked and directed)
        return Graph(
            edge.rows, node.rows.select(node.key), src=edge.src, dst=edge.dst, weight=weight, directed=directed,
            merge=merge, name=f"{self.name} {label}",
        )  # fmt: skip

    # ------------------------------------------------------------------ tables of its own

    @classmethod
    def create(
        cls,
        engine: tk.Engine,
        name: str,
        nodes: Mapping[str, Mapping[str, Any]],
        edges: Mapping[str, tuple[str, str, Mapping[str, Any]]],
        *,
        self_loops: bool = False,
    ) -> Self:
        """A graph with a table for each label, called `name_label`. The first column of a node label is its key. An edge
        label is the node labels that it leads from and to, and its properties; its table has the columns `src` and `dst`
        before them.

        A node or an edge that is added again replaces the properties that it had.
        """
        made: list[tk.Table] = []

        def table(label: str, columns: dict[str, Any], key: list[str]) -> tk.Table:
            found = engine.create_table(
                f"{name}_{label}", columns, mode="upsert", primary_key=key, shard_by=key[0] if len(key) > 1 else ()
            )
            made.append(found)
            return found

        try:
            node_tables = {}
            for label, columns in nodes.items():
                if not columns:
                    raise tk.IncorrectError(f"graph {name!r}: {label} has no column that could be its key")
                key = next(iter(columns))
                node_tables[label] = NodeTable(table(label, dict(columns), [key]), key)
            edge_tables = {}
            for label, (source, target, columns) in edges.items():
                for end in (source, target):
                    if end not in node_tables:
                        raise tk.NotFoundError(
                            f"graph {name!r}: {label} leads to {end!r}, which is no node label; there are {_listed(node_tables)}"
                        )
                ends = (cls._key_type(node_tables[end]) for end in (source, target))
                all_columns = dict(zip(("src", "dst"), ends, strict=True)) | dict(columns)
                edge_tables[label] = EdgeTable(table(label, all_columns, ["src", "dst"]), source, target)
            graph = cls(node_tables, edge_tables, name)
        except BaseException:
            for left in made:
                engine.drop_table(left.name)
            raise
        graph.checked, graph.self_loops = True, self_loops
        return graph

    def add_nodes(self, label: str, rows: Any) -> int | None:
        """Add nodes of a label, or replace their properties: rows with all columns. Returns what `Table.insert` does."""
        node = self.node(label)
        return self._table(node.rows, "add_nodes").insert(as_table(rows, node.rows.schema.names, self._title(label)))

    def remove_nodes(self, label: str, rows: Any) -> int | None:
        """Take nodes away, by their keys: a list of these, or rows that have the key. One that has edges is refused. All
        edges of the label are looked at.
        """
        node = self.node(label)
        table = self._table(node.rows, "remove_nodes")
        if isinstance(rows, list) and not any(isinstance(row, tuple | list | dict) for row in rows):
            rows = {node.key: rows}
        gone = as_table(rows, [node.key], self._title(label))
        ids = gone[node.key].combine_chunks()
        for name, edge in self.edges.items():
            for end, column in ((edge.source, edge.src), (edge.target, edge.dst)):
                if end != label:
                    continue
                found = self._table(edge.rows, "remove_nodes").snapshot()
                left = found.filter(compute.is_in(found[column], value_set=ids.cast(found[column].type)))
                if left.num_rows:
                    raise tk.ConflictError(
                        f"{self._title(label)}: node {left[column][0].as_py()!r} has the edge {shown(left)} of {name}; remove "
                        "its edges first"
                    )
        return table.remove(gone)

    def add_edges(self, label: str, rows: Any) -> int | None:
        """Add edges of a label, or replace their properties: rows with src, dst and the properties. All of them or, if one
        leads to what is no node, none. Returns what `Table.insert` does.
        """
        edge = self.edge(label)
        table = self._table(edge.rows, "add_edges")
        found = as_table(rows, table.schema.names, self._title(label))
        ends = found.select([edge.src, edge.dst]).rename_columns(["src", "dst"])
        check_edges(ends, self._title(label), self._loops(edge))
        for end, column in ((edge.source, "src"), (edge.target, "dst")):
            nodes = self._table(self.node(end).rows, "add_edges")
            check_ends(ends, self._title(label), nodes, [column], end)
        return table.insert(found)

    def remove_edges(self, label: str, rows: Any) -> int | None:
        """Take edges away, by their ends: tuples (src, dst), columns or a data frame. One that is not there changes nothing."""
        edge = self.edge(label)
        table = self._table(edge.rows, "remove_edges")
        return table.remove(as_table(rows, [edge.src, edge.dst], self._title(label)))

    def _title(self, label: str) -> str:
        return f"graph {self.name!r}, {label}"

    def _loops(self, edge: EdgeTable) -> bool:
        """Whether an edge may have the same key at both ends: always, between nodes of different labels."""
        return self.self_loops or edge.source != edge.target

    def _table(self, rows: tk.Collection, verb: str) -> tk.Table:
        if not self.checked or not isinstance(rows, tk.Table):
            raise tk.UnsupportedError(
                f"{verb}: graph {self.name!r} looks at collections; write to the tables that it reads"
            )
        return rows


def _listed(labels: Iterable[str]) -> str:
    return ", ".join(labels) or "none"
