"""`.list`, `.struct` and `.json`: functions of lists, structs and JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tektite.errors import IncorrectError
from tektite.expr import other_names
from tektite.expr.value_namespace import ValueNamespace
from tektite.unknown_options import explains_options
from tektite.values.arguments import whole_number

if TYPE_CHECKING:
    from tektite.expr.ast import Expr


def _made(op: str, *args: Any, params: tuple[Any, ...] = ()) -> Expr:
    from tektite.expr.ast import Expr, lift

    return Expr(op, tuple(map(lift, args)), params)


@explains_options
class ListMethods(ValueNamespace):
    """Functions of a list."""

    _NAME = "list"
    _KIND = "a list"
    _OTHER_NAMES = other_names.LIST_METHODS

    def len(self) -> Expr:
        """The number of elements."""
        return _made("list_length", self._value)

    def get(self, index: Expr | int) -> Expr:
        """An element, counted from 0, or from the end if negative; NULL if there is none."""
        place = whole_number(index)
        if place is not None:
            return _made("list_element", self._value, place + 1 if place >= 0 else place)
        if index is None or isinstance(index, str | float | bool):
            raise IncorrectError(f"{self._value}.list.get(...) takes a whole number or an expression, not {index!r}")
        return _made("list_element", self._value, index + 1)

    def contains(self, value: Any) -> Expr:
        """Whether a value is among the elements."""
        return _made("list_contains", self._value, value)

    def head(self, n: Expr | int) -> Expr:
        """The first `n` elements."""
        return _made("list_slice", self._value, 1, n)

    def sort(self, descending: bool = False) -> Expr:
        """The elements in order, NULLs last."""
        return _made("list_order", self._value, params=("descending" if descending else "ascending",))

    def reverse(self) -> Expr:
        """The elements in reverse order."""
        return _made("list_order", self._value, params=("reverse",))

    def unique(self) -> Expr:
        """Each different element that is not NULL once, in order."""
        return _made("list_order", self._value, params=("distinct",))

    def concat(self, other: Any) -> Expr:
        """The elements of this list, then those of another."""
        return _made("list_concat", self._value, other)

    def join(self, separator: Expr | str = ",") -> Expr:
        """The elements that are not NULL as one text."""
        return _made("list_join", self._value, separator)


@explains_options
class StructMethods(ValueNamespace):
    """Functions of a struct."""

    _NAME = "struct"
    _KIND = "a struct"
    _OTHER_NAMES = other_names.STRUCT_METHODS

    def field(self, name: str) -> Expr:
        """A field by its name."""
        if not isinstance(name, str):
            raise IncorrectError(f"{self._value}.struct.field(...) takes the name of a field, not {name!r}")
        return _made("struct_field", self._value, params=(name,))


@explains_options
class JsonMethods(ValueNamespace):
    """Functions of JSON."""

    _NAME = "json"
    _KIND = "JSON"
    _OTHER_NAMES = other_names.JSON_METHODS

    def get(self, path: Expr | str | int) -> Expr:
        """A part, by a key, a place from 0 or a path such as `$.a[0]`, as JSON."""
        return _made("json_extract", self._value, path)

    def text(self, path: Expr | str | int) -> Expr:
        """A part as a text."""
        return _made("json_extract_text", self._value, path)
