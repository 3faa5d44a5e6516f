"""Connectors: all sources and sinks of a server.

Their statements are stored as those of views are. A restart makes them again, and each goes on from its position. Whatever
touches files of the server or sends something elsewhere is for superusers, and so are the places of these. Others are told of
sources and sinks of relations that they know.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from tektite.engine.core import core_of
from tektite.engine.hooks import ConnectedSource
from tektite.engine.table import Table
from tektite.engine.view import View
from tektite.engine.write_set import WriteSet
from tektite.errors import ConflictError, IncorrectError, NotFoundError
from tektite.server.connectors.connector import Connector
from tektite.server.connectors.sinks import FileSink, WebhookSink
from tektite.server.connectors.sources import FileSource, PushSource
from tektite.server.connectors.spark_streams import StreamSource
from tektite.sql import Result, runner
from tektite.sql.access.access_control import table_object
from tektite.sql.parse.connector_statements import CreateConnector, DropConnector
from tektite.sql.parse.places import nearest

if TYPE_CHECKING:
    from tektite.server.server import Server

T = TypeVar("T")


class Connectors:
    """The sources and sinks of one server. Used with the engine's lock held, unless it is said otherwise."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.all: dict[str, Any] = {}
        """Each by its kind and name."""
        self._is_started = False

    def start(self) -> None:
        """Run those that were brought back. Called in the event loop."""
        self._is_started = True
        for connector in self.all.values():
            connector.start()

    def stop(self) -> None:
        """Run none any more. Called in the event loop."""
        for connector in self.all.values():
            connector.stop()

    def create(self, statement: CreateConnector) -> Result:
        """CREATE SOURCE, CREATE SINK."""
        sql, source = runner(self._server.engine), statement.source
        done = Result(f"CREATE {statement.kind.upper()}")
        key = f"{statement.kind} {statement.name}"
        found = sql.relation_named(statement.relation)
        wanted = Table if statement.kind == "source" else Table | View
        if not isinstance(found, wanted) or found.name.startswith("__"):
            what = "table" if statement.kind == "source" else "table or materialized view"
            place = source.where(statement.relation.rpartition(".")[2])
            raise source.error(
                f"there is no {what} {statement.relation!r}: {nearest(statement.relation, sql.visible())}",
                place,
                NotFoundError,
            )
        is_push = statement.kind == "source" and statement.place == "http"
        if is_push:
            sql.access.check_owner(sql.access.who(), table_object(found.name))
        else:
            sql.access.check_super(
                sql.access.who(), "to read and write files of the server, and to send changes elsewhere"
            )
        if key in self.all:
            if statement.may_exist:
                return done
            raise source.error(f"there is a {key!r} already", source.where(statement.name), ConflictError)
        kinds: dict[str, type[Connector]] = {"source": FileSource, "sink": FileSink}
        streams = {"http": PushSource, "spark": StreamSource} if statement.kind == "source" else {}
        kind = streams.get(statement.place, kinds[statement.kind])
        if statement.kind == "sink" and statement.place.startswith(("http://", "https://")):
            kind = WebhookSink
        made = kind(self._server, statement, found.name)
        made.restore_position()
        self.all[key] = made
        if self._is_started:
            self._server.loop.call_soon_threadsafe(made.start)
        return done

    def drop(self, statement: DropConnector) -> Result:
        """DROP SOURCE, DROP SINK: it runs no more, and where it was is forgotten."""
        sql, key = runner(self._server.engine), f"{statement.kind} {statement.name}"
        found = self.all.get(key)
        done = Result(f"DROP {statement.kind.upper()}")
        if found is None:
            if statement.may_miss:
                return done
            names = [each.definition.name for each in self._told(statement.kind)]
            message = f"there is no {statement.kind} {statement.name!r}: {nearest(statement.name, names)}"
            raise statement.source.error(message, statement.source.where(statement.name), NotFoundError)
        if isinstance(found, PushSource):
            sql.access.check_owner(sql.access.who(), table_object(found.relation))
        else:
            sql.access.check_super(sql.access.who(), f"to drop a {statement.kind}")
        del self.all[key]
        found.stop()
        found.dropped()
        core_of(self._server.engine).commit(WriteSet(), positions=found.positions(None))
        return done

    def listed(self) -> list[ConnectedSource]:
        """All of them, as a system relation tells of them. May be called in any thread."""
        found = []
        for connector in list(self.all.values()):
            said, state = connector.definition, connector.state
            position = json.dumps(connector.position, sort_keys=True, default=str)
            found.append(
                ConnectedSource(said.kind, said.name, connector.relation, said.place, state.rows, position, state.error)
            )
        return found

    def _told(self, kind: str) -> list[Connector]:
        """The sources, or the sinks, that the user is told of."""
        access = runner(self._server.engine).access
        found = [connector for key, connector in sorted(self.all.items()) if key.startswith(f"{kind} ")]
        return [connector for connector in found if access.knows(access.who(), connector.relation)]

    def shown(self, kind: str) -> pa.Table:
        """SHOW SOURCES, SHOW SINKS. Places, and errors, which quote what is there, are for who sees `system.connectors` whole."""
        access = runner(self._server.engine).access
        sees_all = access.bypasses(access.who(), "system.connectors")

        def told(connector: Connector, value: T) -> T | None:
            return value if sees_all or isinstance(connector, PushSource) else None

        found = self._told(kind)
        relation = "table" if kind == "source" else "relation"
        columns: dict[str, list[Any]] = {
            "name": [c.definition.name for c in found], relation: [c.relation for c in found],
            "place": [told(c, c.definition.place) for c in found], "rows": [c.state.rows for c in found],
            "position": [told(c, json.dumps(c.position, sort_keys=True)) for c in found],
            "error": [told(c, c.state.error) for c in found],
        }  # fmt: skip
        kinds = {"rows": pa.int64()}
        return pa.table({name: pa.array(values, kinds.get(name, pa.string())) for name, values in columns.items()})

    def pushed(self, name: str) -> PushSource:
        """The source of a name that clients push to."""
        found = next((connector for connector in self._told("source") if connector.definition.name == name), None)
        if found is None:
            raise NotFoundError(f"there is no source {name!r}")
        if not isinstance(found, PushSource):
            raise IncorrectError(f"nothing can be pushed to source {name!r}: it reads by itself")
        return found
