"""explains_options: a call with an option that a method does not have is answered with the options that it has."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any, TypeVar

from tektite.errors import IncorrectError

C = TypeVar("C", bound=type)


def explains_options(kind: C) -> C:
    """Let the public methods of a class that take options name them, where Python would name the function alone.

    >>> import tektite as tk
    >>> tk.Engine().values({"x": [1]}).sort("x", ascending=False)
    Traceback (most recent call last):
    tektite.errors.IncorrectError: sort has no option 'ascending'; it takes by, descending, nulls_last
    """
    for name, method in list(vars(kind).items()):
        if not name.startswith("_") and isinstance(method, FunctionType):
            taken = inspect.signature(method).parameters.values()
            if not any(one.kind is one.VAR_KEYWORD for one in taken):
                setattr(kind, name, _explaining(method))
    return kind


def _explaining(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(self: Any, *args: Any, **options: Any) -> Any:
        try:
            return method(self, *args, **options)
        except TypeError:
            _check_options(method, args, options)
            raise

    return call


def _check_options(method: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Raise what is wrong with a call, if its arguments are not those of the method."""
    signature = inspect.signature(method)
    try:
        signature.bind(None, *args, **options)
    except TypeError as error:
        names = list(signature.parameters)[1:]
        takes = f"it takes {', '.join(names)}" if names else "it takes nothing"
        wrong = next((name for name in options if name not in names), None)
        unnamed = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.POSITIONAL_ONLY)
        what = f"has no option {wrong!r}" if wrong is not None else f"was called otherwise than it can be: {error}"
        for name in options:
            if wrong is None and name in names and signature.parameters[name].kind in unnamed:
                what = f"takes {name} without its name: {method.__name__}({options[name]!r})"
        raise IncorrectError(f"{method.__name__} {what}; {takes}") from None
