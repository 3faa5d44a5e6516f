"""COPY between a client and the engine: loads rows from a client into a table, or sends rows to the client."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from tektite.engine.core import core_of
from tektite.engine.table import Table
from tektite.engine.write_set import WriteSet
from tektite.errors import IncorrectError
from tektite.server.postgres import messages
from tektite.server.postgres.commands import NAME, SessionCommand, folded_name
from tektite.server.postgres.copy_in import CopyParser, wanted_columns
from tektite.server.postgres.copy_options import CopyOptions, copy_options
from tektite.server.postgres.copy_out import copy_end, copy_head, copy_rows
from tektite.server.postgres.messages import Fields, ProtocolError
from tektite.server.subscriptions import ChangeStream
from tektite.sql import StatementRunner, runner
from tektite.sql.parse.places import StatementText
from tektite.sql.statements.table_writes import arranged, check_new_rows, check_write, target
from tektite.values.schema import Schema

if TYPE_CHECKING:
    from tektite.server.postgres.extended import ExtendedQueries

DATA, DONE, FAIL, FLUSH, SYNC = b"dcfHS"


class CopyIn:
    """The rows of one COPY on their way to a table. They count together, when all have come."""

    def __init__(self, queries: ExtendedQueries, table: Table, names: list[str], options: CopyOptions) -> None:
        self._queries = queries
        self._table = table
        self._names = names
        self._parser = CopyParser(
            table.schema.select(*names), options, f"COPY {table.name}", queries.session.settings.zone
        )
        self._writes = WriteSet()
        self._waiting: list[pa.Table] = []
        access = runner(queries.session.server.engine).access
        self._is_checked = not access.bypasses(access.who_is(queries.session.settings), table.name)
        """Whether policies say which rows may be written."""
        self.rows = 0

    async def run(self) -> None:
        """Read what the client sends until it is done."""
        session = self._queries.session
        while True:
            kind, body = await self._queries.connection.next_frame()
            if kind == DATA:
                if self._parser.feed(body):
                    await session.call_unlocked(self._take)
            elif kind == DONE:
                break
            elif kind == FAIL:
                error = IncorrectError(f"COPY from stdin failed: {Fields(body).text()}")
                error.details["sqlstate"] = "57014"
                raise error
            elif kind not in (FLUSH, SYNC):
                raise ProtocolError(f"a message of type {kind} in the middle of COPY")
        await session.call_unlocked(lambda: self._take(is_last=True))
        await session.call(self._write)

    def _take(self, is_last: bool = False) -> None:
        """Parse what has arrived. It is encoded at once, which is smaller, unless a transaction has to see it all together."""
        parsed = self._parser.parse(is_last)
        if not parsed.num_rows:
            return
        rows = arranged(runner(self._queries.session.server.engine), self._table, parsed, self._names)
        self.rows += rows.num_rows
        if self._queries.session.engine_session.open_transaction is None and not self._is_checked:
            core_of(self._table).write(rows, None, 1, "insert", self._writes)
        else:
            self._waiting.append(rows)

    def _write(self) -> None:
        source = core_of(self._table)
        transaction = self._queries.session.engine_session.open_transaction
        sql = runner(self._queries.session.server.engine)
        check_write(sql, self._table, "INSERT")
        if self._waiting:
            check_new_rows(sql, self._table, pa.concat_tables(self._waiting), "INSERT")
        if transaction is None:
            for rows in self._waiting:
                source.write(rows, None, 1, "insert", self._writes)
            source.engine.commit(self._writes)
        elif self._waiting:
            rows = pa.concat_tables(self._waiting)
            transaction.write(source, lambda into: source.write(rows, None, 1, "insert", into))


PATH = ("this", "db", "catalog")
"""The keys of a name's parts in a tree of sqlglot, the last part first."""


async def copy_in(queries: ExtendedQueries, command: SessionCommand) -> str:
    """Run COPY ... FROM STDIN; its tag."""
    session = queries.session
    session.server.check_accepts_writes()
    options = copy_options(command.part("value"))
    found = await session.call(lambda: _writable(runner(session.server.engine), command.path))
    names = wanted_columns(found.schema.names, listed(command), f"COPY {'.'.join(command.path)}")
    form = int(options.form == "binary")
    queries.connection.send(messages.copy_response(b"G", form, len(names)))
    queries.connection.flush()
    copying = CopyIn(queries, found, names, options)
    await copying.run()
    if session.engine_session.open_transaction is None:
        await session.until_durable()
    return f"COPY {copying.rows}"


def _writable(sql: StatementRunner, path: list[str]) -> Table:
    """The table of a name with its schema, which the caller may insert into."""
    parts = {kind: exp.to_identifier(part, quoted=True) for kind, part in zip(PATH, reversed(path), strict=False)}
    found = target(sql, StatementText(f"COPY {'.'.join(path)}"), exp.Table(**parts))
    check_write(sql, found, "INSERT")
    return found


async def copy_out(queries: ExtendedQueries, command: SessionCommand) -> str:
    """Run COPY ... TO STDOUT; its tag."""
    session, connection = queries.session, queries.connection
    options = copy_options(command.part("value"))
    query = command.part("query")
    if not query:
        columns = ", ".join(quoted(each) for each in listed(command)) or "*"
        query = f"SELECT {columns} FROM {'.'.join(map(quoted, command.path))}"
    result = await session.run(await session.prepare(query, {}, described=False), {})
    if result.subscription is None and result.table is None:
        raise IncorrectError("COPY ... TO STDOUT takes a table, a query, or a SUBSCRIBE in parentheses")
    stream = None if result.subscription is None else await ChangeStream.begin(session, result)
    schema = stream.schema if stream is not None else (result.table or pa.table({})).schema
    kinds = list(Schema(schema).types)
    connection.send(messages.copy_response(b"H", int(options.form == "binary"), len(kinds)))
    connection.send(copy_head(schema.names, options))
    sent = 0
    queries.is_streaming = stream is not None
    try:
        table = result.table if stream is None else await stream.next()
        while table is not None:
            for piece in copy_rows(table, kinds, options, not sent):
                connection.send(piece)
                await connection.drain()
            sent += table.num_rows
            if stream is None:
                break
            connection.flush()
            table = await stream.next()
    finally:
        queries.is_streaming = False
        if stream is not None:
            stream.close()
    connection.send(copy_end(options, not sent))
    connection.send(messages.COPY_DONE)
    return f"COPY {sent}"


def listed(command: SessionCommand) -> list[str]:
    """The columns in parentheses behind the table."""
    return [folded_name(name) for name in re.findall(NAME, command.part("columns"))]


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
