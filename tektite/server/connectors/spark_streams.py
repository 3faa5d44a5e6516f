"""StreamSource: a stream that the server's Spark session reads into a table, each micro-batch as an epoch.

Where it is, is in the checkpoint that Spark keeps in the engine's storage. A source that is created again goes on from there.
"""

from __future__ import annotations

import threading
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from tektite.errors import IncorrectError, UnsupportedError
from tektite.pipeline import SparkSource
from tektite.server.connectors.connector import Connector

if TYPE_CHECKING:
    from tektite.server.server import Server
    from tektite.spark.follow import Following
    from tektite.sql.parse.connector_statements import CreateConnector

NOT_OURS = ("options", "upto")
"""Parts of the description of a pipeline's source that a statement has no word for."""


class StreamSource(Connector):
    """A stream of Spark."""

    takes_any_option = True

    def __init__(self, server: Server, definition: CreateConnector, relation: str) -> None:
        super().__init__(server, definition, relation)
        if server.engine.spark is None:
            raise UnsupportedError(
                f"source {definition.name!r}: the server has no Spark session. Give it one in its description: "
                "spark: {{master: 'local[*]'}}"
            )
        self._stream = described_stream(definition)
        self._following: Following | None = None
        self._rows = 0
        """Rows of the streams before this one."""

    def restore_position(self) -> None:
        """Spark keeps the position, in the stream's checkpoint."""
        self._position = {}

    async def step(self) -> bool:
        """Start the stream if it does not run; see how it is."""
        if self._following is None:
            self._following = await self.server.compute(self._follow)
        found = self._following
        self.state.rows = self._rows + found.rows
        self._position = {} if found.batch is None else {"batch": found.batch}
        if found.failure is not None:
            self._rows, self._following = self.state.rows, None
            raise found.failure
        return True

    def _follow(self) -> Following:
        from tektite.spark.run import follow_source

        return follow_source(self.server.engine.table(self.relation), self._stream)

    def stop(self) -> None:
        """Run no more. Spark ends the micro-batch that it is at, in a thread of its own: it may wait for the engine's lock."""
        super().stop()
        if self._following is not None:
            threading.Thread(target=self._following.stop, name=f"tektite-{self.key}", daemon=True).start()


def described_stream(definition: CreateConnector) -> SparkSource:
    """The stream that WITH describes: words that pipelines have, and options of Spark's reader."""
    known = {field.name for field in fields(SparkSource)} - set(NOT_OURS)
    ours: dict[str, Any] = {name: value for name, value in definition.options.items() if name in known}
    others = {name: value for name, value in definition.options.items() if name not in known and name != "every"}
    name = definition.name
    if ("format" in ours) == ("table" in ours):
        raise IncorrectError(f"source {name!r}: a stream is of a format or of a table: WITH (format = 'kafka', ...)")
    for option, values in {"extra": ("error", "ignore"), "bad_rows": ("stop", "keep")}.items():
        if ours.get(option, values[0]) not in values:
            raise IncorrectError(f"source {name!r}: {option} is {' or '.join(values)}, not {ours[option]!r}")
    if "max_bad_rows" in ours:
        if not ours["max_bad_rows"].isdigit():
            raise IncorrectError(f"source {name!r}: max_bad_rows is a number, not {ours['max_bad_rows']!r}")
        ours["max_bad_rows"] = int(ours["max_bad_rows"])
    if "select" in ours:
        ours["select"] = (ours["select"],)
    if "trigger" in ours:
        ours["trigger"] = trigger_of(ours["trigger"])
    return SparkSource(**ours, options=others)


def trigger_of(text: str) -> dict[str, Any]:
    """The trigger of a stream's micro-batches, as Spark's keyword argument.

    >>> trigger_of("5 seconds"), trigger_of("available now")
    ({'processingTime': '5 seconds'}, {'availableNow': True})
    """
    return {"availableNow": True} if text.replace(" ", "").lower() == "availablenow" else {"processingTime": text}
