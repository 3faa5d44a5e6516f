"""RequestBody: the fields of a request, each checked when it is read. Unknown fields are refused."""

from __future__ import annotations

from typing import Any, TypeVar, overload

import pyarrow as pa

from tektite.errors import IncorrectError
from tektite.values.columns import hint

T = TypeVar("T")
_REQUIRED: Any = object()


class RequestBody:
    """The fields of one request.

    >>> body = RequestBody("rows", {"relation": "t", "at": "x"})
    >>> body.text("relation")
    't'
    >>> body.number("at", None)
    Traceback (most recent call last):
    tektite.errors.IncorrectError: request 'rows': at is a whole number, not 'x'
    """

    def __init__(self, request: str, fields: dict[str, Any], table: pa.Table | None = None) -> None:
        self.request = request
        self.table = table
        self._fields = fields
        self._asked: set[str] = set()

    def wrong(self, message: str) -> IncorrectError:
        """An error about this request."""
        return IncorrectError(f"request {self.request!r}: {message}")

    def any(self, name: str, default: Any = _REQUIRED) -> Any:
        """A field of any kind."""
        self._asked.add(name)
        found = self._fields.get(name)
        if found is None:
            if default is _REQUIRED:
                raise self.wrong(f"{name} is needed")
            return default
        return found

    def _of_kind(self, name: str, kind: type | tuple[type, ...], what: str, default: Any) -> Any:
        found = self.any(name, default)
        if found is default and default is not _REQUIRED:
            return found
        if not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool):
            raise self.wrong(f"{name} is {what}, not {str(found)[:100]!r}")
        return found

    @overload
    def text(self, name: str) -> str: ...
    @overload
    def text(self, name: str, default: T) -> str | T: ...
    def text(self, name: str, default: Any = _REQUIRED) -> Any:
        """A text."""
        return self._of_kind(name, str, "a text", default)

    @overload
    def number(self, name: str) -> int: ...
    @overload
    def number(self, name: str, default: T) -> int | T: ...
    def number(self, name: str, default: Any = _REQUIRED) -> Any:
        """A whole number."""
        return self._of_kind(name, int, "a whole number", default)

    def seconds(self, name: str) -> float | None:
        """A number of seconds, if there is one."""
        found: float | None = self._of_kind(name, (int, float), "a number of seconds", None)
        return found

    def flag(self, name: str, default: bool = False) -> bool:
        """True or false."""
        return bool(self._of_kind(name, bool, "true or false", default))

    def list(self, name: str, default: Any = _REQUIRED) -> list[Any]:
        """A list."""
        found: list[Any] = self._of_kind(name, list, "a list", default)
        return found

    def mapping(self, name: str, default: Any = _REQUIRED) -> dict[str, Any]:
        """An object."""
        found: dict[str, Any] = self._of_kind(name, dict, "an object", default)
        return found

    def names(self, name: str) -> str | tuple[str, ...]:
        """The name of a column, or several."""
        found = self.any(name, ())
        if isinstance(found, str):
            return found
        if not isinstance(found, list | tuple) or not all(isinstance(each, str) for each in found):
            raise self.wrong(f"{name} is the name of a column or a list of them, not {str(found)[:100]!r}")
        return tuple(found)

    def parameters(self) -> dict[str, Any]:
        """The values of `$1` or `$name`, by what follows the dollar sign."""
        found = self.any("params", [])
        if isinstance(found, list):
            return {str(number): value for number, value in enumerate(found, 1)}
        if isinstance(found, dict):
            return found
        raise self.wrong(f"params is a list or an object, not {str(found)[:100]!r}")

    def finish(self) -> None:
        """Refuse fields that the request does not have."""
        for name in self._fields:
            if name not in self._asked:
                raise self.wrong(f"there is no {name[:50]!r}: {hint(name[:50], sorted(self._asked))}")
