"""Exact sums of 64-bit diffs in any order: wrapped sums, and their carries to the next word."""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner
from tektite.kernels.layout.memory import GREATEST
from tektite.kernels.layout.rows import new_head


@inner
def carry(left, right, total):
    """What `left + right`, computed as the wrapped `total`, owes to the word above: -1, 0 or 1."""
    if ((left ^ total) & (right ^ total)) >= 0:
        return 0
    return 1 if left >= 0 else -1


@inner
def times(word, factor):
    """word * factor (factor >= 1), and a non-zero second value if that does not fit."""
    if -(1 << 31) <= word < (1 << 31) and factor < (1 << 31):
        return word * factor, 0
    size = np.uint64(word) if word >= 0 else ~np.uint64(word) + np.uint64(1)
    limit = np.uint64(GREATEST) if word >= 0 else np.uint64(GREATEST) + np.uint64(1)
    return word * factor, np.int64(size > limit // np.uint64(factor))


@inner
def overflow_head(columns):
    """The result of a kernel that found a sum that does not fit a word."""
    return np.empty(0, np.int64), new_head(-1, columns)
