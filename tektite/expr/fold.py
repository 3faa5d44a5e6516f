"""Expressions with their constant parts computed, and what constants decide decided: TRUE AND x is x."""

from __future__ import annotations

import numpy as np

from tektite.errors import TektiteError
from tektite.expr.ast import Expr, lit
from tektite.expr.predicates import FALSE, TRUE
from tektite.expr.program import evaluate_constant
from tektite.expr.typing import resolve
from tektite.values import types
from tektite.values.dictionary import Dictionary
from tektite.values.words import NULL, decode_list

_texts = Dictionary()


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


def computed(expression: Expr) -> Expr:
    """The value of a scalar over constants; the scalar itself if computing it fails, or gives text."""
    try:
        step = resolve(expression, {})
        if step.type == types.String:
            return expression
        word = evaluate_constant(step, _texts)
        if word == NULL:
            return lit(None, step.type)
        (value,) = decode_list(np.array([word], np.int64), step.type, "constant", None)
        return lit(value, step.type)
    except (TektiteError, ValueError, OverflowError):
        return expression
