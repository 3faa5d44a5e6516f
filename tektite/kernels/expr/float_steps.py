"""Steps on floats, and between floats and integers.

Contracts are in steps.py: what a step computes, and where it fails. `d` is the address of the results, `a` and `b` are those of
the operands, each of n words.
"""

from __future__ import annotations

import math

import numpy as np

from tektite.kernels.compile import inner
from tektite.kernels.expr.steps import (
    FABS,
    FADD,
    FDIV,
    FFLOORDIV,
    FLOAT_KEY,
    FLOAT_TO_INT,
    FMOD,
    FMUL,
    FSUB,
    INT_TO_FLOAT,
)
from tektite.kernels.layout.memory import bits_from_float, float_from_bits, load, store
from tektite.values.words import NULL

MAGNITUDE = 0x7FFFFFFFFFFFFFFF  # every bit of a float but its sign
CANONICAL_NAN = 0x7FF8000000000000


@inner
def float_of(word):
    """The float of an order-preserving word."""
    return float_from_bits(word if word >= 0 else word ^ MAGNITUDE)


@inner
def word_of(value):
    """The order-preserving word of a float. All NaN have the same."""
    bits = bits_from_float(value)
    word = bits if bits >= 0 else bits ^ MAGNITUDE
    return CANONICAL_NAN if value != value else word


@inner
def float_step(op, n, d, a, b, extra):
    """Steps on floats and between floats and integers."""
    bad = False
    if op == INT_TO_FLOAT:
        divisor = float(extra)
        for i in range(n):
            x = load(a, i)
            store(d, i, NULL if x == NULL else word_of(float(x) / divisor))
    elif op == FLOAT_TO_INT:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            value = float_of(x) * float_of(y)
            # beyond these bounds the conversion to an integer is undefined
            fits = (value < 9223372036854775808.0) & (value > -9223372036854775808.0)
            r = int(np.rint(value if fits else 0.0))
            bad |= ((not fits) | (r > extra) | (r < -extra)) & (x != NULL)
            store(d, i, NULL if x == NULL else r)
    elif op == FADD:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            store(d, i, NULL if (x == NULL) | (y == NULL) else word_of(float_of(x) + float_of(y)))
    elif op == FSUB:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            store(d, i, NULL if (x == NULL) | (y == NULL) else word_of(float_of(x) - float_of(y)))
    elif op == FMUL:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            store(d, i, NULL if (x == NULL) | (y == NULL) else word_of(float_of(x) * float_of(y)))
    elif op == FDIV:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            divisor = float_of(y)
            null = (x == NULL) | (y == NULL) | (divisor == 0.0)
            store(d, i, NULL if null else word_of(float_of(x) / divisor))
    elif op == FFLOORDIV or op == FMOD:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            if (x == NULL) | (y == NULL) | (y == 0) | (y == -1):  # 0 and -1 are the words of 0.0 and -0.0
                store(d, i, NULL)
            else:
                left, right = float_of(x), float_of(y)
                rest = np.fmod(left, right)
                down = (left - rest) / right
                if rest != 0.0:
                    if (right < 0.0) != (rest < 0.0):
                        rest += right
                        down -= 1.0
                else:
                    rest = math.copysign(0.0, right)
                if op == FMOD:
                    store(d, i, word_of(rest))
                else:
                    near = np.floor(down)
                    near = near + 1.0 if down - near > 0.5 else near
                    store(d, i, word_of(near if down != 0.0 else math.copysign(0.0, left / right)))
    elif op == FABS:
        for i in range(n):
            x = load(a, i)
            store(d, i, NULL if x == NULL else (x if x >= 0 else x ^ -1))
    elif op == FLOAT_KEY:
        for i in range(n):
            x = load(a, i)
            store(d, i, 0 if x == -1 else x)
    else:  # COMPARE_INT_FLOAT
        for i in range(n):
            x, y = load(a, i), load(b, i)
            if (x == NULL) | (y == NULL):
                store(d, i, NULL)
            else:
                value = float_of(y)
                if value != value or value >= 9223372036854775808.0:  # NaN is greater than every number
                    store(d, i, -1)
                elif value < -9223372036854775808.0:
                    store(d, i, 1)
                else:
                    below = np.floor(value)
                    whole = int(below)
                    order = (1 if x > whole else 0) - (1 if x < whole else 0)
                    store(d, i, -1 if order == 0 and value > below else order)
    return bad
