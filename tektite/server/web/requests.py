"""ClientRequests: what a client of HTTP or WebSocket asks for, in its session, and the answers.

Each request has a name and fields (`RequestBody`); its handler is a method of one of the classes that this one is made of.
Requests of a session are carried out one after the other. A failed one changes nothing, and an open transaction stays open.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pyarrow as pa

from tektite.errors import NotFoundError, TektiteError
from tektite.server.web.answers import Answer
from tektite.server.web.body import RequestBody
from tektite.server.web.relation_requests import RelationRequests
from tektite.server.web.rule_requests import RuleRequests
from tektite.server.web.server_requests import ServerRequests
from tektite.server.web.subscription_requests import SubscriptionRequests
from tektite.sql.bind.named_relations import HIDDEN
from tektite.values.columns import hint

NAMING = ("relation", "table", "view", "name")
"""Fields that name a table or a view. What the server keeps for itself is not among these."""

SAYING = ("text", "sql", "datalog", "relation", "table", "view", "name")
"""Fields that say what a request is about, for those who look at what runs."""


class ClientRequests(RelationRequests, RuleRequests, SubscriptionRequests, ServerRequests):
    """The requests of one session."""

    async def answer(self, request: str, fields: dict[str, Any], table: pa.Table | None = None) -> Answer:
        """Carry out a request."""
        name = HANDLERS.get(request)
        if name is None:
            raise NotFoundError(
                f"there is no request {request[:50]!r}: {hint(request[:50], sorted(HANDLERS), 'requests')}"
            )
        for field in NAMING:
            named = fields.get(field)
            if isinstance(named, str) and named.startswith(HIDDEN):
                raise NotFoundError(f"there is no table or view {named[:100]!r}")
        body = RequestBody(request, fields, table)
        handler: Callable[[RequestBody], Awaitable[Answer]] = getattr(self, name)
        said = [fields[field] for field in SAYING if isinstance(fields.get(field), str)]
        with self.session.doing(" ".join([request, *said])):
            try:
                return await handler(body)
            except TektiteError as error:
                if not error.shows_row:
                    raise
                named = [fields[field] for field in NAMING if isinstance(fields.get(field), str)]
                disclosed = self.session.rights.disclosure(named or None)
                raise await self.session.call(partial(disclosed, error)) from None


HANDLERS = {name.removeprefix("do_").replace("_", "-"): name for name in dir(ClientRequests) if name.startswith("do_")}
"""The handler of each request, by the name that clients use."""
