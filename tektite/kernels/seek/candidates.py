"""The rows of each key in each batch of an arrangement, for intersections.

An arrangement has as many shards as there are workers, and all of them are in this process's memory. The kernel gets the batches
of all shards and seeks each key in those of the shard that owns it. Rows of one batch may cancel rows of another, so candidates
are a superset of the rows at any time.

Short names: `kc` is the number of key columns, `j` the number of a key in its block.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner, kernel
from tektite.kernels.layout.columns import copy_words
from tektite.kernels.layout.memory import load, store
from tektite.kernels.layout.pages import address_of
from tektite.kernels.layout.rows import (
    address,
    copy_column,
    count,
    new_head,
    place_columns,
    set_constant,
    set_stored,
    step_of,
    value,
)
from tektite.kernels.layout.scratch import keep, scratch
from tektite.kernels.seek.keys import BLOCK, gather_block, group_end, has_null, seek_block
from tektite.kernels.seek.route import SEED, mix, shard_of_hash

# What is found for an extender is one array, which for n rows holds: the numbers of the rows in the order of their keys (n), for
# each row the number of its key (n), for each key how many rows of the arrangement have it (n places), and for each key its
# spans (n places): for each slot the address of a batch's head and the first and last but one of the rows with the key.
SPAN = 3


@inner
def number_of(found, rows, row):
    """The number of the key of a row."""
    return load(found, rows + row)


@inner
def size_of(found, rows, key):
    """How many rows have a key."""
    return load(found, 2 * rows + key)


@inner
def span_of(found, rows, slots, key, slot):
    """Where the three words of a span lie."""
    return found + 8 * (3 * rows + SPAN * (key * slots + slot))


@kernel("Tuple((int64[::1], int64[::1]))(int64, int64[::1])")
def numbered_keys(prefix, spec):
    """The columns of `prefix` that `spec` lists and the number of the row behind them, at time 0 with diff 1."""
    rows = count(prefix)
    columns = len(spec)
    head = new_head(rows, columns + 3)
    for c in range(columns):
        copy_column(prefix, spec[c], head, c)
    set_stored(head, columns, 0)
    set_constant(head, columns + 2, 1)
    buf = place_columns(head, rows)
    for c in range(columns):
        if head[4 + 3 * c] != 0:
            copy_words(address(prefix, spec[c]), step_of(prefix, spec[c]), 0, rows, head[3 + 3 * c], 8)
    numbers = head[3 + 3 * columns]
    for i in range(rows):
        store(numbers, i, i)
    return buf, head


@inner
def _everything(rows, table, slots, found):
    """Where keys have no columns, all rows of all batches are candidates of each row."""
    total = 0
    for b in range(slots):
        _set_span(found, rows, slots, 0, b, table[b], 0, count(table[b]))
        total += count(table[b])
    store(found, 2 * rows, total)
    for i in range(rows):
        store(found, i, i)
        store(found, rows + i, 0)


@kernel("int64[::1](int64, int64, int64, int64[::1], int64[::1], int64, int64)")
def find_candidates(sorted_keys, kc, numbered, table, first_of, sharded_by, slots):
    """The candidates of rows that are sorted by their first `kc` columns. If `numbered` is not 0, the next column is the number
    of the row. The batches of shard s are table[first_of[s]:first_of[s + 1]], and the first `sharded_by` <= kc columns of a key
    decide the shard. `slots` is the greatest number of batches of a shard; if kc is 0, the number of all batches.
    """
    rows = count(sorted_keys)
    result = np.empty(3 * rows + SPAN * slots * rows, np.int64)
    found = address_of(result)
    if kc == 0 or rows == 0:
        if rows > 0:
            _everything(rows, table, slots, found)
        return result
    shards = len(first_of) - 1
    memory, (keys, firsts, places, owners, members, part) = scratch(
        (BLOCK * kc, BLOCK + 1, BLOCK, BLOCK, BLOCK, BLOCK * kc)
    )
    starts = np.zeros(len(table), np.int64)
    row = np.int64(0)
    done = 0
    while row < rows:
        many = gather_block(sorted_keys, row, kc, keys, firsts)
        if many == 0:
            break
        for j in range(many):
            store(owners, j, _owner_of(keys, j, sharded_by, shards))
            store(found, 2 * rows + done + j, 0)
            for i in range(load(firsts, j), load(firsts, j + 1)):
                number = i if numbered == 0 else value(sorted_keys, kc, i)
                store(found, i, number)
                store(found, rows + number, done + j)
        for s in range(shards):
            own = _keys_of_shard(s, owners, keys, many, kc, members, part)
            if own == 0:
                continue
            first = first_of[s]
            for b in range(first, first_of[s + 1]):
                seek_block(table[b], starts[b], part, own, kc, places)
                starts[b] = load(places, own - 1)
                for m in range(own):
                    start = load(places, m)
                    end = start
                    if not has_null(part, m, kc):
                        end = group_end(table[b], count(table[b]), start, part, m, kc)
                    key = done + load(members, m)
                    _set_span(found, rows, slots, key, b - first, table[b], start, end)
                    store(found, 2 * rows + key, size_of(found, rows, key) + end - start)
            for b in range(first_of[s + 1] - first, slots):
                for m in range(own):
                    _set_span(found, rows, slots, done + load(members, m), b, 0, 0, 0)
        done += many
        row = load(firsts, many)
    keep(memory)
    return result


@inner
def _owner_of(keys, j, sharded_by, shards):
    """The shard that owns key j of a block, by its first `sharded_by` columns."""
    hashed = SEED
    if shards > 1:
        for c in range(sharded_by):
            hashed = mix(hashed, load(keys, c * BLOCK + j))
    return shard_of_hash(hashed, shards)


@inner
def _keys_of_shard(shard, owners, keys, many, kc, members, part):
    """Copy the keys of a block that a shard owns to the block `part`, and their numbers to `members`; how many they are."""
    own = 0
    for j in range(many):
        if load(owners, j) == shard:
            store(members, own, j)
            for c in range(kc):
                store(part, c * BLOCK + own, load(keys, c * BLOCK + j))
            own += 1
    return own


@inner
def _set_span(found, rows, slots, key, slot, batch, start, end):
    """Say which rows of a batch have a key."""
    span = span_of(found, rows, slots, key, slot)
    store(span, 0, batch)
    store(span, 1, start)
    store(span, 2, end)
