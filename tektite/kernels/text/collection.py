"""Collects texts that nobody uses: marks those in use, and copies them to a new table and heap (see strings.py).

`mark_rows` and `mark_words` give texts in use the present era. Then FLOOR and BOUNDARY are set: texts of earlier eras than FLOOR
that lie before BOUNDARY are doomed. `copy_slots` copies the others to a new table and heap, and `copy_tail` what lies behind
BOUNDARY. Meanwhile a doomed text that is added again is appended as if it were new.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner, kernel
from tektite.kernels.expr.memo import load_acquire, store_release
from tektite.kernels.layout.memory import load, read, store
from tektite.kernels.layout.pages import address_of
from tektite.kernels.text.ids import copy_bytes, load_32, text_id
from tektite.kernels.text.strings import (
    BOUNDARY,
    CAPACITY,
    COUNT,
    ERA,
    FLOOR,
    HEADER,
    HEAP,
    LIMIT,
    NARROW,
    POSITION,
    POSITION_BITS,
    SHIFT,
    TABLE,
    USED,
    fits_narrow,
    home_of,
)
from tektite.values.words import NULL

_FAR_APART = np.int64(0x1E3779B185EBCA87)


@inner
def _mark(table, shift, word, era):
    """Note that an id is in use in an era, if there is a text with this id."""
    mask = (np.int64(1) << (64 - shift)) - 1
    slot = home_of(word, shift)
    while True:
        entry = load(table, 2 * slot + 1)
        if entry == 0:
            return
        if load(table, 2 * slot) == word:
            if entry >> POSITION_BITS != era:
                store_release(table, 2 * slot + 1, (entry & POSITION) | era << POSITION_BITS)
            return
        slot = (slot + 1) & mask


@inner
def _mark_run(state, at, step, start, stop):
    """Mark the words `start` to `stop` - 1 of a column. Equal neighbours are marked once. Most numbers fit into 32 bits, and
    hardly any id: while none does, such words need not be looked up.
    """
    table, shift, era, narrow = state[TABLE], state[SHIFT], state[ERA], state[NARROW] > 0
    last = NULL
    for row in range(start, stop):
        word = read(at, step, row)
        if word != last:
            if narrow or not fits_narrow(word):
                _mark(table, shift, word, era)
            last = word


@kernel("void(int64[::1], int64[::1])")
def mark_words(state, words):
    """Give the texts whose ids are among some words the present era."""
    _mark_run(state, address_of(words), 8, 0, len(words))


@kernel("int64(int64[::1], int64, int64, int64)")
def mark_rows(state, head, place, most):
    """Give the texts whose ids are in any column of the rows at address `head` the present era.

    Begins at `place`, a column times the rows plus a row, and looks at about `most` words. Returns the place to go on from; -1 if
    nothing is left. A column may hold something else than ids: a word that equals an id by chance keeps a text that nobody needs.
    """
    table, shift, era = state[TABLE], state[SHIFT], state[ERA]
    rows, columns = load(head, 0), load(head, 2)
    if rows == 0:
        return -1
    column, row = place // rows, place % rows
    while column < columns:
        if most <= 0:
            return column * rows + row
        at, step = load(head, 3 + 3 * column), load(head, 4 + 3 * column)
        if step == 0:
            _mark(table, shift, load(head, 5 + 3 * column), era)
            most -= 1
        elif step == 8 or state[NARROW] > 0:
            stop = min(rows, row + most)
            most -= stop - row
            _mark_run(state, at, step, row, stop)
            row = stop
            if row < rows:
                return column * rows + row
        row = 0
        column += 1
    return -1


@kernel("void(int64[::1], int64[::1], int64[::1])")
def known_ids(state, ids, known):
    """Write 1 for each id that has a text, 0 for others."""
    mask = (np.int64(1) << (64 - state[SHIFT])) - 1
    for i in range(len(ids)):
        slot = home_of(ids[i], state[SHIFT])
        known[i] = 0
        while load(state[TABLE], 2 * slot + 1) != 0:
            if load(state[TABLE], 2 * slot) == ids[i]:
                known[i] = 1
                break
            slot = (slot + 1) & mask


@inner
def _enter(state, word, entry):
    """Put an id that is not there into a table with room for it."""
    mask = (np.int64(1) << (64 - state[SHIFT])) - 1
    slot = home_of(word, state[SHIFT])
    while load(state[TABLE], 2 * slot + 1) != 0:
        slot = (slot + 1) & mask
    store(state[TABLE], 2 * slot, word)
    store(state[TABLE], 2 * slot + 1, entry)
    state[COUNT] += 1
    state[NARROW] += fits_narrow(word)


@inner
def _scattered(number, table):
    """The slot with a number, in an order in which neighbours are far apart. In the order of slots, texts would be in the order
    of their hashes: adding them again would fill a growing table from one end, where probing takes long.
    """
    return (number * _FAR_APART) & (len(table) // 2 - 1)


@kernel("void(int64[::1], int64, int64[::1], int64, int64, int64[::1])")
def measure_slots(old, heap, table, start, stop, found):
    """Add the number of texts that `copy_slots` would copy, and their bytes in the heap, to `found`."""
    for slot in range(start, stop):
        entry = load_acquire(address_of(table), 2 * slot + 1)
        position = entry & POSITION
        if entry != 0 and position < old[BOUNDARY] and entry >> POSITION_BITS >= old[FLOOR]:
            found[0] += 1
            found[1] += HEADER + np.int64(load_32(heap + position))


@kernel("void(int64[::1], int64, int64[::1], int64, int64, int64[::1])")
def copy_slots(old, heap, table, start, stop, new):
    """Copy the texts of some slots of a table that are not doomed and lie before the boundary to the table and the heap of the
    state `new`, which have room for them, as texts of its present era: somebody may add one again after it was copied.
    """
    for number in range(start, stop):
        slot = _scattered(number, table)
        entry = load_acquire(address_of(table), 2 * slot + 1)
        position = entry & POSITION
        if entry != 0 and position < old[BOUNDARY] and entry >> POSITION_BITS >= old[FLOOR]:
            length = HEADER + np.int64(load_32(heap + position))
            used = new[USED]
            copy_bytes(heap + position, new[HEAP] + used, length)
            _enter(new, table[2 * slot], used | new[ERA] << POSITION_BITS)
            new[USED] = used + length


@kernel("int64(int64[::1], int64, int64, int64[::1])")
def copy_tail(old, position, most, new):
    """Copy texts from `position` on, about `most` bytes of them, in order, to the end of the heap of the state `new`, as texts
    of its present era. Returns where to go on from: the end of what is used, or earlier if `new` has no more room.
    """
    stop = min(old[USED], position + most)
    while position < stop:
        length = np.int64(load_32(old[HEAP] + position))
        used = new[USED]
        if new[COUNT] >= new[LIMIT] or used + HEADER + length > new[CAPACITY]:
            return position
        copy_bytes(old[HEAP] + position, new[HEAP] + used, HEADER + length)
        _enter(new, text_id(old[HEAP] + position + HEADER, length), used | new[ERA] << POSITION_BITS)
        new[USED] = used + HEADER + length
        position += HEADER + length
    return position
