"""Who closes epochs: the policy of a server, and when a write counts as done.

| policy | a write outside of a transaction block is readable |
|---|---|
| commit | in an epoch that closes at once; writes that come together share one |
| interval | in an epoch that closes every so many milliseconds, if something was written |
| explicit | when somebody says ADVANCE |

The end of a transaction block closes an epoch of its own under each policy.
"""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tektite.engine.core import core_of
from tektite.errors import IncorrectError, TektiteError

if TYPE_CHECKING:
    from tektite.engine.engine import Engine


@dataclass(frozen=True)
class EpochPolicy:
    """When epochs close.

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
        try:
            number = float(words.removesuffix("ms").strip())
            if not words.endswith("ms") or not 0 < number <= 60_000:
                raise ValueError
        except ValueError:
            raise IncorrectError(f"epochs close on commit, every so many ms or explicit, not {text!r}") from None
        return EpochPolicy("interval", number / 1000)


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
    """Closes epochs by a policy, and knows when they are durable."""

    def __init__(self, engine: Engine, policy: EpochPolicy) -> None:
        self.policy = policy
        self._watch = DurabilityWatch(engine) if core_of(engine).storage is not None else None

    async def until_durable(self) -> None:
        """Wait until everything that is committed is durable; at once without a storage."""
        if self._watch is not None:
            await self._watch.wait()

    def close(self) -> None:
        """Stop."""
        if self._watch is not None:
            self._watch.close()
