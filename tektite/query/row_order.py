"""The order of a table's rows, as ORDER BY asks for it: text by its bytes, NaN above every number, NULL where it says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tektite.query.window_calls import Ordering
from tektite.values import composites
from tektite.values.words import type_from_arrow


def order_keys(column: Any) -> Any:
    """Texts that order as lists, structs or intervals do."""
    type = type_from_arrow(column.type)
    texts = composites.texts_of(column, type)
    return composites.key_texts(texts, type)


def sorted_rows(table: pa.Table, order: Sequence[tuple[str, Ordering]]) -> pa.Table:
    """A table in an order, given as column names with directions."""
    if not order or table.num_rows < 2:
        return table
    arrays: dict[str, Any] = {}
    keys: list[tuple[str, Any]] = []
    for at, (name, ordering) in enumerate(order):
        column: Any = table[name]
        arrays[f"null{at}"] = pc.is_null(column).cast(pa.int8())
        keys.append((f"null{at}", "descending" if ordering.nulls_first else "ascending"))
        if pa.types.is_floating(column.type):
            arrays[f"nan{at}"] = pc.fill_null(pc.is_nan(column), False).cast(pa.int8())
            keys.append((f"nan{at}", "descending" if ordering.descending else "ascending"))
        if pa.types.is_boolean(column.type):
            column = column.cast(pa.int8())
        if pa.types.is_nested(column.type) or pa.types.is_interval(column.type):
            column = order_keys(column)
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            column = column.cast(pa.large_binary())
        arrays[f"value{at}"] = column
        keys.append((f"value{at}", "descending" if ordering.descending else "ascending"))
    return table.take(pc.sort_indices(pa.table(arrays), sort_keys=keys))
