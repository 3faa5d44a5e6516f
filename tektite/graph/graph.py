"""Graph: edges and nodes as collections, in the form that algorithms ask for.

A graph promises to algorithms:

* `edges` has the columns `src` and `dst`, and `weight` if the graph has weights. No two edges have the same ends.
* Each edge of an undirected graph is there once, in one of its directions.
* `nodes` has the column `node`, each node once, and among them the ends of all edges.

An algorithm that joins `edges` by `src` or by `dst` finds an index for either, which all queries share.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Literal, Self, TypeVar, cast

import pyarrow as pa

import tektite as tk
from tektite.graph.checks import check_edges, check_ends, compute, shown
from tektite.graph.rows import as_table

Direction = Literal["out", "in", "both"]
F = TypeVar("F", bound=Callable[..., Any])


def takes_graph(function: F) -> F:
    """Lets an algorithm say what a graph is, if it gets something else.

    >>> import tektite as tk
    >>> from tektite import graph
    >>> graph.wcc(tk.Engine().create_table("edges", {"src": int, "dst": int}))
    Traceback (most recent call last):
    tektite.errors.IncorrectError: wcc takes a graph, not Table: write wcc(graph.Graph(edges))
    """

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        given = args[0] if args else options.get("graph")
        if not isinstance(given, Graph):
            kind, name = type(given).__name__, function.__name__
            raise tk.IncorrectError(f"{name} takes a graph, not {kind}: write {name}(graph.Graph(edges))")
        return function(*args, **options)

    return cast(F, call)


class Graph:
    """A graph whose edges are a collection.

    `Graph(edges)` takes any collection: a table, a view, a query. `src` and `dst` name the columns of an edge's ends, and
    `weight` that of its weight. Without `nodes` (a collection whose first column is the node), the nodes are the ends of
    edges. Parallel edges count as one, the one with the least weight. `merge=False` says that there are none (and that an
    undirected graph has each edge in one direction), so that no index is needed to find out: queries then read the table's
    own. `Graph.create` makes the tables as well, and then `add_edges` refuses edges that no graph has.

    >>> import tektite as tk
    >>> from tektite import graph
    >>> engine = tk.Engine()
    >>> knows = engine.create_table("knows", {"who": tk.String, "whom": tk.String}, mode="set")
    >>> people = graph.Graph(knows, src="who", dst="whom", directed=False)
    >>> groups = engine.install("groups", graph.wcc(people))
    >>> _ = knows.insert([("ann", "bob"), ("bob", "ann"), ("bob", "cid"), ("dan", "eve")])
    >>> sorted(groups.rows())
    [('ann', 'ann'), ('bob', 'ann'), ('cid', 'ann'), ('dan', 'dan'), ('eve', 'dan')]
    """

    name: str
    edge_table: tk.Table | None = None
    """The table of edges that `Graph.create` has made."""
    node_table: tk.Table | None = None
    """The table of nodes that `Graph.create` has made, if it was asked for one."""
    self_loops = True

    def __init__(
        self,
        edges: tk.Collection,
        nodes: tk.Collection | None = None,
        *,
        src: str = "src",
        dst: str = "dst",
        weight: str | None = None,
        directed: bool = True,
        merge: bool = True,
        name: str | None = None,
    ) -> None:
        for given in (edges, nodes):
            if given is not None and not isinstance(given, tk.Collection):
                raise tk.IncorrectError(
                    f"a graph is made of collections, not of {given!r}; see tektite.graph.from_frame"
                )
        types = [edges.schema.types[edges.schema.index(column)] for column in (src, dst)]
        if types[0] != types[1]:
            raise tk.IncorrectError(f"edges: {src} is {types[0]} and {dst} is {types[1]}; nodes are of one type")
        if weight is not None:
            kind = edges.schema.types[edges.schema.index(weight)]
            if not _is_number(kind):
                raise tk.IncorrectError(f"edges: a weight is a number; {weight} is {kind}")
        self.name = name or (edges.name if isinstance(edges, tk.Table | tk.View) else "graph")
        self.directed = directed
        self.weighted = weight is not None
        self.node_type: tk.Type = types[0]
        found = _canonical(edges, src, dst, weight, directed, merge)
        if merge or not isinstance(edges, tk.Table | tk.View):
            # Without the index, every query would merge parallel edges for itself. A table or a view has one already.
            found = found.index_by("src", title=f"edges of {self.name}")
        self.edges = found
        self._set_nodes(nodes)

    def _set_nodes(self, nodes: tk.Collection | None) -> None:
        if nodes is None:
            ends = self.edges.select(node="src").concat(self.edges.select(node="dst")).distinct()
            self.nodes = ends.index_by("node", title=f"nodes of {self.name}")
            return
        found = nodes.schema.types[0]
        if found != self.node_type:
            raise tk.IncorrectError(f"nodes are {found}, but the ends of edges are {self.node_type}")
        self.nodes = nodes.select(node=nodes.schema.names[0]).distinct()

    def __repr__(self) -> str:
        kind = "directed" if self.directed else "undirected"
        return f"<Graph {self.name!r}, {kind}{', with weights' if self.weighted else ''}, nodes are {self.node_type}>"

    # ------------------------------------------------------------------ tables of its own

    @classmethod
    def create(
        cls,
        engine: tk.Engine,
        name: str,
        node: Any = tk.Int,
        *,
        weight: Any = None,
        directed: bool = True,
        nodes: bool = False,
        self_loops: bool = False,
        if_exists: Literal["error", "keep", "replace"] = "error",
    ) -> Self:
        """A graph with a table of edges, called `name`; and with a table of nodes, `name_nodes`, if `nodes` is true: then an edge
        to what is no node is refused.

        An edge that is added again changes its weight. `if_exists` is as for `Engine.create_table`.

        >>> import tektite as tk
        >>> from tektite.graph import Graph
        >>> engine = tk.Engine()
        >>> roads = Graph.create(engine, "roads", tk.String, weight=tk.Int, directed=False, nodes=True)
        >>> _ = roads.add_nodes(["Bonn", "Trier"])
        >>> _ = roads.add_edges([("Bonn", "Trier", 145)])
        >>> roads.add_edges([("Bonn", "Berlin", 600)])
        Traceback (most recent call last):
        tektite.errors.NotFoundError: graph 'roads': the edge ('Bonn', 'Berlin', 600) has dst 'Berlin', which is ...
        """
        columns = {"src": node, "dst": node} | ({} if weight is None else {"weight": weight})
        ends = ["src", "dst"]
        mode: Any = "set" if weight is None else "upsert"
        keys: dict[str, Any] = {"order_by": ends} if weight is None else {"primary_key": ends}
        table = engine.create_table(
            name, columns, mode=mode, required=list(columns), shard_by="src", if_exists=if_exists, **keys
        )
        made = None
        try:
            if nodes:
                made = engine.create_table(
                    f"{name}_nodes", {"node": node}, mode="set", required=["node"], if_exists=if_exists
                )
            graph = cls(table, made, weight=None if weight is None else "weight", merge=False, name=name)
        except tk.TektiteError:
            for left in (table, made):
                if left is not None and if_exists == "error":
                    engine.drop_table(left.name)
            raise
        graph.directed, graph.self_loops = directed, self_loops
        graph.edge_table, graph.node_table = table, made
        return graph

    def add_edges(self, edges: Any) -> int | None:
        """Add edges: tuples (src, dst) or (src, dst, weight), columns or a data frame. All of them or, if one is wrong, none.
        Returns what `Table.insert` does.

        Nodes that they lead to must be committed, or be added in the same transaction.
        """
        table = self._edge_table("add_edges")
        rows = as_table(edges, table.schema.names, f"graph {self.name!r}")
        check_edges(rows, f"graph {self.name!r}", self.self_loops)
        if self.node_table is not None:
            check_ends(rows, f"graph {self.name!r}", self.node_table)
        return table.insert(self.oriented(rows))

    def remove_edges(self, edges: Any) -> int | None:
        """Take edges away, by their ends: tuples (src, dst), columns or a data frame. One that is not there changes nothing."""
        table = self._edge_table("remove_edges")
        rows = as_table(edges, ["src", "dst"], f"graph {self.name!r}")
        check_edges(rows, f"graph {self.name!r}", self_loops=True)
        return table.remove(self.oriented(rows))

    def add_nodes(self, nodes: Any) -> int | None:
        """Add nodes: a list of them, an array, or a data frame with the column `node`."""
        return self._node_table("add_nodes").insert(self._nodes(nodes))

    def remove_nodes(self, nodes: Any) -> int | None:
        """Take nodes away. One that has edges is refused; remove these first. All edges are looked at."""
        table, rows = self._node_table("remove_nodes"), self._nodes(nodes)
        edges = self._edge_table("remove_nodes").snapshot()
        ids = rows["node"].combine_chunks()
        for column in ("src", "dst"):
            try:
                left = edges.filter(compute.is_in(edges[column], value_set=ids.cast(edges[column].type)))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                break  # other types: the table says so
            if left.num_rows:
                raise tk.ConflictError(
                    f"graph {self.name!r}: node {left[column][0].as_py()!r} has the edge {shown(left)}; remove its edges first"
                )
        return table.remove(rows)

    def _nodes(self, nodes: Any) -> pa.Table:
        if isinstance(nodes, list | tuple | set | frozenset | range):
            nodes = {"node": list(nodes)}
        elif getattr(nodes, "ndim", None) == 1:
            nodes = {"node": nodes}
        return as_table(nodes, ["node"], f"graph {self.name!r}")

    def oriented(self, edges: pa.Table) -> pa.Table:
        """Edges of an undirected graph from the lesser end to the greater."""
        if self.directed or not edges.num_rows:
            return edges
        src, dst = edges["src"], edges["dst"]
        turned = compute.greater(src, dst)
        ends = [compute.if_else(turned, dst, src), compute.if_else(turned, src, dst)]
        return edges.set_column(0, "src", ends[0]).set_column(1, "dst", ends[1])

    def _edge_table(self, verb: str) -> tk.Table:
        if self.edge_table is None:
            raise tk.UnsupportedError(f"{verb}: graph {self.name!r} is a query; write to the tables that it reads")
        return self.edge_table

    def _node_table(self, verb: str) -> tk.Table:
        if self.node_table is None:
            raise tk.UnsupportedError(
                f"{verb}: the nodes of graph {self.name!r} are the ends of its edges; create it with nodes=True"
            )
        return self.node_table

    # ------------------------------------------------------------------ steps along edges

    def step(
        self, rows: tk.Collection, column: str = "node", direction: Direction = "out", weight: bool = False
    ) -> tk.Collection:
        """Rows with a node in some column, moved to each neighbour of it; with `weight`, the edge's weight is a column behind
        them.

        `direction` is along edges (out), against them (in) or both; in an undirected graph it is always both. A loop from a
        node to itself is one step.

        >>> import tektite as tk
        >>> from tektite.graph import Graph
        >>> engine = tk.Engine()
        >>> web = Graph.create(engine, "web")
        >>> start = engine.create_table("start", {"node": tk.Int})
        >>> view = engine.install("two", web.step(web.step(start)))
        >>> _ = start.insert([(1,)]), web.add_edges([(1, 2), (2, 3), (2, 4)])
        >>> sorted(view.rows())
        [(3,), (4,)]
        """
        if not self.directed:
            direction = "both"
        kept = [name for name in rows.schema.names if name != column]
        if weight and not self.weighted:
            raise tk.IncorrectError(f"step: graph {self.name!r} has no weights")
        extra = ["weight"] if weight else []
        if "weight" in rows.schema.names and weight:
            raise tk.IncorrectError("step: the rows have a column 'weight' already; rename it")
        # The rows may have columns src and dst themselves.
        renamed = {"edge src": "src", "edge dst": "dst", **{name: name for name in extra}}
        moved = []
        if direction in ("out", "both"):
            joined = rows.join(self.edges.select(**renamed), left_on=column, right_on="edge src")
            moved.append(joined.select(*kept, *extra, **{column: "edge dst"}))
        if direction in ("in", "both"):
            # A loop is the same step in both directions.
            twice = direction == "both" and self.self_loops
            edges = self.edges.filter(tk.col("src") != tk.col("dst")) if twice else self.edges
            joined = rows.join(edges.select(**renamed), left_on=column, right_on="edge dst")
            moved.append(joined.select(*kept, *extra, **{column: "edge src"}))
        if not moved:
            raise tk.IncorrectError(f"direction is out, in or both, not {direction!r}")
        names = [*rows.schema.names, *extra]
        return moved[0].concat(*moved[1:]).select(names)

    def checked_sources(self, sources: tk.Collection, verb: str) -> tk.Collection:
        """Sources as a set of nodes in the column `node`. Raises if they are not of the graph's type."""
        if not isinstance(sources, tk.Collection):
            raise tk.IncorrectError(f"{verb}: sources are a collection of nodes, such as a table, not {sources!r}")
        found = sources.schema.types[0]
        if found != self.node_type:
            raise tk.IncorrectError(
                f"{verb}: the sources' column {sources.schema.names[0]!r} is {found}, but nodes of {self.name!r} are "
                f"{self.node_type}"
            )
        return sources.select(node=sources.schema.names[0]).distinct()


def _canonical(
    edges: tk.Collection, src: str, dst: str, weight: str | None, directed: bool, merge: bool
) -> tk.Collection:
    """Edges with the columns src, dst and weight; each once."""
    if directed or not merge:
        ends: dict[str, Any] = {"src": src, "dst": dst}
    else:
        low, high = tk.least(tk.col(src), tk.col(dst)), tk.greatest(tk.col(src), tk.col(dst))
        ends = {"src": low, "dst": high}
    if weight is not None:
        ends["weight"] = weight
    if not merge:
        return edges.select(**ends)
    # NULL is no node: the lesser of NULL and a node would be the node.
    edges = edges.drop_nulls([name for name in (src, dst, weight) if name is not None]).select(**ends)
    return edges.distinct() if weight is None else edges.min("weight", by=["src", "dst"])


def _is_number(type: tk.Type) -> bool:
    return type in (tk.Int, tk.Float) or str(type).startswith("decimal")
