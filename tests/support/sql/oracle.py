"""DuckDB as the oracle: the same tables in the same state, and the comparison of two answers as bags of rows.

Numbers are compared by value (a decimal equals the integer that it is), floats within a relative 1e-9, everything else
exactly. NaN equals NaN and 0.0 equals -0.0.
"""

from __future__ import annotations

import datetime
import functools
import math
import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import sqlglot
from sqlglot import exp

from tektite import IntervalValue

Row = tuple[Any, ...]
TOLERANCE = 1e-9


class Oracle:
    """DuckDB with some tables. A query on which it fails inside makes its database unusable: it is made again, by the same
    statements.
    """

    def __init__(self) -> None:
        self._executed: list[str] = []
        self._connect()

    def _connect(self) -> None:
        self.connection = duckdb.connect()
        # One thread: the tables are small, and the machine has others to serve.
        self.connection.execute("SET threads = 1")
        # Tektite's choice: a division by zero is NULL.
        self.connection.execute("SET error_on_division_by_zero = false")
        self.connection.execute("SET ieee_floating_point_ops = false")
        self.connection.execute("SET TimeZone = 'UTC'")

    def create(self, name: str, schema: pa.Schema) -> None:
        self.connection.register("created", schema.empty_table())
        self.connection.execute(f"CREATE TABLE {name} AS SELECT * FROM created")
        self.connection.unregister("created")

    def insert(self, name: str, rows: pa.Table) -> None:
        if rows.num_rows:
            self.connection.register("inserted", rows)
            self.connection.execute(f"INSERT INTO {name} SELECT * FROM inserted")
            self.connection.unregister("inserted")

    def execute(self, text: str) -> None:
        self.connection.execute(spoken(text))
        self._executed.append(text)

    def table(self, text: str) -> pa.Table:
        return self.connection.sql(spoken(text)).to_arrow_table()

    def rows(self, text: str) -> list[Row]:
        try:
            return rows_of(self.connection.execute(spoken(text)))
        except (duckdb.FatalException, duckdb.InternalException):
            self.connection.close()
            self._connect()
            for statement in self._executed:
                self.connection.execute(spoken(statement))
            raise

    def close(self) -> None:
        self.connection.close()


def rows_of(result: Any) -> list[Row]:
    """The rows of a result of DuckDB. Moments are read by Arrow: DuckDB needs another package to give them to Python."""
    if not any("TIME ZONE" in str(column[1]) for column in result.description):
        return list(result.fetchall())
    table = result.to_arrow_table()
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True)) if table.num_columns else []


def spoken(text: str) -> str:
    """The text as DuckDB reads it: it knows no precision of an interval's field."""
    return text.replace("day (3)", "day")


def plain(value: Any) -> Any:
    """A value in the form that is compared."""
    if isinstance(value, bool):
        return "bool", value  # which Python would take for a number
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else value.normalize()
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    if isinstance(value, pa.MonthDayNano):
        value = IntervalValue.of(value)
    if isinstance(value, IntervalValue):  # DuckDB gives Python the length, with months of 30 days
        return datetime.timedelta(days=30 * value.months + value.days, microseconds=value.microseconds)
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.UTC)
    if isinstance(value, list):
        return tuple(map(plain, value))
    if isinstance(value, dict):
        return tuple((name, plain(part)) for name, part in value.items())
    return value


def same(ours: Any, theirs: Any) -> bool:
    """Whether two values are equal, floats within the tolerance."""
    if ours is None or theirs is None:
        return ours is theirs
    numbers = (int, float, Decimal)
    if isinstance(ours, numbers) and isinstance(theirs, numbers):
        if isinstance(ours, float) or isinstance(theirs, float):
            return math.isclose(float(ours), float(theirs), rel_tol=TOLERANCE, abs_tol=1e-12)
        return ours == theirs
    return type(ours) is type(theirs) and bool(ours == theirs)


def order(row: Row) -> tuple[Any, ...]:
    """A key that puts equal rows, and nearly equal ones, at the same place of two sorted answers."""

    def place(value: Any) -> tuple[int, Any]:
        if value is None:
            return 0, 0
        if isinstance(value, int | float | Decimal):
            return 1, float(f"{float(value):.6g}")
        return 2, (type(value).__name__, str(value))

    return tuple(place(value) for value in row)


def difference(ours: Iterable[Row], theirs: Iterable[Row], shown: int = 5) -> str | None:
    """What tells two bags of rows apart, in words; None where nothing does."""
    left = Counter(tuple(map(plain, row)) for row in ours)
    right = Counter(tuple(map(plain, row)) for row in theirs)
    if left == right:
        return None
    missing, extra = sorted((right - left).elements(), key=order), sorted((left - right).elements(), key=order)
    if len(missing) == len(extra) and all(
        len(a) == len(b) and all(map(same, a, b)) for a, b in zip(extra, missing, strict=True)
    ):
        return None
    return (
        f"{sum(left.values())} rows instead of {sum(right.values())}; "
        f"missing {missing[:shown]}{'...' if len(missing) > shown else ''}, "
        f"extra {extra[:shown]}{'...' if len(extra) > shown else ''}"
    )


def ordered_difference(ours: Sequence[Row], theirs: Sequence[Row], keys: Sequence[int]) -> str | None:
    """What tells two ordered answers apart: their rows as bags, or the order of the columns that they are ordered by."""
    found = difference(ours, theirs)
    if found is not None:
        return found
    for place, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        if not all(same(plain(a[k]), plain(b[k])) for k in keys):
            return f"row {place} is {a} instead of {b}"
    return None


@functools.lru_cache(512)
def is_select(text: str) -> bool:
    """Whether a query is one SELECT: no set operation, no VALUES."""
    return isinstance(sqlglot.parse_one(text, read="duckdb"), exp.Select)


@functools.lru_cache(512)
def unlimited(text: str) -> tuple[str, list[int], int | None, int]:
    """A SELECT without its LIMIT and OFFSET; the positions of the columns it is ordered by; the limit; the offset."""
    tree = sqlglot.parse_one(text, read="duckdb")
    limit, offset = tree.args.get("limit"), tree.args.get("offset")
    names = [e.alias_or_name for e in tree.selects]
    keys = []
    ordering = tree.args.get("order")
    for term in ordering.expressions if ordering else ():
        this = term.this
        if isinstance(this, exp.Literal) and this.is_int:
            keys.append(int(this.this) - 1)
        elif isinstance(this, exp.Column) and this.name in names:
            keys.append(names.index(this.name))
    tree.set("limit", None)
    tree.set("offset", None)
    return (
        tree.sql("duckdb"),
        keys,
        int(limit.expression.this) if limit else None,
        int(offset.expression.this) if offset else 0,
    )


def top_difference(ours: Sequence[Row], oracle: Oracle, text: str, theirs: list[Row] | None = None) -> str | None:
    """What is wrong with the answer to a query with a LIMIT, where ties may be cut as one likes: the columns it is ordered
    by must agree as bags, and every row must be one that the query has without the limit. `theirs` is the oracle's answer,
    where one has it.
    """
    whole, keys, limit, _ = unlimited(spoken(text))
    theirs = oracle.rows(text) if theirs is None else theirs
    if limit is None:
        return difference(ours, theirs)
    found = difference(([row[k] for k in keys] for row in ours), ([row[k] for k in keys] for row in theirs))
    if found is not None:
        return f"of the columns it is ordered by: {found}"
    candidates = Counter(tuple(map(plain, row)) for row in oracle.rows(whole))
    foreign = Counter(tuple(map(plain, row)) for row in ours) - candidates
    rest = list((candidates - Counter(tuple(map(plain, row)) for row in ours)).elements())
    strangers = [row for row in foreign.elements() if not any(all(map(same, row, other)) for other in rest)]
    return f"rows that the query does not have: {strangers[:5]}" if strangers else None
