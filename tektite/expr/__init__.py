"""Expressions over columns, and their compilation to programs that a kernel runs over rows.

ast          expressions as a Python user writes them: immutable trees that know nothing of schemas or rows
comparisons  how they are written, and what becomes of one whose sides change places or whose truth is turned around
fold         expressions with their constant parts computed
functions    of text, of dates and timestamps, of bits
like         patterns that a kernel matches texts with: LIKE's, and those that say how a text begins, ends, or what it contains
literals     which type a value has, and which word it becomes
predicates   conjunctions and their parts
program      expressions compiled to what the kernel interprets, and the run of one over rows
steps        what a typed expression is made of
text         functions of text, each evaluated once for each distinct argument and remembered
typing       an expression against a schema becomes a tree of steps, each with its type, or an error that says why not
"""

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
