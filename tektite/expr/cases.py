"""Choices: `when(condition).then(value).otherwise(value)`."""

from __future__ import annotations

from typing import Any, overload

from tektite.expr.ast import Expr, Scalar, lift, lit
from tektite.unknown_options import explained, explains_options


@explains_options
class Case(Expr):
    """A chain of when(condition, value) that can be extended. Where no condition is true it is NULL, or `otherwise`."""

    __slots__ = ()

    @overload
    def when(self, condition: Expr | bool) -> When: ...
    @overload
    def when(self, condition: Expr | bool, value: Expr | Scalar) -> Case: ...
    def when(self, condition: Expr | bool, value: Any = ...) -> When | Case:
        """The value where this condition is true and no earlier one is."""
        found = When(condition, self.args[:-1])
        return found if value is ... else found.then(value)

    def otherwise(self, value: Expr | Scalar) -> Expr:
        """The value where no condition is true."""
        return Expr("case", (*self.args[:-1], lift(value)))


@explains_options
class When:
    """A condition that waits for its value: `then(value)` gives it."""

    def __init__(self, condition: Expr | bool, before: tuple[Expr, ...]) -> None:
        self._condition = lift(condition)
        self._before = before

    def then(self, value: Expr | Scalar) -> Case:
        """The value where the condition is true and no earlier one is."""
        return Case("case", (*self._before, self._condition, lift(value), lit(None)))

    def __repr__(self) -> str:
        return f"<when({self._condition}), which needs .then(value)>"


@overload
def when(condition: Expr | bool) -> When: ...
@overload
def when(condition: Expr | bool, value: Expr | Scalar) -> Case: ...
@explained
def when(condition: Expr | bool, value: Any = ...) -> When | Case:
    """A choice: `when(a > 0).then("positive").when(a < 0).then("negative").otherwise("zero")`. Texts are literals here; a column
    is `col("name")`. `when(a > 0, "positive")` is short for `when(a > 0).then("positive")`.

    >>> import tektite as tk
    >>> tk.when(tk.col("n") > 9).then("many").when(tk.col("n") > 0).then("few").otherwise("none")
    <Expr when(n > 9).then('many').when(n > 0).then('few').otherwise('none')>
    """
    found = When(condition, ())
    return found if value is ... else found.then(value)
