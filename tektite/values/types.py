"""Column types. A type says how to read the 64-bit words of a column; words themselves are untyped.

The word of a value of an *interned* type is the id of a text in the dictionary. The text is the value itself (`String`), or a
form of it whose order is the order of the values (`tektite.values.composites`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn

from tektite.errors import IncorrectError
from tektite.unknown_options import explained

WORD_DIGITS: Final = 18
"""Digits of a decimal that one word holds. More digits are interned."""
MOST_DIGITS: Final = 38
_KEYED: Final = frozenset({"float", "interval"})
_INTERNED: Final = frozenset({"string", "interval", "list", "struct", "json", "uuid", "blob"})


@dataclass(frozen=True, slots=True)
class Type:
    """The type of a column: how to read its words. Compare with `==`; `kind` is the name without parameters.

    >>> import tektite as tk
    >>> tk.Int, tk.Int.kind, tk.Int == tk.Int64
    (int, 'int', True)
    """

    kind: str

    @property
    def interned(self) -> bool:
        """Whether the words are ids of texts in the dictionary."""
        return self.kind in _INTERNED

    @property
    def has_keys(self) -> bool:
        """Whether values with different words may be equal: 0.0 and -0.0, 1 month and 30 days. `expr.key` gives one word."""
        return self.kind in _KEYED

    if not TYPE_CHECKING:  # type checkers know that it is no function

        def __call__(self, *_: object) -> NoReturn:
            raise IncorrectError(
                f"{self} is a type, not a function: write it without (); a value of it is tk.lit(value, type), and a column "
                "becomes one by cast(type)"
            )

        def __getitem__(self, key: object) -> NoReturn:
            raise IncorrectError(f"{self}[...] is no type: a list is tk.List(type), a record tk.Struct(name=type)")

        def __instancecheck__(self, value: object) -> NoReturn:
            raise IncorrectError(f"{self} is a column's type; a value's type is Python's: isinstance(value, int)")

    def __str__(self) -> str:
        return self.kind

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class DecimalType(Type):
    """A decimal of at most 38 digits, `scale` of them after the point, stored as an integer scaled by 10**scale."""

    precision: int = 18
    scale: int = 0

    @property
    def interned(self) -> bool:
        """Whether it has more digits than a word holds."""
        return self.precision > WORD_DIGITS

    def __str__(self) -> str:
        return f"decimal({self.precision}, {self.scale})"

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class ListType(Type):
    """A list of values of one type, which may be NULL."""

    element: Type = Type("int")

    @property
    def has_keys(self) -> bool:
        """Whether two lists with different words may be equal: an element has keys. Floats are stored as their keys."""
        return self.element.interned and self.element.has_keys

    def __str__(self) -> str:
        return f"list({self.element})"

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class StructType(Type):
    """Named fields, each of a type. Fields may be NULL."""

    fields: tuple[tuple[str, Type], ...] = ()

    @property
    def has_keys(self) -> bool:
        """Whether two structs with different words may be equal: a field has keys. Floats are stored as their keys."""
        return any(type.interned and type.has_keys for _, type in self.fields)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the fields."""
        return tuple(name for name, _ in self.fields)

    def field(self, name: str) -> int | None:
        """The place of a field; upper and lower case are the same if nothing else is."""
        names = [known for known, _ in self.fields]
        if name in names:
            return names.index(name)
        same = [at for at, known in enumerate(names) if known.lower() == name.lower()]
        return same[0] if len(same) == 1 else None

    def __str__(self) -> str:
        return f"struct({', '.join(f'{_quoted(name)} {type}' for name, type in self.fields)})"

    __repr__ = __str__


def contains(type: Type, kind: str) -> bool:
    """Whether a type is of a kind, or is a list or struct with such a type inside.

    >>> contains(ListType("list", Type("interval")), "interval")
    True
    """
    if isinstance(type, ListType):
        return contains(type.element, kind)
    if isinstance(type, StructType):
        return any(contains(part, kind) for _, part in type.fields)
    return type.kind == kind


Int = Int64 = Type("int")
Float = Float64 = Type("float")
Bool = Type("bool")
Date = Type("date")
Time = Type("time")
Timestamp = Type("timestamp")
TimestampTz = Type("timestamptz")
Interval = Type("interval")
String = Type("string")
Json = Type("json")
Uuid = Type("uuid")
Blob = Type("blob")


@explained
def Decimal(precision: int, scale: int = 0) -> DecimalType:
    """A decimal type. A value of up to 18 digits is one word; `precision` is at most 38.

    >>> import tektite as tk
    >>> tk.Decimal(9, 2)
    decimal(9, 2)
    """
    whole = type(precision) is int and type(scale) is int
    if not whole or not (1 <= precision <= MOST_DIGITS and 0 <= scale <= precision):
        raise IncorrectError(f"Decimal({precision}, {scale}): need 1 <= precision <= 38 and 0 <= scale <= precision")
    return DecimalType("decimal", precision, scale)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
