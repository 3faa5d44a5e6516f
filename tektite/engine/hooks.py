"""Hooks: functions of languages that the engine calls, because it does not know the languages.

All of them run with the engine's lock held, except `on_close` and `requested`.
"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from tektite.dataflow.flow import Dataflow
    from tektite.engine.view import View
    from tektite.engine.write_set import WriteSet


class ConnectedClient(NamedTuple):
    """Somebody who uses an engine through a server."""

    number: int
    user_name: str
    protocol: str
    address: str
    since: datetime.datetime
    subscriptions: int
    running: str | None
    """The statement or request that is carried out, if there is one."""
    running_since: datetime.datetime | None


class ConnectedSource(NamedTuple):
    """A source or a sink of a server."""

    kind: str
    name: str
    relation: str
    """The table that it writes to, or the table or view that it tells of."""
    place: str
    rows: int
    """Rows or changes since it was started."""
    position: str
    error: str | None


class ClientServer(Protocol):
    """Something that lets clients use an engine. Its methods may be called in any thread."""

    def clients(self) -> Iterable[ConnectedClient]:
        """The connected clients."""

    def connected(self) -> Iterable[ConnectedSource]:
        """Its sources and sinks."""

    def cancel_client(self, number: int, why: str) -> None:
        """End what one of its clients runs; nothing if it has no client of that number."""


class StandingQuery(NamedTuple):
    """A user's query that is kept up to date, beside views: one that was prepared or that is followed."""

    flow: Dataflow
    """The dataflow that computes it, perhaps together with other queries."""
    user_name: str
    uses: int
    """How many subscriptions and bindings of prepared statements the user has of it."""


class Installation(NamedTuple):
    """A dataflow that was installed: the names of its views, when that began, in seconds since 1970, and how long it took."""

    name: str
    at: float
    seconds: float


class ServedRequest(NamedTuple):
    """A statement or request of a server's client that has ended."""

    text: str
    user_name: str
    protocol: str
    address: str
    at: float
    """When it began, in seconds since 1970."""
    seconds: float
    error: str | None


@dataclass
class Hooks:
    """Functions by the occasion on which an engine calls them, in the order in which they were added."""

    before_commit: list[Callable[[WriteSet], None]] = field(default_factory=list)
    """Called with the write set that is about to be committed. May add to it."""
    name_claims: list[Callable[[str], str | None]] = field(default_factory=list)
    """Called with a name that an input or a view is to get. Says what has the name already ("a Datalog rule"), or None."""
    view_builders: list[Callable[[str], View | None]] = field(default_factory=list)
    """Called with the name of a view that there is not. Builds it, or returns None."""
    servers: list[ClientServer] = field(default_factory=list)
    """The servers through which clients use the engine."""
    client_numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    """The numbers of clients, whichever server they are connected to."""
    owners: list[Callable[[str], str | None]] = field(default_factory=list)
    """Called with the name of a table or view. Says which role owns it, or None."""
    queries: list[Callable[[], Iterable[StandingQuery]]] = field(default_factory=list)
    """Each says which queries of users are kept up to date."""
    installed: list[Callable[[Installation], None]] = field(default_factory=list)
    """Called when views have been installed."""
    requested: list[Callable[[ServedRequest], None]] = field(default_factory=list)
    """Called when a request of a server's client has ended. Without the lock, in the server's event loop."""
    on_close: list[Callable[[], None]] = field(default_factory=list)
    """Called once each when the engine closes, before anything is dropped. Without the lock: a function that stops a thread
    waits for it, and the thread may wait for the lock.
    """

    def claim(self, name: str) -> str | None:
        """The kind of object that a language has under a name; None if no language has one."""
        return next((found for claims in self.name_claims if (found := claims(name)) is not None), None)

    def owner_of(self, name: str) -> str | None:
        """The role that owns a table or view, if some language knows of one."""
        return next((found for owners in self.owners if (found := owners(name)) is not None), None)

    def build_view(self, name: str) -> View | None:
        """The view of a name that some language can build, if one can."""
        return next((found for build in self.view_builders if (found := build(name)) is not None), None)
