"""The table that finds a text by its id (see ids.py).

Texts come as the buffers of an Arrow array (offsets of 32 or 64 bits, bytes, validity bits) by address, since Arrow's memory is
read-only and an array type of its own would be another specialisation.

The table lives in memory that `state` describes (see the constants below):

    heap     texts in the order of their arrival, each as 4 bytes of length and then its bytes; it starts at FIRST
    table    open addressing, linear probing; slot s is the pair (id, entry), entry 0 if it is free

so finding a text costs two cache misses. An entry has the position in the heap in its low 48 bits, and above them the *era* in
which the text was last added or found in use.

A reader without the dictionary's lock has three words of the state as of one moment (READING). The table and the heap of that
moment do not change, except for added slots and bytes, and eras. A slot's entry is written last.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner, kernel
from tektite.kernels.expr.memo import load_acquire, store_release
from tektite.kernels.layout.memory import load, store
from tektite.kernels.layout.pages import prefetch
from tektite.kernels.text.ids import PRIME_1, copy_bytes, load_8, load_32, load_64, same_bytes, store_32, text_id
from tektite.values.words import NULL

# What `state` holds. COUNT may not exceed LIMIT, so that probing always meets a free slot soon.
# NARROW counts the ids that fit into 32 bits.
TABLE, SHIFT, COUNT, LIMIT, HEAP, USED, CAPACITY, REASON, DETAIL, ERA, FLOOR, BOUNDARY, NARROW = range(13)
STATE_SIZE = 13

# An entry of the table: the position in the heap, and the era above it.
POSITION_BITS = 48
POSITION = (1 << POSITION_BITS) - 1
LAST_ERA = (1 << 15) - 1

# What a reader without the lock has of it, in this order.
READING = (TABLE, SHIFT, HEAP)

# Why `intern` stopped before the last row; DETAIL says more.
DONE, TABLE_FULL, HEAP_FULL, CLASH, TOO_LONG = range(5)

FIRST = 8
HEADER = 4
LONGEST = 2**31 - 1

# Rows hashed together before the first of them is looked for: the look-ups of a block then overlap their cache misses.
BLOCK = 64


@inner
def _offset(offsets, wide, row):
    """The offset of a row; offsets are of 64 bits if `wide`, else of 32."""
    if wide:
        return np.int64(load_64(offsets + 8 * row))
    return np.int64(load_32(offsets + 4 * row))


@inner
def _is_null(validity, row):
    """Whether a row is null by its validity bit. Without validity bits (0) none is."""
    if validity == 0:
        return False
    return ((load_8(validity + (row >> 3)) >> np.uint64(row & 7)) & np.uint64(1)) == np.uint64(0)


@inner
def home_of(word, shift):
    """The slot where probing starts. Multiplied first: ids that share their low or high bits must not share slots."""
    return np.int64((np.uint64(word) * PRIME_1) >> np.uint64(shift))


@inner
def position_of(reading, word):
    """Where the text of an id lies in the heap of a reader without the lock; 0 if it is not there."""
    table = load(reading, 0)
    shift = load(reading, 1)
    mask = (np.int64(1) << (64 - shift)) - 1
    slot = home_of(word, shift)
    while True:
        entry = load_acquire(table, 2 * slot + 1)
        if entry == 0 or load(table, 2 * slot) == word:
            return entry & POSITION
        slot = (slot + 1) & mask


@inner
def byte_at(address):
    """The byte at an address, as a word."""
    return np.int64(load_8(address))


@inner
def length_at(address):
    """The length of the text whose place in the heap is at an address."""
    return np.int64(load_32(address))


@inner
def fits_narrow(word):
    """Whether an id may be in a column that is stored in 32 bits or fewer."""
    return -(1 << 31) <= word and word < 1 << 31


@inner
def _hash_rows(offsets, wide, data, validity, first, begin, end, ids):
    """Write the ids of rows first + begin to first + end - 1."""
    for i in range(begin, end):
        row = first + i
        if _is_null(validity, row):
            ids[i] = NULL
        else:
            start = _offset(offsets, wide, row)
            ids[i] = text_id(data + start, _offset(offsets, wide, row + 1) - start)


@kernel("void(int64, int64, int64, int64, int64, int64[::1])")
def hash_texts(offsets, wide, data, validity, first, ids):
    """Write the ids of the rows first, first + 1, ... of an Arrow array to `ids`; NULL for nulls."""
    _hash_rows(offsets, wide, data, validity, first, 0, len(ids), ids)


@kernel("int64(int64[::1], int64, int64, int64, int64, int64, int64, int64[::1])")
def intern(state, offsets, wide, data, validity, first, done, ids):
    """Like `hash_texts`, from row first + done on, and remember the texts that the table lacks.

    Returns the number of rows done. If that is not all of them, state[REASON] says why: the caller makes room and
    calls again, or (CLASH: the id of the row belongs to the text at position state[DETAIL]) gives up.
    """
    table = state[TABLE]
    shift = state[SHIFT]
    mask = (np.int64(1) << (64 - shift)) - 1
    heap = state[HEAP]
    hashed = done
    for i in range(done, len(ids)):
        row = first + i
        if i == hashed:
            hashed = min(i + BLOCK, len(ids))
            _hash_rows(offsets, wide, data, validity, first, i, hashed, ids)
            for ahead in range(i, hashed):
                prefetch(table + 16 * home_of(ids[ahead], shift))
        word = ids[i]
        if word == NULL:
            continue
        start = _offset(offsets, wide, row)
        length = _offset(offsets, wide, row + 1) - start
        text = data + start
        slot = home_of(word, shift)
        while True:
            entry = load(table, 2 * slot + 1)
            if entry != 0 and load(table, 2 * slot) != word:
                slot = (slot + 1) & mask
                continue
            position = entry & POSITION
            if entry != 0:
                known = heap + position
                if np.int64(load_32(known)) != length or not same_bytes(known + HEADER, text, length):
                    state[REASON] = CLASH
                    state[DETAIL] = position
                    return i
                if entry >> POSITION_BITS >= state[FLOOR] or position >= state[BOUNDARY]:
                    if entry >> POSITION_BITS != state[ERA]:
                        store_release(table, 2 * slot + 1, position | state[ERA] << POSITION_BITS)
                    break
            used = state[USED]
            if length > LONGEST:
                state[REASON] = TOO_LONG
                return i
            if state[COUNT] >= state[LIMIT]:
                state[REASON] = TABLE_FULL
                return i
            if used + HEADER + length > state[CAPACITY]:
                state[REASON] = HEAP_FULL
                state[DETAIL] = HEADER + length
                return i
            store_32(heap + used, np.uint64(length))
            copy_bytes(text, heap + used + HEADER, length)
            store(table, 2 * slot, word)
            store_release(table, 2 * slot + 1, used | state[ERA] << POSITION_BITS)
            state[USED] = used + HEADER + length
            state[COUNT] += 1
            state[NARROW] += fits_narrow(word)
            break
    state[REASON] = DONE
    return len(ids)


@kernel("int64(int64[::1], int64[::1], int64, int64)")
def rebuild(old, new, shift, end):
    """Enter the texts of table `old` that lie before `end` in the heap into the empty table `new`; return how many."""
    mask = (np.int64(1) << (64 - shift)) - 1
    count = 0
    for at in range(1, len(old), 2):
        entry = old[at]
        if entry != 0 and entry & POSITION < end:
            word = old[at - 1]
            slot = home_of(word, shift)
            while new[2 * slot + 1] != 0:
                slot = (slot + 1) & mask
            new[2 * slot] = word
            new[2 * slot + 1] = entry
            count += 1
    return count


@kernel("int64(int64[::1], int64[::1], int64[::1], int64[::1])")
def locate(state, ids, positions, offsets):
    """Find each id's text: its position in the heap (0 for NULL), and the offsets that the texts would have one after
    the other. Returns the number of rows done: fewer than all if the id of the next one is unknown.
    """
    table = state[TABLE]
    shift = state[SHIFT]
    mask = (np.int64(1) << (64 - shift)) - 1
    heap = state[HEAP]
    total = np.int64(0)
    offsets[0] = 0
    for i in range(len(ids)):
        word = ids[i]
        position = np.int64(0)
        if word != NULL:
            slot = home_of(word, shift)
            while True:
                position = load(table, 2 * slot + 1) & POSITION
                if position == 0:
                    return i
                if load(table, 2 * slot) == word:
                    break
                slot = (slot + 1) & mask
            total += np.int64(load_32(heap + position))
        positions[i] = position
        offsets[i + 1] = total
    return len(ids)


@kernel("void(int64[::1], int64, int64[::1], int64[::1])")
def walk(state, position, positions, offsets):
    """What `locate` gives, for the texts that follow one another in the heap from `position` on."""
    heap = state[HEAP]
    total = np.int64(0)
    offsets[0] = 0
    for i in range(len(positions)):
        length = np.int64(load_32(heap + position))
        positions[i] = position
        total += length
        offsets[i + 1] = total
        position += HEADER + length


@kernel("void(int64[::1], int64[::1], int64[::1], int64)")
def copy_texts(state, positions, offsets, target):
    """Write the texts at `positions` one after the other to address `target`; `offsets` gives their lengths."""
    heap = state[HEAP]
    for i in range(len(positions)):
        copy_bytes(heap + positions[i] + HEADER, target + offsets[i] - offsets[0], offsets[i + 1] - offsets[i])
