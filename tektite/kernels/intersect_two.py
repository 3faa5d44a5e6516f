"""Intersection of two extenders that both count, by hashing: the case of triangles, where nearly all work of a cycle is done.

For each row the extender with fewer candidates lists its words, and they are looked up among those of the other. Rows with the
same key in the larger one come one after the other, so that its words are put into a hash table once for all of them, where that
pays; elsewhere they are sought by galloping. So a row costs its least number of candidates, whatever the number of batches.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner, kernel
from tektite.kernels.intersect import EXTENDER, extended_rows, larger_array
from tektite.kernels.memory import read
from tektite.kernels.rows import address, count, step_of, value
from tektite.kernels.seek import NULL, gallop_word
from tektite.kernels.wide import product_overflows

# Ranges of fewer rows than this are never hashed.
FEW = 64
# A row is hashed in about as many cycles as four words are looked up in the table, and a search takes several times as long.
PAYS = 4


@inner
def _same_ranges(ranges, one, other, total, first, last):
    """Whether two rows have the same ranges in batches first..last."""
    for b in range(first, last):
        if ranges[2 * (one * total + b)] != ranges[2 * (other * total + b)]:
            return False
        if ranges[2 * (one * total + b) + 1] != ranges[2 * (other * total + b) + 1]:
            return False
    return True


@inner
def _size(ranges, row, total, first, last):
    size = 0
    for b in range(first, last):
        size += ranges[2 * (row * total + b) + 1] - ranges[2 * (row * total + b)]
    return size


@inner
def _slot(word, shift):
    """Where the search for a word begins, in a table of 2 ** (64 - shift) slots."""
    return np.int64((np.uint64(word) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(shift))


@kernel(
    "Tuple((int64[::1], int64[::1]))(int64, int64, int64, int64[::1], int64[::1], int64[::1], int64, int64, int64[::1],"
    " int64, int64, int64[::1])"
)
def intersect_two(prefix, nd, nt, extenders, batches, ranges, ordered, kc, spec, lo, limit, state):
    """As `intersect`, for two extenders that are complete. Rows are sorted by the key of the first; column `kc` of the rows
    at `ordered` lists their numbers in the order of the key of the second. state[0] goes from 0 to twice the number of rows.
    """
    rows = count(prefix)
    total = len(batches)
    sources = np.empty(1024, np.int64)
    words = np.empty(1024, np.int64)
    stamps = np.empty(1024 * (nt + 1), np.int64)  # times and diff, row by row
    used = 0
    wrong = False
    # The table: a slot holds a word and the first of its entries, a chain of batches and rows. A slot of another generation is
    # free.
    slots = np.empty(0, np.int64)
    heads = np.empty(0, np.int64)
    generations = np.zeros(0, np.int64)
    generation = 0
    entries = np.empty(0, np.int64)
    shift = 63
    hashed_row = -1
    found = np.empty(64, np.int64)  # batch and row of what has the present word
    cursors = np.empty(total, np.int64)
    place = state[0]
    while place < 2 * rows and used < limit:
        second = place >= rows
        row = value(ordered, kc, place - rows) if second else place
        here = place
        place += 1
        if here == rows:
            hashed_row = -1
        large = EXTENDER if second else 0
        small = 0 if second else EXTENDER
        first = extenders[large]
        last = first + extenders[large + 1]
        small_first = extenders[small]
        small_last = small_first + extenders[small + 1]
        size = _size(ranges, row, total, first, last)
        few = _size(ranges, row, total, small_first, small_last)
        # A row belongs to the turn of its larger extender; of two that are equal, the second one's.
        if few == 0 or few > size or (few == size and not second):
            continue
        hashed = hashed_row >= 0 and _same_ranges(ranges, row, hashed_row, total, first, last)
        if not hashed and size >= FEW:
            gain = 0
            ahead = here
            end_of_turn = 2 * rows if second else rows
            while ahead < end_of_turn and PAYS * gain < size:
                other = value(ordered, kc, ahead - rows) if second else ahead
                if not _same_ranges(ranges, row, other, total, first, last):
                    break
                candidates = _size(ranges, other, total, small_first, small_last)
                gain += candidates if candidates <= size else 0
                ahead += 1
            if PAYS * gain >= size:
                hashed = True
                hashed_row = row
                generation += 1
                bits = 1
                while (1 << bits) < 2 * size:
                    bits += 1
                if (1 << bits) > len(slots):
                    slots = np.empty(1 << bits, np.int64)
                    heads = np.empty(1 << bits, np.int64)
                    generations = np.zeros(1 << bits, np.int64)
                    generation = 1
                shift = 64 - bits
                if 3 * size > len(entries):
                    entries = np.empty(6 * size, np.int64)
                filled = 0
                for b in range(first, last):
                    at = address(batches[b], extenders[large + 2])
                    by = step_of(batches[b], extenders[large + 2])
                    for k in range(ranges[2 * (row * total + b)], ranges[2 * (row * total + b) + 1]):
                        word = read(at, by, k)
                        s = _slot(word, shift)
                        while generations[s] == generation and slots[s] != word:
                            s = (s + 1) & ((1 << bits) - 1)
                        entries[3 * filled] = b
                        entries[3 * filled + 1] = k
                        entries[3 * filled + 2] = heads[s] if generations[s] == generation else -1
                        generations[s] = generation
                        slots[s] = word
                        heads[s] = filled
                        filled += 1
        around = (1 << (64 - shift)) - 1
        for p in range(small_first, small_last):
            start = ranges[2 * (row * total + p)]
            end = ranges[2 * (row * total + p) + 1]
            if start >= end:
                continue
            batch = batches[p]
            at = address(batch, extenders[small + 2])
            by = step_of(batch, extenders[small + 2])
            if not hashed:
                for b in range(first, last):
                    cursors[b] = ranges[2 * (row * total + b)]
            for i in range(start, end):
                word = read(at, by, i)
                filled = 0
                if hashed:
                    s = _slot(word, shift)
                    while generations[s] == generation and slots[s] != word:
                        s = (s + 1) & around
                    entry = heads[s] if generations[s] == generation else -1
                    while entry >= 0:
                        if 2 * filled == len(found):
                            found = larger_array(found)
                        found[2 * filled] = entries[3 * entry]
                        found[2 * filled + 1] = entries[3 * entry + 1]
                        filled += 1
                        entry = entries[3 * entry + 2]
                else:
                    for b in range(first, last):
                        stop = ranges[2 * (row * total + b) + 1]
                        if cursors[b] >= stop:
                            continue
                        other_at = address(batches[b], extenders[large + 2])
                        other_by = step_of(batches[b], extenders[large + 2])
                        k = gallop_word(other_at, other_by, stop, cursors[b], word)
                        cursors[b] = k
                        while k < stop and read(other_at, other_by, k) == word:
                            if 2 * filled == len(found):
                                found = larger_array(found)
                            found[2 * filled] = b
                            found[2 * filled + 1] = k
                            filled += 1
                            k += 1
                if filled == 0 or word == NULL:
                    continue
                own = value(batch, extenders[small + 3] + extenders[small + 4], i)
                diff = value(prefix, nd + nt, row)
                wrong |= product_overflows(diff, own)
                for f in range(filled):
                    if used == len(sources):
                        sources = larger_array(sources)
                        words = larger_array(words)
                        stamps = larger_array(stamps)
                    sources[used] = row
                    words[used] = word
                    o = used * (nt + 1)
                    other_batch = batches[found[2 * f]]
                    k = found[2 * f + 1]
                    for t in range(nt):
                        time = value(prefix, nd + t, row)
                        if t < extenders[small + 4]:
                            time = max(time, value(batch, extenders[small + 3] + t, i))
                        if t < extenders[large + 4]:
                            time = max(time, value(other_batch, extenders[large + 3] + t, k))
                        stamps[o + t] = max(time, lo) if t == 0 else time
                    factor = value(other_batch, extenders[large + 3] + extenders[large + 4], k)
                    wrong |= product_overflows(diff * own, factor)
                    stamps[o + nt] = diff * own * factor
                    used += 1
    state[0] = place
    return extended_rows(prefix, spec, nt, sources, words, stamps, used, wrong)
