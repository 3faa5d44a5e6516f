"""Interrupts that other threads send to a call wait while a dataflow that has answered works, and while an epoch closes.

A node that is interrupted may have done half of its work, and its dataflow fails forever. The dataflow belongs to everybody who
reads it, and the call to one user. So an interrupt that comes meanwhile stops the sweep between two nodes, and is raised when the
dataflow can be continued by whoever calls next.

An epoch that has been decided has happened. An interrupt that comes afterwards ends the sweeps early, and the call succeeds:
otherwise its user would be told that nothing was written.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol


class InterruptibleCall(Protocol):
    """A call that other threads may interrupt."""

    @property
    def is_interrupted(self) -> bool:
        """Whether an interrupt waits."""

    def hold(self) -> None:
        """Let interrupts wait."""

    def release(self) -> None:
        """Let interrupts come again; raise the one that has waited."""

    def release_done(self) -> None:
        """Let interrupts come again; forget the one that has waited, because what it was to end has happened."""


class _ThreadState(threading.local):
    call: InterruptibleCall | None = None

    def __init__(self) -> None:
        self.nothing: Any = threading.RLock()
        """A block of the thread's own, which keeps nobody out: what to use where no call can be interrupted, as in every program
        without a server. It is C, and so costs next to nothing.
        """


_thread = _ThreadState()


def begin_call(call: InterruptibleCall | None) -> None:
    """Say which call the present thread makes; None when it has ended."""
    _thread.call = call


def current_call() -> InterruptibleCall | None:
    """The call that the present thread makes, if others may interrupt it."""
    return _thread.call


def is_interrupted() -> bool:
    """Whether an interrupt waits for the present thread."""
    call = _thread.call
    return call is not None and call.is_interrupted


def held_interrupts() -> AbstractContextManager[None]:
    """A block in which interrupts wait. What has waited is raised at its end."""
    call = _thread.call
    return _thread.nothing if call is None else _held(call, call.release)


def decided_change() -> AbstractContextManager[None]:
    """A block that begins by deciding a change and goes on with what follows from it. Interrupts in it end that early, and are
    not raised.
    """
    call = _thread.call
    return _thread.nothing if call is None else _held(call, call.release_done)


@contextmanager
def _held(call: InterruptibleCall, release: Callable[[], None]) -> Iterator[None]:
    call.hold()
    try:
        yield
    finally:
        release()
