"""Errors for methods that remote sessions do not have: queries built in Python cannot be sent to a server."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, NoReturn


class ShowsWhatIsDocumented:
    """Leaves out of `dir()` what the client's own modules use of a class, and programs do not."""

    _internal: ClassVar[frozenset[str]] = frozenset()

    def __dir__(self) -> Iterable[str]:
        return [name for name in super().__dir__() if name not in self._internal]


class SaysWhatDoesNotTravel(ShowsWhatIsDocumented):
    """Answers an unknown name with what to use instead."""

    if not TYPE_CHECKING:  # type checkers are to see names that are not there

        def __getattr__(self, name: str) -> NoReturn:
            hint = "" if name.startswith("_") else "; over a wire, write it in SQL or Datalog: session.sql(...)"
            raise AttributeError(f"{type(self).__name__} has no {name!r}{hint}")
