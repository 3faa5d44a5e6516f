"""Changes one column of rows by a constant. The other columns, and a column that is constant, are not copied."""

from __future__ import annotations

from typing import Any

import numpy as np

from tektite.kernels.compile import inner, kernel
from tektite.kernels.layout.pages import address_of
from tektite.kernels.layout.rows import count, same_rows, set_constant, set_stored, step_of, value
from tektite.kernels.operators.wide import product_overflows, sum_overflows


def _changer_of(changed: Any, overflows: Any) -> Any:
    """A function (source, column, by): the rows at `source` with `changed(word, by)` for each word of a column. The number of
    rows is -1 if one `overflows`.
    """

    @inner
    def change(source, column, by):
        head = same_rows(source)
        if step_of(source, column) == 0:
            word = value(source, column, 0)
            set_constant(head, column, changed(word, by))
            if overflows(word, by):
                head[0] = -1
            return np.empty(0, np.int64), head
        buf = np.empty(count(source), np.int64)
        wrong = False
        for i in range(count(source)):
            word = value(source, column, i)
            wrong |= overflows(word, by)
            buf[i] = changed(word, by)
        set_stored(head, column, address_of(buf))
        if wrong:
            head[0] = -1
        return buf, head

    return change


@inner
def _sum(word, by):
    return word + by


@inner
def _product(word, by):
    return word * by


_add = _changer_of(_sum, sum_overflows)
_multiply = _changer_of(_product, product_overflows)


@kernel("Tuple((int64[::1], int64[::1]))(int64, int64, int64)")
def shift(source, column, by):
    """The same rows with `by` added to one column. The number of rows is -1 if a sum does not fit a word."""
    return _add(source, column, by)


@kernel("Tuple((int64[::1], int64[::1]))(int64, int64, int64)")
def scale(source, column, factor):
    """The same rows with one column multiplied by `factor`. The number of rows is -1 if a product does not fit
    a word.
    """
    return _multiply(source, column, factor)
