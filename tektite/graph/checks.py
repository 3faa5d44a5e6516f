"""Checks edges and nodes before anything is written. Every error names the graph and a wrong row, and says what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import tektite as tk

compute: Any = pc
"""Its functions are made at run time, so that type checkers do not know them."""

Ids = Any
"""Nodes as an Arrow array, in one chunk or in several."""

LOOK_UPS = 64
"""Up to so many ids are looked up one by one; for more, all nodes are read once."""


def check_edges(edges: pa.Table, title: str, self_loops: bool) -> None:
    """Raise for an edge without an end, for a loop from a node to itself, and for a weight that is negative or missing."""
    for column in edges.column_names:
        missing = edges.filter(compute.is_null(edges[column], nan_is_null=True))
        if missing.num_rows:
            raise tk.IncorrectError(
                f"{title}: the edge {shown(missing)} has no {column}; give every edge both ends"
                f"{' and a weight' if 'weight' in edges.column_names else ''}"
            )
    if not edges.num_rows:
        return
    if not self_loops:
        src, dst = edges["src"], edges["dst"]
        if src.type != dst.type and not (pa.types.is_integer(src.type) and pa.types.is_integer(dst.type)):
            raise tk.IncorrectError(f"{title}: src is {src.type} and dst is {dst.type}; nodes are of one type")
        loops = edges.filter(compute.equal(src, dst))
        if loops.num_rows:
            raise tk.IncorrectError(
                f"{title}: the edge {shown(loops)} leads from a node to itself; leave it out, or create the graph "
                "with self_loops=True"
            )
    if "weight" in edges.column_names:
        try:
            negative = edges.filter(compute.less(edges["weight"], 0))
        except pa.ArrowNotImplementedError:
            raise tk.IncorrectError(f"{title}: a weight is a number, not {edges['weight'].type}") from None
        if negative.num_rows:
            raise tk.IncorrectError(f"{title}: the edge {shown(negative)} has a negative weight; weights are 0 or more")


def check_ends(
    edges: pa.Table, title: str, nodes: tk.Table | Ids, ends: Sequence[str] = ("src", "dst"), label: str = "node"
) -> None:
    """Raise if an edge begins or ends at what is no node. `nodes` is a table whose key is the node, or all nodes; they are called
    `label` in errors.
    """
    for column in ends:
        absent = absent_ids(compute.unique(edges[column]), nodes)
        if len(absent):
            dangling = edges.filter(compute.is_in(edges[column], value_set=absent))
            raise tk.NotFoundError(
                f"{title}: the edge {shown(dangling)} has {column} {absent[0].as_py()!r}, which is no {label}"
                f"{f' ({len(absent)} such ids in all)' if len(absent) > 1 else ''}; add the node first"
            )


def absent_ids(ids: Ids, nodes: tk.Table | Ids) -> Ids:
    """Those ids that are no nodes."""
    if isinstance(nodes, tk.Table) and len(ids) <= LOOK_UPS:
        found = [bool(nodes.lookup(id)) for id in ids.to_pylist()]
        return ids.filter(compute.invert(pa.array(found, pa.bool_())))
    known = nodes.snapshot()[nodes.schema.names[0]] if isinstance(nodes, tk.Table) else nodes
    values = known.combine_chunks() if isinstance(known, pa.ChunkedArray) else known
    if values.type != ids.type:
        try:
            ids = ids.cast(values.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return ids
    return ids.filter(compute.invert(compute.is_in(ids, value_set=values)))


def shown(rows: pa.Table) -> tuple[Any, ...]:
    """The first of some rows, as a tuple."""
    return tuple(column[0].as_py() for column in rows.columns)
