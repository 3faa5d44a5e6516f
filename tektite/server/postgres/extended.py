"""The messages of a client that is known: simple queries, and the extended protocol: Parse, Bind, Describe, Execute, Sync."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from tektite.errors import ConflictError
from tektite.server.postgres import messages
from tektite.server.postgres.client_texts import simpler
from tektite.server.postgres.commands import SessionCommand, command, pieces
from tektite.server.postgres.messages import Fields, ProtocolError
from tektite.server.postgres.portals import NamedObjects, Portal, PreparedStatement, bound_values, read_bind
from tektite.server.postgres.rows import columns_of, data_rows, described
from tektite.server.postgres.run_commands import CommandRunner
from tektite.server.postgres.sqlstates import error_fields
from tektite.server.postgres.types import oid_of
from tektite.server.postgres.waits import Handled, Outcome
from tektite.server.sessions import ClientSession, KnownStatement
from tektite.sql import Result
from tektite.sql.statements.statement_cache import carries_data
from tektite.values.types import Type

if TYPE_CHECKING:
    import pyarrow as pa

    from tektite.server.postgres.connection import PostgresConnection

SYNC = ord("S")
TOGETHER = ("INSERT", "UPDATE", "DELETE", "SELECT", "VALUES", "WITH", "TABLE")
"""Statements that share one transaction if a simple query has several of them."""


class ExtendedQueries:
    """Handles the messages of one connection."""

    def __init__(self, connection: PostgresConnection, session: ClientSession) -> None:
        self.connection = connection
        self.session = session
        most = connection.server.plan.limits.prepared
        self.statements = NamedObjects("prepared statement", "26000", most)
        self.portals = NamedObjects("portal", "34000", most)
        self.commands = CommandRunner(self)
        self.is_streaming = False
        """Whether an endless result is being sent."""
        self.is_pipelining = False
        """Whether messages of the extended protocol have come since the last Sync."""
        self._is_skipping = False
        self._is_simple = False
        self._text, self._offset = "", 0
        self._is_implicit = False
        self._handlers: dict[int, Callable[[bytes], Outcome]] = {
            ord("Q"): self._query, ord("P"): self._parse, ord("B"): self._bind, ord("D"): self._describe,
            ord("E"): self._execute, ord("C"): self._close, ord("H"): self._flush, ord("S"): self._sync,
            ord("X"): self._terminate, ord("d"): self._stray, ord("c"): self._stray, ord("f"): self._stray,
        }  # fmt: skip

    # ------------------------------------------------------------------ all messages

    def handle(self, kind: int, body: bytes) -> Outcome:
        """Handle one message; what to wait for, if it takes longer."""
        if self._is_skipping and kind not in (ord("S"), ord("X")):
            return None
        handler = self._handlers.get(kind)
        if handler is None:
            raise ProtocolError(f"there is no message of type {kind}")
        self._is_simple = kind == ord("Q")
        self.is_pipelining = kind not in (ord("Q"), ord("S"))
        return handler(body)

    def failed(self, error: BaseException) -> None:
        """Report an error of a message."""
        self.session.fail()
        shown = self.session.rights.disclosed(error)
        self.connection.send(messages.fields_of(b"E", error_fields(shown, self._text, self._offset)))
        if self._is_simple:
            self.ready()
        else:
            self._is_skipping = True
            self.connection.flush()  # a client may wait for it before it says Sync

    def ready(self) -> None:
        """Tell the client that the next statement can come, and in which state its transaction is."""
        session = self.session
        status = "E" if session.has_failed else "T" if session.is_in_transaction else "I"
        self.connection.send(messages.READY[status])
        self.connection.flush()

    def close(self) -> None:
        """The client has gone."""
        self.commands.close()
        self.session.close()

    def _stray(self, body: bytes) -> None:
        """Data of a COPY that has ended in an error."""

    def _terminate(self, body: bytes) -> None:
        self.connection.close()

    # ------------------------------------------------------------------ simple queries

    def _query(self, body: bytes) -> Awaitable[None]:
        fields = Fields(body)
        text = fields.text()
        fields.end()
        return self._simple(text)

    async def _simple(self, text: str) -> None:
        self._text, self._offset = text, 0
        found = await self.session.read(text, lambda: pieces(text))
        if not found:
            self.connection.send(messages.EMPTY_QUERY)
        shared = len(found) > 1 and not self.session.is_in_transaction
        shared = shared and all(piece.text.upper().startswith(TOGETHER) for piece in found)
        if shared:
            await self.session.call(self.session.begin)
        try:
            for piece in found:
                self._offset = piece.offset
                await self._piece(piece.text)
                await self.connection.drain()
            if shared:
                await self.session.commit()
        except BaseException:
            if shared:
                await self.session.rollback()
            raise
        self.ready()

    async def _piece(self, text: str) -> None:
        """Run one statement of a simple query, and send all that it gives."""
        with self.session.doing(text):
            found = await self.session.read(text, lambda: command(text))
            if found is not None:
                await self.commands.run(found, text)
                return
            known = await self.session.prepare(text, {}, described=False)
            await self.send_result(await self.session.run(known, {}))

    async def send_result(self, result: Result) -> None:
        """Send a result as text: the columns, the rows and the tag."""
        if result.subscription is not None:
            await self.commands.stream_rows(result)
            return
        if result.table is not None:
            columns = columns_of(result.table)
            self.connection.send(described(columns, ()))
            for piece in data_rows(result.table, [type for _, type in columns], ()):
                self.connection.send(piece)
                await self.connection.drain()
        if result.notice:
            self.commands.notice("00000", result.notice, "NOTICE")
        self.connection.send(messages.command_complete(tag_of(result)))

    # ------------------------------------------------------------------ the extended protocol

    def _parse(self, body: bytes) -> Awaitable[None]:
        fields = Fields(body)
        name, text = fields.text(), simpler(fields.text())
        oids = [fields.integer() & 0xFFFFFFFF for _ in range(fields.short())]
        fields.end()
        self._text, self._offset = text, 0
        if name and name in self.statements:
            error = ConflictError(f"there is a prepared statement {name!r} already").about(
                condition="duplicate-statement"
            )
            error.details["sqlstate"] = "42P05"
            raise error
        self.statements.check_room(name)
        self.statements.pop("", None)
        return self._prepare(name, text, oids)

    async def _prepare(self, name: str, text: str, oids: list[int]) -> None:
        said = await self.session.read(text, lambda: _command_alone(text))
        made = PreparedStatement(text, oids, said)
        if said is None:
            made.known = await self.session.prepare(text, {}, described=False)
        self.statements[name] = made
        self.connection.send(messages.PARSE_COMPLETE)

    async def describe(self, statement: PreparedStatement) -> None:
        """Find out what a statement takes and gives, if that is not known."""
        if not statement.is_described and statement.known is not None:
            self.session.check_not_failed()
            statement.known = await self.session.prepare(statement.text, statement.declared(), described=True)
            statement.is_described = True

    def _bind(self, body: bytes) -> Awaitable[None] | None:
        portal, name, formats, values, results = read_bind(Fields(body))
        statement = self.statements.named(name)
        self._text, self._offset = statement.text, 0
        if values and not statement.is_described:
            return self._describe_and_bind(portal, statement, formats, values, results)
        self._bound(portal, statement, formats, values, results)
        return None

    async def _describe_and_bind(self, portal: str, statement: PreparedStatement, *parts: Any) -> None:
        await self.describe(statement)
        self._bound(portal, statement, *parts)

    def _bound(
        self,
        portal: str,
        statement: PreparedStatement,
        formats: list[int],
        values: list[bytes | None],
        results: list[int],
    ) -> None:
        if portal and portal in self.portals:
            error = ConflictError(f"there is a portal {portal!r} already")
            error.details["sqlstate"] = "42P03"
            raise error
        self.portals.check_room(portal)
        bound = bound_values(statement, formats, values, self.session.settings.zone)
        self.portals[portal] = Portal(statement, bound, results)
        self.connection.send(messages.BIND_COMPLETE)

    def _describe(self, body: bytes) -> Outcome:
        fields = Fields(body)
        kind, name = fields.byte(), fields.text()
        fields.end()
        if kind == ord("S"):
            return self._describe_statement(self.statements.named(name))
        if kind == ord("P") and name in self.commands.cursors.by_name:
            return self._describe_cursor(name)
        if kind == ord("P"):
            portal = self.portals.named(name)
            return self._describe_at_once(portal) or self._describe_portal(portal)
        raise ProtocolError("Describe is about a statement (S) or a portal (P)")

    def _describe_at_once(self, portal: Portal) -> Outcome:
        """Answer for a statement whose columns are known, if they are."""
        statement = portal.statement
        known = statement.known
        if known is None or not statement.is_described or portal.is_run:
            return None
        if known.lookup is not None:
            self.connection.send(statement.shape(known.lookup.columns, portal.formats).description)
            return Handled.AT_ONCE
        if known.description.columns is None:
            self.connection.send(messages.NO_DATA)
            return Handled.AT_ONCE
        return None

    async def _describe_statement(self, statement: PreparedStatement) -> None:
        await self.describe(statement)
        self.connection.send(messages.parameter_description([statement.oid(label) for label in statement.labels]))
        columns = await self._columns(statement)
        self.connection.send(messages.NO_DATA if columns is None else described(columns, ()))

    async def _describe_portal(self, portal: Portal) -> None:
        known = portal.statement.known
        if known is not None and known.statement is not None and known.is_read:
            # A query changes nothing: it is run before it is asked for, and then its columns are known.
            await self._run(portal)
            assert portal.table is not None
            columns: list[tuple[str, Type]] | None = columns_of(portal.table)
        else:
            await self.describe(portal.statement)
            columns = await self._columns(portal.statement)
        self.connection.send(messages.NO_DATA if columns is None else described(columns, portal.formats))

    async def _describe_cursor(self, name: str) -> None:
        cursor = self.commands.cursors.named(name)
        self.connection.send(described(columns_of(cursor.table), cursor.formats))

    async def _columns(self, statement: PreparedStatement) -> list[tuple[str, Type]] | None:
        if statement.command is not None:
            return self.commands.columns(statement.command)
        return statement.columns

    def _execute(self, body: bytes) -> Outcome:
        fields = Fields(body)
        name, most = fields.text(), fields.integer()
        fields.end()
        portal = self.portals.named(name)
        self._text, self._offset = portal.statement.text, 0
        return (self._execute_at_once(portal) if not most else None) or self._execute_portal(portal, most)

    def _execute_at_once(self, portal: Portal) -> Outcome:
        """Run a statement that is known to be short, without a worker; None if it is not, or the engine is busy."""
        statement, connection = portal.statement, self.connection
        known = statement.known
        if known is None or portal.is_run or not statement.is_described:
            return None
        if known.lookup is not None:
            found = self.session.look_up_at_once(known, portal.values)
            if found is None:
                return None
            connection.send(statement.shape(known.lookup.columns, portal.formats).rows(found))
            connection.send(messages.command_complete(f"SELECT {len(found)}"))
            return Handled.AT_ONCE
        if known.insert is not None and connection.reader.next_kind == SYNC:
            tag = messages.command_complete(f"INSERT 0 {len(known.insert.cells)}")

            def report(error: Exception | None) -> None:
                if error is not None:
                    raise error
                connection.send(tag)

            done = lambda error, _: connection.resume(lambda: report(error))  # noqa: E731
            return Handled.LATER if self.session.insert_at_once(known, portal.values, done) else None
        return None

    async def _execute_portal(self, portal: Portal, most: int) -> None:
        statement = portal.statement
        if statement.command is not None:
            with self.session.doing(statement.text):
                await self.commands.run(statement.command, statement.text, False, portal.formats)
            return
        if statement.known is None or statement.known.statement is None:
            self.connection.send(messages.EMPTY_QUERY)
            return
        await self._begin_implicitly(statement.known)
        await self._run(portal)
        if not portal.is_sent:
            await self.send_portal(portal, most)

    async def _begin_implicitly(self, known: KnownStatement) -> None:
        """Statements that are sent together, up to a Sync, count together: one that writes and is not the last begins a block."""
        if self._is_implicit or self.session.is_in_transaction or self.connection.reader.next_kind == SYNC:
            return
        if known.statement is not None and carries_data(known.statement):
            await self.session.call(self.session.begin)
            self._is_implicit = True

    async def send_portal(self, portal: Portal, most: int) -> None:
        """Send rows of a portal, at most so many (0 is all), and the tag or that there are more."""
        table = portal.table
        if table is None:
            self.connection.send(messages.command_complete(portal.tag))
            return
        end = table.num_rows if most <= 0 else min(portal.sent + most, table.num_rows)
        types = [type for _, type in columns_of(table)]
        for piece in data_rows(table.slice(portal.sent, end - portal.sent), types, portal.formats):
            self.connection.send(piece)
            await self.connection.drain()
        sent, portal.sent = end - portal.sent, end
        if end < table.num_rows:
            self.connection.send(messages.PORTAL_SUSPENDED)
            return
        tag = portal.tag if not portal.tag.startswith("SELECT") else f"SELECT {sent}"
        self.connection.send(messages.command_complete(tag))

    async def fetch(self, portal: Portal, most: int) -> pa.Table:
        """At most so many of a portal's next rows: those of a query, for FETCH and MOVE."""
        known = portal.statement.known
        if not portal.is_run and known is not None and known.is_read:
            await self._run(portal)
        if portal.table is None:
            raise ConflictError("rows are fetched from the portal of a query, which this is not")
        found = portal.table.slice(portal.sent, most)
        portal.sent += found.num_rows
        return found

    async def _run(self, portal: Portal) -> None:
        """Run a portal's statement, unless it has been."""
        known = portal.statement.known
        if portal.is_run:
            return
        assert known is not None
        with self.session.doing(portal.statement.text):
            result = await self.session.run(known, portal.values)
            if result.subscription is not None:
                portal.is_run, portal.is_sent = True, True
                await self.commands.stream_rows(result, portal.formats, with_columns=False)
                return
        self.check_columns(portal.statement, result)
        portal.table, portal.tag, portal.is_run = result.table, tag_of(result), True

    def check_columns(self, statement: PreparedStatement, result: Result) -> None:
        """Refuse a result whose columns are other ones than the client was told: a table was made anew meanwhile."""
        told = statement.columns
        if told is None or result.table is None:
            return
        if [oid_of(type) for _, type in told] != [oid_of(type) for _, type in columns_of(result.table)]:
            error = ConflictError("cached plan must not change result type: prepare the statement again")
            error.details["sqlstate"] = "0A000"
            raise error

    def _close(self, body: bytes) -> None:
        fields = Fields(body)
        kind, name = fields.byte(), fields.text()
        fields.end()
        if kind not in b"SP":
            raise ProtocolError("Close is about a statement (S) or a portal (P)")
        (self.statements if kind == ord("S") else self.portals).pop(name, None)
        self.connection.send(messages.CLOSE_COMPLETE)

    def _flush(self, body: bytes) -> None:
        self.connection.flush()

    def _sync(self, body: bytes) -> Outcome:
        self._is_skipping = False
        self._is_simple = True  # an error of the commit is followed by ReadyForQuery at once
        if self._is_implicit:
            self._is_implicit = False
            return self._commit_implicitly()
        if not self.session.is_in_transaction:
            self.portals.clear()
        self.ready()
        return None

    async def _commit_implicitly(self) -> None:
        """End the block that statements up to a Sync share."""
        self.portals.clear()
        if self.session.is_in_transaction:
            await self.session.commit()
        self.ready()


def _command_alone(text: str) -> SessionCommand | None:
    """The command that a text is, if it is one and nothing else."""
    found = pieces(text)
    return command(found[0].text) if len(found) == 1 else None


def tag_of(result: Result) -> str:
    """The tag that says what a statement did."""
    message = result.message
    if result.table is not None and message in ("SELECT", "EXECUTE"):
        return f"SELECT {result.table.num_rows}"
    return message
