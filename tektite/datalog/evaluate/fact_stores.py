"""Facts in JSON files and in SQLite databases, as Soufflé keeps them there.

A JSON file has a list of facts: lists in the order of the columns, or objects by their names (`format=object`). A SQLite
database has a table, or a view, of the relation's name. A file that does not fit is refused as a whole.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa

from tektite.errors import IncorrectError, NotFoundError
from tektite.values.schema import Schema
from tektite.values.types import Bool, Float, Int, String, Type
from tektite.values.words import arrow_type

LARGEST = 2**63 - 1
SQL_TYPES = {"int": "INTEGER", "float": "REAL", "string": "TEXT", "bool": "INTEGER"}
ChangeFact = Callable[[str, Any], Any]
"""How the value of a column is read or written otherwise: a record as a list, for one."""


def read_json(path: Path, schema: Schema, change: ChangeFact) -> pa.Table:
    """The facts of a JSON file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise NotFoundError(f"cannot read the fact file {str(path)!r}: {error.strerror}") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise IncorrectError(f"{path}: not JSON: {error}") from None
    if not isinstance(found, list):
        raise IncorrectError(f"{path}: expected a list of facts, found {type(found).__name__}")
    rows = []
    for number, fact in enumerate(found):
        where = f"{path}: fact {number}"
        if isinstance(fact, dict):
            missing = [name for name in schema.names if name not in fact]
            if missing:
                raise IncorrectError(f"{where} has no {missing[0]!r}")
            fact = [fact[name] for name in schema.names]
        if not isinstance(fact, list) or len(fact) != len(schema.names):
            raise IncorrectError(
                f"{where}: expected {len(schema.names)} values ({', '.join(schema.names)}), found {fact!r}"
            )
        rows.append([change(name, value) for name, value in zip(schema.names, fact, strict=True)])
    return table_of(rows, schema, str(path))


def write_json(path: Path, table: pa.Table, rows: Iterable[Sequence[Any]], objects: bool) -> None:
    """Write facts as a JSON file, one on a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    shown = [
        json.dumps(dict(zip(table.column_names, row, strict=True)) if objects else list(row), ensure_ascii=False)
        for row in rows
    ]
    path.write_text("[" + ",\n".join(shown) + "]\n", encoding="utf-8", newline="\n")


def read_sqlite(path: Path, relation: str, schema: Schema, change: ChangeFact) -> pa.Table:
    """The facts of a table or view of a SQLite database."""
    if not path.is_file():
        raise NotFoundError(f"there is no SQLite database {str(path)!r} for {relation!r}")
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            rows = database.execute(f"SELECT * FROM {sql_name(relation)}").fetchall()
    except sqlite3.Error as error:
        raise IncorrectError(f"{path}: {relation!r}: {error}") from None
    for row in rows[:1]:
        if len(row) != len(schema.names):
            raise IncorrectError(
                f"{path}: {relation!r} has {len(row)} columns, expected {len(schema.names)} ({', '.join(schema.names)})"
            )
    changed = [[change(name, value) for name, value in zip(schema.names, row, strict=True)] for row in rows]
    return table_of(changed, schema, f"{path}: {relation!r}")


def write_sqlite(path: Path, relation: str, table: pa.Table, schema: Schema, rows: Iterable[Sequence[Any]]) -> None:
    """Write facts as a table of a SQLite database, in place of one of that name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = ", ".join(
        f"{sql_name(n)} {SQL_TYPES[t.kind]}" for n, t in zip(table.column_names, schema.types, strict=True)
    )
    marks = ", ".join("?" for _ in table.column_names)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(f"DROP TABLE IF EXISTS {sql_name(relation)}")
        database.execute(f"CREATE TABLE {sql_name(relation)} ({columns})")
        database.executemany(f"INSERT INTO {sql_name(relation)} VALUES ({marks})", rows)


def sql_name(name: str) -> str:
    """A name as SQL quotes it."""
    return '"' + name.replace('"', '""') + '"'


def table_of(rows: Sequence[Sequence[Any]], schema: Schema, where: str) -> pa.Table:
    """Rows of values as a table; refuses a value that is not of its column's type."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema.names)
    checked = []
    for name, type, values in zip(schema.names, schema.types, columns, strict=True):
        checked.append(
            pa.array([typed(value, type, f"{where}: column {name!r}") for value in values], arrow_type(type))
        )
    return pa.table(checked, list(schema.names))


def typed(value: Any, type: Type, where: str) -> Any:
    """A value as one of a type."""
    plain = not isinstance(value, bool)
    if type == String and isinstance(value, str):
        return value
    if type == Int and isinstance(value, int) and plain and abs(value) <= LARGEST:
        return value
    if type == Float and isinstance(value, int | float) and plain:
        return float(value)
    if type == Bool and isinstance(value, bool | int) and value in (0, 1):
        return bool(value)
    raise IncorrectError(f"{where}: expected {type}, found {value!r}")
