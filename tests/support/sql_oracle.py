"""DuckDB as the oracle of SQL: the same tables, the same changes, the same queries, compared as bags of rows.

All oracles of a process are databases of one DuckDB: to start another one takes as long as most tests.
"""

from __future__ import annotations

import datetime
import decimal
import functools
import itertools
import math
import random
import weakref
from collections import Counter
from typing import Any

import duckdb

from tests.support.executors import make_engine

Row = tuple[Any, ...]

_numbers = itertools.count()


@functools.cache
def _server() -> duckdb.DuckDBPyConnection:
    # One thread: the tables are small, and the machine has others to serve.
    return duckdb.connect(config={"threads": 1})


def empty_duckdb() -> duckdb.DuckDBPyConnection:
    """A connection to a database of its own, which goes with it."""
    name = f"oracle_{next(_numbers)}"
    connection = _server().cursor()
    connection.execute(f"ATTACH ':memory:' AS {name}; USE {name}")
    weakref.finalize(connection, _server().execute, f"DETACH {name}").atexit = False
    return connection


def plain(value: Any) -> Any:
    """A value as it is compared: numbers by value, dates as midnights."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, decimal.Decimal | int | float):
        number = float(value)
        return "nan" if math.isnan(number) else float(f"{number:.9g}") + 0.0
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return datetime.datetime(value.year, value.month, value.day)
    return value


def bag(rows: Any) -> Counter[Row]:
    """Rows as a bag."""
    return Counter(tuple(map(plain, row)) for row in rows)


class Twins:
    """An engine and a DuckDB that hold the same tables."""

    def __init__(self, schema: str, **options: Any) -> None:
        self.engine = make_engine(**options)
        self.duckdb = empty_duckdb()
        for statement in schema.split(";"):
            if statement.strip():
                self.engine.sql(statement)
                self.duckdb.execute(statement.partition(" WITH ")[0])

    def run(self, statement: str) -> None:
        """Change both."""
        self.engine.sql(statement)
        self.duckdb.execute(statement)

    def insert(self, table: str, rows: list[Row]) -> None:
        if rows:
            self.engine.table(table).insert(rows)
            marks = "(" + ", ".join("?" for _ in rows[0]) + ")"
            values = [value for row in rows for value in row]
            self.duckdb.execute(f"INSERT INTO {table} VALUES {', '.join([marks] * len(rows))}", values)

    def remove(self, table: str, rows: list[Row]) -> None:
        """Remove each of the rows once."""
        self.engine.table(table).remove(rows)
        if rows:
            names = [name for name, *_ in self.duckdb.execute(f"DESCRIBE {table}").fetchall()]
            match = " AND ".join(f"{name} IS NOT DISTINCT FROM ?" for name in names)
        for row in rows:
            first = f"(SELECT min(rowid) FROM {table} WHERE {match})"
            assert self.duckdb.execute(f"DELETE FROM {table} WHERE rowid = {first}", list(row)).fetchone() == (1,)

    def advance(self) -> None:
        self.engine.advance()

    def expected(self, query: str) -> Counter[Row]:
        return bag(self.duckdb.execute(query).fetchall())

    def check(self, query: str) -> None:
        """A query that is run once gives what DuckDB gives."""
        assert bag(self.engine.sql(query)) == self.expected(query), query


class Changing:
    """Random contents of a few small tables, with NULLs, duplicates and skew, that change from epoch to epoch."""

    SCHEMA = """
        CREATE TABLE a (k int, x int, s varchar, d date);
        CREATE TABLE b (k int, y int, p decimal(8, 2), f double);
        CREATE TABLE c (k int, t varchar, q boolean, w timestamp)
    """

    def __init__(self, seed: int, **options: Any) -> None:
        self.random = random.Random(seed)
        self.twins = Twins(self.SCHEMA, **options)
        self.rows: dict[str, list[Row]] = {"a": [], "b": [], "c": []}

    def _maybe(self, value: Any) -> Any:
        return None if self.random.random() < 0.15 else value

    def row(self, table: str) -> Row:
        pick = self.random
        key = self._maybe(min(pick.randrange(6), pick.randrange(8)))
        words = ["north", "south", "Nord", "", "a%b", "zebra", "ähm"]
        day = datetime.date(2024, 1, 1) + datetime.timedelta(days=pick.randrange(400))
        if table == "a":
            return key, self._maybe(pick.randrange(-3, 10)), self._maybe(pick.choice(words)), self._maybe(day)
        if table == "b":
            price = decimal.Decimal(pick.randrange(-500, 2000)) / 100
            return (
                key,
                self._maybe(pick.randrange(5)),
                self._maybe(price),
                self._maybe(pick.choice([0.5, -1.25, 3.0, 1e9])),
            )
        moment = datetime.datetime(day.year, day.month, day.day, pick.randrange(24), pick.randrange(60))
        return key, self._maybe(pick.choice(words)), self._maybe(pick.random() < 0.5), self._maybe(moment)

    def step(self, least: int = 0, most: int = 6) -> None:
        """One epoch of inserts and removals."""
        for table, rows in self.rows.items():
            new = [self.row(table) for _ in range(self.random.randint(least, most))]
            if rows and self.random.random() < 0.3:
                new.append(self.random.choice(rows))
            gone = [rows.pop(self.random.randrange(len(rows))) for _ in range(min(len(rows), self.random.randrange(4)))]
            self.twins.remove(table, gone)
            self.twins.insert(table, new)
            rows += new
        self.twins.advance()
