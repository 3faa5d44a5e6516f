"""Questions for `tk.ArgumentQuery`: look-ups, walks and short paths for arguments that come and go."""

from __future__ import annotations

from collections.abc import Sequence

import tektite as tk
from tektite.graph.graph import Direction, Graph, takes_graph


def look_up(rows: tk.Collection, asked: tk.Collection, by: str | Sequence[str]) -> tk.Collection:
    """The rows whose columns `by` are what is asked, which come first. Of a table they are looked up in an index that all
    queries share.

    One change of a row costs a look-up among what is asked, and a new argument costs its answer.

    >>> import tektite as tk
    >>> from tektite import graph
    >>> engine = tk.Engine()
    >>> people = engine.create_table("people", {"name": tk.String, "id": tk.Int}, mode="upsert", primary_key="id")
    >>> person = graph.ArgumentQuery(engine, "person", {"id": tk.Int}, lambda asked: graph.look_up(people, asked, "id"))
    >>> _ = people.insert([("ann", 1), ("bob", 2)])
    >>> person.once(2)
    [(2, 'bob')]
    """
    keys = [by] if isinstance(by, str) else list(by)
    if len(keys) != len(asked.schema.names):
        raise tk.IncorrectError(f"look_up: {len(keys)} columns ({', '.join(keys)}) for {asked.schema}")
    renamed = asked.select(**{f"asked {at}": name for at, name in enumerate(asked.schema.names)})
    joined = renamed.join(rows, left_on=list(renamed.schema.names), right_on=keys)
    rest = [name for name in rows.schema.names if name not in keys]
    return joined.select(**{key: f"asked {at}" for at, key in enumerate(keys)}, **{name: name for name in rest})


@takes_graph
def walks(graph: Graph, asked: tk.Collection, length: int, direction: Direction = "out") -> tk.Collection:
    """(node, end): where walks of exactly `length` edges lead to from each node that is asked, as often as there are such walks.

    One change of an edge costs a look-up for each step, and the walks that it lies on. A new node costs its walks.

    >>> import tektite as tk
    >>> from tektite import graph
    >>> engine = tk.Engine()
    >>> web = graph.Graph.create(engine, "web")
    >>> neighbours = graph.ArgumentQuery(engine, "one_hop", {"node": tk.Int}, lambda asked: graph.walks(web, asked, 1))
    >>> _ = web.add_edges([(1, 2), (1, 3), (3, 4)])
    >>> sorted(neighbours.once(1))
    [(1, 2), (1, 3)]
    """
    if isinstance(length, bool) or not isinstance(length, int) or length < 1:
        raise tk.IncorrectError(f"walks: length is a number of edges from 1 on, not {length!r}")
    found = graph.checked_sources(asked, "walks").select(node="node", end="node")
    for _ in range(length):
        found = graph.step(found, "end", direction)
    return found


@takes_graph
def short_paths(graph: Graph, asked: tk.Collection, most: int = 4) -> tk.Collection:
    """(src, dst, length): the number of edges of a shortest path between the pairs of nodes that are asked, where it is at
    most `most`.

    It goes half the way from the source and half the way back from the target, so that a pair costs neighbourhoods of half as
    many steps. One change of an edge costs a look-up for each step, and the neighbourhoods that it changes.

    >>> import tektite as tk
    >>> from tektite import graph
    >>> engine = tk.Engine()
    >>> web = graph.Graph.create(engine, "web")
    >>> pair = {"src": tk.Int, "dst": tk.Int}
    >>> far = graph.ArgumentQuery(engine, "far", pair, lambda asked: graph.short_paths(web, asked))
    >>> _ = web.add_edges([(1, 2), (2, 3), (3, 4), (4, 5), (5, 6)])
    >>> far.once(1, 5), far.once(1, 6), far.once(5, 1)
    ([(1, 5, 4)], [], [])
    """
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise tk.IncorrectError(f"short_paths: most is a number of edges from 1 on, not {most!r}")
    types = asked.schema.types
    if len(types) != 2 or any(type != graph.node_type for type in types):
        raise tk.IncorrectError(f"short_paths: the arguments are pairs of {graph.node_type}, not {asked.schema}")
    pairs = asked.select(**dict(zip(("src", "dst"), asked.schema.names, strict=True))).distinct()
    there = _within(graph, pairs, "src", "out", most - most // 2)
    back = _within(graph, pairs, "dst", "in", most // 2)
    met = there.join(back, on=["src", "dst", "at"])
    length = tk.col("distance") + tk.col("distance_right")
    return met.select("src", "dst", length=length).min("length", by=["src", "dst"])


def _within(graph: Graph, pairs: tk.Collection, end: str, direction: Direction, most: int) -> tk.Collection:
    """(src, dst, at, distance): where walks of up to some steps lead to from one end of each pair."""
    steps = [pairs.select("src", "dst", at=end, distance=tk.lit(0))]
    for far in range(1, most + 1):
        # A row counts the walks to it. Two steps have at most as many as a node has neighbours; more would multiply.
        before = steps[-1].distinct() if far > 2 else steps[-1]
        moved = graph.step(before, "at", direction)
        steps.append(moved.select("src", "dst", "at", distance=tk.lit(far)))
    return steps[0].concat(*steps[1:])
