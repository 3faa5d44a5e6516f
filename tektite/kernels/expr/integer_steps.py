"""Steps on integers, and on bits.

Contracts are in steps.py: what a step computes, and where it fails. `d` is the address of the results, `a` and `b` are those of
the operands, each of n words.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tektite.kernels.compile import inner
from tektite.kernels.expr.steps import (
    ABS,
    ADD,
    BIT_AND,
    BIT_OR,
    BIT_XOR,
    FLOORDIV,
    HASH,
    LEAST,
    MOD,
    MUL,
    MUL_FLOOR,
    ROUND_DIV,
    SHIFT_LEFT,
    SIGN,
    SUB,
)
from tektite.kernels.layout.memory import GREATEST as GREATEST_WORD
from tektite.kernels.layout.memory import load, store
from tektite.kernels.operators.wide import product_high
from tektite.kernels.toolchain import intrinsic, types
from tektite.values.words import NULL

GREATEST_DECIMAL = 10**18 - 1


@intrinsic
def multiply_overflows(typing_context: Any, left: Any, right: Any) -> Any:
    """1 if the product of two int64 does not fit in 64 bits, else 0."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        both = builder.smul_with_overflow(args[0], args[1])
        return builder.zext(builder.extract_value(both, 1), context.get_value_type(types.int64))

    return types.int64(types.int64, types.int64), generate


@inner
def wide_floor(high, low, divisor):
    """The floor of a 128-bit number divided by 0 < divisor < 2**60, or NULL if it does not fit one word.

    A number of more than one word is divided by hand: its size, four bits at a time, so that a rest and four bits fit 64.
    """
    if high == low >> 63:
        return low // divisor
    negative = high < 0
    if negative:
        low = -low
        high = ~high + (1 if low == 0 else 0)
    if high >= divisor:
        return NULL
    rest = np.uint64(high)
    by = np.uint64(divisor)
    quotient = np.uint64(0)
    for shift in range(60, -4, -4):
        rest = (rest << np.uint64(4)) | ((np.uint64(low) >> np.uint64(shift)) & np.uint64(15))
        digit = rest // by
        rest -= digit * by
        quotient = (quotient << np.uint64(4)) | digit
    if quotient >= np.uint64(GREATEST_WORD):
        return NULL
    size = np.int64(quotient)
    if negative:
        return -size - (1 if rest != np.uint64(0) else 0)
    return size


@inner
def integer_step(op, n, d, a, b, extra):
    """Steps on integers that can fail or divide."""
    bad = False
    if op == ADD:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            r = x + y
            null = (x == NULL) | (y == NULL)
            over = (((x ^ r) & (y ^ r)) < 0) | (r > extra) | (r < -extra)
            bad |= over & (not null)
            store(d, i, NULL if null else r)
    elif op == SUB:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            r = x - y
            null = (x == NULL) | (y == NULL)
            over = (((x ^ y) & (x ^ r)) < 0) | (r > extra) | (r < -extra)
            bad |= over & (not null)
            store(d, i, NULL if null else r)
    elif op == MUL:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            r = x * y
            null = (x == NULL) | (y == NULL)
            over = (multiply_overflows(x, y) != 0) | (r > extra) | (r < -extra)
            bad |= over & (not null)
            store(d, i, NULL if null else r)
    elif op == MUL_FLOOR:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            null = (x == NULL) | (y == NULL)
            r = NULL if null else wide_floor(product_high(x, y), x * y, extra)
            bad |= ((r > GREATEST_DECIMAL) | (r < -GREATEST_DECIMAL)) & (not null)
            store(d, i, r)
    elif op == FLOORDIV:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            null = (x == NULL) | (y == NULL) | (y == 0)
            store(d, i, NULL if null else x // (1 if null else y))
    elif op == MOD:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            null = (x == NULL) | (y == NULL) | (y == 0)
            divisor = 1 if null else y
            store(d, i, NULL if null else x - (x // divisor) * divisor)
    elif op == ROUND_DIV:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            size = abs(x)
            quotient = size // y
            rest = size - quotient * y
            if rest >= y - rest:
                quotient += 1
            store(d, i, NULL if x == NULL else (quotient if x >= 0 else -quotient))
    elif op == ABS:
        for i in range(n):
            x = load(a, i)
            store(d, i, abs(x))  # |NULL| wraps to NULL
    elif op == SIGN:
        for i in range(n):
            x = load(a, i)
            store(d, i, NULL if x == NULL else (1 if x > 0 else 0) - (1 if x < 0 else 0))
    elif op == LEAST:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            smaller = x if x < y else y
            store(d, i, (x if x > y else y) if smaller == NULL else smaller)
    else:  # GREATEST: NULL is the least word
        for i in range(n):
            x, y = load(a, i), load(b, i)
            store(d, i, x if x > y else y)
    return bad


@inner
def bit_step(op, n, d, a, b):
    """Bitwise steps and the hash."""
    bad = False
    if op == HASH:
        for i in range(n):
            # the finaliser of splitmix64 over the state plus a multiple of the golden ratio: an odd constant
            # for the word, so that the order of the columns counts
            x = load(a, i) * -7046029254386353131 + load(b, i)
            x = (x ^ ((x >> 30) & 0x3FFFFFFFF)) * -4658895280553007687
            x = (x ^ ((x >> 27) & 0x1FFFFFFFFF)) * -7723592293110705685
            x = x ^ ((x >> 31) & 0x1FFFFFFFF)
            store(d, i, 0 if x == NULL else x)
    elif op == BIT_AND or op == BIT_OR or op == BIT_XOR:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            null = (x == NULL) | (y == NULL)
            r = (x & y) if op == BIT_AND else ((x | y) if op == BIT_OR else x ^ y)
            bad |= (r == NULL) & (not null)
            store(d, i, NULL if null else r)
    else:  # SHIFT_LEFT, SHIFT_RIGHT
        for i in range(n):
            x, y = load(a, i), load(b, i)
            null = (x == NULL) | (y == NULL)
            by = min(max(y, 0), 63)
            r = (x << by) if op == SHIFT_LEFT else (x >> by)
            lost = (op == SHIFT_LEFT) & (((r >> by) != x) | (r == NULL) | ((y > 63) & (x != 0)))
            bad |= ((y < 0) | lost) & (not null)
            store(d, i, NULL if null else r)
    return bad
