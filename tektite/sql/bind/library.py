"""Binding functions of numbers and texts that DuckDB and PostgreSQL have, and that are made of others or called one by one.

Each is a composition of expressions, or an operation of `tektite.expr.scalar_library` that is evaluated once for each distinct
argument.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from tektite.expr import Expr, lit, when
from tektite.sql.parse.read_arguments import read_whole
from tektite.values import types

if TYPE_CHECKING:
    from tektite.sql.bind.scalar import Scalars

LibraryBuilder = Callable[..., Expr]


def called(op: str) -> LibraryBuilder:
    """An operation of the scalar library."""
    return lambda *values: Expr(op, values)


def pi() -> Expr:
    return lit(math.pi)


def degrees(value: Expr) -> Expr:
    return value * (180 / math.pi)


def radians(value: Expr) -> Expr:
    return value * (math.pi / 180)


def is_nan(value: Expr) -> Expr:
    return value.cast(types.Float) == lit(math.nan)


def is_infinite(value: Expr) -> Expr:
    return value.cast(types.Float).abs() == lit(math.inf)


def is_finite(value: Expr) -> Expr:
    number = value.cast(types.Float)
    return (number != lit(math.nan)) & (number.abs() != lit(math.inf))


def either(value: Expr, there: Expr, otherwise: Expr) -> Expr:
    """NVL2."""
    return when(value.is_not_null(), there).otherwise(otherwise)


def overlaid(text: Expr, new: Expr, start: Expr, length: Expr | None = None) -> Expr:
    """OVERLAY(text PLACING new FROM start FOR length)."""
    size = new.length() if length is None else length
    return text.substring(1, start - 1).concat(new, text.substring(start + size))


def bits_of(text: Expr) -> Expr:
    return Expr("utf8_length", (text,)) * 8


def first_character(text: Expr) -> Expr:
    """ASCII and ORD: the number of the first character, 0 of an empty text."""
    return Expr("character_code", (text, lit(0)))


def unicode(text: Expr) -> Expr:
    """UNICODE: the same, and -1 of an empty text."""
    return Expr("character_code", (text, lit(-1)))


def character(scalars: Scalars, node: exp.Chr) -> Expr:
    """CHR of one number."""
    if len(node.expressions) != 1 or node.args.get("charset"):
        raise scalars.unsupported("chr of anything but one number", node)
    return Expr("character", (scalars.bind(node.expressions[0]),))


def capitalised(scalars: Scalars, node: exp.Initcap) -> Expr:
    between = node.args.get("expression")  # the characters between words, which the dialect says
    if between is not None:
        read_whole(between)
    return Expr("capitalised", (scalars.bind(node.this),))


def digest(scalars: Scalars, node: exp.SHA2) -> Expr:
    length = node.args.get("length")
    if length is not None and length.name != "256":
        raise scalars.unsupported("a digest of another length than 256", node)
    return Expr("sha256", (scalars.bind(node.this),))


NODES: dict[type[exp.Expr], Callable[[Scalars, Any], Expr | None]] = {
    exp.Chr: character,
    exp.Initcap: capitalised,
    exp.SHA2: digest,
}
"""Functions that read the parser's tree themselves."""
SIMPLE: dict[type[exp.Expr], tuple[tuple[str, ...], LibraryBuilder]] = {
    **{kind: (("this",), called(kind.__name__.lower())) for kind in (
        exp.Sin, exp.Cos, exp.Tan, exp.Asin, exp.Acos, exp.Atan, exp.Sinh, exp.Cosh, exp.Tanh, exp.Cbrt,
    )},
    exp.Cot: (("this",), lambda value: 1 / Expr("tan", (value,))),
    exp.Atan2: (("this", "expression"), lambda one, other: Expr("atan2", (one, other))),
    exp.Pi: ((), pi),
    exp.Degrees: (("this",), degrees),
    exp.Radians: (("this",), radians),
    exp.IsNan: (("this",), is_nan),
    exp.IsInf: (("this",), is_infinite),
    exp.Factorial: (("this",), lambda value: Expr("factorial", (value,))),
    exp.Translate: (("this", "from_", "to"), lambda text, old, new: Expr("translate", (text, old, new))),
    exp.Ascii: (("this",), first_character),
    exp.Unicode: (("this",), unicode),
    exp.MD5: (("this",), lambda text: Expr("md5", (text,))),
    exp.Nvl2: (("this", "true", "false"), either),
    exp.Overlay: (("this", "expression", "from_", "for_"), overlaid),
    exp.BitLength: (("this",), bits_of),
    exp.Levenshtein: (("this", "expression"), lambda one, other: Expr("levenshtein", (one, other))),
}  # fmt: skip
"""Functions whose arguments are those of the parser's node."""
NAMED: dict[str, tuple[int, LibraryBuilder]] = {
    "gcd": (2, called("gcd")),
    "lcm": (2, called("lcm")),
    "isfinite": (1, is_finite),
    "even": (1, lambda value: Expr("even", (value,))),
    "ord": (1, first_character),
    "bit_count": (1, called("bit_count")),
    "strip_accents": (1, called("strip_accents")),
    "bin": (1, called("binary_of")),
}
"""Functions that the parser knows by name alone: how many values they take, and what they are."""
