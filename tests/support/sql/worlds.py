"""Small random tables and how they change: what random queries are asked about.

Everything follows from a seed. Values come from small domains, so that rows meet, repeat and are NULL often; some tables
are empty at times, and some values are far more frequent than others.
"""

from __future__ import annotations

import datetime
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

Row = tuple[Any, ...]


class Written(str):
    """A value that Python has no literal for, as SQL writes it."""

    __slots__ = ()


TYPES = {
    "int": "BIGINT",
    "float": "DOUBLE",
    "decimal": "DECIMAL(8, 2)",
    "bool": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "text": "VARCHAR",
    "time": "TIME",
    "moment": "TIMESTAMPTZ",
    "interval": "INTERVAL",
    "list": "BIGINT[]",
    "texts": "VARCHAR[]",
    "struct": "STRUCT(x BIGINT, y VARCHAR)",
    "wide": "DECIMAL(30, 2)",
    "uuid": "UUID",
}
PLAIN = ("int", "float", "decimal", "bool", "date", "timestamp", "text")
"""Kinds of values that are one word, or a text."""
# Floats are sums of a few powers of two, so that sums of them are exact in any order.
DOMAINS: dict[str, Sequence[Any]] = {
    "int": (0, 1, 2, 3, 4, 5, -1, -7, 100),
    "float": (0.0, 0.5, 1.0, -1.5, 2.25, 3.0, 100.75),
    "decimal": tuple(map(Decimal, ("0.00", "0.50", "1.00", "-1.25", "2.25", "3.00", "99.99"))),
    "bool": (True, False),
    "date": tuple(datetime.date(2024, 2, 26) + datetime.timedelta(days) for days in (0, 1, 2, 3, 4, 5, 40, 400)),
    "timestamp": tuple(
        datetime.datetime(2024, 2, 28, 22) + datetime.timedelta(hours=hours, seconds=hours)
        for hours in (0, 1, 2, 3, 50)
    ),
    "text": ("", "a", "ab", "b", "B", "ba", "a_b", "a%b", "äö", " a "),
    "time": tuple(Written(f"TIME '{time}'") for time in ("00:00:00", "10:30:00", "10:30:00.5", "23:59:59.999999")),
    "moment": tuple(
        Written(f"TIMESTAMPTZ '{moment}+00'")
        for moment in ("2024-02-28 22:00:00", "2024-02-29 23:30:00", "2024-03-31 00:59:59.5", "1999-12-31 23:59:59")
    ),
    # no two of one length: which of them stands for a group is open
    "interval": tuple(
        Written(f"INTERVAL '{length}'")
        for length in (
            "0 days",
            "1 day",
            "25 hours",
            "-3 days 10:00:00",
            "1 month",
            "1 year 2 months 3 days",
            "1.5 seconds",
        )
    ),
    "list": tuple(
        Written(f"CAST({items} AS BIGINT[])")
        for items in ("[]", "[1]", "[1, 2]", "[2, NULL]", "[NULL]", "[-7, 100, 1]")
    ),
    "texts": tuple(
        Written(f"CAST({items} AS VARCHAR[])") for items in ("[]", "['']", "['a', 'b']", "['a, b', NULL]", "['äö']")
    ),
    "struct": tuple(
        Written(f"CAST({fields} AS STRUCT(x BIGINT, y VARCHAR))")
        for fields in ("{'x': 1, 'y': 'a'}", "{'x': 1, 'y': 'b'}", "{'x': NULL, 'y': ''}", "{'x': 2, 'y': NULL}")
    ),
    "wide": tuple(
        Written(f"CAST('{number}' AS DECIMAL(30, 2))")
        for number in ("0", "1.25", "-99999999999999999999.99", "12345678901234567890123.50", "9223372036854775808")
    ),
    "uuid": tuple(
        Written(f"CAST('{start}50e8400-e29b-41d4-a716-446655440000' AS UUID)") for start in ("5", "0", "f", "a")
    ),
}


@dataclass(frozen=True)
class Table:
    """A table: its columns with their kinds, and whether its first column is a primary key."""

    name: str
    columns: tuple[tuple[str, str], ...]
    keyed: bool

    @property
    def create(self) -> str:
        columns = [f"{name} {TYPES[kind]}" for name, kind in self.columns]
        if self.keyed:
            columns.append(f"PRIMARY KEY ({self.columns[0][0]})")
        return f"CREATE TABLE {self.name} ({', '.join(columns)})"


@dataclass
class Case:
    """Tables, what changes in each epoch (statements), and from which epoch on each query is maintained."""

    tables: list[Table]
    epochs: list[list[str]]
    queries: list[str] = field(default_factory=list)
    installs: list[int] = field(default_factory=list)

    def alone(self, query: int) -> Case:
        """The case of one of its queries."""
        return Case(self.tables, self.epochs, [self.queries[query]], [self.installs[query]])

    def script(self) -> str:
        """The case as text that can be read, and run."""
        lines = [f"{table.create};" for table in self.tables]
        for number, epoch in enumerate(self.epochs):
            lines += [
                f"CREATE MATERIALIZED VIEW v{q} AS {query};"
                for q, query in enumerate(self.queries)
                if self.installs[q] == number
            ]
            lines.append(f"-- epoch {number}")
            lines += [f"{statement};" for statement in epoch]
        return "\n".join(lines)


def literal(value: Any) -> str:
    """A value as SQL writes it.

    >>> [literal(v) for v in (None, "it's", 1.5, Decimal("0.50"), datetime.date(2024, 2, 29))]
    ['NULL', "'it''s'", 'CAST(1.5 AS DOUBLE)', 'CAST(0.50 AS DECIMAL(8, 2))', "DATE '2024-02-29'"]
    """
    if value is None:
        return "NULL"
    if isinstance(value, Written):
        return str(value)
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, datetime.datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    if isinstance(value, datetime.date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, float):
        return f"CAST({value!r} AS DOUBLE)"
    if isinstance(value, Decimal):
        return f"CAST({value} AS DECIMAL(8, 2))"
    return str(value)


class World:
    """Tables and the changes of some epochs, from a random generator."""

    def __init__(self, chance: random.Random, epochs: int = 5) -> None:
        self.chance = chance
        self.tables = [self._table(number) for number in range(chance.randint(2, 4))]
        self.rows: dict[str, Counter[Row]] = {table.name: Counter() for table in self.tables}
        self.epochs = [self._epoch(number) for number in range(epochs)]

    def case(self) -> Case:
        return Case(self.tables, self.epochs)

    def _table(self, number: int) -> Table:
        often = [*PLAIN * 2, *TYPES]
        kinds = ["int", "int", *self.chance.choices(often, k=self.chance.randint(1, 4))]
        names = "kvabcdef"
        return Table(
            f"t{number}",
            tuple((names[place], kind) for place, kind in enumerate(kinds)),
            keyed=self.chance.random() < 0.35,
        )

    def value(self, kind: str) -> Any:
        if self.chance.random() < 0.15:
            return None
        domain = DOMAINS[kind]
        # Half of all values are the first one or the second: skew.
        return self.chance.choice(domain[:2] if self.chance.random() < 0.5 else domain)

    def row(self, table: Table) -> Row:
        row = [self.value(kind) for _, kind in table.columns]
        if table.keyed:
            taken = {found[0] for found in self.rows[table.name]}
            row[0] = next(k for k in range(self.chance.randint(-1, 8), 10_000) if k not in taken)
        return tuple(row)

    def _epoch(self, number: int) -> list[str]:
        statements: list[str] = []
        for table in self.tables:
            rows = self.rows[table.name]
            # A table may stay empty at first, and be emptied later.
            if number == 0 and self.chance.random() < 0.3:
                continue
            if number and rows and self.chance.random() < 0.08:
                statements.append(f"DELETE FROM {table.name}")
                rows.clear()
                continue
            if number:
                statements += self._deletions(table)
                statements += self._changes(table)
            added = [self.row(table) for _ in range(self.chance.choice((0, 1, 3, 8) if number else (4, 10, 16)))]
            if table.keyed:
                added = list({row[0]: row for row in added}.values())
            rows.update(added)
            if added:
                values = ", ".join(f"({', '.join(map(literal, row))})" for row in added)
                statements.append(f"INSERT INTO {table.name} VALUES {values}")
        return statements

    def _matching(self, table: Table) -> tuple[str, list[Row]]:
        """A simple condition, and the rows that fulfil it."""
        rows = self.rows[table.name]
        place = self.chance.randrange(len(table.columns))
        name = table.columns[place][0]
        value = self.chance.choice(list(rows))[place]
        if value is None:
            return f"{name} IS NULL", [row for row in rows if row[place] is None]
        return f"{name} = {literal(value)}", [row for row in rows if row[place] == value]

    def _deletions(self, table: Table) -> list[str]:
        rows = self.rows[table.name]
        if not rows or self.chance.random() < 0.5:
            return []
        condition, gone = self._matching(table)
        for row in gone:
            del rows[row]
        return [f"DELETE FROM {table.name} WHERE {condition}"]

    def _changes(self, table: Table) -> list[str]:
        rows = self.rows[table.name]
        if not rows or self.chance.random() < 0.5:
            return []
        condition, old = self._matching(table)
        place = self.chance.randrange(1, len(table.columns))
        name, kind = table.columns[place]
        value = self.value(kind)
        for row in old:
            count = rows.pop(row)
            rows[(*row[:place], value, *row[place + 1 :])] += count
        return [f"UPDATE {table.name} SET {name} = {literal(value)} WHERE {condition}"]
