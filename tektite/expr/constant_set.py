"""ConstantSet: many constants of one type that a value is looked for among, as one part of an expression.

Promise: `x.isin` over a `ConstantSet` means the same as over its literals. Planning does not look at single constants: what it
copies, compares and hashes is short, however many there are.
"""

from __future__ import annotations

import decimal
import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tektite.expr.literals import Untyped, literal_word
from tektite.values.types import DecimalType, Int, String, Type

if TYPE_CHECKING:
    from tektite.expr.ast import Expr

MANY = 32
"""From so many on, constants are one part: what a reader looks at in a printed plan stays as it is written."""
_EXACT = decimal.Context(prec=60)


class ConstantSet:
    """Constants of one type; a NULL among them is said apart."""

    __slots__ = ("_shown", "_words", "has_null", "type", "values")

    def __init__(self, type: Type, values: Iterable[Any]) -> None:
        given = list(values)
        self.values = tuple(value for value in given if value is not None)
        self.type = type
        self.has_null = len(self.values) < len(given)
        self._shown: str | None = None
        self._words: dict[Type, tuple[Any, ...] | None] = {}

    @staticmethod
    def of(items: list[Expr]) -> ConstantSet | None:
        """The set of many literals of one type; None if they are few, or something else."""
        if len(items) < MANY or any(item.op != "lit" for item in items):
            return None
        kinds = {item.params[0] for item in items if item.params[1] is not None}
        if len(kinds) != 1 or next(iter(kinds)).kind in ("list", "struct"):
            return None
        return ConstantSet(kinds.pop(), (item.params[1] for item in items))

    def __repr__(self) -> str:
        if self._shown is None:
            digest = hashlib.sha256(repr((self.values, self.has_null)).encode("utf-8", "surrogatepass")).hexdigest()
            self._shown = f"{len(self.values)} constants of type {self.type}: {digest}"
        return self._shown

    def literals(self) -> list[Expr]:
        """The constants, each an expression."""
        from tektite.expr.ast import Expr

        null = [Expr("lit", (), (Untyped, None))] if self.has_null else []
        return [Expr("lit", (), (self.type, value)) for value in self.values] + null

    def words(self, type: Type) -> tuple[Any, ...] | None:
        """The words, or texts, of those that values of a type can equal; None if it takes more than words to compare them."""
        if type not in self._words:
            self._words[type] = self._words_of(type)
        return self._words[type]

    def _words_of(self, type: Type) -> tuple[Any, ...] | None:
        if type == self.type == String:
            return self.values
        if type.interned or self.type.interned:
            return None
        if type == self.type == Int:
            return tuple(dict.fromkeys(self.values))
        if type == self.type:
            return tuple(dict.fromkeys(literal_word(value, type) for value in self.values))
        exact = (Int, DecimalType)
        if not (self.type == Int or isinstance(self.type, exact[1])) or not (type == Int or isinstance(type, exact[1])):
            return None
        scale = type.scale if isinstance(type, DecimalType) else 0
        scaled = (decimal.Decimal(value).scaleb(scale, context=_EXACT) for value in self.values)
        found = (int(value) for value in scaled if value == value.to_integral_value())
        return tuple(dict.fromkeys(word for word in found if abs(word) < 2**63))
