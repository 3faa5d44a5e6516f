"""One lock for all that threads share: streams write to an engine from threads of their own while others read."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar


class Guarded(Protocol):
    """What has a lock."""

    @property
    def lock(self) -> Any:
        """Held while a guarded method runs; the same thread may take it again."""


S = TypeVar("S", bound=Guarded)
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
