"""What statements about sources and sinks ask of whoever runs them."""

from __future__ import annotations

from typing import Any, Protocol

import pyarrow as pa

from tektite.sql.parse.connector_statements import CreateConnector, DropConnector
from tektite.sql.statements.result import Result


class ConnectorRunner(Protocol):
    """What runs sources and sinks: a server does."""

    all: dict[str, Any]
    """Each by its kind and name."""

    def create(self, statement: CreateConnector) -> Result:
        """CREATE SOURCE, CREATE SINK."""

    def drop(self, statement: DropConnector) -> Result:
        """DROP SOURCE, DROP SINK."""

    def shown(self, kind: str) -> pa.Table:
        """SHOW SOURCES, SHOW SINKS."""
