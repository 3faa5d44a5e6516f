"""The event loop of synchronous clients: one thread for all of them, started with the first client."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class BackgroundLoop:
    """An event loop in a thread of its own."""

    _lock = threading.Lock()
    _shared: BackgroundLoop | None = None

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._process = os.getpid()
        threading.Thread(target=self.loop.run_forever, name="tektite-client", daemon=True).start()

    @classmethod
    def shared(cls) -> BackgroundLoop:
        """The one of this process."""
        with cls._lock:
            if cls._shared is None or cls._shared._process != os.getpid():  # a fork has no threads
                cls._shared = BackgroundLoop()
            return cls._shared

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for a coroutine, which runs with the caller's context variables. Whoever is interrupted cancels it."""
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    async def awaited(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for a coroutine in a task of another event loop."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self.loop))
