"""Requests about the server and its clients: status, cancel-client."""

from __future__ import annotations

from tektite.engine.core import core_of
from tektite.errors import NotFoundError
from tektite.server.health import status_of
from tektite.server.web.answers import Answer, SessionRequests
from tektite.server.web.body import RequestBody


class ServerRequests(SessionRequests):
    """How the server is, and what its clients run."""

    async def do_status(self, body: RequestBody) -> Answer:
        """How the server is, and how far time has come."""
        body.finish()
        server = self.session.server
        failures = await self.session.call(lambda: server.engine.failures)
        found = {
            **status_of(server),
            "user": self.session.user,
            "failures": {name: str(e) for name, e in failures.items()},
        }
        return Answer({**found, "next_epoch": core_of(server.engine).epoch})

    async def do_cancel_client(self, body: RequestBody) -> Answer:
        """End what a client runs, by its number in `system.clients`: one of the same user, or any if a superuser asks."""
        number = body.number("client")
        body.finish()
        found = next((each for each in self.session.server.sessions if each.number == number), None)
        if found is None or found.user != self.session.user:
            self.session.rights.check_super("to end what other users run")
        if found is None:
            raise NotFoundError(f"there is no client {number}: system.clients lists those that are connected")
        was_running = found.activity is not None
        found.cancel(f"{self.session.user!r} asked for that")
        return Answer({"was_running": was_running})
