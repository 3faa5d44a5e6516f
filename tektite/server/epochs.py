"""The policy by which a server closes epochs, and the moment at which a write counts as done.

| policy | a write outside of a transaction block is readable |
|---|---|
| commit | in an epoch that closes at once; writes that come together share one |
| interval | in an epoch that closes every so many milliseconds, if something was written |
| explicit | rows of a prepared INSERT when somebody says ADVANCE; those of other statements at once |

The end of a transaction block closes an epoch of its own under each policy.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from tektite.engine.core import core_of
from tektite.engine.ticker import seconds_said
from tektite.engine.write_set import WriteSet
from tektite.errors import FaultError, IncorrectError, TektiteError
from tektite.server.work import CancellableCall, WorkerThreads

if TYPE_CHECKING:
    from tektite.engine.engine import Engine
    from tektite.engine.input_core import InputCore

Done: TypeAlias = Callable[[Exception | None, int | None], None]
"""Told what went wrong, or the time at which what was written can be read, if it can by now."""
Committed: TypeAlias = "list[tuple[Exception | None, int | None]]"
Insert: TypeAlias = "tuple[InputCore, list[tuple[Any, ...]], Done]"

SHORT = 0.002
"""Seconds up to which an epoch is closed in the event loop: a worker's turn takes a tenth of that, and other clients
wait as long.
"""

_MOST_SECONDS = 60.0
"""Writers wait no longer for an epoch to close."""


@dataclass(frozen=True)
class EpochPolicy:
    """The moments at which epochs close.

    >>> EpochPolicy.parse("commit"), EpochPolicy.parse("5 ms")
    (EpochPolicy(kind='commit', seconds=0.0), EpochPolicy(kind='interval', seconds=0.005))
    """

    kind: str = "commit"
    seconds: float = 0.0

    @staticmethod
    def parse(text: str) -> EpochPolicy:
        """A policy as people write it: commit, explicit, or a time such as `5 ms`."""
        words = str(text).lower().removeprefix("every").strip()
        if words in ("commit", "explicit"):
            return EpochPolicy(words)
        seconds = seconds_said(words)
        if not 0 < seconds <= _MOST_SECONDS:
            raise IncorrectError(
                f"epochs close on commit, explicitly, or every so often (such as '5 ms', at least once a minute), not {text!r}"
            )
        return EpochPolicy("interval", seconds)


class DurabilityWatch:
    """Tells an event loop when closed epochs are durable. A thread waits for the storage on behalf of everybody, so that those
    who commit while it waits share the next wait.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._waiting: list[asyncio.Future[None]] = []
        self._wake = threading.Event()
        self._is_closed = False
        self._thread: threading.Thread | None = None

    def wait(self) -> asyncio.Future[None]:
        """A future that is done when everything that is committed by now is durable."""
        loop = asyncio.get_running_loop()
        found: asyncio.Future[None] = loop.create_future()
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, args=(loop,), name="tektite-durable", daemon=True)
            self._thread.start()
        self._waiting.append(found)
        self._wake.set()
        return found

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        storage = core_of(self._engine).storage
        assert storage is not None
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._is_closed:
                return
            taken, self._waiting = self._waiting, []
            error: TektiteError | None = None
            try:
                storage.writer.sync()
            except TektiteError as found:
                error = found
            loop.call_soon_threadsafe(self._tell, taken, error)

    @staticmethod
    def _tell(taken: list[asyncio.Future[None]], error: TektiteError | None) -> None:
        for future in taken:
            if future.done():
                continue
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)

    def close(self) -> None:
        """End the thread."""
        self._is_closed = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()


class Epochs:
    """Closes epochs by a policy, and knows when they are durable.

    Inserts that come while the event loop handles what has arrived are committed together, when it has handled all of it: so
    those of many clients share an epoch, and nobody waits for others to come. If the engine refuses what they wrote together,
    each is committed alone.
    """

    def __init__(self, engine: Engine, policy: EpochPolicy, workers: WorkerThreads) -> None:
        self.policy = policy
        self._core = core_of(engine)
        self._workers = workers
        self._watch = DurabilityWatch(engine) if self._core.storage is not None else None
        self._inserts: list[Insert] = []
        self._is_closing = False
        self._seconds = 0.0
        """The recent duration of closing an epoch, in seconds."""

    def insert(self, source: InputCore, rows: list[tuple[Any, ...]], done: Done) -> None:
        """Insert rows in the next epoch; `done` is called in the event loop."""
        self._inserts.append((source, rows, done))
        if self._is_closing or len(self._inserts) > 1:
            return
        loop = asyncio.get_running_loop()
        if self.policy.seconds:
            loop.call_later(self.policy.seconds, self._close_epoch)
        else:
            loop.call_soon(self._close_epoch)

    def _close_epoch(self) -> None:
        """Commit the inserts that wait: here, if the engine is free and epochs are short, or else in a worker."""
        taken, self._inserts = self._inserts, []
        if not taken:
            return
        held = self._core.lock.held
        if self._seconds < SHORT and held.acquire(blocking=False):
            try:
                found = self._commit(taken)
            finally:
                held.release()
            self._committed(taken, found)
            return
        self._is_closing = True
        future = self._workers.start(CancellableCall(lambda: self._commit(taken)))
        future.add_done_callback(lambda done: self._closed(taken, done))

    def _closed(self, taken: list[Insert], future: asyncio.Future[Committed]) -> None:
        """A worker has closed an epoch: what came meanwhile is next."""
        self._is_closing = False
        error = None if future.cancelled() else future.exception()
        if future.cancelled() or error is not None:
            refused = (
                error
                if isinstance(error, Exception)
                else FaultError("the epoch was not closed: the server stops").about(condition="admin-shutdown")
            )
            self._committed(taken, [(refused, None)] * len(taken))
        else:
            self._committed(taken, future.result())
        if self._inserts:
            asyncio.get_running_loop().call_soon(self._close_epoch)

    def _commit(self, taken: list[Insert]) -> Committed:
        """Commit inserts together or, if that is refused, each alone; what became of each."""
        began = time.perf_counter()
        with self._core.lock.held:
            self._core.lock.roll_forward()
            try:
                found: Committed = [(None, self._write(taken))] * len(taken)
            except TektiteError as error:
                found = [(error, None)] if len(taken) == 1 else [self._alone(each) for each in taken]
        self._seconds = 0.8 * self._seconds + 0.2 * (time.perf_counter() - began)
        return found

    def _alone(self, insert: Insert) -> tuple[Exception | None, int | None]:
        try:
            return None, self._write([insert])
        except TektiteError as error:
            return error, None

    def _write(self, taken: list[Insert]) -> int | None:
        """Write rows, and commit them unless somebody else is to; the time at which they can be read."""
        by_source: dict[InputCore, list[tuple[Any, ...]]] = {}
        for source, rows, _ in taken:
            by_source.setdefault(source, []).extend(rows)
        is_explicit = self.policy.kind == "explicit"
        writes = self._core.writes if is_explicit else WriteSet()
        for source, rows in by_source.items():
            source.write(rows, None, 1, "insert", writes)
        return None if is_explicit else self._core.commit(writes)

    def _committed(self, taken: list[Insert], found: Committed) -> None:
        """Tell everybody, once what was committed is durable."""
        if self._watch is None or self.policy.kind == "explicit":
            for (_, _, done), (error, time) in zip(taken, found, strict=True):
                done(error, time)
            return

        def tell(durable: asyncio.Future[None]) -> None:
            lost = None if durable.cancelled() else durable.exception()
            for (_, _, done), (error, time) in zip(taken, found, strict=True):
                done(error or (lost if isinstance(lost, Exception) else None), time)

        self._watch.wait().add_done_callback(tell)

    def durable_soon(self) -> asyncio.Future[None] | None:
        """A future that is done when everything that is committed by now is durable; None without a storage."""
        return None if self._watch is None else self._watch.wait()

    async def until_durable(self) -> None:
        """Wait until everything that is committed is durable; at once without a storage."""
        if self._watch is not None:
            await self._watch.wait()

    def close(self) -> None:
        """Stop."""
        if self._watch is not None:
            self._watch.close()
