"""Worker threads, in which the engine is called, so that the event loop never waits for it; and calls that can be cancelled.

A call is cancelled as Ctrl-C ends one: by an exception in its thread. The engine is written for that. It may come between any
two lines, and what was decided is finished by whoever calls next. A call that waits for the engine's lock, or is inside a kernel,
ends when that is over.
"""

from __future__ import annotations

import asyncio
import ctypes
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

T = TypeVar("T")

_raise_in_thread = ctypes.pythonapi.PyThreadState_SetAsyncExc
_raise_in_thread.argtypes = (ctypes.c_ulong, ctypes.py_object)


class CallCancelled(BaseException):
    """A call was cancelled. No `Exception`, so that nothing on its way takes it for a failure of its own."""


class CancellableCall(Generic[T]):
    """One call in a worker's thread."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        self._lock = threading.Lock()
        self._thread: int | None = None
        self._is_cancelled = False

    def cancel(self) -> None:
        """End the call, if it has not ended. Only the first time counts."""
        with self._lock:
            if self._is_cancelled:
                return
            self._is_cancelled = True
            if self._thread is not None:
                _raise_in_thread(self._thread, ctypes.py_object(CallCancelled))

    def run(self) -> T:
        """Make the call, in the calling thread. Raises `CallCancelled` if it was cancelled before it came to its end."""
        found: list[T] = []
        try:
            self._begin()
            try:
                found.append(self._function())
            finally:
                self._end()
        except CallCancelled:
            if not found:
                raise
        return found[0]

    def _begin(self) -> None:
        with self._lock:
            if self._is_cancelled:
                raise CallCancelled
            self._thread = threading.get_ident()

    def _end(self) -> None:
        with self._lock:
            if self._thread is not None:
                # What was sent and has not arrived yet would hit the next call of the thread.
                _raise_in_thread(self._thread, ctypes.py_object())
                self._thread = None


class WorkerThreads:
    """A bounded number of threads for calls of the engine."""

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads, "tektite-server")

    def start(self, call: CancellableCall[T]) -> asyncio.Future[T]:
        """Make a call in a worker; its result, in the running event loop."""
        return asyncio.wrap_future(self._pool.submit(call.run))

    def close(self) -> None:
        """End the threads when their calls have."""
        self._pool.shutdown(wait=True, cancel_futures=True)
