"""Authentication of HTTP clients, and the check of which web pages may talk to the server.

A browser lets any page connect to any address. So a request that a page makes is answered only if the page comes from this
server; and a server without users, which trusts everybody on its machine, answers only if it is called by a name of that
machine: another name may be a page's own, pointed to the machine later.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tektite.errors import TektiteError
from tektite.server.scram import WrongPassword

if TYPE_CHECKING:
    from tektite.server.server import Server

ANYBODY = "tektite"
"""The user name of clients that give none, on a server without users."""


class ForbiddenOrigin(TektiteError):
    """A web page of somebody else's asks."""

    code = "forbidden"


async def user_of(server: Server, authorization: str | None) -> str | None:
    """The user that a header `Authorization` proves to be; None where there is none and it is needed."""
    if authorization is None:
        return None if server.users.are_configured else ANYBODY
    scheme, _, said = authorization.strip().partition(" ")
    if scheme.lower() == "basic":
        try:
            name, colon, password = base64.b64decode(said.strip(), validate=True).decode().partition(":")
        except (binascii.Error, ValueError):
            raise WrongPassword("the header Authorization is not that of HTTP's basic authentication") from None
        if not colon:
            raise WrongPassword("the header Authorization is not that of HTTP's basic authentication")
        return await by_password(server, name, password)
    if scheme.lower() == "bearer":
        return await by_token(server, said.strip())
    raise WrongPassword("a client says who it is by a password (Basic) or a token (Bearer)")


async def by_password(server: Server, name: str, password: str) -> str:
    """A user that has given a password; whoever says a name, where there are no users."""
    if server.users.are_configured:
        await server.compute(lambda: server.users.check_password(name, password))
    return name or ANYBODY


async def by_token(server: Server, token: str) -> str:
    """The user whom a token was made for."""
    if not server.users.are_configured:
        return ANYBODY
    return await server.compute(lambda: server.users.user_of_token(token))


def check_page(server: Server, host: str | None, origin: str | None) -> None:
    """Refuse what another site's page asks for."""
    if origin is not None and urlsplit(origin).netloc.lower() != (host or "").lower():
        raise ForbiddenOrigin(f"a page of {origin[:100]!r} may not talk to this server")
    if not server.users.are_configured:
        name = urlsplit(f"//{host or ''}").hostname or ""
        if name not in ("localhost", "127.0.0.1", "::1", server.plan.address):
            raise ForbiddenOrigin(f"this server has no users, and is not called {name[:100]!r}: use localhost")
