"""Numbers rows by the words of some columns: rows with the same words get the same number, in the order of their first rows.

A small hash table finds the number of a row. It is kept at most half full.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner
from tektite.kernels.layout.memory import load, load4, read, store, store4
from tektite.kernels.layout.pages import address_of
from tektite.kernels.layout.scratch import keep
from tektite.kernels.seek.route import SEED, mix

# Slots of the first table: enough for most rounds and for few groups, and cheap to clear.
_SLOTS = 256
# After so many rows the attempt may be abandoned if three quarters of them had a number of their own: enough to see thousands of
# numbers.
_SAMPLE = 4096


@inner
def _same_words(columns, width, i, k):
    """Whether rows i and k agree in all columns. `columns` has the address and the step of each."""
    for c in range(width):
        at = load(columns, 2 * c)
        by = load(columns, 2 * c + 1)
        if read(at, by, i) != read(at, by, k):
            return False
    return True


@inner
def _home(columns, width, i, size):
    """The slot of a table of `size` slots, a power of two, where the search for a row's number begins."""
    hashed = SEED
    for c in range(width):
        hashed = mix(hashed, read(load(columns, 2 * c), load(columns, 2 * c + 1), i))
    return np.int64(hashed & np.uint64(size - 1))


@inner
def _larger_table(columns, width, firsts, many, size):
    """A table of `size` slots with the numbers below `many`; -1 in its free slots."""
    table = np.full(size, np.int32(-1), np.int32)
    for number in range(many):
        slot = _home(columns, width, load(firsts, number), size)
        while table[slot] >= 0:
            slot = (slot + 1) & (size - 1)
        table[slot] = number
    return table


@inner
def number_rows(columns, width, rows, numbers, firsts, give_up):
    """Write the number of each row to `numbers`, four bytes each, and the first row of each number to `firsts`, which has room
    for `rows`. Returns how many numbers there are; -1 if most rows have a number of their own and `give_up` says that it is not
    worth it then. `columns` has the address and the step of each of `width` columns.
    """
    size = np.int64(_SLOTS)
    room = _larger_table(columns, width, firsts, np.int64(0), size)
    many = np.int64(0)
    last = np.int64(-1)
    for i in range(rows):
        if give_up and i == _SAMPLE and 4 * many > 3 * i:
            return np.int64(-1)
        if last >= 0 and _same_words(columns, width, i, load(firsts, last)):
            store4(numbers, i, last)
            continue
        table = address_of(room)
        slot = _home(columns, width, i, size)
        last = load4(table, slot)
        while last >= 0 and not _same_words(columns, width, i, load(firsts, last)):
            slot = (slot + 1) & (size - 1)
            last = load4(table, slot)
        if last < 0:
            last = many
            store4(table, slot, last)
            store(firsts, last, i)
            many += 1
            if 2 * many > size:
                size *= 4
                room = _larger_table(columns, width, firsts, many, size)
        store4(numbers, i, last)
    keep(room)
    return many
