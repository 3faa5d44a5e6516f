"""Console: a server of an engine that a program holds. It speaks HTTP and WebSocket, listens on loopback, stores nothing, and
leaves the engine as it was when it ends.
"""

from __future__ import annotations

import asyncio
import html
import threading
import webbrowser
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from tektite.engine.core import core_of
from tektite.errors import IncorrectError
from tektite.pipeline import from_plain
from tektite.server.command import loop_runner
from tektite.server.epochs import EpochPolicy
from tektite.server.logs import Log
from tektite.server.plan import HTTP_PORT, ServerPlan
from tektite.server.server import Server

if TYPE_CHECKING:
    from tektite.engine.engine import Engine


class FaultLog(Log):
    """Writes what failed and should not, and nothing else: a program has its own output."""

    def info(self, event: str, **facts: Any) -> None:
        """Nothing."""

    def warning(self, event: str, **facts: Any) -> None:
        """Nothing."""


class Console:
    """A page about an engine, while it is served. Made by `Engine.console`; `close` ends it."""

    def __init__(self, engine: Engine, address: str, port: int | None, browser: bool) -> None:
        if port is not None and not (isinstance(port, int) and 0 <= port <= 65535):
            raise IncorrectError(f"console: expected a port from 0 (any that is free) to 65535, found {port!r}")
        core = core_of(engine)
        core.check_running()
        policy = EpochPolicy("commit" if core.autocommit else "explicit")
        self._plan = ServerPlan(from_plain({}, Path("console")), address=address, http_port=0, epochs=policy)
        self._engine = engine
        self._core = core
        self._port = port
        self._begun = threading.Event()
        self._ended: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._failures: list[BaseException] = []
        self._bound = 0
        self._thread = threading.Thread(target=self._run, name="tektite-console", daemon=True)
        self._thread.start()
        self._begun.wait()
        if self._failures:
            self._thread.join()
            raise self._failures[0]
        core.hooks.on_close.append(self._stop)
        print(f"the console is at {self.url}")
        if browser:
            webbrowser.open(self.url)

    @property
    def url(self) -> str:
        """The address of the page."""
        host = self._plan.address
        return f"http://{f'[{host}]' if ':' in host else host}:{self._bound}/"

    def _run(self) -> None:
        try:
            with loop_runner() as running:
                running.run(self._serve())
        except BaseException as error:
            self._failures.append(error)
        finally:
            self._begun.set()

    async def _serve(self) -> None:
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        server = Server(self._plan, self._engine, FaultLog(), is_guest=True)
        try:
            ports = [HTTP_PORT, 0] if self._port is None else [self._port]
            await server.start(ports)
            self._bound = server.http_port
            self._begun.set()
            await self._ended.wait()
        finally:
            await server.stop()

    def close(self) -> None:
        """Tell whoever looks at the page that it ends, and end it. The engine stays as it is. May be repeated."""
        if self._stop in self._core.hooks.on_close:
            self._core.hooks.on_close.remove(self._stop)
        self._stop()

    def _stop(self) -> None:
        if self._loop is not None and self._ended is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._ended.set)
            self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Console at {self.url}>" if self._thread.is_alive() else "<Console, closed>"

    def _repr_html_(self) -> str:
        url = html.escape(self.url)
        return f'<a href="{url}" target="_blank">Console at {url}</a>' if self._thread.is_alive() else "Console, closed"
