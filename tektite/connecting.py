"""`tektite.connect` and `tektite.connect_async`. They load the client, and with it `websockets`, when they are called."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import TYPE_CHECKING, Any, NoReturn

from tektite.errors import IncorrectError, UnsupportedError
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


class Opening(Coroutine[Any, Any, "AsyncSession"]):
    """A session that is being opened: for `await`, for `async with`, whose block ends the session, and for a task."""

    def __init__(self, made: Coroutine[Any, Any, AsyncSession]) -> None:
        self._made = made
        self._session: AsyncSession | None = None

    def __await__(self) -> Generator[Any, Any, AsyncSession]:
        return self._made.__await__()

    if not TYPE_CHECKING:  # type checkers are to see names that are not there

        def __getattr__(self, name: str) -> NoReturn:
            hint = "" if name.startswith("_") else f": await it first, as in (await tk.connect_async(url)).{name}"
            raise AttributeError(f"a session that is being opened has no {name!r}{hint}")

        def __enter__(self) -> NoReturn:
            raise IncorrectError("this is waited for: write `async with`")

        def __exit__(self, *_: object) -> None:
            """Never called: there is no block."""

    def send(self, value: Any) -> Any:
        """Goes on opening, for the event loop."""
        return self._made.send(value)

    def throw(self, *raised: Any) -> Any:
        """Goes on with an error, for the event loop."""
        return self._made.throw(*raised)

    def close(self) -> None:
        """Gives up opening, for the event loop."""
        self._made.close()

    async def __aenter__(self) -> AsyncSession:
        self._session = await self._made
        return await self._session.__aenter__()

    async def __aexit__(self, *raised: Any) -> None:
        assert self._session is not None
        await self._session.__aexit__(*raised)


@explained
def connect_async(
    url: str,
    *,
    user: str | None = None,
    password: str | None = None,
    token: str | None = None,
    ssl: tls.SSLContext | None = None,
    open_seconds: float = 10.0,
    reconnect_seconds: float = 30.0,
) -> Opening:
    """`connect` for programs with an event loop: `async with tk.connect_async(url) as session`, or `session = await
    tk.connect_async(url)`. The methods of the session are coroutines.
    """
    _check_installed()
    from tektite.client.async_session import AsyncSession

    made = AsyncSession.open(
        url, user=user, password=password, token=token, ssl=ssl, open_seconds=open_seconds, reconnect_seconds=reconnect_seconds,
    )  # fmt: skip
    return Opening(made)


def _check_installed() -> Any:
    try:
        import websockets
    except ImportError:
        raise UnsupportedError(
            "a client of a server needs the package websockets: pip install 'tektite[client]'"
        ) from None
    return websockets
