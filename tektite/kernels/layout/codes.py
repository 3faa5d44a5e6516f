"""Columns as short codes: a word minus the least word of its column, in as many bits as the column's range needs.

Promise: codes of one column compare, as unsigned integers, like its words, and decode to them.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner
from tektite.kernels.layout.columns import NARROW_FROM, fitting_step, range_of
from tektite.kernels.layout.memory import GREATEST, read
from tektite.kernels.layout.rows import address, count, step_of
from tektite.kernels.sort.radix import bit_length
from tektite.values.words import NULL


@inner
def column_ranges(table, nd, keys, columns, lo, low, bits, nullable):
    """For each column: its least word, the bits that its range needs, and whether NULL is set apart.

    NULL lies 2**63 below every other word. So its code is that of "one less than the least other word": a single NULL would cost
    64 bits otherwise. Epochs (column `nd`) count as at least `lo`.
    """
    for j in range(columns):
        least = GREATEST
        most = NULL
        for c in range(len(table)):
            head = table[c]
            here = count(head)
            at = address(head, j)
            if here > 0:
                low_here, high_here = range_of(at, step_of(head, j), here)
                least = min(least, low_here)
                most = max(most, high_here)
        if j == nd:
            least = max(least, lo)
            most = max(most, lo)
        nullable[j] = 0
        if least == NULL and most != NULL and j < keys:
            least = GREATEST
            for c in range(len(table)):
                head = table[c]
                here = count(head)
                at = address(head, j)
                if step_of(head, j) == 0:
                    here = min(here, 1)
                for i in range(here):
                    word = read(at, step_of(head, j), i)
                    least = min(least, GREATEST if word == NULL else word)
            if j == nd:
                least = max(least, lo)
            least -= 1
            nullable[j] = 1
        low[j] = least
        bits[j] = bit_length(np.uint64(most) - np.uint64(least))


@inner
def code_step(rows, low, bits, nullable):
    """The step of a stored column that is decoded from codes."""
    if rows < NARROW_FROM or nullable or bits > 32:
        return 8
    most = low + ((1 << bits) - 1)
    return 8 if most < low else fitting_step(low, most)


@inner
def low_bits(bits):
    """A mask of `bits` (1 to 64) low bits."""
    return ~np.uint64(0) >> np.uint64(64 - bits)


@inner
def encode(word, low, nullable, floor):
    """The code of a word, which counts as at least `floor`."""
    word = max(word, floor)
    if nullable and word == NULL:
        return np.uint64(0)
    return np.uint64(word - low)


@inner
def decode(code, low, nullable):
    """The word of a code."""
    if nullable and code == np.uint64(0):
        return np.int64(NULL)
    return np.int64(code) + low
