"""Sinks: the changes of a table or a view in a file, or sent to an address.

A sink keeps what it has told in a table that SQL does not show, and the number of what it told last. When it starts, it tells
the difference between that and what there is. What a file has beyond what is known to be told is cut off, so that each change is
in it once. An address is sent each number until it answers with success. After a crash it may get the last number again, and can
pass over it.
"""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

from tektite.engine.core import HIDDEN_PREFIX, core_of
from tektite.engine.subscription import Subscription
from tektite.engine.table import Table
from tektite.engine.view import View
from tektite.engine.write_set import WriteSet
from tektite.errors import FaultError, IncorrectError
from tektite.expr.file_columns import for_csv
from tektite.server.connectors.connector import Connector
from tektite.sql import runner
from tektite.sql.parse import parser
from tektite.wire.rows import table_as_data

if TYPE_CHECKING:
    from tektite.server.server import Server
    from tektite.sql.parse.connector_statements import CreateConnector

DIFFERENCE = "SELECT * FROM one EXCEPT ALL SELECT * FROM other"
SEND_SECONDS = 10.0


class ChangeSink(Connector):
    """A connector that sends the changes of a relation elsewhere."""

    def __init__(self, server: Server, definition: CreateConnector, relation: str) -> None:
        super().__init__(server, definition, relation)
        self._told: Table | None = None
        self._subscription: Subscription | None = None
        self._waiting: pa.Table | None = None
        """Changes that are to be told next, with time and diff."""

    @property
    def _relation(self) -> Table | View:
        found = runner(self.server.engine).relation_stored(self.relation)
        if not isinstance(found, Table | View):
            raise IncorrectError(f"sink {self.definition.name!r}: {self.relation!r} is not there any more")
        return found

    async def step(self) -> bool:
        """Tell what has changed."""
        if self._waiting is None:
            self._waiting = await self.server.call(self._changes)
        if self._waiting is None:
            return True
        await self.server.epochs.until_durable()
        changes, number = self._waiting, self._position.get("number", 0) + 1
        told = await self.server.compute(lambda: self.tell(changes, number))
        await self.server.call(lambda: self._remember(changes, {"number": number, **told}))
        self._waiting = None
        self.state.rows += changes.num_rows
        return False

    def tell(self, changes: pa.Table, number: int) -> dict[str, Any]:
        """Tell changes, and give back what the position has to say of it. Called in a worker."""
        raise NotImplementedError

    def _changes(self) -> pa.Table | None:
        """The changes since the last call; at first, the difference to what was sent before."""
        relation, engine = self._relation, self.server.engine
        if self._subscription is None or self._told is None:
            name = f"{HIDDEN_PREFIX}sink_{self.definition.name}"
            self._told = engine.create_table(name, relation.schema, if_exists="keep")
            self._begin()
            core = core_of(engine)
            with core.lock.held, core.undisturbed():  # what is in the difference is no change afterwards
                core.finish(core_of(relation))
                self._subscription = relation.subscribe(snapshot=False)
                time = relation.time or 0
                parts = [
                    self._difference(relation, self._told, time, 1),
                    self._difference(self._told, relation, time, -1),
                ]
            found = pa.concat_tables(parts)
            return found if found.num_rows else None
        found = self._subscription.table()
        names = [*relation.schema.names, "time", "diff"]
        return found.rename_columns(names) if found.num_rows else None

    def _begin(self) -> None:
        """Make what was told before agree with the position. Called with the lock held."""

    def _difference(self, one: Table | View, other: Table | View, time: int, diff: int) -> pa.Table:
        (statement,) = parser.parse(DIFFERENCE)
        assert isinstance(statement, parser.Plain)
        sql = runner(self.server.engine)
        rows = sql.select(statement.source, statement.tree, {}, None, {"one": one, "other": other})
        many = rows.num_rows
        rows = rows.append_column("time", pa.array([time], pa.int64()).take(pa.array([0] * many, pa.int64())))
        return rows.append_column("diff", pa.array([diff], pa.int64()).take(pa.array([0] * many, pa.int64())))

    def _remember(self, changes: pa.Table, position: dict[str, Any]) -> None:
        """Keep what was told, in an epoch with the position."""
        assert self._told is not None
        source, writes = core_of(self._told), WriteSet()
        rows, diffs = changes.select(range(changes.num_columns - 2)), changes.column(-1).to_numpy()
        for verb, by in (("insert", diffs), ("remove", -diffs)):
            chosen = rows.take(np.repeat(np.arange(len(by)), np.maximum(by, 0)))
            if chosen.num_rows:
                source.write(chosen, None, 1 if verb == "insert" else -1, verb, writes)
        core_of(self.server.engine).commit(writes, positions=self.positions(position))
        self._position = position

    def dropped(self) -> None:
        """Forget what was told."""
        if self._subscription is not None:
            self._subscription.close()
        name = f"{HIDDEN_PREFIX}sink_{self.definition.name}"
        if name in core_of(self.server.engine).inputs:
            self.server.engine.drop(name)


class FileSink(ChangeSink):
    """A file of changes: JSON lines, or CSV."""

    options = ("format", "every")

    def __init__(self, server: Server, definition: CreateConnector, relation: str) -> None:
        super().__init__(server, definition, relation)
        self._path = Path(definition.place)
        self._form = definition.options.get("format", "csv" if self._path.suffix == ".csv" else "json")
        if self._form not in ("csv", "json"):
            raise IncorrectError(f"sink {definition.name!r}: the format is csv or json, not {self._form!r}")
        if not self._path.parent.is_dir():
            raise IncorrectError(f"sink {definition.name!r}: there is no folder {str(self._path.parent)!r}")

    def _begin(self) -> None:
        size = self._position.get("bytes", 0)
        with self._path.open("ab") as file:
            file.truncate(size)

    def tell(self, changes: pa.Table, number: int) -> dict[str, Any]:
        """Add changes to the file."""
        with self._path.open("ab") as file:
            if self._form == "csv":
                csv.write_csv(for_csv(changes), file, csv.WriteOptions(include_header=not file.tell()))
            else:
                names = changes.column_names
                rows = table_as_data(changes)["rows"]
                file.write(b"".join([json.dumps(dict(zip(names, row, strict=True))).encode() + b"\n" for row in rows]))
            file.flush()
            os.fsync(file.fileno())
            return {"bytes": file.tell()}


class WebhookSink(ChangeSink):
    """An address that changes are sent to."""

    options = ("every",)

    def tell(self, changes: pa.Table, number: int) -> dict[str, Any]:
        """Send changes; an answer other than success is an error, after which they are sent again."""
        name = self.definition.name
        body = {"sink": name, "number": number, "columns": changes.column_names, "rows": table_as_data(changes)["rows"]}
        request = urllib.request.Request(
            self.definition.place,
            json.dumps(body).encode(),
            {"Content-Type": "application/json", "Idempotency-Key": f"{name}-{number}"},
        )
        try:
            with urllib.request.urlopen(request, timeout=SEND_SECONDS) as answer:
                answer.read(1 << 16)
        except (urllib.error.URLError, OSError, ValueError) as error:
            raise FaultError(f"sink {name!r}: {self.definition.place} was not told number {number}: {error}") from None
        return {}
