"""Connector: a source or a sink: its definition, its state, and the task that runs it.

A step that fails is told in SHOW SOURCES or SHOW SINKS and tried again; nobody else notices. What a step did is durable together
with where it is, or not at all.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tektite.engine.core import core_of
from tektite.errors import IncorrectError, TektiteError
from tektite.sql.catalog.settings import seconds_of
from tektite.sql.parse.connector_statements import CreateConnector

if TYPE_CHECKING:
    from tektite.server.server import Server

SECONDS = "100ms"
"""The time between two looks of a connector for work, unless it sets its own."""
RETRY = 1.0
"""Seconds until a step that failed is tried again, at least."""


@dataclass
class ConnectorState:
    """The state of a connector."""

    rows: int = 0
    """Rows or changes since it was started."""
    error: str | None = None


class Connector:
    """One source or sink. `step` is what kinds of connectors differ in."""

    options: tuple[str, ...] = ("every",)
    """The options that its statement may have."""
    takes_any_option = False

    def __init__(self, server: Server, definition: CreateConnector, relation: str) -> None:
        wrong = [name for name in definition.options if name not in self.options and not self.takes_any_option]
        if wrong:
            raise IncorrectError(
                f"{definition.kind} {definition.name!r} has no option {wrong[0]!r}: there are {', '.join(self.options)}"
            )
        self.server = server
        self.definition = definition
        self.relation = relation
        """The engine's name of the table or view."""
        self.seconds = seconds_of(definition.options.get("every", SECONDS))
        self.state = ConnectorState()
        self._task: asyncio.Task[None] | None = None

    @property
    def key(self) -> str:
        """The name of its position in the storage."""
        return f"{self.definition.kind} {self.definition.name}"

    @property
    def position(self) -> dict[str, Any]:
        """Its position, as of the last durable epoch or later."""
        return self._position

    _position: dict[str, Any]

    def restore_position(self) -> None:
        """Begin where the storage says."""
        self._position = dict(self.server.engine.positions.get(self.key, {}))

    def positions(self, position: dict[str, Any] | None) -> dict[str, dict[str, Any] | None] | None:
        """A position as a commit takes it; without a storage there is none."""
        return None if core_of(self.server.engine).storage is None else {self.key: position}

    # ------------------------------------------------------------------ running

    def start(self) -> None:
        """Run it, in the server's event loop."""
        self._task = self.server.loop.create_task(self._run())

    async def _run(self) -> None:
        while True:
            try:
                is_done = await self.step()
                self.state.error = None
            except TektiteError as error:
                is_done = True
                if self.state.error != str(error):
                    self.server.log.warning("connector failed", connector=self.key, error=error)
                self.state.error = str(error)
            except Exception as error:
                is_done = True
                self.server.log.error("internal error", where=self.key, error=repr(error))
                self.state.error = "internal error: the server's log says more"
            if is_done:
                await asyncio.sleep(max(self.seconds, RETRY) if self.state.error else self.seconds)

    async def step(self) -> bool:
        """Do what there is to do; whether there is nothing more at the moment."""
        return True

    def stop(self) -> None:
        """Run no more. May be called in any thread."""
        if self._task is not None:
            self.server.loop.call_soon_threadsafe(self._task.cancel)

    def dropped(self) -> None:
        """Remove what it keeps in the engine. Called with the lock held."""
