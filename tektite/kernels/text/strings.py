"""Texts as bytes: their ids, and the table that finds a text by its id.

The id of a text is XXH64 with seed 42 of its UTF-8 bytes, the value that Spark's `xxhash64` gives for the string;
the one hash that would be NULL counts as the word after NULL. Texts come as the buffers of an Arrow array (offsets of
32 or 64 bits, bytes, validity bits) by address, since Arrow's memory is read-only and an array type of its own would be
another specialisation.

The table lives in memory that `state` describes (see the constants below):

    heap     texts in the order of their arrival, each as 4 bytes of length and then its bytes; it starts at FIRST
    table    open addressing, linear probing; slot s is the pair (id, entry), entry 0 if it is free

so finding a text costs two cache misses. An entry has the position in the heap in its low 48 bits, and above them the *era* in
which the text was last added or found in use.

A reader without the dictionary's lock has three words of the state as of one moment (READING). The table and the heap of that
moment do not change, except for added slots and bytes, and eras. A slot's entry is written last.

Collecting texts: `mark_rows` and `mark_words` give texts in use the present era. Then FLOOR and BOUNDARY are set: texts of
earlier eras than FLOOR that lie before BOUNDARY are doomed. `copy_slots` copies the others to a new table and heap, and
`copy_tail` what lies behind BOUNDARY. Meanwhile a doomed text that is added again is appended as if it were new.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tektite.kernels.compile import inner, kernel
from tektite.kernels.expr.memo import load_acquire, store_release
from tektite.kernels.layout.memory import load, read, store
from tektite.kernels.layout.pages import address_of, prefetch
from tektite.kernels.toolchain import intrinsic, ir, types
from tektite.values.words import NULL

SEED = 42

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

_PRIME_1 = np.uint64(0x9E3779B185EBCA87)
_PRIME_2 = np.uint64(0xC2B2AE3D27D4EB4F)
_PRIME_3 = np.uint64(0x165667B19E3779F9)
_PRIME_4 = np.uint64(0x85EBCA77C2B2AE63)
_PRIME_5 = np.uint64(0x27D4EB2F165667C5)
_SEED = np.uint64(SEED)
_START_1 = np.uint64((SEED + 0x9E3779B185EBCA87 + 0xC2B2AE3D27D4EB4F) % 2**64)
_START_2 = np.uint64((SEED + 0xC2B2AE3D27D4EB4F) % 2**64)
_START_4 = np.uint64((SEED - 0x9E3779B185EBCA87) % 2**64)
_NULL = np.int64(NULL)
_FAR_APART = np.int64(0x1E3779B185EBCA87)
_AFTER_NULL = np.int64(NULL + 1)


def _loader(bits: int) -> Any:
    """An intrinsic that reads `bits` bits at any address, aligned or not, as an unsigned number."""

    @intrinsic
    def load_bits(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = builder.inttoptr(args[0], ir.IntType(bits).as_pointer())
            return builder.zext(builder.load(pointer, align=1), ir.IntType(64))

        return types.uint64(types.int64), generate

    return load_bits


def _storer(bits: int) -> Any:
    """An intrinsic that writes the low `bits` bits of a word to any address, aligned or not."""

    @intrinsic
    def store_bits(typing_context: Any, address: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = builder.inttoptr(args[0], ir.IntType(bits).as_pointer())
            narrow = builder.trunc(args[1], ir.IntType(bits)) if bits < 64 else args[1]
            builder.store(narrow, pointer, align=1)
            return context.get_dummy_value()

        return types.void(types.int64, types.uint64), generate

    return store_bits


_load_8, _load_32, _load_64 = _loader(8), _loader(32), _loader(64)
_store_8, _store_32, _store_64 = _storer(8), _storer(32), _storer(64)


@inner
def _rotate(word, left):
    """Rotate a word to the left by so many bits."""
    return (word << np.uint64(left)) | (word >> np.uint64(64 - left))


@inner
def _round(lane, word):
    """One round of XXH64: mix a word into a lane."""
    return _rotate(lane + word * _PRIME_2, 31) * _PRIME_1


@inner
def _merge_lane(hashed, lane):
    """Mix a lane of XXH64 into the hash."""
    return (hashed ^ _round(np.uint64(0), lane)) * _PRIME_1 + _PRIME_4


@inner
def text_id(at, length):
    """The id of the `length` bytes at address `at`."""
    end = at + length
    if length >= 32:
        lane_1, lane_2, lane_3, lane_4 = _START_1, _START_2, _SEED, _START_4
        while at + 32 <= end:
            lane_1 = _round(lane_1, _load_64(at))
            lane_2 = _round(lane_2, _load_64(at + 8))
            lane_3 = _round(lane_3, _load_64(at + 16))
            lane_4 = _round(lane_4, _load_64(at + 24))
            at += 32
        hashed = _rotate(lane_1, 1) + _rotate(lane_2, 7) + _rotate(lane_3, 12) + _rotate(lane_4, 18)
        hashed = _merge_lane(hashed, lane_1)
        hashed = _merge_lane(hashed, lane_2)
        hashed = _merge_lane(hashed, lane_3)
        hashed = _merge_lane(hashed, lane_4)
    else:
        hashed = _SEED + _PRIME_5
    hashed += np.uint64(length)
    while at + 8 <= end:
        hashed = _rotate(hashed ^ _round(np.uint64(0), _load_64(at)), 27) * _PRIME_1 + _PRIME_4
        at += 8
    if at + 4 <= end:
        hashed = _rotate(hashed ^ (_load_32(at) * _PRIME_1), 23) * _PRIME_2 + _PRIME_3
        at += 4
    while at < end:
        hashed = _rotate(hashed ^ (_load_8(at) * _PRIME_5), 11) * _PRIME_1
        at += 1
    hashed = (hashed ^ (hashed >> np.uint64(33))) * _PRIME_2
    hashed = (hashed ^ (hashed >> np.uint64(29))) * _PRIME_3
    word = np.int64(hashed ^ (hashed >> np.uint64(32)))
    return _AFTER_NULL if word == _NULL else word


@inner
def _copy(source, target, length):
    """Copy bytes."""
    i = 0
    while i + 8 <= length:
        _store_64(target + i, _load_64(source + i))
        i += 8
    while i < length:
        _store_8(target + i, _load_8(source + i))
        i += 1


@inner
def _same(left, right, length):
    """Whether bytes are the same."""
    i = 0
    while i + 8 <= length:
        if _load_64(left + i) != _load_64(right + i):
            return False
        i += 8
    while i < length:
        if _load_8(left + i) != _load_8(right + i):
            return False
        i += 1
    return True


@inner
def _offset(offsets, wide, row):
    """The offset of a row; offsets are of 64 bits if `wide`, else of 32."""
    if wide:
        return np.int64(_load_64(offsets + 8 * row))
    return np.int64(_load_32(offsets + 4 * row))


@inner
def _is_null(validity, row):
    """Whether a row is null by its validity bit. Without validity bits (0) none is."""
    if validity == 0:
        return False
    return ((_load_8(validity + (row >> 3)) >> np.uint64(row & 7)) & np.uint64(1)) == np.uint64(0)


@inner
def _home(word, shift):
    """The slot where probing starts. Multiplied first: ids that share their low or high bits must not share slots."""
    return np.int64((np.uint64(word) * _PRIME_1) >> np.uint64(shift))


@inner
def position_of(reading, word):
    """Where the text of an id lies in the heap of a reader without the lock; 0 if it is not there."""
    table = load(reading, 0)
    shift = load(reading, 1)
    mask = (np.int64(1) << (64 - shift)) - 1
    slot = _home(word, shift)
    while True:
        entry = load_acquire(table, 2 * slot + 1)
        if entry == 0 or load(table, 2 * slot) == word:
            return entry & POSITION
        slot = (slot + 1) & mask


@inner
def byte_at(address):
    """The byte at an address, as a word."""
    return np.int64(_load_8(address))


@inner
def length_at(address):
    """The length of the text whose place in the heap is at an address."""
    return np.int64(_load_32(address))


@inner
def _fits_narrow(word):
    """Whether an id may be in a column that is stored in 32 bits or fewer."""
    return -(1 << 31) <= word and word < 1 << 31


@inner
def _hash_rows(offsets, wide, data, validity, first, begin, end, ids):
    """Write the ids of rows first + begin to first + end - 1."""
    for i in range(begin, end):
        row = first + i
        if _is_null(validity, row):
            ids[i] = _NULL
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
                prefetch(table + 16 * _home(ids[ahead], shift))
        word = ids[i]
        if word == _NULL:
            continue
        start = _offset(offsets, wide, row)
        length = _offset(offsets, wide, row + 1) - start
        text = data + start
        slot = _home(word, shift)
        while True:
            entry = load(table, 2 * slot + 1)
            if entry != 0 and load(table, 2 * slot) != word:
                slot = (slot + 1) & mask
                continue
            position = entry & POSITION
            if entry != 0:
                known = heap + position
                if np.int64(_load_32(known)) != length or not _same(known + HEADER, text, length):
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
            _store_32(heap + used, np.uint64(length))
            _copy(text, heap + used + HEADER, length)
            store(table, 2 * slot, word)
            store_release(table, 2 * slot + 1, used | state[ERA] << POSITION_BITS)
            state[USED] = used + HEADER + length
            state[COUNT] += 1
            state[NARROW] += _fits_narrow(word)
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
            slot = _home(word, shift)
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
        if word != _NULL:
            slot = _home(word, shift)
            while True:
                position = load(table, 2 * slot + 1) & POSITION
                if position == 0:
                    return i
                if load(table, 2 * slot) == word:
                    break
                slot = (slot + 1) & mask
            total += np.int64(_load_32(heap + position))
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
        length = np.int64(_load_32(heap + position))
        positions[i] = position
        total += length
        offsets[i + 1] = total
        position += HEADER + length


@kernel("void(int64[::1], int64[::1], int64[::1], int64)")
def copy_texts(state, positions, offsets, target):
    """Write the texts at `positions` one after the other to address `target`; `offsets` gives their lengths."""
    heap = state[HEAP]
    for i in range(len(positions)):
        _copy(heap + positions[i] + HEADER, target + offsets[i] - offsets[0], offsets[i + 1] - offsets[i])


@inner
def _mark(table, shift, word, era):
    """Note that an id is in use in an era, if there is a text with this id."""
    mask = (np.int64(1) << (64 - shift)) - 1
    slot = _home(word, shift)
    while True:
        entry = load(table, 2 * slot + 1)
        if entry == 0:
            return
        if load(table, 2 * slot) == word:
            if entry >> POSITION_BITS != era:
                store_release(table, 2 * slot + 1, (entry & POSITION) | era << POSITION_BITS)
            return
        slot = (slot + 1) & mask


@kernel("void(int64[::1], int64[::1])")
def mark_words(state, words):
    """Give the texts whose ids are among some words the present era."""
    for word in words:
        _mark(state[TABLE], state[SHIFT], word, state[ERA])


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
            last = _NULL
            while row < stop:
                word = read(at, step, row)
                if word != last:
                    _mark(table, shift, word, era)
                    last = word
                row += 1
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
        slot = _home(ids[i], state[SHIFT])
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
    slot = _home(word, state[SHIFT])
    while load(state[TABLE], 2 * slot + 1) != 0:
        slot = (slot + 1) & mask
    store(state[TABLE], 2 * slot, word)
    store(state[TABLE], 2 * slot + 1, entry)
    state[COUNT] += 1
    state[NARROW] += _fits_narrow(word)


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
            found[1] += HEADER + np.int64(_load_32(heap + position))


@kernel("void(int64[::1], int64, int64[::1], int64, int64, int64, int64[::1])")
def copy_slots(old, heap, table, start, stop, eras, new):
    """Copy the texts of some slots of a table that are not doomed and lie before the boundary, with eras less by `eras`, to the
    table and the heap of the state `new`, which have room for them.
    """
    for number in range(start, stop):
        slot = _scattered(number, table)
        entry = load_acquire(address_of(table), 2 * slot + 1)
        position = entry & POSITION
        if entry != 0 and position < old[BOUNDARY] and entry >> POSITION_BITS >= old[FLOOR]:
            length = HEADER + np.int64(_load_32(heap + position))
            used = new[USED]
            _copy(heap + position, new[HEAP] + used, length)
            _enter(new, table[2 * slot], used | ((entry >> POSITION_BITS) - eras) << POSITION_BITS)
            new[USED] = used + length


@kernel("int64(int64[::1], int64, int64, int64[::1])")
def copy_tail(old, position, most, new):
    """Copy texts from `position` on, about `most` bytes of them, in order, to the end of the heap of the state `new`, as texts
    of its present era. Returns where to go on from: the end of what is used, or earlier if `new` has no more room.
    """
    stop = min(old[USED], position + most)
    while position < stop:
        length = np.int64(_load_32(old[HEAP] + position))
        used = new[USED]
        if new[COUNT] >= new[LIMIT] or used + HEADER + length > new[CAPACITY]:
            return position
        _copy(old[HEAP] + position, new[HEAP] + used, HEADER + length)
        _enter(new, text_id(old[HEAP] + position + HEADER, length), used | new[ERA] << POSITION_BITS)
        new[USED] = used + HEADER + length
        position += HEADER + length
    return position
