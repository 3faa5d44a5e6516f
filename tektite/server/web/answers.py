"""Answers to requests: fields and, for some requests, a table; and the base class of all requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from tektite.engine.core import core_of
from tektite.engine.input_core import InputCore

if TYPE_CHECKING:
    from tektite.engine.table import Table
    from tektite.engine.view import View
    from tektite.server.feeds import Form
    from tektite.server.interests import PushChannel
    from tektite.server.sessions import ClientSession
    from tektite.sql.statements.shared_queries import SharedAnswer


class Answer(NamedTuple):
    """An answer to a client."""

    facts: dict[str, Any]
    table: pa.Table | None = None


class SessionRequests:
    """The session in which requests are carried out."""

    def __init__(self, session: ClientSession, channel: PushChannel | None, form: Form) -> None:
        self.session = session
        self.channel = channel
        """The connection that changes are told by; None where there is none."""
        self.form: Form = form
        """The format of tables that the client asked for."""


def described(relation: Table | View | SharedAnswer) -> dict[str, Any]:
    """Describes a table or a view to a client."""
    kinds = [str(kind) for kind in relation.schema.types]
    core = core_of(relation)
    found = {
        "name": relation.name, "kind": core.kind, "columns": list(relation.schema.names), "types": kinds,
        "time": relation.time,
    }  # fmt: skip
    return {**found, "key": list(core.describe().key)} if isinstance(core, InputCore) else found
