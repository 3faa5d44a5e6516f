"""Splits rows into parts: by shard or epoch here, by moment in moments.py.

Every kernel keeps the order of rows within a part, so parts of sorted rows are sorted, and keeps constant columns
constant. If one part gets all rows, nothing is copied: the returned head uses the memory of the source, and the buffer is
empty.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner, kernel
from tektite.kernels.layout.memory import load, load4, read, store, store4
from tektite.kernels.layout.pages import address_of, empty_words
from tektite.kernels.layout.rows import address, count, place_columns, same_rows, step_of, value
from tektite.kernels.layout.scratch import keep

# Rows whose places are found before their columns are copied: the places stay in the first-level cache.
_BLOCK = 1024
# Where the hash of a key begins.
SEED = np.uint64(0x9E3779B97F4A7C15)


@inner
def mix(state, word):
    """Fold one word into a 64-bit hash. The steps are those of splitmix64: every bit of the word moves every bit of the
    hash.
    """
    z = state ^ np.uint64(word)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))) + np.uint64(0x9E3779B97F4A7C15)


@inner
def shard_of_hash(hashed, shards):
    """The shard of a hash: its upper half scaled to 0..shards-1."""
    return np.int64(((hashed >> np.uint64(32)) * np.uint64(shards)) >> np.uint64(32))


@inner
def shard_of_row(head, row, key_spec, shards):
    """The shard that owns a row, by the columns that `key_spec` lists."""
    hashed = SEED
    for j in range(len(key_spec)):
        hashed = mix(hashed, value(head, key_spec[j], row))
    return shard_of_hash(hashed, shards)


@inner
def new_parts(rows):
    """Memory for the part number of each row, four bytes each."""
    return empty_words((rows + 1) // 2)


@inner
def _first_places(part, rows, offsets):
    """Count the rows of each part; offsets (zeroed, one longer than the number of parts) become where each begins."""
    parts = len(offsets) - 1
    if parts == 2:
        second = np.int64(0)
        for i in range(rows):
            second += load4(part, i)
        offsets[1] = rows - second
        offsets[2] = rows
        return
    for i in range(rows):
        offsets[load4(part, i) + 1] += 1
    for p in range(parts):
        offsets[p + 1] += offsets[p]


@inner
def regroup(source, part, offsets):
    """Rows in the order of their part numbers, which are four bytes each at the address `part`. Within a part, rows keep their
    order.
    """
    rows = count(source)
    columns = load(source, 2)
    _first_places(part, rows, offsets)
    parts = len(offsets) - 1
    head = same_rows(source)
    buf = place_columns(head, rows)
    cursor = np.empty(parts, np.int64)
    for p in range(parts):
        cursor[p] = offsets[p]
    room = np.empty(_BLOCK, np.int64)
    places = address_of(room)
    for block in range(0, rows, _BLOCK):
        size = min(_BLOCK, rows - block)
        if parts == 2:
            # Two variables: an entry of a table could not be read before the last row's was stored.
            first = cursor[0]
            second = cursor[1]
            for i in range(size):
                p = load4(part, block + i)
                store(places, i, second if p else first)
                second += p
                first += 1 - p
            cursor[0] = first
            cursor[1] = second
        else:
            for i in range(size):
                p = load4(part, block + i)
                store(places, i, cursor[p])
                cursor[p] += 1
        for j in range(columns):
            by = step_of(source, j)
            if by != 0:
                at = address(source, j)
                to = head[3 + 3 * j]
                if by == 8:
                    for i in range(size):
                        store(to, load(places, i), load(at, block + i))
                else:
                    for i in range(size):
                        store(to, load(places, i), read(at, by, block + i))
    keep(room)
    return buf, head


@inner
def _one_part(source, owner, offsets):
    """What `route` returns where one part gets all rows."""
    for s in range(owner + 1, len(offsets)):
        offsets[s] = count(source)
    return np.empty(0, np.int64), same_rows(source), offsets


@kernel("Tuple((int64[::1], int64[::1], int64[::1]))(int64, int64[::1], int64)")
def route(source, key_spec, shards):
    """Rows grouped by the shard that owns them: shard s gets rows offsets[s]..offsets[s + 1] of the result."""
    rows = count(source)
    offsets = np.zeros(shards + 1, np.int64)
    varies = False
    for j in range(len(key_spec)):
        if step_of(source, key_spec[j]) != 0:
            varies = True
    if rows == 0 or shards == 1 or not varies:
        owner = shard_of_row(source, 0, key_spec, shards) if rows > 0 else 0
        return _one_part(source, owner, offsets)
    room = new_parts(rows)
    part = address_of(room)
    at = address(source, key_spec[0])
    by = step_of(source, key_spec[0])
    if len(key_spec) == 1 and by == 8:
        for i in range(rows):
            store4(part, i, shard_of_hash(mix(SEED, load(at, i)), shards))
    elif len(key_spec) == 1:
        for i in range(rows):
            store4(part, i, shard_of_hash(mix(SEED, read(at, by, i)), shards))
    else:
        for i in range(rows):
            store4(part, i, shard_of_row(source, i, key_spec, shards))
    owner = load4(part, 0)
    one = True
    for i in range(rows):
        if load4(part, i) != owner:
            one = False
            break
    if one:
        return _one_part(source, owner, offsets)
    buf, head = regroup(source, part, offsets)
    keep(room)
    return buf, head, offsets


@kernel("Tuple((int64[::1], int64[::1], int64))(int64, int64, int64)")
def split_epoch(source, time_at, hi):
    """Rows with an epoch below `hi` first, the others after; `cut` is how many come first."""
    rows = count(source)
    at = address(source, time_at)
    by = step_of(source, time_at)
    cut = 0
    for i in range(rows):
        if read(at, by, i) < hi:
            cut += 1
    if cut == 0 or cut == rows:
        return np.empty(0, np.int64), same_rows(source), cut
    room = new_parts(rows)
    part = address_of(room)
    for i in range(rows):
        store4(part, i, np.int64(read(at, by, i) >= hi))
    buf, head = regroup(source, part, np.zeros(3, np.int64))
    keep(room)
    return buf, head, cut
