"""Columns as short codes: a word minus the least word of its column, in as many bits as the column's range needs.

Promise: codes of one column compare, as unsigned integers, like its words, and decode to them.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner
from tektite.kernels.layout.memory import load, read
from tektite.kernels.layout.rows import NARROW_FROM, address, count, fitting_step, step_of
from tektite.kernels.sort.radix import bit_length

_NULL = -(2**63)
_MAX = 2**63 - 1


@inner
def column_ranges(table, nd, keys, columns, lo, low, bits, nullable):
    """For each column: its least word, the bits that its range needs, and whether NULL is set apart.

    NULL lies 2**63 below everything else; were it not taken as "one less than the least", a single one would cost 64
    bits.
    """
    for j in range(columns):
        least = _MAX
        most = _NULL
        for c in range(len(table)):
            head = table[c]
            here = count(head)
            at = address(head, j)
            if step_of(head, j) == 0:
                here = min(here, 1)
            if step_of(head, j) == 8:
                for i in range(here):
                    word = load(at, i)
                    least = min(least, word)
                    most = max(most, word)
            else:
                for i in range(here):
                    word = read(at, step_of(head, j), i)
                    least = min(least, word)
                    most = max(most, word)
        if j == nd:
            least = max(least, lo)
            most = max(most, lo)
        nullable[j] = 0
        if least == _NULL and most != _NULL and j < keys:
            least = _MAX
            for c in range(len(table)):
                head = table[c]
                here = count(head)
                at = address(head, j)
                if step_of(head, j) == 0:
                    here = min(here, 1)
                for i in range(here):
                    word = read(at, step_of(head, j), i)
                    least = min(least, _MAX if word == _NULL else word)
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
    word = max(word, floor)
    if nullable and word == _NULL:
        return np.uint64(0)
    return np.uint64(word - low)


@inner
def decode(code, low, nullable):
    if nullable and code == np.uint64(0):
        return np.int64(_NULL)
    return np.int64(code) + low
