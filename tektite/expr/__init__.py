"""Expressions over columns, and their compilation to programs that a kernel runs over rows."""

from tektite.expr.ast import (
    Case,
    Expr,
    Scalar,
    at_scale,
    coalesce,
    col,
    concat,
    greatest,
    hash64,
    key,
    least,
    lift,
    lit,
    rank,
    text_word,
    when,
)
from tektite.expr.program import Program, compile
from tektite.expr.text import Dictionary
from tektite.expr.typing import Columns, type_of

__all__ = [
    "Case",
    "Columns",
    "Dictionary",
    "Expr",
    "Program",
    "Scalar",
    "at_scale",
    "coalesce",
    "col",
    "compile",
    "concat",
    "greatest",
    "hash64",
    "key",
    "least",
    "lift",
    "lit",
    "rank",
    "text_word",
    "type_of",
    "when",
]
