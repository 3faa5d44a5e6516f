"""Sources: files and folders that are read into a table as they grow, and rows that clients push over HTTP.

The rows of a step and the position behind them are one epoch, so that after any end of the process nothing is lost and nothing is
there twice. A client that pushes can give a number with its rows, which grows: what was taken before is not taken again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tektite.engine.core import core_of
from tektite.engine.write_set import WriteSet
from tektite.errors import IncorrectError
from tektite.server.connectors.connector import Connector
from tektite.server.connectors.file_reader import FORMATS, read_next

if TYPE_CHECKING:
    from tektite.server.server import Server
    from tektite.sql.parse.connector_statements import CreateConnector


class TableSource(Connector):
    """A connector that writes rows to a table."""

    def take(self, rows: pa.Table, position: dict[str, Any]) -> int:
        """Write rows in an epoch of their own, with the position behind them; its time. Called with the lock held."""
        source, writes = core_of(self.server.engine.table(self.relation)), WriteSet()
        if rows.num_rows:
            source.write(rows, None, 1, "insert", writes)
        time = core_of(self.server.engine).commit(writes, positions=self.positions(position))
        self._position = position
        self.state.rows += rows.num_rows
        return time


class FileSource(TableSource):
    """A file, the files of a folder, or those that match a pattern."""

    options = ("format", "header", "delimiter", "every")

    def __init__(self, server: Server, definition: CreateConnector, relation: str) -> None:
        super().__init__(server, definition, relation)
        form = definition.options.get("format")
        if form is not None and form not in FORMATS.values():
            raise IncorrectError(f"source {definition.name!r}: the format is csv, json or parquet, not {form!r}")

    async def step(self) -> bool:
        """Take the next part of what was added."""
        definition, schema = self.definition, self.server.engine.table(self.relation).schema.arrow
        found = await self.server.compute(
            lambda: read_next(definition.place, definition.options, schema, self._position)
        )
        if found is None:
            return True
        await self.server.call(lambda: self.take(*found))
        return False


class PushSource(TableSource):
    """Rows that clients push."""

    def push(self, rows: pa.Table, number: int | None) -> dict[str, Any]:
        """Take rows, unless some with this number or a later one were taken. Called with the lock held."""
        last = self._position.get("number")
        if number is not None and last is not None and number <= last:
            return {"taken": False, "number": last}
        position = self._position if number is None else {**self._position, "number": number}
        time = self.take(rows, position)
        return {"taken": True, "number": position.get("number"), "time": time}
