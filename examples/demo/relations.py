"""The data of the demonstration: the relations that tpchgen-cli made, and lineitem as a history and a folder of later files."""

from __future__ import annotations

from pathlib import Path

from pyarrow import parquet

from benchmarks.tpch.data import RELATIONS, folder, plain
from tektite.values.schema import Schema

KEYED = tuple(name for name in RELATIONS if name != "lineitem")
"""The relations that stay as they are; lineitem goes on streaming in."""
HISTORY = "history.parquet"
"""The lineitems that are there before the first query."""


class Described:
    """The columns of all relations."""

    def __init__(self, scale: float) -> None:
        self.schemas: dict[str, Schema] = {}
        for name in RELATIONS:
            columns = plain(parquet.read_schema(folder(scale) / f"{name}.parquet").empty_table()).schema
            self.schemas[name] = Schema(columns)


def cut(scale: float, parts: int, changes: int, target: Path) -> int:
    """Write lineitem into a folder: a history, and `parts` files of `changes` rows; how many rows the history has."""
    table = parquet.read_table(folder(scale) / "lineitem.parquet")
    begin = table.num_rows - parts * changes
    if begin < 1:
        raise ValueError(
            f"{parts} changes of {changes:,} rows are more than the {table.num_rows:,} lineitems that there are"
        )
    (target / "later").mkdir(parents=True, exist_ok=True)
    parquet.write_table(table.slice(0, begin), target / HISTORY)
    for part in range(parts):
        parquet.write_table(table.slice(begin + part * changes, changes), target / "later" / part_name(part))
    return int(begin)


def part_name(part: int) -> str:
    """The file that the lineitems of a change lie in."""
    return f"{part:05}.parquet"
