"""Worker threads, in which the engine is called, so that the event loop never waits for it; and calls that can be cancelled.

A call is cancelled as Ctrl-C ends one: by an exception in its thread. The engine is written for that. It may come between any
two lines, and what was decided is finished by whoever calls next. A call that waits for the engine's lock, or is inside a kernel,
ends when that is over. One that brings a view up to date ends before the view's next node runs: the view is not the call's own.
One whose epoch has been decided leaves the rest of the sweeps to others, and succeeds.
"""

from __future__ import annotations

import asyncio
import ctypes
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

import pyarrow as pa

from tektite.dataflow.interrupts import begin_call

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
        self._is_sent = False
        """Whether an exception was sent to the thread, and may not have arrived."""
        self._holds = 0
        self._is_waiting = False

    @property
    def is_interrupted(self) -> bool:
        """Whether it was cancelled while it was held."""
        return self._is_waiting

    def hold(self) -> None:
        """Let `cancel` wait. What was sent before arrives as this returns: Python looks for it at the end of each call."""
        with self._lock:
            self._holds += 1

    def release(self) -> None:
        """Let `cancel` end the call again, and do what has waited."""
        with self._lock:
            self._holds -= 1
            if self._is_waiting and not self._holds:
                self._is_waiting = False
                raise CallCancelled

    def release_done(self) -> None:
        """Let `cancel` end the call again. One that has waited came too late: what it was to end has happened."""
        with self._lock:
            self._holds -= 1
            if self._is_waiting and not self._holds:
                self._is_waiting = self._is_cancelled = False

    def cancel(self) -> None:
        """End the call, if it has not ended. Only the first time counts."""
        with self._lock:
            if self._is_cancelled:
                return
            self._is_cancelled = True
            if self._holds:
                self._is_waiting = True
            elif self._thread is not None:
                self._is_sent = True
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
            self._end()  # which it may have cut short
            if not found:
                raise
        return found[0]

    def _begin(self) -> None:
        with self._lock:
            if self._is_cancelled:
                raise CallCancelled
            self._thread = threading.get_ident()
            begin_call(self)

    def _end(self) -> None:
        with self._lock:
            begin_call(None)
            self._thread = None
        if self._is_sent:
            receive()
            self._is_sent = False


class _Received(BaseException):
    """Takes the place of an exception that was sent and has not arrived."""


def receive() -> None:
    """Let what was sent to this thread arrive, if it has not, so that it does not hit the thread's next call. Nothing else is
    sent meanwhile.

    Taking the exception back would not do: Python goes on looking for it, in all threads, until one has arrived.
    """
    while True:
        try:
            _raise_in_thread(threading.get_ident(), ctypes.py_object(_Received))
            while True:
                pass
        except _Received:
            return
        except CallCancelled:
            continue


class WorkerThreads:
    """A bounded number of threads for calls of the engine."""

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads, "tektite-server")
        # PyArrow imports pandas at its first conversion. A cancelled import leaves half of a module for the rest of the process.
        pa.array([0])

    def start(self, call: CancellableCall[T]) -> asyncio.Future[T]:
        """Make a call in a worker; its result, in the running event loop."""
        return asyncio.wrap_future(self._pool.submit(call.run))

    def close(self) -> None:
        """End the threads when their calls have."""
        self._pool.shutdown(wait=True, cancel_futures=True)
