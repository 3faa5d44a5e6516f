"""The engine's lock, and decisions: changes of several parts that happen completely or not at all.

An engine has one `EngineLock`. Inputs, views and subscriptions have the lock of their engine.

A change that has several parts (an epoch of several inputs and its storage, a new view, a dropped one) is prepared as a
`Decision`, and then decided: `EngineLock.decide` stores it, by one assignment, and applies it. Before the assignment nothing
has happened. After it the change has happened, whatever ends the call: Ctrl-C or a `MemoryError` between two steps of
applying leaves the decision in place, and the next call of the engine applies it again, before anything else. If that fails
too, the engine is broken, says so at every call, and answers nothing.

`held` is taken by `with`, never by calling `acquire`: an interrupt cannot come between taking C's lock and being sure to
release it. (A context manager written in Python has that gap.)
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from tektite.blocks import taken_times
from tektite.errors import ConflictError, FaultError

_PAUSE = 1e-4
"""Seconds in which a thread that waits for a lock can take it."""


class Decision(Protocol):
    """A change that has been prepared."""

    def apply(self) -> None:
        """Make the change. An exception may end this at any point; called again, it does what is left. It calls nothing that
        is guarded.
        """


class StepByStep:
    """A decision of a few steps. Each may be repeated without harm."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        self.steps: Sequence[Callable[[], object]] = steps

    def apply(self) -> None:
        """Take every step."""
        for step in self.steps:
            step()


class _Refusal:
    """Stands for a decision that can never be applied."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def apply(self) -> None:
        """Say why."""
        raise self.error


class Stretches(threading.local):
    """Callbacks for when a thread releases the lock for a while, and for when it has it again. Changes in between are the work
    of others.
    """

    ended: Callable[[], None] | None = None
    begun: Callable[[], None] | None = None


class EngineLock:
    """The lock of an engine, reentrant, and the change that is being made."""

    __slots__ = ("__weakref__", "decision", "held", "in_child", "stretches", "undisturbed")

    def __init__(self) -> None:
        self.held = threading.RLock()
        """Held while a guarded method runs; the same thread may take it again."""
        self.decision: Decision | None = None
        """The change that has been decided and may be applied only in part."""
        self.undisturbed = threading.RLock()
        """Held, beside `held`, by who lets nobody else have a turn even in a long call: see `EngineCore.undisturbed`."""
        self.stretches = Stretches()
        """Who wants to know when the calling thread lets go of the lock."""
        self.in_child: list[Callable[[], object]] = []
        """Called in a process that is a fork of the engine's."""
        _LOCKS.add(self)

    def decide(self, decision: Decision) -> None:
        """Make a change, after what is left of one before it. The caller holds the lock, and applies no change."""
        if self.decision is not None:
            self.roll_forward()
        try:
            self.decision = decision
            decision.apply()
            self.decision = None
        except BaseException as error:
            if self.decision is None or not isinstance(error, Exception):
                self.roll_forward()
                raise
            self.roll_forward()

    def roll_forward(self) -> None:
        """Apply what is left of a change that was decided. The caller holds the lock."""
        decision = self.decision
        if decision is None:
            return
        if isinstance(decision, _Refusal):
            decision.apply()
        try:
            decision.apply()
            self.decision = None
        except Exception as error:
            broken = FaultError(
                f"the engine is broken: a change that had been decided could not be applied ({type(error).__name__}: {error}). "
                "Make another engine; one with a storage begins with what was durable"
            )
            broken.__cause__ = error
            self.decision = _Refusal(broken)
            raise broken from error

    def let_others(self) -> None:
        """Let go of the lock, so that whoever waits for it gets a turn; then take it back."""
        self.without(lambda: time.sleep(_PAUSE))

    def without(self, function: Callable[[], object]) -> None:
        """Let go of the lock, however often the caller has taken it, call a function, and take the lock back. Anything may have
        changed meanwhile.
        """
        held: Any = self.held  # what threading.Condition uses of a lock
        if not held._is_owned():
            function()
            return
        state = taken_times(held), threading.get_ident()

        def take() -> None:
            if not held._is_owned():
                held._acquire_restore(state)

        stretches = self.stretches
        if stretches.ended is not None:
            stretches.ended()
        try:
            try:
                held._release_save()
                function()
            finally:
                take()
        finally:  # an interrupt may have come before the lock was there
            take()
            if stretches.begun is not None:
                stretches.begun()

    @property
    def is_owned(self) -> bool:
        """Whether the calling thread holds the lock."""
        held: Any = self.held
        return bool(held._is_owned())

    @property
    def is_undisturbed(self) -> bool:
        """Whether the calling thread lets nobody else have a turn."""
        undisturbed: Any = self.undisturbed
        return bool(undisturbed._is_owned())

    def check_process(self) -> None:
        """Refuse to go on in the child of a fork."""
        if isinstance(self.decision, _Refusal) and isinstance(self.decision.error, ConflictError):
            raise self.decision.error

    @property
    def is_usable(self) -> bool:
        """Whether calls are answered: not in the child of a fork, nor when a change could not be applied."""
        return not isinstance(self.decision, _Refusal)


_LOCKS: weakref.WeakSet[EngineLock] = weakref.WeakSet()


def _refuse_in_child() -> None:
    """Let a forked process use none of the engines: the threads that they need are in its parent alone."""
    for lock in list(_LOCKS):
        lock.held, lock.undisturbed = threading.RLock(), threading.RLock()  # a thread of the parent may have held them
        for function in lock.in_child:
            function()
        lock.decision = _Refusal(
            ConflictError(
                f"this engine belongs to process {os.getppid()}, and this is a fork of it: make an engine of its own here, or "
                "start processes by spawn"
            )
        )


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_refuse_in_child)


class Lockable(Protocol):
    """An object with the lock of its engine."""

    @property
    def lock(self) -> EngineLock:
        """The lock of its engine."""


class Facade(Protocol):
    """A public object whose core has a lock."""

    @property
    def _core(self) -> Lockable: ...


S = TypeVar("S", bound=Lockable)
F = TypeVar("F", bound=Facade)
P = ParamSpec("P")
R = TypeVar("R")


def guarded(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """A method that runs with its object's lock held.

    >>> class Counter:
    ...     def __init__(self):
    ...         self.lock = EngineLock()
    ...         self.count = 0
    ...
    ...     @guarded
    ...     def up(self):
    ...         self.count += 1
    >>> counter = Counter()
    >>> counter.up()
    >>> counter.count
    1
    """

    @wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        lock = self.lock
        with lock.held:
            if lock.decision is not None:
                lock.roll_forward()
            return method(self, *args, **kwargs)

    return call


def guarded_by_core(method: Callable[Concatenate[F, P], R]) -> Callable[Concatenate[F, P], R]:
    """A method of `Engine`, `Table` or `View` that runs with the lock of its core held."""

    @wraps(method)
    def call(self: F, /, *args: P.args, **kwargs: P.kwargs) -> R:
        lock = self._core.lock
        with lock.held:
            if lock.decision is not None:
                lock.roll_forward()
            return method(self, *args, **kwargs)

    return call
