"""Functions of expressions that are not methods: `coalesce`, `least`, `hash64`, both divisions, and keys to order rows by."""

from __future__ import annotations

from collections.abc import Callable

from tektite.errors import IncorrectError
from tektite.expr.ast import Expr, Scalar, lift


def _variadic(op: str, least_count: int, doc: str) -> Callable[..., Expr]:
    def build(*values: Expr | Scalar) -> Expr:
        if len(values) < least_count:
            raise IncorrectError(f"{op}() needs at least {least_count} value(s), got {len(values)}")
        return Expr(op, tuple(map(lift, values)))

    build.__name__ = build.__qualname__ = op
    build.__doc__ = doc
    return build


coalesce = _variadic("coalesce", 1, "The first of the values that is not NULL.")
least = _variadic("least", 1, "The least of the values; NULLs are ignored.")
greatest = _variadic("greatest", 1, "The greatest of the values; NULLs are ignored.")
hash64 = _variadic(
    "hash64", 1, "A hash of the values as an Int, the same on every machine. NULL counts as a value of its own."
)


def truncdiv(left: Expr | Scalar, right: Expr | Scalar) -> Expr:
    """The quotient rounded towards zero, as in SQL and Datalog: truncdiv(-3, 2) is -1, while -3 // 2 is -2."""
    return Expr("truncdiv", (lift(left), lift(right)))


def truncmod(left: Expr | Scalar, right: Expr | Scalar) -> Expr:
    """What `truncdiv` leaves, with the sign of the dividend, as in SQL and Datalog: truncmod(-3, 2) is -1, while -3 % 2 is 1."""
    return Expr("truncmod", (lift(left), lift(right)))


def key(value: Expr) -> Expr:
    """The value as joins and groups compare it: -0.0 is 0.0."""
    return Expr("key", (value,))


def rank(value: Expr, descending: bool = False) -> Expr:
    """An Int that orders like the value, or in reverse. NULL stays NULL."""
    return Expr("rank", (value,), (descending,))


def text_word(value: Expr, number: int) -> Expr:
    """The bytes 7 * number to 7 * number + 6 of a text as an Int; bytes after its end are 0. Texts compare like the
    sequence of their words.
    """
    return Expr("text_word", (value,), (number,))


def at_scale(value: Expr, scale: int, up: bool) -> Expr:
    """The decimal of `scale` places nearest to a decimal: the least that is not below it, or the greatest that is not
    above.

    A decimal of that many places compares with it as with the value itself. Neither digits that are rounded away nor added
    places can overflow.
    """
    return Expr("at_scale", (value,), (scale, up))
