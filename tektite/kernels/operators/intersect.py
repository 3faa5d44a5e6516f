"""Worst-case optimal intersection: extends rows by one variable that several arrangements contain.

For each row of `prefix`, each arrangement (an *extender*) has candidates: its rows with the row's key, followed by the word
to extend by. The extender with the fewest candidates lists its words, and they are looked up in the others. So a row costs
the least number of candidates of any extender, times logarithms and batches.

Rows with the same key in their largest extender are adjacent. Where it pays, the words of that extender are put into a bit
filter once for all of them, and most absent words cost one bit test. The others are found by search, which begins where the
one before ended: answers are near.

A *complete* extender contributes the times and diffs of its rows: times meet at their least upper bound and diffs multiply,
once for every combination of rows that have the word. Other extenders only need to contain the word. NULL is not a word.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inlined, inner, kernel
from tektite.kernels.layout.memory import load, read, store
from tektite.kernels.layout.pages import address_of
from tektite.kernels.layout.records import room
from tektite.kernels.layout.rows import (
    address,
    count,
    step_of,
    value,
)
from tektite.kernels.layout.scratch import keep, scratch
from tektite.kernels.operators.combinations import Work, combinations, extended_rows, write_combinations
from tektite.kernels.operators.extenders import (
    COLUMN,
    COMPLETE,
    EQUAL,
    EXTENDER,
    FOUND,
    OPTIONAL,
    PAYS,
    SIFTED,
    SLOTS,
    ExtenderFilter,
    Extenders,
    batches_of,
    candidates_of,
    fewest_and_largest,
    field_of,
    filled_filter,
    key_of,
    look_up,
    next_candidates,
    rows_of,
)
from tektite.kernels.seek.search import gallop_word, scan_word, word_end
from tektite.values.words import NULL

# Fewer words than this are never put into a filter: a search among them touches one or two cache lines.
FEW = 8


@inner
def _narrowed(batch, column, equal, start, end, word):
    """Of rows from `start` on, before `end`, which have `word` in `column` up to some row, those that have it in all of `equal`
    >= 2 columns from there on.
    """
    end = word_end(address(batch, column), step_of(batch, column), end, start, word)
    for c in range(column + 1, column + equal):
        at = address(batch, c)
        by = step_of(batch, c)
        start = gallop_word(at, by, end, start, word)
        end = word_end(at, by, end, start, word)
    return start, end


@inner
def _set_cursors(extenders, row, work):
    """Put the cursors of all extenders at their first rows with the key of a row."""
    for e in range(extenders.many):
        key = key_of(extenders, row, e)
        for slot in range(batches_of(extenders, e, key)):
            _, start, _ = rows_of(extenders, e, key, slot)
            store(work.cursors, load(work.first_slot, e) + slot, start)


@inlined
def _first_with(extenders, e, key, slot, word, work):
    """The rows of an extender's slot that may have a word in all columns that must be it: (batch, start, end). As long as rows
    from `start` on have the word, they do. Moves the cursor of the slot on to there: words come in ascending order.
    """
    batch, _, end = rows_of(extenders, e, key, slot)
    place = load(work.first_slot, e) + slot
    start = load(work.cursors, place)
    if start >= end:
        return batch, end, end
    column = field_of(extenders, e, COLUMN)
    start = scan_word(address(batch, column), step_of(batch, column), end, start, word)
    store(work.cursors, place, start)
    if field_of(extenders, e, EQUAL) > 1:
        start, end = _narrowed(batch, column, field_of(extenders, e, EQUAL), start, end, word)
    return batch, start, end


@inlined
def _is_proposed(extenders, e, key, slot, batch, candidate, end, word, work):
    """Whether a proposer proposes the word of a candidate row of one of its slots: it is the word in all columns that must be
    and, if the proposer is not complete, no earlier slot has it.
    """
    if word == NULL:
        return False
    column = field_of(extenders, e, COLUMN)
    equal = field_of(extenders, e, EQUAL)
    if field_of(extenders, e, COMPLETE) != 0:
        for c in range(column + 1, column + equal):
            if value(batch, c, candidate) != word:
                return False
        return True
    if equal > 1:
        start, stop = _narrowed(batch, column, equal, candidate, end, word)
        if start >= stop:
            return False
    for earlier in range(slot):
        other, start, stop = _first_with(extenders, e, key, earlier, word, work)
        if start < stop and value(other, column, start) == word:
            return False
    return True


@inlined
def _run_of(extenders, row, e, word, work, run, filled):
    """Append an extender's rows that have a word to the run; of one that is not complete none, it is enough that there is one.
    Returns how many rows are in the run, and whether the extender has the word.
    """
    key = key_of(extenders, row, e)
    column = field_of(extenders, e, COLUMN)
    there = False
    for slot in range(batches_of(extenders, e, key)):
        batch, i, end = _first_with(extenders, e, key, slot, word, work)
        while i < end and value(batch, column, i) == word:
            there = True
            if field_of(extenders, e, COMPLETE) == 0:
                break
            store(run, 2 * filled, batch)
            store(run, 2 * filled + 1, i)
            filled += 1
            i += 1
    return filled, there


@inlined
def _runs(extenders, row, proposer, batch, candidate, word, work, run):
    """Fill the run with the rows of all complete extenders that have a word; the proposer's is the candidate. Returns whether
    all extenders have the word.
    """
    many = extenders.many
    filled = 0
    for e in range(many):
        store(work.first_run, e, filled)
        if e == proposer:
            if field_of(extenders, e, COMPLETE) != 0:
                store(run, 2 * filled, batch)
                store(run, 2 * filled + 1, candidate)
                filled += 1
        elif field_of(extenders, e, OPTIONAL) == 0:
            filled, there = _run_of(extenders, row, e, word, work, run, filled)
            if not there:
                return False
    store(work.first_run, many, filled)
    return True


@inlined
def _extend_row(prefix, nd, nt, lo, extenders, row, proposer, filter_, work, run, extended, used):
    """Append a record for every word that all extenders allow for a row, of those that the proposer has and the filter lets pass.
    Returns the records, which may have grown, how many they are, and whether a product of diffs overflows.
    """
    wrong = False
    key = key_of(extenders, row, proposer)
    complete = field_of(extenders, proposer, COMPLETE) != 0
    for slot in range(batches_of(extenders, proposer, key)):
        batch, i, end = rows_of(extenders, proposer, key, slot)
        at = address(batch, field_of(extenders, proposer, COLUMN))
        by = step_of(batch, field_of(extenders, proposer, COLUMN))
        begun = False
        while i < end:
            many, i = next_candidates(at, by, i, end, complete, filter_, work.kept)
            if many > 0 and not begun:
                begun = True
                _set_cursors(extenders, row, work)
            for k in range(many):
                candidate = load(work.kept, k)
                word = read(at, by, candidate)
                if not _is_proposed(extenders, proposer, key, slot, batch, candidate, end, word, work):
                    continue
                if _runs(extenders, row, proposer, batch, candidate, word, work, run):
                    more = combinations(extenders.many, work)
                    if (used + more) * (nt + 3) > len(extended):
                        extended = room(extended, used * (nt + 3), more * (nt + 3))
                    out = address_of(extended) + 8 * used * (nt + 3)
                    wrong |= write_combinations(prefix, nd, nt, lo, extenders, row, word, work, run, out)
                    used += more
    return extended, used, wrong


@kernel("Tuple((int64[::1], int64[::1]))(int64, int64, int64, int64[::1], int64[::1], int64, int64, int64[::1])")
def intersect(prefix, nd, nt, extenders, spec, lo, limit, state):
    """Rows of `prefix` with every word that all extenders allow: the data columns that `spec` lists, the word, times and diff.

    `prefix` has `nd` data columns, `nt` time columns and a diff; epochs count as at least `lo`. The kernel stops behind the row
    with which it has `limit` rows. state[0] says where to go on: 0 at first, the number of rows times the number of extenders at
    the end. The number of rows is -1 if a product of diffs does not fit a word.
    """
    rows = count(prefix)
    many = len(extenders) // EXTENDER
    all_ = Extenders(address_of(extenders), many, rows)
    slots = 0
    for e in range(many):
        slots += field_of(all_, e, SLOTS)
    memory, (first_slot, cursors, first_run, turn, kept) = scratch((many + 1, slots, many + 1, many, SIFTED + 1))
    work = Work(first_slot, cursors, first_run, turn, kept)
    store(first_slot, 0, 0)
    for e in range(many):
        store(first_slot, e + 1, load(first_slot, e) + field_of(all_, e, SLOTS))
    run = np.empty(64, np.int64)
    extended = np.empty(1024 * (nt + 3), np.int64)
    used = 0
    wrong = False
    marks = np.zeros(1024 + 8, np.int8)
    everything = ExtenderFilter(address_of(marks), 63, 0)
    filter_ = everything
    filtered_key = np.int64(-1)  # of the extender whose turn it is
    place = state[0]
    while place < many * rows and used < limit:
        # A row belongs to the turn of its largest extender.
        owner = place // rows
        if field_of(all_, owner, COLUMN) == 0 and many > 1:
            place = (owner + 1) * rows
            continue
        here = place - owner * rows
        place += 1
        if here == 0:
            filtered_key = -1
        row = load(field_of(all_, owner, FOUND), here)
        proposer, fewest, largest = fewest_and_largest(all_, row)
        if fewest == 0 or largest != owner:
            continue
        key = key_of(all_, row, owner)
        if owner != proposer and key != filtered_key:
            size = candidates_of(all_, row, owner)
            if size >= FEW and look_up(all_, owner, here, (size + PAYS - 1) // PAYS):
                marks, filter_ = filled_filter(marks, filter_.mark, all_, owner, key)
                filtered_key = key
        chosen = filter_ if owner != proposer and key == filtered_key else everything
        # No word has more rows than the row has candidates.
        candidates = 0
        for e in range(many):
            candidates += candidates_of(all_, row, e)
        if 2 * candidates > len(run):
            run = np.empty(4 * candidates, np.int64)
        extended, used, bad = _extend_row(
            prefix, nd, nt, lo, all_, row, proposer, chosen, work, address_of(run), extended, used
        )
        wrong |= bad
    keep(run)
    keep(marks)
    keep(memory)
    state[0] = place
    return extended_rows(prefix, spec, nt, extended, used, wrong, 1)
