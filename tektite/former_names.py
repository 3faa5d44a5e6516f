"""Names of former versions, for as long as docs/compatibility.md promises them. They work, give a `DeprecationWarning`, and are
not listed by `dir`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast
from warnings import warn

from tektite.errors import IncorrectError

Function = TypeVar("Function", bound=Callable[..., Any])


def former_name(now: str) -> Callable[[Function], Function]:
    """Marks a method, or the getter of a property, as the former name of what `now` describes.

    >>> class Box:
    ...     @former_name("box.unpack()")
    ...     def open(self) -> int:
    ...         return 1
    >>> Box.open.former
    True
    """

    def mark(function: Function) -> Function:
        @functools.wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            warn(f"{function.__name__} is a former name: use {now}", DeprecationWarning, stacklevel=2)
            return function(*args, **options)

        call.former = True  # type: ignore[attr-defined]
        return cast(Function, call)

    return mark


def former_options(**names: str) -> Callable[[Function], Function]:
    """Lets a function take options by their former names: `former_options(rounds="max_rounds")`.

    >>> @former_options(rounds="max_rounds")
    ... def solve(max_rounds: int = 5) -> int:
    ...     return max_rounds
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     solve(rounds=3)
    3
    """

    def rename(function: Function) -> Function:
        @functools.wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            for former, name in names.items():
                if former not in options:
                    continue
                if name in options:
                    raise IncorrectError(f"{former}= is the former name of {name}=: give one of them")
                warn(f"{former}= is a former name: use {name}=", DeprecationWarning, stacklevel=2)
                options[name] = options.pop(former)
            return function(*args, **options)

        return cast(Function, call)

    return rename


def without_former(kind: type, names: Iterable[str]) -> list[str]:
    """The names of an object's attributes, as `dir` lists them, without those that are former names."""

    def is_former(name: str) -> bool:
        found = getattr(kind, name, None)
        return hasattr(found.fget if isinstance(found, property) else found, "former")

    return [name for name in names if not is_former(name)]
