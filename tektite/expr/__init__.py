"""Expressions over columns, and their compilation to programs that a kernel runs over rows.

aggregate_methods  methods of expressions that make aggregates and window functions
ast                expressions as users write them: immutable trees without types
comparisons        how comparisons are written, mirrored and negated
date_functions     functions of dates and timestamps, in terms of others
expansions         functions that mean different steps for different types
failures           the rows that a program fails on, found exactly
fold               computes the constant parts of expressions
functions          typing of casts and of functions of text, dates, timestamps and bits
interned_functions typing of functions of intervals, lists, structs, JSON, moments and wide decimals
interned_texts     functions of interned values, for many values at once
interval_text      intervals and bytes as people write them
json_texts         functions of JSON
like               patterns for kernels: LIKE, starts with, ends with, contains
literals           the type and the word of a Python value
namespaces         `.str` and `.dt`
number_functions   functions of numbers, in terms of others: rounding, and both divisions
other_names        what other libraries call the methods of expressions
predicates         conjunctions and their parts
program            compiles expressions for the kernel, and runs them over rows
record_text        records and tagged values as texts, whole powers, Python functions
steps              the instructions of a typed expression
text               functions of text, evaluated once for each distinct argument
typing             types an expression against a schema; the result is a tree of steps
written_lists      lists and structs as people write them
zones              moments, and the clocks of time zones
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
    truncdiv,
    truncmod,
    when,
)
from tektite.expr.program import RowProgram, compile
from tektite.expr.text import TextDictionary
from tektite.expr.typing import Columns, type_of

__all__ = [
    "Case",
    "Columns",
    "TextDictionary",
    "Expr",
    "RowProgram",
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
    "truncdiv",
    "truncmod",
    "type_of",
    "when",
]
