"""`computed_once`: a property that is computed when it is first read, and kept.

`functools.cached_property` takes a lock for that before Python 3.12, which costs more than most of what plans compute.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property

    computed_once = cached_property
else:

    class computed_once:  # noqa: N801, it is used as a decorator
        """A property kept in the object's `__dict__`, which Python reads before it asks here. If two threads read it first at the
        same time, both compute it: the function must be pure.
        """

        def __init__(self, function: Callable[[Any], Any]) -> None:
            self.function = function
            self.name = function.__name__
            self.__doc__ = function.__doc__

        def __get__(self, found: object, owner: type | None = None) -> Any:
            if found is None:
                return self
            value = self.function(found)
            object.__setattr__(
                found, self.name, value
            )  # by `found.__dict__`, Python would make a dict of its own for it
            return value
