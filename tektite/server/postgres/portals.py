"""Prepared statements and portals of one connection: the state that Parse, Bind and Execute share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tektite.errors import ConflictError, NotFoundError
from tektite.server.postgres import types
from tektite.server.postgres.commands import SessionCommand
from tektite.server.postgres.messages import Fields, ProtocolError
from tektite.server.postgres.rows import RowColumns, RowShape
from tektite.server.sessions import KnownStatement
from tektite.values.types import String, Type


@dataclass
class PreparedStatement:
    """A prepared statement: a command, or SQL with the types that its parameters were declared with."""

    text: str
    oids: list[int]
    command: SessionCommand | None = None
    known: KnownStatement | None = None
    is_described: bool = False
    _shapes: dict[tuple[int, ...], RowShape] = field(default_factory=dict)

    def shape(self, columns: RowColumns, formats: Sequence[int]) -> RowShape:
        """The form of its rows in the given formats. It is kept, because a prepared statement runs often."""
        asked = tuple(formats)
        found = self._shapes.get(asked)
        if found is None:
            found = self._shapes[asked] = RowShape(columns, asked)
        return found

    @property
    def labels(self) -> list[str]:
        """The labels of its parameters, in order."""
        return [] if self.known is None else list(self.known.description.parameters)

    def oid(self, label: str) -> int:
        """The type of a parameter: what the client declared, or else what was inferred."""
        at = int(label) - 1 if label.isdigit() else -1
        declared = self.oids[at] if 0 <= at < len(self.oids) else 0
        return declared if declared not in (0, types.UNKNOWN) else types.oid_of(self.type(label))

    def type(self, label: str) -> Type:
        return String if self.known is None else self.known.description.parameters.get(label, String)

    @property
    def columns(self) -> list[tuple[str, Type]] | None:
        """The columns of its result; None if it gives no rows."""
        found = None if self.known is None else self.known.description
        if found is None or found.columns is None:
            return None
        said = found.declared or ("",) * len(found.columns)
        pairs = zip(found.columns, [*said, *[""] * (len(found.columns) - len(said))], strict=True)
        return [(title, types.catalog_type(type, name) if name else type) for (title, type), name in pairs]

    def declared(self) -> dict[str, Type]:
        """The types that the client declared, by label."""
        return {str(at): types.KINDS[oid] for at, oid in enumerate(self.oids, 1) if oid in types.KINDS}


@dataclass
class Portal:
    """A statement with values for its parameters, and what it has given so far."""

    statement: PreparedStatement
    values: dict[str, Any] = field(default_factory=dict)
    formats: Sequence[int] = ()
    table: pa.Table | None = None
    tag: str = ""
    is_run: bool = False
    is_sent: bool = False
    """Whether its whole result was sent while it ran."""
    sent: int = 0
    """Rows of the table that were sent."""


class NamedObjects(dict[str, Any]):
    """Statements, portals or cursors by name: so many at most. The one without a name is replaced by the next."""

    def __init__(self, kind: str, state: str, most: int) -> None:
        super().__init__()
        self._kind = kind
        self._state = state
        self._most = most

    def check_room(self, name: str) -> None:
        """Refuse another one, if there are as many as there may be."""
        if name and len(self) - ("" in self) >= self._most:
            raise ConflictError(f"there are {self._most} {self._kind}s, which is as many as there may be").about(
                condition="configuration-limit-exceeded"
            )

    def named(self, name: str) -> Any:
        """The one of a name."""
        found = self.get(name)
        if found is None:
            error = NotFoundError(f"there is no {self._kind} {name!r}")
            error.details["sqlstate"] = self._state
            raise error
        return found


def read_bind(fields: Fields) -> tuple[str, str, list[int], list[bytes | None], list[int]]:
    """The parts of a Bind message: portal, statement, formats of values, values, formats of results."""
    portal, statement = fields.text(), fields.text()
    formats = fields.shorts()
    values = [fields.value() for _ in range(fields.short())]
    results = fields.shorts()
    fields.end()
    if len(formats) > 1 and len(formats) != len(values):
        raise ProtocolError(f"Bind has {len(values)} values and {len(formats)} formats")
    if any(form not in (0, 1) for form in [*formats, *results]):
        raise ProtocolError("Bind names a format that is neither text (0) nor binary (1)")
    return portal, statement, formats, values, results


def bound_values(
    statement: PreparedStatement, formats: Sequence[int], values: Sequence[bytes | None], zone: str
) -> dict[str, Any]:
    """The values of a statement's parameters, by label. Moments without an offset are what the clocks of `zone` show."""
    labels = statement.labels
    wanted = max([int(label) for label in labels if label.isdigit()], default=0)
    if len(values) < wanted or len(values) > max(wanted, len(statement.oids)):
        raise ProtocolError(f"Bind has {len(values)} values for a statement with {wanted} parameters")
    found = {}
    for label in labels:
        at = int(label) - 1
        form = formats[at] if len(formats) > 1 else formats[0] if formats else types.TEXT
        found[label] = types.read_value(values[at], statement.oid(label), statement.type(label), form, label, zone)
    return found
