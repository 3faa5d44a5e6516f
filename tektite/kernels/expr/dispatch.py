"""Runs one step of a program over a block of words."""

from __future__ import annotations

from tektite.kernels.compile import inner
from tektite.kernels.expr.date_steps import date_step
from tektite.kernels.expr.float_steps import float_step
from tektite.kernels.expr.integer_steps import bit_step, integer_step
from tektite.kernels.expr.logic_steps import logic_step
from tektite.kernels.expr.steps import ADD_MONTHS, COMPARE_INT_FLOAT, COPY, FLOAT_KEY, GREATEST, HASH
from tektite.kernels.layout.memory import load, store
from tektite.values.words import NULL


@inner
def check_step(n, d, a, b):
    """CHECK_PARSED."""
    bad = False
    for i in range(n):
        x, y = load(a, i), load(b, i)
        bad |= (x == NULL) & (y != NULL)
        store(d, i, x)
    return bad


@inner
def step(op, n, d, a, b, c, extra):
    """Run one step over n rows; whether some row failed. The memo steps are not here: they can miss."""
    if op <= GREATEST:
        return integer_step(op, n, d, a, b, extra)
    if op <= FLOAT_KEY or op == COMPARE_INT_FLOAT:
        return float_step(op, n, d, a, b, extra)
    if op <= COPY:
        logic_step(op, n, d, a, b, c)
        return False
    if op <= HASH:
        return bit_step(op, n, d, a, b)
    if op <= ADD_MONTHS:
        return date_step(op, n, d, a, b, extra)
    return check_step(n, d, a, b)
