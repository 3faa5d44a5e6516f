"""Worst-case optimal intersection: extends rows by one variable that several arrangements contain.

For each row of `prefix`, each arrangement (an *extender*) has candidates: its rows with the row's key, followed by the word
to extend by. The extender with the fewest candidates lists its words, and they are looked up in the others. So a row costs
the least number of candidates of any extender, times logarithms and batches.

Rows with the same key in their largest extender are adjacent. Where it pays, the words of that extender are put into a bit
filter once for all of them, and most absent words cost one bit test. The others are found by galloping search.

A *complete* extender contributes the times and diffs of its rows: times meet at their least upper bound and diffs multiply,
once for every combination of rows that have the word. Other extenders only need to contain the word. NULL is not a word.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner, kernel
from tektite.kernels.layout.memory import load, load4, read, store, store1
from tektite.kernels.layout.pages import address_of
from tektite.kernels.layout.rows import address, count, new_head, set_constant, set_stored, step_of, value
from tektite.kernels.operators.wide import product_overflows
from tektite.kernels.seek.candidates import number_of, size_of, span_of
from tektite.kernels.seek.keys import NULL, gallop_word

# What `extenders` says of each: address of what `find_candidates` found, slots, columns of its key, columns behind it that must
# be the word, data columns, time columns, whether it is complete, whether it may be passed over where it does not propose.
EXTENDER = 8
# Fewer words than this are never put into a filter: a search among them touches one or two cache lines.
FEW = 8
# A word is put into a filter in about a thirtieth of the time that a search in all batches takes. So filling one costs no more
# than a constant times what the rows look up.
PAYS = 32
# Places of a filter for each word, at least: one in sixteen words, at most, passes it without being there.
PLACES = 16
# Marks of filters that are told apart before all places have to be cleared.
MARKS = 127
# Candidates that are sifted at once: their row numbers stay in the first-level cache.
SIFTED = 512


@inner
def _candidates(extenders, rows, row, e):
    """How many candidates an extender has for a row."""
    found = extenders[EXTENDER * e]
    return size_of(found, rows, number_of(found, rows, row))


@inner
def _fewest_and_largest(extenders, rows, row):
    """The extender with the fewest candidates for a row, how many these are, and the keyed extender with the most."""
    proposer = 0
    fewest = _candidates(extenders, rows, row, 0)
    largest = 0
    most = np.int64(-1)
    for e in range(len(extenders) // EXTENDER):
        size = _candidates(extenders, rows, row, e)
        if size < fewest:
            proposer = e
            fewest = size
        if size >= most and extenders[EXTENDER * e + 2] > 0:
            largest = e
            most = size
    return proposer, fewest, largest


@inner
def _pays(extenders, rows, e, place, size):
    """Whether the rows from `place` on, in the order of extender e's keys, that have the same key look up enough words."""
    found = extenders[EXTENDER * e]
    key = number_of(found, rows, load(found, place))
    words = 0
    for ahead in range(place, rows):
        row = load(found, ahead)
        if number_of(found, rows, row) != key:
            break
        _, fewest, largest = _fewest_and_largest(extenders, rows, row)
        if largest == e:
            words += fewest
            if PAYS * words >= size:
                return True
    return False


@inner
def _slot(word, shift):
    """The place of a word in a filter of 2 ** (64 - shift) places."""
    return np.int64((np.uint64(word) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(shift))


@inner
def _fill(marks, shift, mark, extenders, rows, e, key):
    """Mark the places of all words that an extender has for a key."""
    found = extenders[EXTENDER * e]
    slots = extenders[EXTENDER * e + 1]
    for b in range(slots):
        span = span_of(found, rows, slots, key, b)
        start = load(span, 1)
        end = load(span, 2)
        if start >= end:
            continue
        batch = load(span, 0)
        at = address(batch, extenders[EXTENDER * e + 2])
        by = step_of(batch, extenders[EXTENDER * e + 2])
        if by == 4:
            for i in range(start, end):
                store1(marks, _slot(load4(at, i), shift), mark)
        else:
            for i in range(start, end):
                store1(marks, _slot(read(at, by, i), shift), mark)


@inner
def _sift(at, by, start, end, marks, shift, mark, kept):
    """Write the numbers of the rows whose words pass a filter to `kept`; returns how many."""
    many = 0
    if by == 4:
        for i in range(start, end):
            store(kept, many, i)
            many += read(marks, 1, _slot(load4(at, i), shift)) == mark
    else:
        for i in range(start, end):
            store(kept, many, i)
            many += read(marks, 1, _slot(read(at, by, i), shift)) == mark
    return many


@inner
def _after(at, by, start, end, word):
    """The end of the rows from `start` on, before `end`, that have `word`."""
    i = start
    near = min(end, start + 8)
    while i < near and read(at, by, i) == word:
        i += 1
    if i < near or i >= end:
        return i
    if word == 9223372036854775807:
        return end
    return gallop_word(at, by, end, i, word + 1)


@inner
def _narrowed(batch, column, equal, start, end, word):
    """Of rows start..end, which have `word` in `column`, those that have it in all of `equal` columns from there on."""
    for c in range(column + 1, column + equal):
        at = address(batch, c)
        by = step_of(batch, c)
        start = gallop_word(at, by, end, start, word)
        end = _after(at, by, start, end, word)
    return start, end


@inner
def larger_array(array):
    """The array with as much room again."""
    wider = np.empty(2 * len(array), np.int64)
    for i in range(len(array)):
        wider[i] = array[i]
    return wider


@inner
def _extended_rows(prefix, spec, nt, sources, words, stamps, used, wrong):
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


@kernel("Tuple((int64[::1], int64[::1]))(int64, int64, int64, int64[::1], int64[::1], int64, int64, int64[::1])")
def intersect(prefix, nd, nt, extenders, spec, lo, limit, state):
    """Rows of `prefix` (nd data, nt time columns, a diff) with every word that all extenders allow: the data columns that
    `spec` lists, the word, times and diff. It stops behind the row with which it has `limit` rows. state[0] says where to go
    on: 0 at first, the number of rows times the number of extenders at the end. The number of rows is -1 if a product of diffs
    does not fit a word.
    """
    rows = count(prefix)
    many = len(extenders) // EXTENDER
    # The slots of extender e, among those of all, are first_slot[e]..first_slot[e + 1].
    first_slot = np.zeros(many + 1, np.int64)
    for e in range(many):
        first_slot[e + 1] = first_slot[e] + extenders[EXTENDER * e + 1]
    cursors = np.empty(first_slot[many], np.int64)
    # The rows that have the present word: of extender e those listed in run[first_run[e]:first_run[e + 1]], pairs of batch, row.
    run = np.empty(64, np.int64)
    first_run = np.zeros(many + 1, np.int64)
    turn = np.zeros(many, np.int64)
    sources = np.empty(1024, np.int64)
    words = np.empty(1024, np.int64)
    stamps = np.empty(1024 * (nt + 1), np.int64)  # times and diff, row by row
    used = 0
    wrong = False
    sifted = np.empty(SIFTED + 1, np.int64)
    kept = address_of(sifted)
    filter_bytes = np.zeros(1024 + 8, np.int8)  # a read of the last byte touches seven more
    marks = address_of(filter_bytes)
    mark = 0
    shift = 63
    filtered_key = np.int64(-1)  # of the extender whose turn it is
    place = state[0]
    while place < many * rows and used < limit:
        # A row belongs to the turn of its largest extender.
        owner = place // rows
        if extenders[EXTENDER * owner + 2] == 0 and many > 1:
            place = (owner + 1) * rows
            continue
        here = place - owner * rows
        place += 1
        if here == 0:
            filtered_key = -1
        row = load(extenders[EXTENDER * owner], here)
        proposer, fewest, largest = _fewest_and_largest(extenders, rows, row)
        if fewest == 0 or largest != owner:
            continue
        key = number_of(extenders[EXTENDER * owner], rows, row)
        size = size_of(extenders[EXTENDER * owner], rows, key)
        filtered = owner != proposer and key == filtered_key
        if not filtered and owner != proposer and size >= FEW and _pays(extenders, rows, owner, here, size):
            shift = 63
            while (np.int64(1) << (64 - shift)) < PLACES * size:
                shift -= 1
            mark += 1
            if (np.int64(1) << (64 - shift)) + 8 > len(filter_bytes) or mark > MARKS:
                filter_bytes = np.zeros(max(len(filter_bytes), (np.int64(1) << (64 - shift)) + 8), np.int8)
                marks = address_of(filter_bytes)
                mark = 1
            _fill(marks, shift, mark, extenders, rows, owner, key)
            filtered_key = key
            filtered = True
        own = EXTENDER * proposer
        own_found = extenders[own]
        own_slots = extenders[own + 1]
        own_column = extenders[own + 2]
        own_equal = extenders[own + 3]
        own_key = number_of(own_found, rows, row)
        for p in range(own_slots):
            span = span_of(own_found, rows, own_slots, own_key, p)
            i = load(span, 1)
            end = load(span, 2)
            if i >= end:
                continue
            batch = load(span, 0)
            at = address(batch, own_column)
            by = step_of(batch, own_column)
            begun = False
            while i < end:
                # The next candidates: rows whose words pass, of an extender that is not complete one for each word.
                taken = 0
                if extenders[own + 6] == 0:
                    while i < end and taken < SIFTED:
                        word = read(at, by, i)
                        if not filtered or read(marks, 1, _slot(word, shift)) == mark:
                            store(kept, taken, i)
                            taken += 1
                        i = _after(at, by, i, end, word)
                elif filtered:
                    stop = min(end, i + SIFTED)
                    taken = _sift(at, by, i, stop, marks, shift, mark, kept)
                    i = stop
                else:
                    stop = min(end, i + SIFTED)
                    while i < stop:
                        store(kept, taken, i)
                        taken += 1
                        i += 1
                if taken > 0 and not begun:
                    begun = True
                    for e in range(many):
                        found = extenders[EXTENDER * e]
                        slots = extenders[EXTENDER * e + 1]
                        other_key = number_of(found, rows, row)
                        for b in range(slots):
                            cursors[first_slot[e] + b] = load(span_of(found, rows, slots, other_key, b), 1)
                for k in range(taken):
                    candidate = load(kept, k)
                    word = read(at, by, candidate)
                    agreed = word != NULL
                    if agreed and extenders[own + 6] == 0:
                        if own_equal > 1:
                            upto = _after(at, by, candidate, end, word)
                            low, high = _narrowed(batch, own_column, own_equal, candidate, upto, word)
                            agreed = low < high
                        # A word that an earlier batch has was proposed there.
                        for b in range(p):
                            earlier = span_of(own_found, rows, own_slots, own_key, b)
                            stop = load(earlier, 2)
                            start = cursors[first_slot[proposer] + b]
                            if not agreed or start >= stop:
                                continue
                            other = load(earlier, 0)
                            other_at = address(other, own_column)
                            other_by = step_of(other, own_column)
                            start = gallop_word(other_at, other_by, stop, start, word)
                            cursors[first_slot[proposer] + b] = start
                            if own_equal > 1:
                                upto = _after(other_at, other_by, start, stop, word)
                                start, stop = _narrowed(other, own_column, own_equal, start, upto, word)
                            if start < stop and read(other_at, other_by, start) == word:
                                agreed = False
                    elif agreed:
                        for c in range(own_column + 1, own_column + own_equal):
                            agreed &= value(batch, c, candidate) == word
                    filled = 0
                    for e in range(many):
                        if not agreed:
                            break
                        first_run[e] = filled
                        x = EXTENDER * e
                        if e == proposer:
                            if extenders[x + 6] != 0:
                                if 2 * filled + 2 > len(run):
                                    run = larger_array(run)
                                run[2 * filled] = batch
                                run[2 * filled + 1] = candidate
                                filled += 1
                            continue
                        if extenders[x + 7] != 0:
                            continue
                        found = extenders[x]
                        slots = extenders[x + 1]
                        column = extenders[x + 2]
                        other_key = number_of(found, rows, row)
                        there = False
                        for b in range(slots):
                            span = span_of(found, rows, slots, other_key, b)
                            start = cursors[first_slot[e] + b]
                            stop = load(span, 2)
                            if start >= stop:
                                continue
                            other = load(span, 0)
                            other_at = address(other, column)
                            other_by = step_of(other, column)
                            start = gallop_word(other_at, other_by, stop, start, word)
                            cursors[first_slot[e] + b] = start
                            if extenders[x + 3] > 1:
                                upto = _after(other_at, other_by, start, stop, word)
                                start, stop = _narrowed(other, column, extenders[x + 3], start, upto, word)
                            while start < stop and read(other_at, other_by, start) == word:
                                there = True
                                if extenders[x + 6] == 0:
                                    break
                                if 2 * filled + 2 > len(run):
                                    run = larger_array(run)
                                run[2 * filled] = other
                                run[2 * filled + 1] = start
                                filled += 1
                                start += 1
                        agreed = there
                    if not agreed:
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
                                other = run[2 * turn[e]]
                                r = run[2 * turn[e] + 1]
                                for t in range(extenders[x + 5]):
                                    stamps[o + t] = max(stamps[o + t], value(other, extenders[x + 4] + t, r))
                                factor = value(other, extenders[x + 4] + extenders[x + 5], r)
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
    filter_bytes[0] = 0  # keeps the scratch alive up to here
    sifted[0] = 0
    state[0] = place
    return _extended_rows(prefix, spec, nt, sources, words, stamps, used, wrong)
