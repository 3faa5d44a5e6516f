"""The data of the demonstration: the relations that tpchgen-cli made, and lineitem as a folder of files, one an epoch."""

from __future__ import annotations

from pathlib import Path

from pyarrow import parquet

from benchmarks.tpch.data import RELATIONS, folder, plain
from tektite.values.schema import Schema

KEYED = tuple(name for name in RELATIONS if name != "lineitem")
"""The relations that are loaded before the first query; lineitem streams in."""


class Described:
    """The columns of all relations."""

    def __init__(self, scale: float) -> None:
        self.schemas: dict[str, Schema] = {}
        for name in RELATIONS:
            columns = plain(parquet.read_schema(folder(scale) / f"{name}.parquet").empty_table()).schema
            self.schemas[name] = Schema(columns)


def cut(scale: float, parts: int, target: Path) -> int:
    """Write lineitem into a folder as `parts` files of about equal size; how many rows there are."""
    table = parquet.read_table(folder(scale) / "lineitem.parquet")
    target.mkdir(parents=True, exist_ok=True)
    for part in range(parts):
        start, stop = (table.num_rows * place // parts for place in (part, part + 1))
        parquet.write_table(table.slice(start, stop - start), target / part_name(part))
    return int(table.num_rows)


def part_name(part: int) -> str:
    """The file that the lineitems of an epoch lie in."""
    return f"{part:05}.parquet"
