"""Comparisons, three-valued logic and choices.

Contracts are in steps.py. `d` is the address of the results, `a`, `b` and `c` are those of the operands, each of n words.
"""

from __future__ import annotations

from tektite.kernels.compile import inner
from tektite.kernels.expr.integer_steps import multiply_overflows
from tektite.kernels.expr.steps import (
    AND,
    COALESCE,
    EQ,
    IS_NULL,
    LE,
    LT,
    NE,
    NOT,
    NOT_TRUE,
    OR,
    SCALE_SATURATED,
    SELECT,
)
from tektite.kernels.layout.memory import GREATEST as GREATEST_WORD
from tektite.kernels.layout.memory import load, store
from tektite.values.words import NULL


@inner
def logic_step(op, n, d, a, b, c):
    """Comparisons, three-valued logic, choices."""
    if op == EQ:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            store(d, i, NULL if (x == NULL) | (y == NULL) else (1 if x == y else 0))
    elif op == NE:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            store(d, i, NULL if (x == NULL) | (y == NULL) else (1 if x != y else 0))
    elif op == LT:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            store(d, i, NULL if (x == NULL) | (y == NULL) else (1 if x < y else 0))
    elif op == LE:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            store(d, i, NULL if (x == NULL) | (y == NULL) else (1 if x <= y else 0))
    elif op == SCALE_SATURATED:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            over = multiply_overflows(x, y) != 0
            limit = GREATEST_WORD if x > 0 else -GREATEST_WORD
            store(d, i, NULL if x == NULL else (limit if over else x * y))
    elif op == AND:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            store(d, i, 0 if (x == 0) | (y == 0) else (1 if (x == 1) & (y == 1) else NULL))
    elif op == OR:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            store(d, i, 1 if (x == 1) | (y == 1) else (0 if (x == 0) & (y == 0) else NULL))
    elif op == NOT:
        for i in range(n):
            x = load(a, i)
            store(d, i, NULL if x == NULL else 1 - x)
    elif op == IS_NULL:
        for i in range(n):
            store(d, i, 1 if load(a, i) == NULL else 0)
    elif op == NOT_TRUE:
        for i in range(n):
            store(d, i, 0 if load(a, i) == 1 else 1)
    elif op == SELECT:
        for i in range(n):
            x, y, z = load(a, i), load(b, i), load(c, i)
            store(d, i, y if x == 1 else z)
    elif op == COALESCE:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            store(d, i, y if x == NULL else x)
    else:  # COPY
        for i in range(n):
            store(d, i, load(a, i))
