"""Splits rows by shard, moment or epoch; changes a column by a constant.

Every kernel here keeps the order of rows within a part, so parts of sorted rows are sorted, and keeps constant columns
constant. If one part gets all rows, nothing is copied: the returned head uses the memory of the source, and the buffer is
empty.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner, kernel
from tektite.kernels.layout.memory import load, load4, read, store, store4
from tektite.kernels.layout.pages import address_of, empty_words
from tektite.kernels.layout.rows import address, copy_column, count, new_head, set_constant, set_stored, step_of, value
from tektite.kernels.layout.scratch import keep
from tektite.kernels.operators.wide import product_overflows, sum_overflows

_BLOCK = 1024
"""Rows whose places are found before their columns are copied: the places stay in the first-level cache."""


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
    hashed = np.uint64(0x9E3779B97F4A7C15)
    for j in range(len(key_spec)):
        hashed = mix(hashed, value(head, key_spec[j], row))
    return shard_of_hash(hashed, shards)


@inner
def same_rows(source):
    """A head over the same rows and memory."""
    columns = load(source, 2)
    head = new_head(count(source), columns)
    for j in range(columns):
        copy_column(source, j, head, j)
    return head


@inner
def _new_parts(rows):
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
def _regroup(source, part, offsets):
    """Rows in the order of their part numbers, which are four bytes each at the address `part`. Within a part, rows keep their
    order.
    """
    rows = count(source)
    columns = load(source, 2)
    _first_places(part, rows, offsets)
    parts = len(offsets) - 1
    stored = 0
    for j in range(columns):
        if step_of(source, j) != 0:
            stored += 1
    buf = empty_words(stored * rows)
    head = new_head(rows, columns)
    out = address_of(buf)
    for j in range(columns):
        if step_of(source, j) == 0:
            set_constant(head, j, load(source, 5 + 3 * j))
        else:
            set_stored(head, j, out)
            out += 8 * rows
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
        for s in range(owner + 1, shards + 1):
            offsets[s] = rows
        return np.empty(0, np.int64), same_rows(source), offsets
    room = _new_parts(rows)
    part = address_of(room)
    seed = np.uint64(0x9E3779B97F4A7C15)
    at = address(source, key_spec[0])
    by = step_of(source, key_spec[0])
    if len(key_spec) == 1 and by == 8:
        for i in range(rows):
            store4(part, i, shard_of_hash(mix(seed, load(at, i)), shards))
    elif len(key_spec) == 1:
        for i in range(rows):
            store4(part, i, shard_of_hash(mix(seed, read(at, by, i)), shards))
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
        for s in range(owner + 1, shards + 1):
            offsets[s] = rows
        return np.empty(0, np.int64), same_rows(source), offsets
    buf, head = _regroup(source, part, offsets)
    keep(room)
    return buf, head, offsets


@inner
def _no_slots(many):
    """An empty table of slots."""
    slots = np.empty(many, np.int64)
    for s in range(many):
        slots[s] = -1
    return slots


@inner
def _before(moments, a, b):
    """Whether moment a comes before moment b in lexicographic order."""
    for c in range(moments.shape[1]):
        if moments[a, c] != moments[b, c]:
            return moments[a, c] < moments[b, c]
    return False


@inner
def _sorted_order(moments, many):
    """The numbers 0..many-1 in the order of the moments they name (a bottom-up merge sort)."""
    order = np.empty(many, np.int64)
    for m in range(many):
        order[m] = m
    other = np.empty(many, np.int64)
    width = 1
    while width < many:
        for start in range(0, many, 2 * width):
            i = start
            middle = min(start + width, many)
            k = middle
            end = min(start + 2 * width, many)
            for o in range(start, end):
                if i < middle and (k >= end or not _before(moments, order[k], order[i])):
                    other[o] = order[i]
                    i += 1
                else:
                    other[o] = order[k]
                    k += 1
        order, other = other, order
        width *= 2
    return order


@kernel("Tuple((int64[::1], int64[::1], int64[::1], int64[:, ::1]))(int64, int64, int64)")
def partition_moments(source, time_at, nt):
    """Rows grouped by moment (the rounds: columns time_at + 1 .. time_at + nt - 1).

    `moments` lists them in lexicographic order; moment m has rows offsets[m]..offsets[m + 1] of the result.
    """
    rows = count(source)
    rounds = nt - 1
    if rows == 0:
        return np.empty(0, np.int64), same_rows(source), np.zeros(1, np.int64), np.empty((0, rounds), np.int64)
    one = True
    for c in range(rounds):
        column = time_at + 1 + c
        if step_of(source, column) != 0 and one:
            word = value(source, column, 0)
            for i in range(rows):
                if value(source, column, i) != word:
                    one = False
                    break
    if one:
        offsets = np.zeros(2, np.int64)
        offsets[1] = rows
        moments = np.empty((1, rounds), np.int64)
        for c in range(rounds):
            moments[0, c] = value(source, time_at + 1 + c, 0)
        return np.empty(0, np.int64), same_rows(source), offsets, moments

    # Number the moments as they appear, with a table of slots that is kept at most half full.
    numbers = _new_parts(rows)
    part = address_of(numbers)
    found = np.empty((16, rounds), np.int64)
    slots = _no_slots(64)
    many = 0
    last = -1
    for i in range(rows):
        if last >= 0:
            same = True
            for c in range(rounds):
                if found[last, c] != value(source, time_at + 1 + c, i):
                    same = False
                    break
            if same:
                store4(part, i, last)
                continue
        hashed = np.uint64(0)
        for c in range(rounds):
            hashed = mix(hashed, value(source, time_at + 1 + c, i))
        slot = np.int64(hashed >> np.uint64(1)) & (len(slots) - 1)
        while slots[slot] >= 0:
            last = slots[slot]
            same = True
            for c in range(rounds):
                if found[last, c] != value(source, time_at + 1 + c, i):
                    same = False
                    break
            if same:
                break
            slot = (slot + 1) & (len(slots) - 1)
        if slots[slot] < 0:
            last = many
            if many == found.shape[0]:
                larger = np.empty((2 * many, rounds), np.int64)
                for m in range(many):
                    for c in range(rounds):
                        larger[m, c] = found[m, c]
                found = larger
            for c in range(rounds):
                found[many, c] = value(source, time_at + 1 + c, i)
            slots[slot] = many
            many += 1
            if 2 * many > len(slots):
                slots = _no_slots(4 * len(slots))
                for m in range(many):
                    hashed = np.uint64(0)
                    for c in range(rounds):
                        hashed = mix(hashed, found[m, c])
                    slot = np.int64(hashed >> np.uint64(1)) & (len(slots) - 1)
                    while slots[slot] >= 0:
                        slot = (slot + 1) & (len(slots) - 1)
                    slots[slot] = m
        store4(part, i, last)
    order = _sorted_order(found, many)
    rank = np.empty(many, np.int64)
    moments = np.empty((many, rounds), np.int64)
    for m in range(many):
        rank[order[m]] = m
        for c in range(rounds):
            moments[m, c] = found[order[m], c]
    for i in range(rows):
        store4(part, i, rank[load4(part, i)])
    offsets = np.zeros(many + 1, np.int64)
    buf, head = _regroup(source, part, offsets)
    keep(numbers)
    return buf, head, offsets, moments


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
    room = _new_parts(rows)
    part = address_of(room)
    for i in range(rows):
        store4(part, i, np.int64(read(at, by, i) >= hi))
    buf, head = _regroup(source, part, np.zeros(3, np.int64))
    keep(room)
    return buf, head, cut


@kernel("Tuple((int64[::1], int64[::1]))(int64, int64, int64)")
def shift(source, column, by):
    """The same rows with `by` added to one column. The number of rows is -1 if a sum does not fit a word."""
    rows = count(source)
    head = same_rows(source)
    if step_of(source, column) == 0:
        word = load(source, 5 + 3 * column)
        set_constant(head, column, word + by)
        if sum_overflows(word, by):
            head[0] = -1
        return np.empty(0, np.int64), head
    buf = np.empty(rows, np.int64)
    wrong = False
    for i in range(rows):
        word = value(source, column, i)
        wrong |= sum_overflows(word, by)
        buf[i] = word + by
    set_stored(head, column, address_of(buf))
    if wrong:
        head[0] = -1
    return buf, head


@kernel("Tuple((int64[::1], int64[::1]))(int64, int64, int64)")
def scale(source, column, factor):
    """The same rows with one column multiplied by `factor`. The number of rows is -1 if a product does not fit
    a word.
    """
    rows = count(source)
    head = same_rows(source)
    if step_of(source, column) == 0:
        word = load(source, 5 + 3 * column)
        set_constant(head, column, word * factor)
        if product_overflows(word, factor):
            head[0] = -1
        return np.empty(0, np.int64), head
    buf = np.empty(rows, np.int64)
    wrong = False
    for i in range(rows):
        word = value(source, column, i)
        wrong |= product_overflows(word, factor)
        buf[i] = word * factor
    set_stored(head, column, address_of(buf))
    if wrong:
        head[0] = -1
    return buf, head
