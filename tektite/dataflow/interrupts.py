"""Interrupts wait while a dataflow works: signals, and what other threads send to a call.

A node that is interrupted may have done half of its work, and its dataflow fails forever. The dataflow belongs to everybody who
reads it, and the call to one user. So an interrupt that comes meanwhile stops the sweep between two nodes, and is raised when the
dataflow can be continued by whoever calls next.

* Signals (Ctrl-C, and all that a program lets Python handle) wait in every sweep of the main thread, which is where Python
  handles them; see `kernels/native/signals.c`. A function of a user's may take long, so Ctrl-C ends that, and its node keeps the
  rows.
* What other threads send waits in sweeps of dataflows that have answered.
* An epoch that has been decided has happened. What another thread sends to its call afterwards ends the sweeps early, and the
  call succeeds: otherwise its user would be told that nothing was written.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from tektite.kernels.ready import calls

_HELD: AbstractContextManager[None] = calls().HELD
"""A block in which signals wait. It is C: entering and leaving it costs next to nothing, and nothing comes between."""
interruptible: Callable[[Callable[[], object]], object] = calls().interruptible
"""Call a function that changes nothing: Ctrl-C ends it, also in a block in which signals wait."""
keep_interrupt: Callable[[BaseException], bool] = calls().keep
"""Let an exception wait as a signal does, until the block is left. Returns False if the thread is in no block."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=calls().begin_child)


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


def held_signals() -> AbstractContextManager[None]:
    """A block in which signals wait. What has waited is raised at its end."""
    return _HELD


def sweep_block(has_answered: bool) -> tuple[AbstractContextManager[None], InterruptibleCall | None]:
    """The block that a sweep runs in, and the call that makes it, if others may interrupt that: `held_interrupts` for a dataflow
    that has answered, and `held_signals` for one that may be given up.
    """
    call = _thread.call
    return (_HELD, call) if call is None or not has_answered else (_held(call, call.release), call)


def held_interrupts() -> AbstractContextManager[None]:
    """A block in which signals wait, and what other threads send. What has waited is raised at its end."""
    call = _thread.call
    return _HELD if call is None else _held(call, call.release)


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
