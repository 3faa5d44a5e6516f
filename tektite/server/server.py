"""Server: one engine, the front ends that listen for it, and everything that they share.

The event loop runs in one thread; the engine is called by workers. Whatever a front end needs of others is here: the engine, the
connections, the users, the epochs, the limits. `stop` lets no new client in, tells all clients, waits for what they run, makes
what was committed durable, and closes the engine.
"""

from __future__ import annotations

import asyncio
import errno
import os
import ssl
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tektite.engine.core import core_of
from tektite.engine.engine import Engine
from tektite.engine.hooks import ConnectedClient, ConnectedSource
from tektite.errors import ConflictError, FaultError, IncorrectError, TektiteError
from tektite.server.connections import Connections
from tektite.server.connectors.connectors import Connectors
from tektite.server.durable_catalog import DurableCatalog
from tektite.server.epochs import Epochs
from tektite.server.feed_registry import Feeds
from tektite.server.logs import Log
from tektite.server.plan import ServerPlan
from tektite.server.postgres.connection import PostgresConnection
from tektite.server.sessions import ClientSession
from tektite.server.users import Users
from tektite.server.web.connection import WebConnection
from tektite.server.work import CancellableCall, WorkerThreads
from tektite.sql import runner
from tektite.sql.access.allowances import Allowance

T = TypeVar("T")

STOPPING = "the server stops: it was asked to end"


class Server:
    """A running server. `start` and `stop` are called in the event loop that it runs in."""

    def __init__(self, plan: ServerPlan, engine: Engine, log: Log, is_guest: bool = False) -> None:
        """A guest serves an engine that a program holds: to browsers alone, storing nothing about its clients, and the engine
        stays open when it stops.
        """
        self.is_guest = is_guest
        if not is_guest:
            plan.check()
        self.plan = plan
        self.engine = engine
        self.log = log
        self.began = time.time()
        self.loop: asyncio.AbstractEventLoop
        """The event loop that it runs in, once it has started."""
        self.users = Users(runner(engine).access)
        limits = plan.limits
        if not is_guest:
            runner(engine).allowance = Allowance(
                limits.rows or None, limits.memory_bytes or None, limits.queries or None
            )
        self.connections = Connections(plan.limits.connections)
        self.sessions: set[ClientSession] = set()
        """The sessions of all clients. Changed in the event loop alone."""
        if plan.spans:
            engine.export_spans()
        self.workers = WorkerThreads(plan.limits.threads)
        self.epochs = Epochs(engine, plan.epochs, self.workers)
        self.catalog = DurableCatalog(engine, log, is_kept=not is_guest)
        self.connectors = Connectors(self)
        core_of(engine).hooks.servers.append(self)
        if not is_guest:
            runner(engine).connectors = self.connectors
        self.is_stopping = False
        self.port = plan.port
        """The address for PostgreSQL's clients; known once it has started."""
        self.http_port = plan.http_port
        self.tls = _tls(plan)
        self.feeds = Feeds(self)
        self.lineage = ""
        """An identifier that distinguishes the times of this server from those of others; known once it has started."""
        self._releasing: set[asyncio.Future[Any]] = set()
        """Calls that free something, for workers."""
        self._postgres: asyncio.Server | None = None
        self._web: asyncio.Server | None = None
        self._is_open = False

    async def start(self, http_ports: Sequence[int] = ()) -> None:
        """Bring back what clients had created, and listen; to HTTP on the first of some ports that is free, or on the plan's."""
        loop = self.loop = asyncio.get_running_loop()
        address = self.plan.address
        try:
            self._web = await self._listen(list(http_ports) or [self.plan.http_port])
            self.http_port = self._web.sockets[0].getsockname()[1]
            await loop.run_in_executor(None, self.catalog.restore)
            await loop.run_in_executor(None, self._describe_users)
            self.users.check_reachable(self.plan.is_local, self.plan.address)
            self.lineage = await loop.run_in_executor(None, self.catalog.lineage)
            self.connectors.start()
            if not self.is_guest:
                self._postgres = _listening(
                    await loop.create_server(lambda: PostgresConnection(self), address, self.plan.port, backlog=1024)
                )
                self.port = self._postgres.sockets[0].getsockname()[1]
        except OSError as error:
            raise FaultError(f"cannot listen on {self.plan.address}: {error}") from error
        self._is_open = True
        self.log.info(
            "listening", address=self.plan.address, port=self.port, http_port=self.http_port, tls=self.tls is not None,
            users=self.users.count, epochs=self.plan.epochs.kind, storage=self.plan.pipeline.storage or "none",
        )  # fmt: skip

    async def _listen(self, ports: list[int]) -> asyncio.Server:
        for port in ports[:-1]:
            try:
                return await self._listen([port])
            except OSError:
                continue  # it is taken
        return _listening(
            await self.loop.create_server(
                lambda: WebConnection(self), self.plan.address, ports[-1], backlog=1024, ssl=self.tls
            )
        )

    def connected(self) -> list[ConnectedSource]:
        """Its sources and sinks. May be called in any thread."""
        return self.connectors.listed()

    def clients(self) -> list[ConnectedClient]:
        """The connected clients. May be called in any thread."""
        found = []
        for session in list(self.sessions):
            text, since = session.activity or (None, None)
            found.append(
                ConnectedClient(
                    session.number,
                    session.user,
                    session.protocol,
                    session.address,
                    session.since,
                    session.subscriptions,
                    text,
                    since,
                )  # fmt: skip
            )
        return found

    def cancel_client(self, number: int, why: str) -> None:
        """End what a client runs, if it is one of this server's. May be called in any thread."""
        found = next((session for session in list(self.sessions) if session.number == number), None)
        if found is not None:
            self.loop.call_soon_threadsafe(found.cancel, why)

    def _describe_users(self) -> None:
        core = core_of(self.engine)
        with core.lock.held:
            core.lock.roll_forward()
            self.users.describe(self.plan.users, self.plan.ordinary_users)

    @property
    def is_ready(self) -> bool:
        """Whether statements are answered."""
        core = core_of(self.engine)
        return self._is_open and not self.is_stopping and not core.is_closed and core.lock.is_usable

    def check_accepts_writes(self) -> None:
        """Refuse what would change something while the server stops."""
        if self.is_stopping:
            raise ConflictError(STOPPING)

    async def call(self, function: Callable[[], T]) -> T:
        """Call a function in a worker, with the engine's lock held."""
        core = core_of(self.engine)

        def work() -> T:
            with core.lock.held:
                core.lock.roll_forward()
                return function()

        return await self.compute(work)

    async def compute(self, function: Callable[[], T]) -> T:
        """Call a function in a worker."""
        return await self.workers.start(CancellableCall(function))

    def release(self, function: Callable[[], Any]) -> None:
        """Have a worker call a function that frees something; nobody waits for it."""
        if not core_of(self.engine).is_closed:
            future = self.workers.start(CancellableCall(function))
            self._releasing.add(future)
            future.add_done_callback(lambda done: done.cancelled() or done.exception())
            future.add_done_callback(self._releasing.discard)

    async def stop(self) -> None:
        """Stop listening, tell the clients, finish what runs, and close the engine, unless it is somebody else's."""
        if self.is_stopping:
            return
        self.is_stopping = True
        self.log.info("stopping", connections=len(self.connections))
        if self._postgres is not None:
            self._postgres.close()
        self.connectors.stop()
        deadline = time.monotonic() + self.plan.limits.stop_seconds
        await self.feeds.tell_all(self.plan.limits.stop_seconds / 2)
        for connection in self.connections.all():
            connection.end(STOPPING)
        while len(self.connections) and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        for connection in self.connections.all():
            connection.cancel()
            connection.abort()
        self.feeds.close()
        if self._releasing:  # the engine may go on without the server, and would keep what nobody needs
            await asyncio.wait(list(self._releasing), timeout=self.plan.limits.stop_seconds)
        await self.loop.run_in_executor(None, self._close)
        if self._web is not None:
            self._web.close()
        self.log.info("stopped", epoch=core_of(self.engine).epoch)

    def _close(self) -> None:
        self.workers.close()
        core_of(self.engine).hooks.servers.remove(self)
        try:
            if self.is_guest:
                self._leave()
            else:
                self.engine.close()
        except TektiteError as error:
            self.log.error("the engine could not be closed", error=error)
            raise
        finally:
            self.epochs.close()

    def _leave(self) -> None:
        """Remove what was installed for clients."""
        core = core_of(self.engine)
        with core.lock.held:
            if not core.is_closed:
                runner(self.engine).shared.sweep()


def _listening(server: asyncio.Server) -> asyncio.Server:
    """A server that listens. uvloop closes one without a word if another one began to listen between its `bind` and `listen`."""
    if all(server.sockets):
        return server
    server.close()
    raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))


def _tls(plan: ServerPlan) -> ssl.SSLContext | None:
    if plan.certificate is None or plan.private_key is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(plan.certificate, plan.private_key)
    except (ssl.SSLError, OSError) as error:
        raise IncorrectError(
            f"TLS: {plan.certificate} and {plan.private_key} are no certificate and key: {error}"
        ) from None
    return context
