"""Expressions with their constant parts computed, and what constants decide decided: TRUE AND x is x."""

from __future__ import annotations

import numpy as np

from tektite.errors import TektiteError
from tektite.expr.assembler import Assembler
from tektite.expr.ast import Expr, lit
from tektite.expr.literals import Untyped
from tektite.expr.predicates import FALSE, TRUE
from tektite.expr.program import evaluate_constant
from tektite.expr.typing import Columns, Resolver, resolve
from tektite.values.columns import decode_list
from tektite.values.dictionary import Dictionary
from tektite.values.types import String, contains
from tektite.values.words import NULL

MOST_TEXTS = 1 << 12
"""Texts of constants that are kept: those of some hundred queries."""
_texts = Dictionary()


def _folding() -> Dictionary:
    """A dictionary for constants while they are computed. Nobody keeps their ids, so that it begins anew from time to time."""
    global _texts
    if _texts.texts > MOST_TEXTS:
        _texts = Dictionary()
    return _texts


def is_constant(expression: Expr) -> bool:
    """Whether a scalar is a literal."""
    return expression.op == "lit"


def folded(expression: Expr) -> Expr:
    """An expression with its constant parts computed.

    >>> from tektite.expr import col
    >>> folded((lit(1) < lit(2)) & (col("x") > lit(2) * lit(3)))
    <Expr x > 6>
    """
    if not expression.args:
        return expression
    args = tuple(folded(arg) for arg in expression.args)
    if any(new is not old for new, old in zip(args, expression.args, strict=True)):
        expression = Expr(expression.op, args, expression.params)
    if expression.op in ("and", "or"):
        return logic(expression)
    if all(map(is_constant, args)):
        return computed(expression)
    if expression.op == "case":
        return chosen(expression)
    return expression


def logic(expression: Expr) -> Expr:
    """AND and OR with a constant side."""
    decisive, neutral = (FALSE, TRUE) if expression.op == "and" else (TRUE, FALSE)
    left, right = expression.args
    for one, other in ((left, right), (right, left)):
        if one.fingerprint == decisive.fingerprint:
            return decisive
        if one.fingerprint == neutral.fingerprint:
            return other
    return computed(expression) if is_constant(left) and is_constant(right) else expression


def chosen(expression: Expr) -> Expr:
    """A case without the branches that are never taken."""
    args: list[Expr] = []
    for condition, value in zip(expression.args[:-1:2], expression.args[1::2], strict=True):
        if not is_constant(condition):
            args += [condition, value]
        elif condition.params[1]:
            # the branches before it decide the type too
            return Expr("case", (*args, value)) if args else expression
    return (
        Expr("case", (*args, expression.args[-1]))
        if len(args) > 1 and len(args) + 1 < len(expression.args)
        else expression
    )


def computed(expression: Expr, closed: bool = False) -> Expr:
    """The value of a scalar over constants; the scalar itself if computing it fails, or gives text, or if the type of a part is
    still open and not to be `closed`.
    """
    try:
        step = resolve(expression, {})
        if step.type == String or (is_open(expression) and not closed):
            return expression
        texts = _folding()
        word = evaluate_constant(step, texts)
        if word == NULL:
            return lit(None, step.type)
        (value,) = decode_list(np.array([word], np.int64), step.type, "constant", texts)
        return lit(value, step.type)
    except (TektiteError, ValueError, OverflowError):
        return expression


def is_open(expression: Expr) -> bool:
    """Whether a list or struct has a NULL inside whose type is still open."""
    return expression.op in ("list", "struct") and contains(Resolver({}).step(expression).type, Untyped.kind)


def can_fail(expression: Expr, columns: Columns) -> bool:
    """Whether an expression may fail on a row: a cast of a text, an overflow.

    >>> from tektite.expr import col
    >>> from tektite.values import types
    >>> columns = {"x": (0, types.Int)}
    >>> can_fail(col("x") + 1, columns), can_fail(col("x") > lit(1) + 1, columns)
    (True, False)
    """
    step = resolve(expression, columns)
    return step.fallible and Assembler(_folding(), evaluate_constant).fold(step).fallible


STRICT = frozenset(
    {"add", "sub", "mul", "div", "floordiv", "mod", "neg", "abs", "sign", "eq", "ne", "lt", "le", "gt", "ge", "not", "cast",
     "year", "quarter", "month", "day", "weekday", "hour", "minute", "second", "add_days", "add_months", "truncate",
     "length", "lower", "upper", "substring", "like", "ilike", "startswith", "endswith", "contains", "replace", "isin",
     "truncdiv", "truncmod", "round", "floor", "ceil", "trunc", "date_part", "strftime", "move", "time_bucket",
     "elapsed", "interval_length"}
)  # fmt: skip
"""Operations that are NULL wherever their first operand is, or any of them is."""


def never_true(part: Expr) -> bool:
    """Whether a predicate is FALSE or NULL for every row, as far as constants show.

    >>> from tektite.expr import col
    >>> from tektite.values import types
    >>> never_true((col("x") > lit(None, types.Int)) & col("y")), never_true(col("x").is_null())
    (True, False)
    """
    if is_constant(part):
        return part.params[1] is not True
    if part.op == "is_not_null":
        return is_null(part.args[0])
    if part.op == "and":
        return any(map(never_true, part.args))
    return all(map(never_true, part.args)) if part.op == "or" else is_null(part)


def is_null(expression: Expr) -> bool:
    """Whether an expression is NULL for every row."""
    if is_constant(expression):
        return expression.params[1] is None
    if expression.op == "isin":
        return is_null(expression.args[0])
    return expression.op in STRICT and any(map(is_null, expression.args))
