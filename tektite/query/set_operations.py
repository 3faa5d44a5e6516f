"""Rows of two collections compared with each other: INTERSECT and EXCEPT.

Rows are compared as groups are, NULL with NULL.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tektite.errors import IncorrectError
from tektite.expr import Expr, col, greatest, least, lit
from tektite.query.aggregates import ColumnAggregate
from tektite.query.builders import inner_join, project
from tektite.query.collection import Collection
from tektite.query.column_aggregates import column_aggregates
from tektite.query.columns import is_shown_apart
from tektite.query.derived import check_collection, subtracted
from tektite.query.grouped import with_shown_keys
from tektite.values.schema import Schema


def compare(left: Collection, right: Collection, kind: str, every: bool) -> Collection:
    """`kind` is intersect or except. With `every`, multiplicities are subtracted or the lesser taken. Columns go by position, and
    both sides have the same names.
    """
    names = left.schema.names
    keys = tuple(range(len(names)))
    if not every:
        mine, theirs = left.distinct(), right.distinct()
        common = inner_join(mine, theirs, keys, keys, nulls_match=True)
        return common if kind == "intersect" else subtracted(common, mine)
    one = left.with_columns(**{"#left": lit(1), "#right": lit(0)})
    other = right.with_columns(**{"#left": lit(0), "#right": lit(1)})
    both = one.concat(other)
    sums = {name: ColumnAggregate("sum", name) for name in ("#left", "#right")}
    counted = column_aggregates(both, names, sums)
    if any(map(is_shown_apart, left.schema.types)):
        counted = with_shown_keys(counted, both, names)
    ours, others = col("#left"), col("#right")
    times: Expr = least(ours, others) if kind == "intersect" else greatest(ours - others, 0)
    chosen = project(counted, [*((n, col(n)) for n in names), ("#times", times)], times > 0)
    return repeated(chosen, "#times")


def repeated(collection: Collection, count: str) -> Collection:
    """Each row as many times as one of its columns says, without that column."""
    names = [name for name in collection.schema.names if name != count]
    columns = {name: collection.schema.types[collection.schema.index(name)] for name in names}

    def repeat(table: pa.Table) -> tuple[pa.Table, Any]:
        times = table[count].to_numpy()
        rows = np.repeat(np.arange(table.num_rows), times)
        return table.select(names).take(rows), rows

    return collection.flat_map(repeat, **columns)


def columns_text(schema: Schema) -> str:
    """The columns of a collection, for messages."""
    return f"({', '.join(f'{name}: {type}' for name, type in zip(schema.names, schema.types, strict=True))})"


def by_name(one: Collection, other: Collection, verb: str) -> Collection:
    """The second collection with its columns in the order of the first one's. Raises if names or types differ."""
    check_collection(other, verb)
    if set(other.schema.names) != set(one.schema.names):
        raise IncorrectError(
            f"{verb} needs the same columns: {columns_text(one.schema)} and {columns_text(other.schema)}; rename or select them"
        )
    found = other if other.schema.names == one.schema.names else other.select(list(one.schema.names))
    if found.schema.types != one.schema.types:
        raise IncorrectError(
            f"{verb} needs the same column types: {columns_text(one.schema)} and {columns_text(found.schema)}; cast them"
        )
    return found
