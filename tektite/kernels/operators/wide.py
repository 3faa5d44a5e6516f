"""Arithmetic that must not wrap: 128-bit numbers as pairs of words (high, low), and overflow tests for 64-bit ones.

A pair stands for high * 2**64 + low, with low read as unsigned. It fits one word iff high == low >> 63.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tektite.kernels.compile import inner
from tektite.kernels.toolchain import intrinsic, ir, types


@intrinsic
def product_high(typing_context: Any, a: Any, b: Any) -> Any:
    """The high word of the signed 128-bit product; the low word is `a * b`."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(builder.sext(args[0], wide), builder.sext(args[1], wide))
        return builder.trunc(builder.ashr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return types.int64(types.int64, types.int64), generate


@inner
def product_overflows(a, b):
    """Whether a * b does not fit one word."""
    return product_high(a, b) != ((a * b) >> 63)


@inner
def sum_overflows(a, b):
    """Whether a + b does not fit one word."""
    s = a + b
    return ((a ^ s) & (b ^ s)) < 0


@inner
def wide_add(high, low, more_high, more_low):
    """The sum of two pairs."""
    s = low + more_low
    carry = 1 if np.uint64(s) < np.uint64(more_low) else 0
    return high + more_high + carry, s


@inner
def wide_float(high, low):
    """The double nearest to a pair, up to one rounding of each half."""
    if high == low >> 63:
        return np.float64(low)
    return np.float64(high) * 18446744073709551616.0 + np.float64(np.uint64(low))
