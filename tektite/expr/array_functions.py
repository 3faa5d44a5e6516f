"""NumPy's functions of whole arrays, called with expressions: `np.where` and `np.select` are choices; others are refused, with
what to write. (NumPy's functions of numbers, such as `np.sqrt`, find the methods of expressions by themselves.)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tektite.errors import IncorrectError
from tektite.expr.ast import Expr, lit
from tektite.expr.cases import When

INSTEAD = {
    "argmax": "max_by(other)", "argmin": "min_by(other)", "average": "mean()", "clip": "tk.least(tk.greatest(x, low), high)",
    "concatenate": "one.union(other)", "corrcoef": "tk.corr(x, y)", "cumsum": "cum_sum().over(order_by=...)",
    "diff": "diff().over(order_by=...)", "histogram": "group_by(x // size * size).count()", "percentile": "quantile(share)",
    "sort": "Collection.sort(...)", "unique": "Collection.unique(...)",
}  # fmt: skip
"""Functions of NumPy that have another name here."""
SAME = ("all", "any", "max", "mean", "median", "min", "quantile", "std", "sum", "var")
"""Functions that are methods of expressions under the same name."""


def applied(function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Expr:
    """The expression that a function of NumPy builds of expressions.

    >>> import numpy as np, tektite as tk
    >>> np.where(tk.col("n") > 9, "many", "few")
    <Expr when(n > 9).then('many').otherwise('few')>
    """
    if function is np.where and len(args) == 3:
        condition, one, other = args
        return When(condition, ()).then(one).otherwise(other)
    if function is np.select and len(args) in (2, 3) and len(args[0]) == len(args[1]) > 0:
        choices: tuple[Expr, ...] = ()
        for condition, value in zip(args[0], args[1], strict=True):
            choices = When(condition, choices).then(value).args[:-1]
        default = args[2] if len(args) == 3 else options.get("default", 0)
        return Expr("case", (*choices, default if isinstance(default, Expr) else lit(default)))
    name = getattr(function, "__name__", str(function))
    way = (
        f"x.{name}()"
        if name in SAME
        else INSTEAD.get(name, "the methods of expressions, or Collection.map_batches(function)")
    )
    raise IncorrectError(f"np.{name} takes arrays, and an expression has no values until it meets rows: use {way}")
