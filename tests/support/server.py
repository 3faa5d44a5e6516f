"""A server in this process, on ports that are free, for tests that talk to it as clients do."""

from __future__ import annotations

import asyncio
import io
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tektite as tk
from tektite.pipeline import from_plain
from tektite.server.command import loop_runner
from tektite.server.installation import open_engine
from tektite.server.logs import Log
from tektite.server.plan import Limits, ServerPlan
from tektite.server.server import Server
from tests.support.patience import PATIENCE


@dataclass
class RunningServer:
    """A server that runs in a thread."""

    server: Server
    engine: tk.Engine
    loop: asyncio.AbstractEventLoop
    log: io.StringIO
    stopped: threading.Event

    @property
    def port(self) -> int:
        return self.server.port

    @property
    def http_port(self) -> int:
        return self.server.http_port

    def conninfo(self, user: str = "ann", **options: Any) -> str:
        """What libpq connects with."""
        said = {"host": "127.0.0.1", "port": self.port, "user": user, "dbname": "tektite", **options}
        return " ".join(f"{name}={value}" for name, value in said.items())

    @property
    def url(self) -> str:
        return f"postgresql://ann@127.0.0.1:{self.port}/tektite"

    @property
    def web_url(self) -> str:
        return f"tektite://127.0.0.1:{self.http_port}"

    def stop(self) -> None:
        """Stop it, as SIGTERM does."""
        asyncio.run_coroutine_threadsafe(self.server.stop(), self.loop).result(PATIENCE)


@contextmanager
def running_server(
    storage: Path | None = None, limits: dict[str, Any] | None = None, **plan: Any
) -> Iterator[RunningServer]:
    """A server of an engine that has nothing or what is stored, until the block ends."""
    pipeline = replace(from_plain({}, Path("server.yaml")), storage=None if storage is None else str(storage))
    with running(ServerPlan(pipeline, port=0, http_port=0, limits=Limits(**(limits or {})), **plan)) as found:
        yield found


@contextmanager
def running(
    made: ServerPlan, opened: Callable[[ServerPlan, Log], AbstractContextManager[tk.Engine]] = open_engine
) -> Iterator[RunningServer]:
    """A server that runs until the block ends."""
    log = io.StringIO()
    begun: list[RunningServer] = []
    failed: list[BaseException] = []
    is_begun, is_over = threading.Event(), threading.Event()

    async def serve() -> None:
        with opened(made, Log(out=log)) as engine:
            server = Server(made, engine, Log(out=log))
            await server.start()
            end = asyncio.Event()
            loop = asyncio.get_running_loop()
            begun.append(RunningServer(server, engine, loop, log, is_over))
            begun[0].__dict__["end"] = lambda: loop.call_soon_threadsafe(end.set)
            is_begun.set()
            await end.wait()
            await server.stop()

    def work() -> None:
        try:
            with loop_runner() as runner:
                runner.run(serve())
        except BaseException as error:
            failed.append(error)
        finally:
            is_over.set()
            is_begun.set()

    thread = threading.Thread(target=work, name="server")
    thread.start()
    is_begun.wait(PATIENCE)
    if failed:
        raise failed[0]
    try:
        yield begun[0]
    finally:
        begun[0].__dict__["end"]()
        thread.join(PATIENCE)
    if failed:
        raise failed[0]


def answered(port: int, data: bytes, seconds: float = PATIENCE, goes: bool = True) -> bytes:
    """All bytes that a server answers to some bytes, until it closes the connection or sends nothing for some seconds. A client
    that `goes` closes its side once it has sent them.
    """
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as peer:
        peer.settimeout(seconds)
        found = b""
        try:
            peer.sendall(data)
            if goes:
                peer.shutdown(socket.SHUT_WR)
            while piece := peer.recv(1 << 16):
                found += piece
        except OSError:  # among them a timeout
            pass
        return found
