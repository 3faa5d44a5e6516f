"""ArgumentTables: the tables that hold the arguments of one query, so that one dataflow answers any number of them.

SQL, Datalog and Python all use them (docs/concepts.md, "Argument tables"). The tables are made before the query is installed.
Clients write arguments to them. They are dropped with the query, or if it cannot be installed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tektite.engine.core import core_of
from tektite.engine.engine_core import EngineCore
from tektite.engine.table import Table
from tektite.engine.write_set import WriteSet


class ArgumentTables:
    """The argument tables of a query, by parameter."""

    def __init__(self, engine: EngineCore) -> None:
        self._engine = engine
        self.tables: dict[str, Table] = {}

    @contextmanager
    def kept_if_installed(self) -> Iterator[None]:
        """Drop the tables if the block, which makes them and installs the query, fails."""
        try:
            yield
        except BaseException:
            self.drop()
            raise

    def write(self, rows: Mapping[str, Any], diff: int, verb: str) -> int | None:
        """Add rows to some tables, or remove them, together. They belong to what the calling session is writing: see
        `EngineCore.write`.
        """
        return self._engine.write(lambda into: self._write(rows, diff, verb, into))

    def commit(self, rows: Mapping[str, Any], diff: int, verb: str) -> None:
        """Add rows to some tables, or remove them, in an epoch of their own, whatever the calling session is writing."""
        own = WriteSet()
        self._write(rows, diff, verb, own)
        self._engine.commit(own)

    def _write(self, rows: Mapping[str, Any], diff: int, verb: str, into: WriteSet) -> None:
        for name, given in rows.items():
            core_of(self.tables[name]).write(given, None, diff, verb, into)

    def drop(self) -> None:
        """Drop all tables; nothing may read them any more."""
        while self.tables:
            _, table = self.tables.popitem()
            self._engine.engine.drop(table.name)
