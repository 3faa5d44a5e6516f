"""What a table's declaration demands of its rows: NOT NULL, and that no two rows have the same primary key.

Statements are checked before anything changes. Rows that a program inserts without SQL are not looked at here.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tektite.errors import ConflictError, IncorrectError
from tektite.inputs import Input
from tektite.sql.lower import constants

if TYPE_CHECKING:
    from tektite.sql.session import Session


def check(session: Session, table: Input, new: pa.Table | None, old: pa.Table | None) -> None:
    """Refuse changes that break a table's declaration."""
    declared = session.tables.get(table.name)
    if declared is None:
        return
    if declared.semantics in ("append", "stream") and old is not None and old.num_rows:
        raise ConflictError(
            f"table {table.name!r} has {declared.semantics} semantics: rows cannot be changed or deleted"
        )
    if new is not None:
        for column in declared.required:
            missing = new[column].null_count
            if missing:
                raise IncorrectError(
                    f"column {column!r} of table {table.name!r} cannot be NULL, and {missing} new rows have none"
                )
    if declared.key and declared.semantics in ("bag", "append"):
        check_keys(session, table, list(declared.key), new, old)


def check_keys(session: Session, table: Input, key: list[str], new: pa.Table | None, old: pa.Table | None) -> None:
    """Refuse rows whose key is there already."""
    written = session.written.setdefault(table.name, Counter())
    change: Counter[tuple[Any, ...]] = Counter()
    for rows, by in ((old, -1), (new, 1)):
        if rows is not None and rows.num_rows:
            for found in zip(*(rows[column].to_pylist() for column in key), strict=True):
                change[found] += by
    grown = [found for found, by in change.items() if by > 0]
    there = existing(session, table, key, grown)
    for found in grown:
        if there[found] + written[found] + change[found] > 1:
            shown = ", ".join(f"{column} = {value!r}" for column, value in zip(key, found, strict=True))
            raise ConflictError(f"table {table.name!r}: there would be two rows with the primary key {shown}")
    written.update(change)


def existing(session: Session, table: Input, key: list[str], wanted: list[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """How many rows have each of some keys: looked up in the table's own index."""
    if not wanted or not table.trace.rows:
        return Counter()
    types = [table.schema.types[table.schema.index(column)] for column in key]
    names = tuple(f"#{column}" for column in key)
    asked = constants(session.unit, names, tuple(types), tuple(wanted))
    pairs = list(zip(names, key, strict=True))
    found = session.once(asked.join(table, on=pairs).select(*names))
    return Counter(zip(*(column.to_pylist() for column in found.columns), strict=True))
