"""Runs of words: what two extenders have for a row, in a batch each, is intersected run by run.

The words of the shorter run are sought in the longer one in ascending order: LANES rows of the longer run are compared at once.
If it is much longer, a search leaps over most of it. A run may also be put into a table of bits, at the place of its words modulo
the size of the table. If the table spans all words of the run, a bit says that the word is there; otherwise it has to be sought.

A run is *plain* if all its rows have one time and one diff, and thus different words. Of the words that two plain runs share,
only the words matter, and if rows are counted only how many they are.

A run is described by the address of some words, see AT and the following.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tektite.kernels.compile import inlined, inner
from tektite.kernels.layout.equal import LANES, equal_rows, has4, lowest_bit
from tektite.kernels.layout.memory import load, load4, read, store
from tektite.kernels.layout.pages import address_of
from tektite.kernels.layout.rows import address, count, step_of, value
from tektite.kernels.operators.extenders import COLUMN, DATA, TIMES, batches_of, field_of, rows_of
from tektite.kernels.operators.wide import product_overflows, sum_overflows
from tektite.kernels.seek.search import gallop_from, gallop_word
from tektite.values.words import NULL

# What describes a run: the address and the step of its words, how many they are, whether it is plain, its batch and its first row
# there, the batch's column of times and how many columns of times there are; of a run of fewer than LANES rows, the row (counted
# from its first one) from which on LANES rows of the batch have it among them, and a bit for each of these that is its own: none
# if the batch is too small.
AT = 0
BY = 1
MANY = 2
PLAIN = 3
BATCH = 4
FIRST = 5
STAMPS = 6
STAMP_COLUMNS = 7
BLOCK = 8
OWN = 9
RUN = 10
# A run that is more than so many times longer is searched by leaps: to scan it would touch too many rows for each word.
SPARSE = 128
# Words that are compared with a run of fewer than LANES rows one by one; for more of them both runs are merged.
FEW = 4
# Words that are sifted at once: they stay in the first-level cache.
KEPT = 512
# Bits of a table: more than these leave the second-level cache.
MOST_BITS = 1 << 22


class Meeting(NamedTuple):
    """What all rows of an intersection have in common: rows with `nd` data and `nt` time columns at `prefix`, the least epoch,
    whether words are counted, and also those of different rows; scratch memory for a time.
    """

    prefix: int
    nd: int
    nt: int
    lo: int
    counted: bool
    merged: bool
    stamp: int


class BitTable(NamedTuple):
    """The words of a run as bits from the address `bits` on: number `run` of its key, -1 if there is none, described at `rows`.
    `first` is the least word and `last` the greatest, `mask` the number of bits less one.
    """

    bits: int
    mask: int
    first: int
    last: int
    run: int
    rows: int


NO_TABLE = BitTable(0, 0, 0, 0, -1, 0)


@inner
def describe_runs(extenders, e, key, runs):
    """Describe all runs of an extender's key, without NULLs. Returns how many there are."""
    column = field_of(extenders, e, COLUMN)
    data = field_of(extenders, e, DATA)
    times = field_of(extenders, e, TIMES)
    many = batches_of(extenders, e, key)
    for number in range(many):
        batch, first, end = rows_of(extenders, e, key, number)
        run = runs + 8 * RUN * number
        at = address(batch, column)
        by = step_of(batch, column)
        if read(at, by, first) == NULL:
            first = gallop_word(at, by, end, first, NULL + 1)
        steps = 0 if data == column + 1 and by != 0 else 1
        for c in range(data, data + times + 1):
            steps |= step_of(batch, c)
        store(run, AT, at + by * first)
        store(run, BY, by)
        store(run, MANY, end - first)
        store(run, PLAIN, 1 if steps == 0 else 0)
        store(run, BATCH, batch)
        store(run, FIRST, first)
        store(run, STAMPS, data)
        store(run, STAMP_COLUMNS, times)
        start = min(0, count(batch) - LANES - first)
        bits = min(end - first, LANES)
        store(run, BLOCK, start)
        store(run, OWN, ((np.int64(1) << bits) - 1) << -start if first + start >= 0 and by != 0 else 0)
    return many


@inner
def longest_of(runs, many):
    """The number of the longest of some runs."""
    longest = 0
    for number in range(1, many):
        if load(runs, RUN * number + MANY) > load(runs, RUN * longest + MANY):
            longest = number
    return longest


# ---------------------------------------------------------------------- records


@inner
def _add(meeting, row, word, diff, records, used):
    """Write a record at the time `meeting.stamp`, or add its diff to the one before, if they are counted together. Returns how
    many records there are.
    """
    stride = meeting.nt + 3
    if meeting.counted and used > 0:
        before = records + 8 * (used - 1) * stride
        same = meeting.merged or load(before, 0) == row
        for t in range(meeting.nt):
            same &= load(before, 2 + t) == load(meeting.stamp, t)
        if same and not sum_overflows(load(before, stride - 1), diff):
            store(before, stride - 1, load(before, stride - 1) + diff)
            return used
    used = without_last_zero(meeting, records, used)
    record = records + 8 * used * stride
    store(record, 0, row)
    store(record, 1, word)
    for t in range(meeting.nt):
        store(record, 2 + t, load(meeting.stamp, t))
    store(record, stride - 1, diff)
    return used + 1


@inner
def without_last_zero(meeting, records, used):
    """How many records there are without the last one, if its sum is 0."""
    return used - 1 if used > 0 and load(records, used * (meeting.nt + 3) - 1) == 0 else used


@inner
def _weigh(meeting, row, one, i, other, k):
    """Write the time of a row together with row i of one run and row k of another to `meeting.stamp`. Returns the product of
    their diffs, and whether it overflows.
    """
    for t in range(meeting.nt):
        store(meeting.stamp, t, value(meeting.prefix, meeting.nd + t, row))
    store(meeting.stamp, 0, max(load(meeting.stamp, 0), meeting.lo))
    diff = value(meeting.prefix, meeting.nd + meeting.nt, row)
    wrong = False
    for run, place in ((one, i), (other, k)):
        batch = load(run, BATCH)
        at = load(run, FIRST) + place
        column = load(run, STAMPS)
        for t in range(load(run, STAMP_COLUMNS)):
            store(meeting.stamp, t, max(load(meeting.stamp, t), value(batch, column + t, at)))
        factor = value(batch, column + load(run, STAMP_COLUMNS), at)
        wrong |= product_overflows(diff, factor)
        diff *= factor
    return diff, wrong


# ---------------------------------------------------------------------- two runs


@inlined
def _next_rows(at, by, many, start, word):
    """The block of LANES of `many` rows, which are no fewer, that has the word, if any has it, and which of them have it: bit k
    is row k.
    """
    last = many - LANES
    while start < last and read(at, by, start + LANES - 1) < word:
        start += LANES
    start = min(start, last)
    return start, equal_rows(at, by, start, word)


@inner
def _count_shared(short, long):
    """How many words two plain runs share."""
    at, by, many = load(short, AT), load(short, BY), load(short, MANY)
    far, far_by, far_many = load(long, AT), load(long, BY), load(long, MANY)
    shared = np.int64(0)
    start = np.int64(0)
    last = far_many - LANES
    if far_many > SPARSE * many:
        leap = far_many // many
        for i in range(many):
            word = read(at, by, i)
            start = gallop_from(far, far_by, far_many, start, leap, word)
            if start >= far_many:
                break
            shared += 1 if read(far, far_by, start) == word else 0
    elif last >= 0 and by == 4 and far_by == 4:
        for i in range(many):
            word = load4(at, i)
            while start < last and load4(far, start + LANES - 1) < word:
                start += LANES
            start = min(start, last)
            shared += has4(far, start, word)
    elif last >= 0:
        for i in range(many):
            start, which = _next_rows(far, far_by, far_many, start, read(at, by, i))
            shared += 1 if which != 0 else 0
    elif many <= FEW and load(long, OWN) != 0:
        block, own = load(long, BLOCK), load(long, OWN)
        for i in range(many):
            shared += 1 if equal_rows(far, far_by, block, read(at, by, i)) & own != 0 else 0
    else:
        i = np.int64(0)
        while i < many and start < far_many:
            a = read(at, by, i)
            b = read(far, far_by, start)
            shared += 1 if a == b else 0
            i += 1 if a <= b else 0
            start += 1 if b <= a else 0
    return shared


@inner
def paired(meeting, row, short, long, i, records, used, capacity):
    """Write a record for each pair of rows of two runs that have the same word, from row i of the shorter one on, as long as
    there are no more than `capacity`. Returns the row to go on with, how many records there are, and whether a product overflows.
    """
    wrong = False
    at, by, many = load(short, AT), load(short, BY), load(short, MANY)
    far, far_by, far_many = load(long, AT), load(long, BY), load(long, MANY)
    start = np.int64(0)
    leap = far_many // many
    leaps = leap > SPARSE or far_by == 0 or far_many < LANES
    while i < many:
        word = read(at, by, i)
        if leaps:
            start = gallop_from(far, far_by, far_many, start, max(leap, 1), word)
            k = start
        else:
            start, which = _next_rows(far, far_by, far_many, start, word)
            k = start + lowest_bit(which) if which != 0 else far_many
        end = k
        while end < far_many and read(far, far_by, end) == word:
            end += 1
        if used + end - k > capacity:
            return i, used, wrong
        while k < end:
            diff, bad = _weigh(meeting, row, short, i, long, k)
            used = _add(meeting, row, word, diff, records, used)
            wrong |= bad
            k += 1
        i += 1
    return i, used, wrong


@inner
def counted_words(meeting, row, short, long, records, used):
    """Count the words that two plain runs share: a record at most. Returns how many records there are, and whether a
    product overflows.
    """
    return _add_many(meeting, row, short, long, _count_shared(short, long), records, used)


@inlined
def _add_many(meeting, row, short, long, shared, records, used):
    """Count so many words of two plain runs."""
    if shared == 0:
        return used, False
    diff, wrong = _weigh(meeting, row, short, 0, long, 0)
    wrong |= product_overflows(diff, shared)
    return _add(meeting, row, 0, diff * shared, records, used), wrong


# ---------------------------------------------------------------------- tables of bits


@inner
def filled_table(memory, run, number, rows):
    """The table of a plain run's words, and its memory, replaced if it is too small. The memory has no bit set. The run's
    description is copied to `rows`.
    """
    for field in range(RUN):
        store(rows, field, load(run, field))
    at, by, many = load(run, AT), load(run, BY), load(run, MANY)
    first = read(at, by, 0)
    last = read(at, by, many - 1)
    bits = np.int64(64)
    wanted = np.uint64(last) - np.uint64(first)
    while bits < MOST_BITS and np.uint64(bits) <= wanted:
        bits <<= 1
    if bits >> 6 > len(memory):
        memory = np.zeros(bits >> 6, np.int64)
    table = BitTable(address_of(memory), bits - 1, first, last, number, rows)
    for i in range(many):
        place = (read(at, by, i) - first) & table.mask
        store(table.bits, place >> 6, load(table.bits, place >> 6) | (np.int64(1) << (place & 63)))
    return memory, table


@inner
def cleared(table):
    """No table, after the bits of one are taken back."""
    if table.run >= 0:
        at, by = load(table.rows, AT), load(table.rows, BY)
        for i in range(load(table.rows, MANY)):
            store(table.bits, ((read(at, by, i) - table.first) & table.mask) >> 6, 0)
    return NO_TABLE


@inner
def sifted(meeting, row, short, long, table, kept, records, used):
    """Write a record for each word that two plain runs share, no more of them than rows of `short`, or one for all of them if
    they are counted; the words of `long` are in a table. Returns how many records there are, and whether a product overflows.
    `kept` has KEPT + 1 words.
    """
    at, by, many = load(short, AT), load(short, BY), load(short, MANY)
    far, far_by, far_many = load(long, AT), load(long, BY), load(long, MANY)
    exact = np.uint64(table.last) - np.uint64(table.first) <= np.uint64(table.mask)
    i = gallop_word(at, by, many, 0, table.first)
    end = many
    if end > i and read(at, by, end - 1) > table.last:
        end = gallop_word(at, by, end, i, table.last + 1)
    if exact and meeting.counted:
        shared = np.int64(0)
        for k in range(i, end):
            place = read(at, by, k) - table.first
            shared += (load(table.bits, place >> 6) >> (place & 63)) & 1
        return _add_many(meeting, row, short, long, shared, records, used)
    diff, wrong = _weigh(meeting, row, short, 0, long, 0)
    shared = np.int64(0)
    start = np.int64(0)
    while i < end:
        left = np.int64(0)
        stop = min(end, i + KEPT)
        for k in range(i, stop):
            word = read(at, by, k)
            place = (word - table.first) & table.mask
            store(kept, left, word)
            left += (load(table.bits, place >> 6) >> (place & 63)) & 1
        i = stop
        for k in range(left):
            word = load(kept, k)
            if not exact:
                start = gallop_word(far, far_by, far_many, start, word)
                if start >= far_many or read(far, far_by, start) != word:
                    continue
            shared += 1
            if not meeting.counted:
                used = _add(meeting, row, word, diff, records, used)
    if meeting.counted:
        return _add_many(meeting, row, short, long, shared, records, used)
    return used, wrong and shared > 0
