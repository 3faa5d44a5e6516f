"""Long lists of constants, read together: behind IN, in arrays behind ANY, in chains of `x = 1 OR x = 2`, and below VALUES.

Promise: what is read here means what its parts mean one by one. Whatever is not plain (a text that is no number, a number of
too many digits, an expression) is left to the rules for parts, which know its place for an error.
"""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from tektite.errors import TektiteError
from tektite.expr import Expr, col
from tektite.expr.constant_set import MANY, ConstantSet
from tektite.expr.program import compute_column
from tektite.sql.catalog.array_text import array_elements
from tektite.values import types
from tektite.values.columns import decode_list
from tektite.values.dictionary import Dictionary
from tektite.values.python_values import array_of_texts
from tektite.values.types import DecimalType, ListType, Type

if TYPE_CHECKING:
    from tektite.sql.bind.scalar import Scalars

DIGITS = 15
"""Digits of a number that is exact as a float and as a decimal."""
SAID_BY_TEXTS = ("int", "float", "decimal", "bool", "date", "timestamp", "time", "uuid")
"""Types of values that a text may be compared with."""
BETWEEN_PAUSES = 1000


def is_one_of(value: Expr, constants: ConstantSet) -> Expr:
    """Whether a value is among constants."""
    return Expr("isin", (value,), (constants,))


def written(scalars: Scalars, value: Expr, trees: Sequence[exp.Expr], node: exp.Expr) -> ConstantSet | None:
    """The constants of many literals, as they are compared with a value."""
    if len(trees) < MANY:
        return None
    texts = column_of(scalars, trees)
    if texts is None:
        return None
    if texts[0] == "text":
        return said(scalars, value, texts[1], node)
    return numbers(scalars.type(value, node), texts[1])


def column_of(scalars: Scalars, trees: Sequence[exp.Expr]) -> tuple[str, list[str]] | None:
    """ "text" or "number", and the texts of literals that are all of that kind."""
    kinds, found = set[str](), list[str]()
    for at, tree in enumerate(trees):
        if at % BETWEEN_PAUSES == 0:
            scalars.pause()
        sign = ""
        if isinstance(tree, exp.Neg):
            sign, tree = "-", tree.this
        if type(tree) is not exp.Literal or (sign and tree.is_string):
            return None
        kinds.add("text" if tree.is_string else "number")
        found.append(sign + tree.this)
    return (kinds.pop(), found) if len(kinds) == 1 else None


def said(scalars: Scalars, value: Expr, texts: Sequence[str | None], node: exp.Expr) -> ConstantSet | None:
    """The constants that many texts say of the type of a value."""
    if len(texts) < MANY:
        return None
    kind = scalars.type(value, node)
    if kind == types.String:
        return ConstantSet(kind, texts)
    if kind.kind not in SAID_BY_TEXTS:
        return None
    if isinstance(kind, DecimalType):  # with all the places that the texts have
        places = max(len((text or "").partition(".")[2].strip()) for text in texts)
        kind = types.Decimal(18, min(18, max(kind.scale, places)))
    found = parsed([text for text in texts if text is not None], kind)
    if found is None:
        return None
    return ConstantSet(kind, found if len(found) == len(texts) else [*found, None])


def of_array(scalars: Scalars, value: Expr, array: Expr, node: exp.Expr) -> ConstantSet | None:
    """The constants of a constant array, or of its text, as they are compared with a value."""
    kind, given = array.params
    if kind == types.String:
        return said(scalars, value, array_elements(given), node)
    if not isinstance(kind, ListType) or len(given) < MANY:
        return None
    if kind.element == types.String:
        return said(scalars, value, given, node)
    return None if kind.element.kind in ("list", "struct") else ConstantSet(kind.element, given)


def parsed(texts: list[str], kind: Type) -> list[Any] | None:
    """Texts cast to a type; None if one of them does not say such a value."""
    dictionary = Dictionary()
    try:
        ids = dictionary.add(array_of_texts(texts))
        words = compute_column(col("text").cast(kind), ids, types.String, dictionary)
        found = decode_list(words, kind, "constant", dictionary)
    except (TektiteError, ValueError, OverflowError):
        return None
    return None if any(value is None for value in found) else found


def numbers(kind: Type, texts: Sequence[str]) -> ConstantSet | None:
    """The constants that numbers are, compared with a value of a type."""
    if kind == types.Int or isinstance(kind, DecimalType):
        if all(text.lstrip("-").isdecimal() and len(text) <= 18 for text in texts):
            return ConstantSet(types.Int, map(int, texts))
    elif kind != types.Float:
        return None
    parts = [text.lstrip("-").partition(".") for text in texts]
    if not all((whole + rest).isdecimal() and len(whole + rest) <= DIGITS for whole, _, rest in parts):
        return None
    if kind == types.Float:
        return ConstantSet(kind, map(float, texts))
    scale = max(len(rest) for _, _, rest in parts)
    if max(len(whole) for whole, _, _ in parts) + scale > 18:
        return None
    return ConstantSet(types.Decimal(18, scale), map(decimal.Decimal, texts))


def rows_of(scalars: Scalars, rows: Sequence[exp.Expr], width: int) -> tuple[list[Type], list[tuple[Any, ...]]] | None:
    """The types of columns and the rows of many tuples, where each column has whole numbers alone, or texts; and NULLs."""
    if len(rows) < MANY:
        return None
    found: list[tuple[Any, ...]] = []
    for at, row in enumerate(rows):
        if at % BETWEEN_PAUSES == 0:
            scalars.pause()
        cells = row.expressions if isinstance(row, exp.Tuple) else [row]
        values = tuple(map(plain_value, cells))
        if len(values) != width or None in values:
            return None
        found.append(values)
    kinds = [{type(value) for value in column} - {exp.Null} for column in zip(*found, strict=True)]
    if any(len(kind) != 1 for kind in kinds):
        return None
    types_found = [types.Int if kind == {int} else types.String for kind in kinds]
    return types_found, [tuple(None if isinstance(v, exp.Null) else v for v in row) for row in found]


def plain_value(tree: exp.Expr) -> int | str | exp.Null | None:
    """A whole number, a text or NULL as it is written; None for anything else."""
    if type(tree) is exp.Literal:
        text = tree.this
        if tree.is_string:
            return str(text)
        return int(text) if text.isdecimal() and len(text) <= 18 else None
    if isinstance(tree, exp.Neg):
        value = plain_value(tree.this)
        return -value if isinstance(value, int) else None
    return tree if isinstance(tree, exp.Null) else None


def alternatives(scalars: Scalars, trees: Sequence[exp.Expr]) -> list[Expr | exp.Expr]:
    """The parts of a chain of OR. Many comparisons of a column with literals are one part, bound, at the place of the first."""
    if len(trees) < MANY:
        return list(trees)
    lists: dict[Expr, list[exp.Expr]] = {}
    columns: dict[int, Expr] = {}
    for at, tree in enumerate(trees):
        column, constant = comparison_of(tree)
        if column is not None and constant is not None:
            columns[at] = scalars.bind(column)
            lists.setdefault(columns[at], []).append(constant)
    sets = {value: written(scalars, value, listed, trees[0]) for value, listed in lists.items()}
    found: list[Expr | exp.Expr] = []
    for at, tree in enumerate(trees):
        constants = sets.get(columns[at]) if at in columns else None
        if constants is None:
            found.append(tree)
        elif lists.pop(columns[at], None) is not None:
            found.append(is_one_of(columns[at], constants))
    return found


def comparison_of(tree: exp.Expr) -> tuple[exp.Column | None, exp.Expr | None]:
    """The column and the literal of `column = literal`, in whatever order and parentheses; None for anything else."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    if type(tree) is not exp.EQ:
        return None, None
    one, other = tree.this, tree.expression
    if isinstance(other, exp.Column):
        one, other = other, one
    return (one, other) if isinstance(one, exp.Column) and type(other) is exp.Literal else (None, None)
