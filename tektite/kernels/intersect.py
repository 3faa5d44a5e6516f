"""Extending rows by one variable that several arrangements talk about, all in one go: worst-case optimal intersection.

For each row of `prefix`, each arrangement (an *extender*) has a range of rows in each of its batches: those with the row's
key. Behind the key lies the word to extend by. The extender with the fewest rows in its ranges lists its words in order, batch
by batch; in the others they are sought by galloping. So a row costs the least number of candidates that any extender has, times
logarithms and batches. Two extenders that are both complete have a kernel of their own (`intersect_two`).

An extender that is *complete* gives the times and diffs of its rows: times meet at their least upper bound, diffs multiply,
once for every combination of rows that have the word. One that is not only has to hold the word somewhere. NULL is no word.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner, kernel
from tektite.kernels.memory import load, store
from tektite.kernels.pages import address_of
from tektite.kernels.rows import address, count, new_head, set_constant, set_stored, step_of, value
from tektite.kernels.seek import BLOCK, NULL, gallop_word, gather_block, group_end, has_null, seek_block
from tektite.kernels.wide import product_overflows

# What `extenders` says of each: number of its first batch among all, number of batches, columns of its key (behind which the word
# lies), data columns, time columns, whether it is complete.
EXTENDER = 6


@kernel("Tuple((int64[::1], int64[::1]))(int64, int64[::1])")
def numbered_keys(prefix, spec):
    """The columns of `prefix` that `spec` lists and the number of the row behind them, at time 0 with diff 1."""
    rows = count(prefix)
    columns = len(spec)
    head = new_head(rows, columns + 3)
    buf = np.empty((columns + 1) * rows, np.int64)
    out = address_of(buf)
    for c in range(columns):
        if step_of(prefix, spec[c]) == 0:
            set_constant(head, c, load(address(prefix, spec[c]), 0))
        else:
            for i in range(rows):
                store(out, i, value(prefix, spec[c], i))
            set_stored(head, c, out)
            out += 8 * rows
    for i in range(rows):
        store(out, i, i)
    set_stored(head, columns, out)
    set_constant(head, columns + 2, 1)
    return buf, head


@kernel("void(int64, int64, int64[::1], int64, int64, int64[::1], int64)")
def find_ranges(sorted_keys, kc, table, first, numbered, ranges, total):
    """Write for each row its range in each batch of `table`: from ranges[2 * (row * total + first + batch)] up to the word
    behind. Rows are sorted by their first `kc` columns; where `numbered` is not 0, the column behind says which row each is.
    """
    rows = count(sorted_keys)
    batches = len(table)
    if kc == 0:
        for row in range(rows):
            for b in range(batches):
                ranges[2 * (row * total + first + b)] = 0
                ranges[2 * (row * total + first + b) + 1] = count(table[b])
        return
    work = np.empty((kc + 2) * BLOCK + 1, np.int64)
    keys = address_of(work)
    firsts = keys + 8 * BLOCK * kc
    places = firsts + 8 * (BLOCK + 1)
    starts = np.zeros(batches, np.int64)
    row = np.int64(0)
    while row < rows:
        many = gather_block(sorted_keys, row, kc, keys, firsts)
        if many == 0:
            break
        for b in range(batches):
            batch = table[b]
            batch_rows = count(batch)
            seek_block(batch, starts[b], keys, many, kc, places)
            starts[b] = load(places, many - 1)
            for j in range(many):
                start = load(places, j)
                end = start
                if not has_null(keys, j, kc):
                    end = group_end(batch, batch_rows, start, keys, j, kc)
                for i in range(load(firsts, j), load(firsts, j + 1)):
                    number = i if numbered == 0 else value(sorted_keys, kc, i)
                    ranges[2 * (number * total + first + b)] = start
                    ranges[2 * (number * total + first + b) + 1] = end
        row = load(firsts, many)
    work[0] = 0  # keeps the scratch alive up to here


@inner
def _gallop(batch, column, start, end, word):
    """The first row from `start` on, before `end`, whose word is not below `word`; `end` if there is none."""
    return gallop_word(address(batch, column), step_of(batch, column), end, start, word)


@inner
def _run_end(batch, column, start, end, word):
    """The end of the rows from `start` on that have `word`."""
    i = start
    near = min(end, start + 8)
    while i < near and value(batch, column, i) == word:
        i += 1
    if i < near or i >= end or word == 9223372036854775807:
        return i if i < near or i >= end else end
    return _gallop(batch, column, i, end, word + 1)


@inner
def larger_array(array):
    """The array with as much room again."""
    wider = np.empty(2 * len(array), np.int64)
    for i in range(len(array)):
        wider[i] = array[i]
    return wider


@inner
def extended_rows(prefix, spec, nt, sources, words, stamps, used, wrong):
    """Rows number `sources` of `prefix`, of which there are `used`: the columns that `spec` lists, the words, and from `stamps`
    the `nt` times and the diff of each. The number of rows is -1 if something is wrong.
    """
    outputs = len(spec)
    width = outputs + 1 + nt + 1
    head = new_head(used, width)
    stored = nt + 2
    for c in range(outputs):
        if step_of(prefix, spec[c]) != 0:
            stored += 1
    buf = np.empty(stored * used, np.int64)
    out = address_of(buf)
    for c in range(outputs):
        if step_of(prefix, spec[c]) == 0:
            set_constant(head, c, load(address(prefix, spec[c]), 0))
            continue
        for o in range(used):
            store(out, o, value(prefix, spec[c], sources[o]))
        set_stored(head, c, out)
        out += 8 * used
    for o in range(used):
        store(out, o, words[o])
    set_stored(head, outputs, out)
    out += 8 * used
    for t in range(nt + 1):
        same = True
        for o in range(used):
            word = stamps[o * (nt + 1) + t]
            same &= word == stamps[t]
            store(out, o, word)
        if same and used > 0:
            set_constant(head, outputs + 1 + t, stamps[t])
        else:
            set_stored(head, outputs + 1 + t, out)
        out += 8 * used
    if wrong:
        head[0] = -1
    return buf, head


@kernel(
    "Tuple((int64[::1], int64[::1]))(int64, int64, int64, int64[::1], int64[::1], int64[::1], int64[::1], int64, int64,"
    " int64[::1])"
)
def intersect(prefix, nd, nt, extenders, batches, ranges, spec, lo, limit, state):
    """Rows of `prefix` (nd data, nt time columns, a diff) with every word that all extenders allow: the data columns that
    `spec` lists, the word, times and diff. It stops behind the row with which it has `limit` rows; state[0] is the row to go on
    at, 0 at first and the number of rows at the end. The number of rows is -1 if a product of diffs does not fit a word.
    """
    rows = count(prefix)
    many = len(extenders) // EXTENDER
    total = len(batches)
    cursors = np.empty(total, np.int64)
    ends = np.empty(total, np.int64)
    # The rows that have the present word: of extender e those listed in run[first_run[e]:first_run[e + 1]], pairs of batch, row.
    run = np.empty(64, np.int64)
    first_run = np.zeros(many + 1, np.int64)
    turn = np.zeros(many, np.int64)
    sources = np.empty(1024, np.int64)
    words = np.empty(1024, np.int64)
    stamps = np.empty(1024 * (nt + 1), np.int64)  # times and diff, row by row
    used = 0
    wrong = False
    row = state[0]
    while row < rows and used < limit:
        at = 2 * row * total
        proposer = -1
        fewest = np.int64(0)
        for e in range(many):
            candidates = 0
            for b in range(extenders[EXTENDER * e], extenders[EXTENDER * e] + extenders[EXTENDER * e + 1]):
                candidates += ranges[at + 2 * b + 1] - ranges[at + 2 * b]
            if proposer < 0 or candidates < fewest:
                proposer = e
                fewest = candidates
        if fewest == 0:
            row += 1
            continue
        own = EXTENDER * proposer
        own_first = extenders[own]
        own_column = extenders[own + 2]
        for p in range(own_first, own_first + extenders[own + 1]):
            batch = batches[p]
            i = ranges[at + 2 * p]
            end = ranges[at + 2 * p + 1]
            if i >= end:
                continue
            for b in range(total):
                cursors[b] = ranges[at + 2 * b]
                ends[b] = ranges[at + 2 * b + 1]
            while i < end:
                word = value(batch, own_column, i)
                after = _run_end(batch, own_column, i, end, word)
                agreed = word != NULL
                if agreed and extenders[own + 5] == 0:
                    # A word that an earlier batch has was proposed there.
                    for b in range(own_first, p):
                        cursors[b] = _gallop(batches[b], own_column, cursors[b], ends[b], word)
                        if cursors[b] < ends[b] and value(batches[b], own_column, cursors[b]) == word:
                            agreed = False
                filled = 0
                for e in range(many):
                    if not agreed:
                        break
                    first_run[e] = filled
                    x = EXTENDER * e
                    if e == proposer:
                        if extenders[x + 5] != 0:
                            while 2 * (filled + after - i) > len(run):
                                run = larger_array(run)
                            for r in range(i, after):
                                run[2 * filled] = p
                                run[2 * filled + 1] = r
                                filled += 1
                        continue
                    column = extenders[x + 2]
                    there = False
                    for b in range(extenders[x], extenders[x] + extenders[x + 1]):
                        place = cursors[b]
                        limit_b = ends[b]
                        if place >= limit_b:
                            continue
                        place = _gallop(batches[b], column, place, limit_b, word)
                        cursors[b] = place
                        while place < limit_b and value(batches[b], column, place) == word:
                            there = True
                            if extenders[x + 5] == 0:
                                break
                            if 2 * filled + 2 > len(run):
                                run = larger_array(run)
                            run[2 * filled] = b
                            run[2 * filled + 1] = place
                            filled += 1
                            place += 1
                    agreed = there
                if not agreed:
                    i = after
                    continue
                first_run[many] = filled
                for e in range(many):
                    turn[e] = first_run[e]
                going = True
                while going:
                    if used == len(sources):
                        sources = larger_array(sources)
                        words = larger_array(words)
                        stamps = larger_array(stamps)
                    sources[used] = row
                    words[used] = word
                    o = used * (nt + 1)
                    for t in range(nt):
                        stamps[o + t] = value(prefix, nd + t, row)
                    stamps[o] = max(stamps[o], lo)
                    diff = value(prefix, nd + nt, row)
                    for e in range(many):
                        if first_run[e + 1] > first_run[e]:
                            x = EXTENDER * e
                            found = batches[run[2 * turn[e]]]
                            r = run[2 * turn[e] + 1]
                            for t in range(extenders[x + 4]):
                                stamps[o + t] = max(stamps[o + t], value(found, extenders[x + 3] + t, r))
                            factor = value(found, extenders[x + 3] + extenders[x + 4], r)
                            wrong |= product_overflows(diff, factor)
                            diff *= factor
                    stamps[o + nt] = diff
                    used += 1
                    # The next combination of rows, one from each complete extender.
                    going = False
                    for e in range(many):
                        if first_run[e + 1] > first_run[e]:
                            turn[e] += 1
                            if turn[e] < first_run[e + 1]:
                                going = True
                                break
                            turn[e] = first_run[e]
                i = after
        row += 1
    state[0] = row
    return extended_rows(prefix, spec, nt, sources, words, stamps, used, wrong)
