"""Reads the address of a server and the user from a URL."""

from __future__ import annotations

import base64
import json
import urllib.request
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from tektite.errors import FaultError, IncorrectError

SCHEMES = {"tektite": "ws", "tektites": "wss", "http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}
PORT = 5434
PATH = "/v1/socket"
PATIENCE = 5.0
"""Seconds that a server may take to answer a request for its status."""


@dataclass(frozen=True)
class ServerAddress:
    """The address of a server: URL, user and password.

    >>> ServerAddress.parse("tektite://ann@db.example")
    ServerAddress(url='ws://db.example:5434/v1/socket', user='ann', password=None)
    """

    url: str
    user: str | None = None
    password: str | None = None

    @staticmethod
    def parse(url: str) -> ServerAddress:
        """The address that a URL says."""
        if not isinstance(url, str):
            raise IncorrectError(f"a server is named by a URL such as 'tektite://localhost:{PORT}', not {url!r}")
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port or PORT
        except ValueError as error:
            raise IncorrectError(f"{url!r} is not a URL: {error}") from None
        if parts.scheme not in SCHEMES or not host:
            raise IncorrectError(
                f"a server is named by a URL such as 'tektite://localhost:{PORT}', or 'tektites://...' with TLS, not {url!r}"
            )
        shown = f"[{host}]" if ":" in host else host
        path = parts.path if parts.path not in ("", "/") else PATH
        user = None if parts.username is None else unquote(parts.username)
        password = None if parts.password is None else unquote(parts.password)
        return ServerAddress(f"{SCHEMES[parts.scheme]}://{shown}:{port}{path}", user, password)

    @property
    def page(self) -> str:
        """The address of the server's console.

        >>> ServerAddress.parse("tektites://ann@db.example").page
        'https://db.example:5434/'
        """
        parts = urlsplit(self.url)
        return f"{'https' if parts.scheme == 'wss' else 'http'}://{parts.netloc}/"


def find_console(url: str) -> str:
    """The address of a server's console. Raises if there is no server, or if the server is not ready."""
    page = ServerAddress.parse(url).page
    try:
        with urllib.request.urlopen(f"{page}status", timeout=PATIENCE) as answer:
            status = json.load(answer)
        if not (isinstance(status, dict) and status.get("ready")):
            raise FaultError(f"the server at {page} is not ready")
    except (OSError, ValueError) as error:
        raise FaultError(
            f"there is no server at {page} ({error}): start one with `tektite serve`, or call engine.console() in a program"
        ) from None
    return page


def authorization(user: str | None, password: str | None, token: str | None) -> str | None:
    """The header by which a client says who it is."""
    if token is not None:
        return f"Bearer {token}"
    if user is None:
        return None
    return "Basic " + base64.b64encode(f"{user}:{password or ''}".encode()).decode()
