"""Column types. A type says how to read the 64-bit words of a column; words themselves are untyped."""

from __future__ import annotations

from dataclasses import dataclass

from tektite.errors import IncorrectError


@dataclass(frozen=True, slots=True)
class Type:
    """How to read the words of a column. Compare with `==`; `kind` is the name without parameters.

    >>> import tektite as tk
    >>> tk.Int, tk.Int.kind, tk.Int == tk.Int64
    (int, 'int', True)
    """

    kind: str

    def __str__(self) -> str:
        return self.kind

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class DecimalType(Type):
    """A decimal of at most 18 digits, `scale` of them after the point, stored as an integer scaled by 10**scale."""

    precision: int = 18
    scale: int = 0

    def __str__(self) -> str:
        return f"decimal({self.precision}, {self.scale})"

    __repr__ = __str__


Int = Int64 = Type("int")
Float = Float64 = Type("float")
Bool = Type("bool")
Date = Type("date")
Timestamp = Type("timestamp")
String = Type("string")


def Decimal(precision: int, scale: int = 0) -> DecimalType:
    """A decimal type. `precision` is at most 18, so that every value is one word.

    >>> import tektite as tk
    >>> tk.Decimal(9, 2)
    decimal(9, 2)
    """
    whole = type(precision) is int and type(scale) is int
    if not whole or not (1 <= precision <= 18 and 0 <= scale <= precision):
        raise IncorrectError(f"Decimal({precision}, {scale}): need 1 <= precision <= 18 and 0 <= scale <= precision")
    return DecimalType("decimal", precision, scale)
