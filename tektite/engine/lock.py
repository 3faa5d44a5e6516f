"""One lock for all that threads share: streams write to an engine from threads of their own while others read.

An engine has one reentrant lock, `EngineCore.lock`. Inputs, views and subscriptions have the lock of their engine.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar


class Lockable(Protocol):
    """What has a lock."""

    @property
    def lock(self) -> Any:
        """Held while a guarded method runs; the same thread may take it again."""


class Facade(Protocol):
    """What has a core with a lock."""

    @property
    def _core(self) -> Lockable: ...


S = TypeVar("S", bound=Lockable)
F = TypeVar("F", bound=Facade)
P = ParamSpec("P")
R = TypeVar("R")


def guarded(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """A method that runs with its object's lock held.

    >>> from threading import RLock
    >>> class Counter:
    ...     def __init__(self):
    ...         self.lock = RLock()
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
        with self.lock:
            return method(self, *args, **kwargs)

    return call


def guarded_by_core(method: Callable[Concatenate[F, P], R]) -> Callable[Concatenate[F, P], R]:
    """A method of `Engine`, `Input` or `View` that runs with the lock of its core held."""

    @wraps(method)
    def call(self: F, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._core.lock:
            return method(self, *args, **kwargs)

    return call
