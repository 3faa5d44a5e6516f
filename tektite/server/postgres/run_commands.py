"""Runs the commands of `commands`: what each of them does to the session, and what it sends back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tektite.engine.core import core_of
from tektite.errors import ConflictError, IncorrectError, NotFoundError, TektiteError
from tektite.server.postgres import messages
from tektite.server.postgres.commands import SessionCommand, folded_name, unquoted
from tektite.server.postgres.copy_session import copy_in, copy_out
from tektite.server.postgres.cursors import Cursors, rows_asked
from tektite.server.postgres.rows import columns_of, data_rows, described
from tektite.server.subscriptions import ChangeStream
from tektite.sql import Result
from tektite.sql.catalog.settings import SETTINGS, listed, spelled
from tektite.sql.parse.transaction_modes import TransactionModes, transaction_modes
from tektite.sql.statements.transactions import set_modes
from tektite.values import types
from tektite.values.types import Type

if TYPE_CHECKING:
    from tektite.server.postgres.extended import ExtendedQueries


class CommandRunner:
    """The commands of one connection, and what they leave open: cursors, savepoints, a COPY."""

    def __init__(self, queries: ExtendedQueries) -> None:
        self.queries = queries
        self._formats: Sequence[int] = ()
        self.cursors = Cursors(queries.session)
        self._savepoints: list[tuple[str, Any]] = []

    async def run(
        self, command: SessionCommand, text: str, is_simple: bool = True, formats: Sequence[int] = ()
    ) -> None:
        """Run a command and send what it gives, in the formats that the client asked for, if the protocol has them."""
        queries, self._formats = self.queries, formats
        if queries.session.has_failed and command.kind not in ("rollback", "commit", "rollback_to"):
            queries.session.check_not_failed()
        try:
            await getattr(self, f"_{command.kind}")(command, is_simple)
        except BaseException:
            queries.session.fail()
            raise

    def columns(self, command: SessionCommand) -> list[tuple[str, Type]] | None:
        """The columns of what a command gives; None if it gives no rows."""
        if command.kind == "fetch" and command.part("verb").upper() == "FETCH":
            return columns_of(self.cursors.named(command.name).table)
        if command.kind != "show":
            return None
        if command.name == "all":
            return [("name", types.String), ("setting", types.String), ("description", types.String)]
        return [(" ".join(command.part("name").lower().split()), types.String)]

    def done(self, tag: str) -> None:
        self.queries.connection.send(messages.command_complete(tag))

    def notice(self, state: str, message: str, severity: str = "WARNING") -> None:
        fields = {"S": severity, "V": severity, "C": state, "M": message}
        self.queries.connection.send(messages.fields_of(b"N", fields))

    def close(self) -> None:
        """The client has gone."""
        self.cursors.end()

    # ------------------------------------------------------------------ transactions

    async def _begin(self, command: SessionCommand, is_simple: bool) -> None:
        session = self.queries.session
        if session.is_in_transaction:
            self.notice("25001", "there is a transaction in progress already")
        else:
            modes = _modes_of(command)
            await session.call(lambda: session.begin(modes))
            self._savepoints.clear()
        self.done("BEGIN")

    async def _commit(self, command: SessionCommand, is_simple: bool) -> None:
        session = self.queries.session
        if not session.is_in_transaction:
            self.notice("25P01", "there is no transaction in progress")
            self.done("COMMIT")
            return
        try:
            self.done("COMMIT" if await session.commit() else "ROLLBACK")
        finally:
            self.cursors.end(with_held=False)

    async def _rollback(self, command: SessionCommand, is_simple: bool) -> None:
        session = self.queries.session
        if not session.is_in_transaction:
            self.notice("25P01", "there is no transaction in progress")
        await session.rollback()
        self.cursors.end(with_held=False)
        self.done("ROLLBACK")

    async def _savepoint(self, command: SessionCommand, is_simple: bool) -> None:
        transaction = self._block("SAVEPOINT")
        self._savepoints.append((command.name, await self.queries.session.call(transaction.mark)))
        self.done("SAVEPOINT")

    async def _release(self, command: SessionCommand, is_simple: bool) -> None:
        self._block("RELEASE SAVEPOINT")
        del self._savepoints[self._place(command.name) :]
        self.done("RELEASE")

    async def _rollback_to(self, command: SessionCommand, is_simple: bool) -> None:
        transaction = self._block("ROLLBACK TO SAVEPOINT")
        at = self._place(command.name)
        mark = self._savepoints[at][1]
        await self.queries.session.call(lambda: transaction.return_to(mark))
        del self._savepoints[at + 1 :]
        self.queries.session.has_failed = False
        self.done("ROLLBACK")

    def _block(self, what: str) -> Any:
        transaction = self.queries.session.engine_session.open_transaction
        if transaction is None:
            raise _with_state(ConflictError(f"{what} can only be used in transaction blocks"), "25P01")
        return transaction

    def _place(self, name: str) -> int:
        places = [at for at, (known, _) in enumerate(self._savepoints) if known == name]
        if not places:
            raise _with_state(NotFoundError(f"there is no savepoint {name!r}"), "3B001")
        return places[-1]

    async def _modes(self, command: SessionCommand, is_simple: bool) -> None:
        session = self.queries.session.engine_session
        if not set_modes(session, _modes_of(command), bool(command.part("session"))):
            self.notice("25P01", "SET TRANSACTION can only be used in transaction blocks")
        self.done("SET")

    async def _constraints(self, command: SessionCommand, is_simple: bool) -> None:
        self.done("SET CONSTRAINTS")  # none can be deferred, so there is none that this is about

    # ------------------------------------------------------------------ parameters

    async def _set(self, command: SessionCommand, is_simple: bool) -> None:
        said = command.part("name")
        name = "timezone" if command.part("zone") else said if "." in said else folded_name(said)
        value = unquoted(command.part("zone") or command.part("value"))
        self._give(name, None if value.lower() == "default" else value)
        self.done("SET")

    async def _reset(self, command: SessionCommand, is_simple: bool) -> None:
        if command.name == "all":
            self._reset_all()
        else:
            self._give(command.name, None)
        self.done("RESET")

    def _reset_all(self) -> None:
        self.queries.session.settings.reset()
        self.report()

    def report(self) -> None:
        """Tell the client of every setting that clients are told of."""
        for name, setting in SETTINGS.items():
            if setting.reported:
                self._report(name)

    def _report(self, name: str) -> None:
        value = self.queries.session.settings.show(name)
        self.queries.connection.send(messages.parameter_status(spelled(name), value))

    def _give(self, name: str, value: str | None) -> None:
        known = self.queries.session.settings.set(name, None if value is None else listed(name, value))
        if known in SETTINGS and SETTINGS[known].reported:
            self._report(known)

    async def _show(self, command: SessionCommand, is_simple: bool) -> None:
        settings = self.queries.session.settings
        columns = self.columns(command) or []
        if command.name == "all":
            every = zip(*settings.rows(), strict=True)
            table = pa.table({name: list(values) for (name, _), values in zip(columns, every, strict=True)})
        else:
            table = pa.table({columns[0][0]: [settings.show(columns[0][0])]})
        await self._send_table(table, "SHOW", is_simple)

    async def _send_table(self, table: pa.Table, tag: str, is_simple: bool, formats: Sequence[int] = ()) -> None:
        columns = columns_of(table)
        if is_simple:
            self.queries.connection.send(described(columns, formats))
        for piece in data_rows(table, [type for _, type in columns], formats):
            self.queries.connection.send(piece)
            await self.queries.connection.drain()
        self.done(tag)

    async def _discard(self, command: SessionCommand, is_simple: bool) -> None:
        if command.name == "all":
            if self.queries.session.is_in_transaction:
                raise _with_state(ConflictError("DISCARD ALL cannot run inside a transaction block"), "25001")
            self.queries.statements.clear()
            self.queries.portals.clear()
            self.cursors.end()
            self._reset_all()
        self.done(f"DISCARD {command.name.upper()}")

    async def _unlisten(self, command: SessionCommand, is_simple: bool) -> None:
        self.done("UNLISTEN")  # nobody listens

    # ------------------------------------------------------------------ prepared statements and epochs

    async def _deallocate(self, command: SessionCommand, is_simple: bool) -> None:
        statements = self.queries.statements
        if command.name == "all":
            statements.clear()
            self.done("DEALLOCATE ALL")
            return
        if command.name in statements:
            del statements[command.name]
            self.done("DEALLOCATE")
            return
        session = self.queries.session
        known = await session.prepare(f"DEALLOCATE {command.part('name')}", {}, described=False)
        await self.queries.send_result(await session.run(known, {}))

    async def _advance(self, command: SessionCommand, is_simple: bool) -> None:
        session = self.queries.session
        to = int(command.part("value")) if command.part("value") else None
        await session.call(lambda: session.rights.advance(to))
        await session.until_durable()
        self.done(f"ADVANCE {core_of(session.server.engine).epoch - 1}")

    # ------------------------------------------------------------------ cursors and COPY

    async def _declare(self, command: SessionCommand, is_simple: bool) -> None:
        await self.cursors.declare(command)
        self.done("DECLARE CURSOR")

    async def _fetch(self, command: SessionCommand, is_simple: bool) -> None:
        verb, most = command.part("verb").upper(), rows_asked(command.part("value"))
        portal = self.queries.portals.get(command.name)  # a driver's cursor
        if portal is not None and command.name not in self.cursors.by_name:
            table, formats = await self.queries.fetch(portal, most), portal.formats
        else:
            cursor = self.cursors.named(command.name)
            table, formats = await cursor.fetch(most), cursor.formats
        tag = f"{verb} {table.num_rows}"
        if verb == "MOVE":
            self.done(tag)
        else:
            await self._send_table(table, tag, is_simple, formats if is_simple else self._formats)

    async def _close(self, command: SessionCommand, is_simple: bool) -> None:
        if command.name in self.cursors.by_name or self.queries.portals.pop(command.name, None) is None:
            self.cursors.close(command.name)
        self.done("CLOSE CURSOR")

    async def _copy_in(self, command: SessionCommand, is_simple: bool) -> None:
        self.done(await copy_in(self.queries, command))

    async def _copy_out(self, command: SessionCommand, is_simple: bool) -> None:
        self.done(await copy_out(self.queries, command))

    # ------------------------------------------------------------------ subscriptions

    async def stream_rows(self, result: Result, formats: Sequence[int] = (), with_columns: bool = True) -> None:
        """Send the changes of a subscription as rows, as they happen, until it ends or is cancelled."""
        connection = self.queries.connection
        stream = await ChangeStream.begin(self.queries.session, result)
        columns = columns_of(stream.schema.empty_table())
        kinds = [type for _, type in columns]
        sent = 0
        self.queries.is_streaming = True
        try:
            if with_columns:
                connection.send(described(columns, formats))
            while (table := await stream.next()) is not None:
                for piece in data_rows(table, kinds, formats):
                    connection.send(piece)
                    await connection.drain()
                sent += table.num_rows
                connection.flush()
        finally:
            self.queries.is_streaming = False
            stream.close()
        self.done(f"SUBSCRIBE {sent}")


def _modes_of(command: SessionCommand) -> TransactionModes:
    """The modes that a command gives a transaction."""
    try:
        return transaction_modes(command.part("modes").replace(",", " , ").split())
    except IncorrectError as error:
        raise _with_state(error, "42601") from None


def _with_state(error: TektiteError, state: str) -> TektiteError:
    error.details["sqlstate"] = state
    return error
