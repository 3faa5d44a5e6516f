"""Requests about the server and its clients: status, cancel-client."""

from __future__ import annotations

from tektite.engine.core import core_of
from tektite.errors import NotFoundError
from tektite.server.health import status_of
from tektite.server.web.answers import Answer, SessionRequests
from tektite.server.web.body import RequestBody


class ServerRequests(SessionRequests):
    """Requests about the state of the server and what its clients run."""

    async def do_status(self, body: RequestBody) -> Answer:
        """The state of the server, and its present time."""
        body.finish()
        server = self.session.server
        rights = self.session.rights
        failures, in_part = await self.session.call(
            lambda: (
                {name: str(error) for name, error in server.engine.failures.items() if rights.may_read(name)},
                rights.seen_in_part(),
            )
        )
        found = {**status_of(server), "user": self.session.user, "failures": failures, "seen_in_part": in_part}
        return Answer({**found, "next_epoch": core_of(server.engine).epoch})

    async def do_cancel_client(self, body: RequestBody) -> Answer:
        """End what a client runs, by its number in `system.clients`: one of the same user, or any if a superuser asks."""
        number = body.number("client")
        body.finish()
        servers = core_of(self.session.server.engine).hooks.servers
        found = [(server, client) for server in list(servers) for client in server.clients() if client.number == number]
        if not found or found[0][1].user_name != self.session.user:
            self.session.rights.check_super("to end what other users run")
        if not found:
            raise NotFoundError(f"there is no client {number}: system.clients lists those that are connected")
        ((server, client),) = found
        server.cancel_client(number, f"{self.session.user!r} asked for that")
        return Answer({"was_running": client.running is not None})
