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
from tektite.kernels.seek.keys import BLOCK, ENDS_WORK, block_ends, gather_block, has_null, seek_block
from tektite.kernels.seek.route import SEED, mix, shard_of_hash

# What is found for an extender is one array, which for n rows holds: the numbers of the rows in the order of their keys (n), for
# each row the number of its key (n), for each key how many rows of the arrangement have it, the number of its first span and the
# number behind its last one (3 n), and the spans: the address of a batch's head, the first of the rows with the key and the one
# behind the last. A batch without such rows has no span.
SPAN = 3
BEFORE_SPANS = 5


@inner
def number_of(found, rows, row):
    """The number of the key of a row."""
    return load(found, rows + row)


@inner
def size_of(found, rows, key):
    """How many rows have a key."""
    return load(found, 2 * rows + 3 * key)


@inner
def first_span(found, rows, key):
    """The number of the first span of a key."""
    return load(found, 2 * rows + 3 * key + 1)


@inner
def spans_end(found, rows, key):
    """The number behind the last span of a key."""
    return load(found, 2 * rows + 3 * key + 2)


@inner
def span_of(found, rows, span):
    """Where the three words of a span lie."""
    return found + 8 * (BEFORE_SPANS * rows + SPAN * span)


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
        _set_span(found, rows, b, table[b], 0, count(table[b]))
        total += count(table[b])
    store(found, 2 * rows, total)
    store(found, 2 * rows + 1, 0)
    store(found, 2 * rows + 2, slots)
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
    result = np.empty(BEFORE_SPANS * rows + SPAN * slots * rows, np.int64)
    found = address_of(result)
    if kc == 0 or rows == 0:
        if rows > 0:
            _everything(rows, table, slots, found)
        return result
    shards = len(first_of) - 1
    memory, (keys, firsts, owners, members, part, starts, ends, work) = scratch(
        (BLOCK * kc, BLOCK + 1, BLOCK, BLOCK, BLOCK * kc, BLOCK * slots, BLOCK * slots, ENDS_WORK)
    )
    passed = np.zeros(len(table), np.int64)
    row = np.int64(0)
    done = 0
    spans = 0
    while row < rows:
        many = gather_block(sorted_keys, row, kc, keys, firsts)
        if many == 0:
            break
        for j in range(many):
            store(owners, j, _owner_of(keys, j, sharded_by, shards))
            for i in range(load(firsts, j), load(firsts, j + 1)):
                number = i if numbered == 0 else value(sorted_keys, kc, i)
                store(found, i, number)
                store(found, rows + number, done + j)
        for s in range(shards):
            own = _keys_of_shard(s, owners, keys, many, kc, members, part)
            if own == 0:
                continue
            first = first_of[s]
            held = first_of[s + 1] - first
            for b in range(held):
                start = starts + 8 * BLOCK * b
                seek_block(table[first + b], passed[first + b], part, own, kc, start)
                passed[first + b] = load(start, own - 1)
                block_ends(table[first + b], part, own, kc, start, ends + 8 * BLOCK * b, work)
            for m in range(own):
                key = done + load(members, m)
                size = 0
                told = found + 8 * (2 * rows + 3 * key)
                store(told, 1, spans)
                for b in range(0 if has_null(part, m, kc) else held):
                    start = load(starts, BLOCK * b + m)
                    end = load(ends, BLOCK * b + m)
                    if end > start:
                        _set_span(found, rows, spans, table[first + b], start, end)
                        size += end - start
                        spans += 1
                store(told, 0, size)
                store(told, 2, spans)
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
def _set_span(found, rows, span, batch, start, end):
    """Say which rows of a batch have a key."""
    at = span_of(found, rows, span)
    store(at, 0, batch)
    store(at, 1, start)
    store(at, 2, end)
