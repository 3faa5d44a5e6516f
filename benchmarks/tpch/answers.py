"""What TPC-H queries answer over all of the data, by DuckDB, to check what was maintained."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import cache
from typing import Any

import duckdb

import tektite as tk
from benchmarks.maintained import WrongAnswer
from benchmarks.tpch.data import RELATIONS, folder
from benchmarks.tpch.queries import Query


@cache
def oracle(scale: float, relations: tuple[str, ...] = RELATIONS) -> duckdb.DuckDBPyConnection:
    """DuckDB with relations at a scale factor."""
    connection = connected(scale)
    for name in relations:
        source = f"read_parquet('{folder(scale) / name}.parquet')"
        connection.execute(f"CREATE TABLE IF NOT EXISTS {name} AS SELECT * FROM {source}")
    return connection


@cache
def connected(scale: float) -> duckdb.DuckDBPyConnection:
    """A DuckDB for each scale factor."""
    return duckdb.connect()


def spoken(text: str) -> str:
    """A statement as DuckDB reads it: it knows no precision of an interval's field."""
    return text.replace("day (3)", "day")


def answer(query: Query, scale: float) -> list[tuple[Any, ...]]:
    """DuckDB's answer."""
    connection = oracle(scale, query.relations)
    for statement in query.before:
        connection.execute(spoken(statement.replace("create view", "create or replace view")))
    return connection.execute(spoken(query.select)).fetchall()


def answer_within(query: Query, scale: float, rows: Mapping[str, tuple[int, int]]) -> list[tuple[Any, ...]]:
    """DuckDB's answer over a part of each relation: the rows from a first one to before another."""
    connection = oracle(scale)
    connection.execute("CREATE SCHEMA IF NOT EXISTS part_of; SET search_path = 'part_of,main'")
    try:
        for name, (start, stop) in rows.items():
            within = f"rowid >= {start} AND rowid < {stop}"
            connection.execute(f"CREATE OR REPLACE VIEW part_of.{name} AS SELECT * FROM main.{name} WHERE {within}")
        return answer(query, scale)
    finally:
        connection.execute("DROP SCHEMA part_of CASCADE; SET search_path = 'main'")


def check_answer(view: tk.View, query: Query, scale: float) -> None:
    """Compare a view with DuckDB's answer."""
    check_rows(view.rows(), answer(query, scale), query)


def check_rows(ours: list[tuple[Any, ...]], theirs: list[tuple[Any, ...]], query: Query, rounding: float = 0.0) -> None:
    """Compare two answers, numbers within a relative 1e-9 or within what one side rounds to. Of a LIMIT with ties, numbers
    alone.
    """
    if "limit" in query.select:
        ours, theirs = ([tuple(filter(number, row)) for row in rows] for rows in (ours, theirs))
    for mine, other in zip(sorted(ours, key=place), sorted(theirs, key=place), strict=False):
        if len(mine) != len(other) or not all([alike(a, b, rounding) for a, b in zip(mine, other, strict=True)]):
            raise WrongAnswer(f"{query.name}: {mine} instead of {other}")
    if len(ours) != len(theirs):
        raise WrongAnswer(f"{query.name}: {len(ours)} rows instead of {len(theirs)}")


def number(value: Any) -> bool:
    """Whether a value is one that is summed: a key among ties may be any of them."""
    return isinstance(value, Decimal | float)


def alike(mine: Any, other: Any, rounding: float = 0.0) -> bool:
    """Whether two values are equal, numbers within the tolerance."""
    if isinstance(mine, int | float | Decimal) and isinstance(other, int | float | Decimal):
        return math.isclose(mine, other, rel_tol=1e-9, abs_tol=rounding)
    return bool(mine == other)


def place(row: Iterable[Any]) -> list[str]:
    """Where a row stands among others, whatever types its numbers have."""
    return [f"{float(v):.6e}" if isinstance(v, int | float | Decimal) else str(v) for v in row]
