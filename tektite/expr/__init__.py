"""Expressions over columns, and their compilation to programs that a kernel runs over rows.

aggregate_methods   methods of expressions that make aggregates and window functions
assembler           turns the steps of typed expressions into the words of a program
ast                 expressions as users write them: immutable trees without types
array_functions     NumPy's functions of arrays, called with expressions
cases               choices: `when(condition).then(value)`
comparisons         how comparisons are written, mirrored and negated
constant_set        many constants of one type that a value is looked for among
date_functions      functions of dates and timestamps, in terms of others
durations           lengths of time as Python users give them
expansions          functions that mean different steps for different types
failures            the rows that a program fails on, found exactly
file_columns        columns for CSV and Parquet files, as the texts that SQL shows
fold                computes the constant parts of expressions
free_functions      functions of expressions that are not methods
functions           typing of casts and of functions of text, dates, timestamps and bits
guards              a necessary condition of a filter, as intervals of one column
interned_functions  typing of functions of intervals, lists, structs, JSON, moments and wide decimals
interval_parts      intervals by their parts, which move dates and timestamps
interned_texts      functions of interned values, for many values at once
json_texts          functions of JSON
like                patterns for kernels: LIKE, starts with, ends with, contains
literals            the type and the word of a Python value
namespaces          `.str` and `.dt`
nested_namespaces   the functions of `.list`, `.struct` and `.json`
number_functions    functions of numbers, in terms of others: rounding, and both divisions
number_methods      methods of expressions that are functions of numbers
other_names         what other libraries call the methods of expressions
plain               expressions as plain values and back, for stored declarations
predicates          conjunctions and their parts
printing            prints expressions in a form that Python can read
program             compiles expressions for the kernel, and runs them over rows
record_text         records and tagged values as texts, whole powers, Python functions
regular_expressions  checks of regular expressions where they are written
scalar_library      functions of numbers and texts that Python evaluates value by value
steps               the instructions of a typed expression
text                functions of text, evaluated once for each distinct argument
typing              types an expression against a schema; the result is a tree of steps
value_methods       methods of expressions that are functions of texts, dates and bits
value_namespace     what `.str`, `.dt`, `.list`, `.struct` and `.json` have in common
written_lists       lists and structs as people write them
zones               moments, and the clocks of time zones
"""

from tektite.expr.ast import Expr, Scalar, col, concat, lift, lit, shared_columns
from tektite.expr.cases import Case, when
from tektite.expr.free_functions import (
    at_scale,
    coalesce,
    concat_ws,
    greatest,
    hash64,
    key,
    least,
    now,
    rank,
    sql_expr,
    text_word,
    truncdiv,
    truncmod,
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
    "concat_ws",
    "greatest",
    "hash64",
    "key",
    "least",
    "lift",
    "lit",
    "now",
    "rank",
    "shared_columns",
    "sql_expr",
    "text_word",
    "truncdiv",
    "truncmod",
    "type_of",
    "when",
]
