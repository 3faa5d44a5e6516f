"""Extending rows by one variable: how many candidates each row has in an arrangement, and which ones these are.

`prefix` is a rows object sorted by its first `kc` columns, `table` the batches of an arrangement by the same columns.
What a batch holds may cancel against another, so candidates are a superset of what is there at any time: whoever uses them looks
the full rows up afterwards. A key with a NULL has no candidates.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner, kernel
from tektite.kernels.memory import load, store
from tektite.kernels.pages import address_of
from tektite.kernels.rows import address, count, new_head, set_constant, set_stored, step_of, value
from tektite.kernels.seek import BLOCK, gather_block, group_end, has_null, seek_block


@inner
def _count_block(table, kc, keys, many, places, starts, counts):
    """Write for each of `many` keys of a block how many rows of all batches have it. `starts` says where in each batch to
    begin, because keys only grow, and is moved on.
    """
    for j in range(many):
        store(counts, j, 0)
    for b in range(len(table)):
        batch = table[b]
        rows = count(batch)
        seek_block(batch, starts[b], keys, many, kc, places)
        for j in range(many):
            first = load(places, j)
            end = group_end(batch, rows, first, keys, j, kc)
            store(counts, j, load(counts, j) + end - first)
        starts[b] = load(places, many - 1)


@inner
def _copy_kept(prefix, column, keep, out):
    """Write the words of a column at the rows that `keep` marks to `out`."""
    o = 0
    for i in range(count(prefix)):
        if keep[i] != 0:
            store(out, o, value(prefix, column, i))
            o += 1


@kernel("int64[::1](int64, int64[::1], int64)")
def count_candidates(prefix, table, kc):
    """For each row of `prefix` how many rows of the batches agree with it on the first `kc` >= 1 columns."""
    rows = count(prefix)
    counts = np.empty(rows, np.int64)
    work = np.empty((kc + 3) * BLOCK + 1, np.int64)
    keys = address_of(work)
    firsts = keys + 8 * BLOCK * kc
    places = firsts + 8 * (BLOCK + 1)
    found = places + 8 * BLOCK
    starts = np.zeros(len(table), np.int64)
    row = np.int64(0)
    while row < rows:
        many = gather_block(prefix, row, kc, keys, firsts)
        if many == 0:
            break
        _count_block(table, kc, keys, many, places, starts, found)
        for j in range(many):
            number = load(found, j)
            if has_null(keys, j, kc):
                number = 0
            for i in range(load(firsts, j), load(firsts, j + 1)):
                counts[i] = number
        row = load(firsts, many)
    work[0] = 0  # keeps the scratch alive up to here
    return counts


@kernel("Tuple((int64[::1], int64[::1]))(int64, int64[::1], int64, int64)")
def nominate(prefix, counts, nd, extender):
    """The rows of `prefix` that have candidates. With `extender` >= 0, the last two data columns are the least number of
    candidates so far and whose they are: this extender's, where it has fewer.
    """
    rows = count(prefix)
    width = load(prefix, 2)
    kept = np.int64(0)
    for i in range(rows):
        kept += 1 if counts[i] != 0 else 0
    noted = 2 if extender >= 0 else 0
    stored = noted
    for c in range(width):
        if step_of(prefix, c) != 0 and not (nd - noted <= c < nd):
            stored += 1
    buf = np.empty(stored * kept, np.int64)
    head = new_head(kept, width)
    out = address_of(buf)
    for c in range(width):
        if nd - noted <= c < nd:
            continue
        if step_of(prefix, c) == 0:
            set_constant(head, c, load(address(prefix, c), 0))
        else:
            _copy_kept(prefix, c, counts, out)
            set_stored(head, c, out)
            out += 8 * kept
    if noted > 0:
        o = 0
        for i in range(rows):
            number = counts[i]
            if number != 0:
                least = value(prefix, nd - 2, i)
                whose = value(prefix, nd - 1, i)
                if number < least:
                    least = number
                    whose = extender
                store(out, o, least)
                store(out, kept + o, whose)
                o += 1
        set_stored(head, nd - 2, out)
        set_stored(head, nd - 1, out + 8 * kept)
    return buf, head


@kernel("Tuple((int64[::1], int64[::1]))(int64, int64[::1], int64, int64, int64, int64[::1])")
def propose(prefix, table, kc, nd, limit, state):
    """Each row of `prefix` with every different word that follows its first `kc` columns in the batches: the data columns,
    the word, then the row's own times and diff. It stops behind the row with which it has `limit` rows; `state` is the row to
    go on at: 0 at first, the number of rows at the end.
    """
    rows = count(prefix)
    width = load(prefix, 2)
    work = np.empty((kc + 1) * BLOCK + 2, np.int64)
    keys = address_of(work)
    firsts = keys + 8 * BLOCK * kc
    words = np.empty(64, np.int64)
    starts = np.zeros(len(table), np.int64)
    source = np.empty(256, np.int64)
    found = np.empty(256, np.int64)
    used = 0
    row = state[0]
    place = np.empty(1, np.int64)
    at = address_of(place)
    while row < rows and used < limit:
        for c in range(kc):
            store(keys, c * BLOCK, value(prefix, c, row))
        end_row = group_end(prefix, rows, row, keys, 0, kc)
        many = 0
        if not has_null(keys, 0, kc):
            for b in range(len(table)):
                batch = table[b]
                last = count(batch)
                seek_block(batch, starts[b], keys, 1, kc, at)
                i = place[0]
                starts[b] = i
                end = group_end(batch, last, i, keys, 0, kc)
                while i < end:
                    word = value(batch, kc, i)
                    if many == len(words):
                        larger = np.empty(2 * many, np.int64)
                        for w in range(many):
                            larger[w] = words[w]
                        words = larger
                    words[many] = word
                    many += 1
                    i = _next_word(batch, i, end, kc, word)
            if len(table) > 1 and many > 1:
                part = np.sort(words[:many])
                kept = 1
                words[0] = part[0]
                for w in range(1, many):
                    if part[w] != part[w - 1]:
                        words[kept] = part[w]
                        kept += 1
                many = kept
        for r in range(row, end_row):
            if used >= limit:
                break
            row = r + 1
            for w in range(many):
                if used == len(source):
                    wider = np.empty(2 * used, np.int64)
                    other = np.empty(2 * used, np.int64)
                    for k in range(used):
                        wider[k] = source[k]
                        other[k] = found[k]
                    source = wider
                    found = other
                source[used] = r
                found[used] = words[w]
                used += 1
    state[0] = row
    stored = 1
    for c in range(width):
        if step_of(prefix, c) != 0:
            stored += 1
    buf = np.empty(stored * used, np.int64)
    head = new_head(used, width + 1)
    out = address_of(buf)
    for c in range(width):
        target = c if c < nd else c + 1
        if step_of(prefix, c) == 0:
            set_constant(head, target, load(address(prefix, c), 0))
            continue
        for o in range(used):
            store(out, o, value(prefix, c, source[o]))
        set_stored(head, target, out)
        out += 8 * used
    for o in range(used):
        store(out, o, found[o])
    set_stored(head, nd, out)
    work[0] = 0  # keeps the scratch alive up to here
    return buf, head


@inner
def _next_word(batch, start, end, column, word):
    """The first row from `start` on, before `end`, whose word in `column` is another."""
    if step_of(batch, column) == 0:
        return end
    low = start
    step = 1
    while low + step < end and value(batch, column, low + step) == word:
        low += step
        step <<= 1
    high = min(low + step, end)
    low += 1
    while low < high:
        middle = (low + high) >> 1
        if value(batch, column, middle) == word:
            low = middle + 1
        else:
            high = middle
    return low
