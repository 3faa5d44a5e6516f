"""Methods of expressions that are functions of numbers: rounding, roots, logarithms and powers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tektite.errors import IncorrectError
from tektite.unknown_options import explains_missing_calls, explains_options
from tektite.values.arguments import whole_number

if TYPE_CHECKING:
    from tektite.expr.ast import Expr, Scalar


@explains_missing_calls
@explains_options
class NumberMethods:
    """Methods of expressions whose value is a number."""

    __slots__ = ()

    def _made(self, op: str, args: Sequence[Any], params: tuple[Any, ...] = ()) -> Expr:
        """A node over some operands. Python scalars become literals."""
        raise NotImplementedError

    def __abs__(self) -> Expr:
        return self._made("abs", (self,))

    def abs(self) -> Expr:
        """The absolute value.

        >>> import tektite as tk
        >>> tk.Engine().values({"x": [-3, 4, None]}).select(tk.col("x").abs()).collect().to_pydict()
        {'x': [3, 4, None]}
        """
        return self._made("abs", (self,))

    def sign(self) -> Expr:
        """-1, 0 or 1, as an Int. A NaN counts as greater than zero.

        >>> import tektite as tk
        >>> tk.Engine().values({"x": [-3, 0, 4]}).select(tk.col("x").sign()).collect().to_pydict()
        {'x': [-1, 0, 1]}
        """
        return self._made("sign", (self,))

    def round(self, digits: int = 0) -> Expr:
        """The nearest number with so many digits behind the point, of the same type. Halves are rounded away from zero, as in SQL
        (Python rounds them to the even neighbour).

        >>> import tektite as tk
        >>> rows = tk.Engine().values({"x": [2.5, -2.5, 1.25]})
        >>> rows.select(tk.col("x").round(), tenths=tk.col("x").round(1)).collect().to_pydict()
        {'x': [3.0, -3.0, 1.0], 'tenths': [2.5, -2.5, 1.3]}
        """
        return self._made("round", (self,), (_whole(digits, "round(digits)"),))

    def __round__(self, digits: int = 0) -> Expr:
        return self.round(digits)

    def floor(self) -> Expr:
        """The greatest whole number that is not greater, of the same type.

        >>> import tektite as tk
        >>> tk.Engine().values({"x": [1.7, -1.7]}).select(tk.col("x").floor()).collect().to_pydict()
        {'x': [1.0, -2.0]}
        """
        return self._made("floor", (self,))

    def ceil(self) -> Expr:
        """The least whole number that is not less, of the same type.

        >>> import tektite as tk
        >>> tk.Engine().values({"x": [1.2, -1.2]}).select(tk.col("x").ceil()).collect().to_pydict()
        {'x': [2.0, -1.0]}
        """
        return self._made("ceil", (self,))

    def trunc(self) -> Expr:
        """The whole number next to it on the way to zero, of the same type.

        >>> import tektite as tk
        >>> tk.Engine().values({"x": [1.7, -1.7]}).select(tk.col("x").trunc()).collect().to_pydict()
        {'x': [1.0, -1.0]}
        """
        return self._made("trunc", (self,))

    def sqrt(self) -> Expr:
        """The square root; NULL if there is none.

        >>> import tektite as tk
        >>> tk.Engine().values({"x": [9.0, -1.0]}).select(tk.col("x").sqrt()).collect().to_pydict()
        {'x': [3.0, None]}
        """
        return self._made("sqrt", (self,))

    def ln(self) -> Expr:
        """The natural logarithm; NULL if there is none.

        >>> import tektite as tk
        >>> tk.Engine().values({"x": [1.0, 0.0]}).select(tk.col("x").ln()).collect().to_pydict()
        {'x': [0.0, None]}
        """
        return self._made("ln", (self,))

    def log(self, base: Expr | Scalar = None) -> Expr:
        """The logarithm to a base, or the natural one; NULL if there is none. (SQL's `log(x)` is `log(10)` here.)

        >>> import tektite as tk
        >>> tk.Engine().values({"x": [8.0, 0.0]}).select(tk.col("x").log(2)).collect().to_pydict()
        {'x': [3.0, None]}
        """
        return self.ln() if base is None else self._made("div", (self.ln(), self._made("ln", (base,))))

    def exp(self) -> Expr:
        """The exponential.

        >>> import tektite as tk
        >>> tk.Engine().values({"x": [0.0, 1.0]}).select(tk.col("x").exp()).collect().to_pydict()
        {'x': [1.0, 2.718281828459045]}
        """
        return self._made("exp", (self,))

    def power(self, exponent: Expr | Scalar) -> Expr:
        """Raised to a power, as a Float; NULL if that is not a number.

        >>> import tektite as tk
        >>> tk.Engine().values({"x": [3, -2]}).select(tk.col("x").power(2)).collect().to_pydict()
        {'x': [9.0, 4.0]}
        """
        return self._made("power", (self, exponent))


def _whole(number: Any, what: str) -> int:
    found = whole_number(number)
    if found is None:
        raise IncorrectError(f"{what} takes a whole number, not {number!r}")
    return found
