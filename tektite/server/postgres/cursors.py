"""Cursors of SQL: DECLARE, FETCH, MOVE and CLOSE. One over SUBSCRIBE gives changes: FETCH waits for the first of them.

A cursor without HOLD ends with its transaction block; outside of a block it is kept, so that a subscription needs no transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from tektite.errors import ConflictError, IncorrectError
from tektite.server.postgres.commands import SessionCommand
from tektite.server.postgres.portals import NamedObjects
from tektite.server.subscriptions import ChangeStream

if TYPE_CHECKING:
    from tektite.server.sessions import ClientSession

EVERYTHING = 1 << 62


@dataclass
class Cursor:
    """Rows that are fetched bit by bit."""

    table: pa.Table
    formats: Sequence[int] = ()
    is_held: bool = False
    stream: ChangeStream | None = None
    at: int = 0

    async def fetch(self, most: int) -> pa.Table:
        """At most so many of the next rows."""
        if most and self.stream is not None and self.at >= self.table.num_rows:
            found = await self.stream.next()
            self.table, self.at = self.stream.schema.empty_table() if found is None else found, 0
        found = self.table.slice(self.at, most)
        self.at += found.num_rows
        return found

    def close(self) -> None:
        if self.stream is not None:
            self.stream.close()


class Cursors:
    """The cursors of one connection."""

    def __init__(self, session: ClientSession) -> None:
        self.session = session
        self.by_name = NamedObjects("cursor", "34000", session.server.plan.limits.prepared)

    async def declare(self, command: SessionCommand) -> None:
        """DECLARE name CURSOR FOR query."""
        name = command.name
        if name in self.by_name:
            error = ConflictError(f"there is a cursor {name!r} already")
            error.details["sqlstate"] = "42P03"
            raise error
        self.by_name.check_room(name)
        known = await self.session.prepare(command.part("value"), {}, described=False)
        if known.statement is None:
            raise IncorrectError("DECLARE needs a query behind FOR")
        result = await self.session.run(known, {})
        formats = (1,) if command.part("binary") else ()
        is_held = command.part("hold").upper() == "WITH" or not self.session.is_in_transaction
        if result.subscription is not None:
            stream = await ChangeStream.begin(self.session, result)
            self.by_name[name] = Cursor(stream.schema.empty_table(), formats, is_held, stream)
        elif result.table is not None:
            self.by_name[name] = Cursor(result.table, formats, is_held)
        else:
            raise IncorrectError("a cursor is declared for a query or a SUBSCRIBE")

    def named(self, name: str) -> Cursor:
        """The cursor of a name."""
        found: Cursor = self.by_name.named(name)
        return found

    def close(self, name: str) -> None:
        """CLOSE name, or CLOSE ALL."""
        if name == "all":
            self.end()
        else:
            self.named(name).close()
            del self.by_name[name]

    def end(self, with_held: bool = True) -> None:
        """Close the cursors that end with a block, or all of them."""
        for name, cursor in list(self.by_name.items()):
            if with_held or not cursor.is_held:
                cursor.close()
                del self.by_name[name]


def rows_asked(text: str) -> int:
    """The number of rows that FETCH asks for.

    >>> rows_asked(""), rows_asked("forward 7"), rows_asked("12")
    (1, 7, 12)
    """
    word = text.split()[-1].lower() if text.split() else "next"
    if word.isdigit():
        return int(word)
    return EVERYTHING if word == "all" else 1
