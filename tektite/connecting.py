"""`tektite.connect` and `tektite.connect_async`. They load the client, and with it `websockets`, when they are called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tektite.errors import UnsupportedError
from tektite.unknown_options import explained

if TYPE_CHECKING:
    import ssl as tls

    from tektite.client.async_session import AsyncSession
    from tektite.client.session import RemoteSession


@explained
def connect(
    url: str,
    *,
    user: str | None = None,
    password: str | None = None,
    token: str | None = None,
    ssl: tls.SSLContext | None = None,
    open_seconds: float = 10.0,
    reconnect_seconds: float = 30.0,
) -> RemoteSession:
    """A session on a server: `tektite://user:password@host:5434`, or `tektites://...` with TLS.

    It offers what an engine does: tables, views, SQL, transactions, subscriptions. What takes a Python function is not among
    it, nor are queries that are built in Python: these do not travel. A subscription survives a broken connection: the client
    connects again for up to `reconnect_seconds`, and goes on where it was.
    """
    _check_installed()
    from tektite.client.async_session import AsyncSession
    from tektite.client.event_loop import BackgroundLoop
    from tektite.client.session import RemoteSession

    loop = BackgroundLoop.shared()
    made = AsyncSession.open(
        url, user=user, password=password, token=token, ssl=ssl, open_seconds=open_seconds, reconnect_seconds=reconnect_seconds,
    )  # fmt: skip
    return RemoteSession(loop, loop.run(made))


@explained
async def connect_async(
    url: str,
    *,
    user: str | None = None,
    password: str | None = None,
    token: str | None = None,
    ssl: tls.SSLContext | None = None,
    open_seconds: float = 10.0,
    reconnect_seconds: float = 30.0,
) -> AsyncSession:
    """`connect` for programs with an event loop: what the session offers are coroutines."""
    _check_installed()
    from tektite.client.async_session import AsyncSession

    return await AsyncSession.open(
        url, user=user, password=password, token=token, ssl=ssl, open_seconds=open_seconds, reconnect_seconds=reconnect_seconds,
    )  # fmt: skip


def _check_installed() -> Any:
    try:
        import websockets
    except ImportError:
        raise UnsupportedError(
            "a client of a server needs the package websockets: pip install 'tektite[client]'"
        ) from None
    return websockets
