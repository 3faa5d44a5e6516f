"""Context managers that leave nothing behind if an interrupt ends the `with` statement before it knows of the block, or after.

`safe_block` is like `contextlib.contextmanager`. That one has two gaps: an interrupt may come when the first part of the
function has run and the `with` statement does not know that yet, or when the block has ended and the last part has not begun.
Then the function stays where it yielded for as long as somebody keeps the traceback, as an interactive Python does. Here it is
closed, as if the block had raised `GeneratorExit`.

What makes that possible is an object that the `with` statement alone holds, by way of the `__exit__` that it has looked up:
frames of a traceback hold the arguments of calls, and not what the interpreter calls. When the statement is left by whatever
way, the object goes.

`taken_times` is for who lets go of a reentrant lock and takes it back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, _GeneratorContextManager
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar, cast

from tektite.errors import IncorrectError

P = ParamSpec("P")
T = TypeVar("T")


class _Guard:
    """Closes a generator that waits in a block, when the block's `with` statement is left."""

    __slots__ = ("_generator",)

    def __init__(self, generator: Any) -> None:
        self._generator = generator

    def __del__(self) -> None:
        generator = getattr(self, "_generator", None)  # none, if an interrupt came while it was made
        if generator is not None and generator.gi_suspended:
            generator.close()


class _Exit:
    """The `__exit__` of a block. A `with` statement, which looks it up in the instance, gets one that holds a guard. An
    `ExitStack` looks it up in the class, and has gaps of its own.
    """

    def __get__(self, block: _SafeBlock | None, _: object = None) -> Any:
        if block is None:
            return _GeneratorContextManager.__exit__
        found: Any = partial(_GeneratorContextManager.__exit__, block)
        generator: Any = block.gen
        if not generator.gi_suspended:  # the statement has not entered it yet
            found.guard = _Guard(generator)
        return found


class _SafeBlock(_GeneratorContextManager[Any]):
    def __enter__(self) -> Any:
        try:
            return super().__enter__()
        except BaseException:
            self.gen.close()
            raise

    __exit__ = cast(Any, _Exit())

    def __getattr__(self, name: str) -> NoReturn:
        hint = "" if name.startswith("_") else "; it is a block: write `with ... as x:`, and use x within"
        raise AttributeError(f"this has no {name!r}{hint}")

    if not TYPE_CHECKING:  # type checkers know that there is no such block

        async def __aenter__(self) -> NoReturn:
            self.gen.close()
            raise IncorrectError("this block does not wait: write `with`, without async")

        async def __aexit__(self, *_: object) -> None:
            """Never called: there is no block."""


def safe_block(function: Callable[P, Iterator[T]]) -> Callable[P, AbstractContextManager[T]]:
    """A context manager of a function that yields once. What the function does before it yields belongs into its `try`.

    >>> @safe_block
    ... def noted(notes):
    ...     try:
    ...         notes.append("begun")
    ...         yield notes
    ...     finally:
    ...         notes.append("ended")
    >>> with noted([]) as notes:
    ...     notes.append("running")
    >>> notes
    ['begun', 'running', 'ended']
    """

    @wraps(function)
    def make(*args: P.args, **kwargs: P.kwargs) -> AbstractContextManager[T]:
        return _SafeBlock(cast(Any, function), args, kwargs)

    return make


def taken_times(lock: Any) -> int:
    """The number of times that the calling thread has taken a reentrant lock that it holds.

    >>> import threading
    >>> lock = threading.RLock()
    >>> with lock, lock:
    ...     taken_times(lock), shown_times(lock)
    (2, 2)
    """
    count = getattr(lock, "_recursion_count", None)
    return shown_times(lock) if count is None else int(count())


def shown_times(lock: object) -> int:
    """The same from `<locked _thread.RLock object owner=... count=2 at ...>`: Debian's CPython 3.11.2 has no method for it."""
    return int(repr(lock).partition(" count=")[2].split()[0])
