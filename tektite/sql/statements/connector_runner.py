"""The interface through which statements about sources and sinks call their runner."""

from __future__ import annotations

from typing import Any, Protocol

import pyarrow as pa

from tektite.sql.parse.connector_statements import CreateConnector, DropConnector
from tektite.sql.statements.result import Result


class ConnectorRunner(Protocol):
    """The runner of sources and sinks. A server is one."""

    all: dict[str, Any]
    """Each by its kind and name."""

    def create(self, statement: CreateConnector) -> Result:
        """CREATE SOURCE, CREATE SINK."""

    def drop(self, statement: DropConnector) -> Result:
        """DROP SOURCE, DROP SINK."""

    def shown(self, kind: str) -> pa.Table:
        """SHOW SOURCES, SHOW SINKS."""
