"""The base class of `.str`, `.dt`, `.list`, `.struct` and `.json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from tektite.errors import IncorrectError
from tektite.expr import other_names
from tektite.unknown_options import Methods

if TYPE_CHECKING:
    from tektite.expr.ast import Expr


class ValueNamespace(Methods):
    """The functions of an expression as a value of one kind."""

    _KIND = ""
    _OTHER_NAMES: Mapping[str, Any] = {}
    """Other libraries' names of its functions."""
    _value: Expr

    def __repr__(self) -> str:
        return f"<the functions of {self._value} as {self._KIND}>"

    if not TYPE_CHECKING:  # type checkers are to see names that are not there

        def __getitem__(self, key: object) -> NoReturn:
            way = {"list": f"get({key!r})", "struct": f"field({key!r})", "json": f"get({key!r})"}.get(
                self._NAME, "part(name)"
            )
            raise IncorrectError(f"{self._value}.{self._NAME}[{key!r}]: write {self._value}.{self._NAME}.{way}")

        def __getattr__(self, name: str) -> NoReturn:
            advice = other_names.advice(name, self._OTHER_NAMES, type(self), other_names.SQL_HAS)
            raise AttributeError(f".{self._NAME} has no {name!r}{advice}")
