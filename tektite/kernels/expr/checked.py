"""One step of an expression program over columns, with the rows that it fails on."""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import kernel
from tektite.kernels.expr.dispatch import step
from tektite.kernels.layout.pages import address_of


@kernel("Tuple((int64[::1], int64[::1]))(int64, int64[::1], int64[::1], int64)")
def checked_step(op, a, b, extra):
    """The results of a step that can fail, and for each row 1 if it failed, 0 if not. `a` and `b` have equally many rows."""
    n = len(a)
    result = np.empty(n, np.int64)
    failed = np.zeros(n, np.int64)
    at_a, at_b, at_result = address_of(a), address_of(b), address_of(result)
    for i in range(n):
        if step(op, 1, at_result + 8 * i, at_a + 8 * i, at_b + 8 * i, at_a + 8 * i, extra):
            failed[i] = 1
    return result, failed
