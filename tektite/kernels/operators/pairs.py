"""Writes pairs of rows of two sides, column by column: one row of a side with each row of a run of the other.

Promise: `write_maxima` and `write_products` write one word for each row of the run, in its order. A time of a pair is the
greater of its sides' times. A diff of a pair is the product of its sides' diffs.
"""

from __future__ import annotations

from typing import Any

from tektite.kernels.compile import inlined, inner
from tektite.kernels.layout.memory import load, read, store
from tektite.kernels.operators.wide import product_overflows


def _pair_writer_of(combined: Any, overflows: Any) -> Any:
    """A function (word, at, step, start, size, target) that writes `combined(word, other)` for the words `other` in rows
    start..start+size of the column at `at`. Returns whether one `overflows`.
    """

    @inlined
    def write(word, at, step, start, size, target):
        if step == 0:
            other = load(at, 0)
            both = combined(word, other)
            for i in range(size):
                store(target, i, both)
            return overflows(word, other)
        wrong = False
        for i in range(size):
            other = read(at, step, start + i)
            wrong |= overflows(word, other)
            store(target, i, combined(word, other))
        return wrong

    return write


@inner
def _greater(word, other):
    return max(word, other)


@inner
def _product(word, other):
    return word * other


@inner
def _never(word, other):
    return False


write_maxima = _pair_writer_of(_greater, _never)
write_products = _pair_writer_of(_product, product_overflows)
