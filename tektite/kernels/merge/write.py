"""Writes rows of a merge's result, and sums those that became equal.

Columns of large results are as narrow as the words written so far allow. If a block has a word that does not fit, the column
is widened in place, from its last row to its first, and the block is written again.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner
from tektite.kernels.layout.columns import copy_words, fill_words, fitting_step, put, writer_of
from tektite.kernels.layout.memory import LEAST, load, load4, read, store
from tektite.kernels.merge.state import (
    ABOVE,
    ADDRESS_A,
    ADDRESS_B,
    COLUMNS,
    COMPARED,
    CONSTANT_A,
    DIRTY,
    FIELDS,
    FLOOR,
    KEYS,
    LIVE,
    OVERFLOWN,
    PER_COLUMN,
    REFERENCE,
    ROOM,
    ROWS,
    SCANNED,
    STATUS,
    STEP,
    STEP_A,
    STEP_B,
    TAIL,
    UNFILLED,
    VARIES,
    column_field,
    set_column_field,
)
from tektite.kernels.operators.sums import carry

# How writers get at the words of planned rows. A source is (address, turn of the address, step, turn of the step, floor, address
# of the plan): the first input's column, and what turns it into the second's. A plan names row i of the first input by i, and row
# k of the second by ~k, so its sign chooses the input without a branch.


@inner
def _planned_word(source, row):
    a, turn, step_a, step_turn, floor, plan = source
    planned = load(plan, row)
    side = planned >> 63
    return max(read(a ^ (turn & side), step_a ^ (step_turn & side), planned ^ side), floor)


@inner
def _planned_whole_word(source, row):
    """As `_planned_word`, where both columns have steps of 8."""
    a, turn, _, _, floor, plan = source
    planned = load(plan, row)
    side = planned >> 63
    return max(load(a ^ (turn & side), planned ^ side), floor)


@inner
def _planned_half_word(source, row):
    """As `_planned_word`, where both columns have steps of 4."""
    a, turn, _, _, floor, plan = source
    planned = load(plan, row)
    side = planned >> 63
    return max(load4(a ^ (turn & side), planned ^ side), floor)


@inner
def _clamped_word(source, row):
    """The word of a row of one column, no less than the floor."""
    at, step, floor = source
    return max(read(at, step, row), floor)


@inner
def _kept_word(source, place):
    """The word of the row that is kept in a place."""
    at, step, kept = source
    return read(at, step, load(kept, place))


_write_planned = writer_of(_planned_word, measured=True)
_write_planned_whole = writer_of(_planned_whole_word, measured=True)
_write_planned_half = writer_of(_planned_half_word, measured=True)
_write_clamped = writer_of(_clamped_word, measured=True)
_write_kept = writer_of(_kept_word)


@inner
def _widen(state, j, rows, needed):
    """Make column j of the result, of which `rows` are written, wide enough. Returns its step."""
    at = column_field(state, j, ROOM)
    former = column_field(state, j, STEP)
    if needed > former:
        for r in range(rows - 1, -1, -1):
            put(at, needed, r, read(at, former, r))
        set_column_field(state, j, STEP, needed)
    return max(former, needed)


@inner
def copy_planned(state, sources, n, start):
    """Write the planned rows of every live column behind row `start` of the result."""
    for j in range(load(state, COLUMNS)):
        if column_field(state, j, LIVE) == 0:
            continue
        step_a = column_field(state, j, STEP_A)
        step_b = column_field(state, j, STEP_B)
        a = column_field(state, j, ADDRESS_A)
        turn = a ^ column_field(state, j, ADDRESS_B)
        source = (a, turn, step_a, step_a ^ step_b, column_field(state, j, FLOOR), sources)
        to_step = column_field(state, j, STEP)
        while True:
            to = column_field(state, j, ROOM) + to_step * start
            if step_a == 8 and step_b == 8:
                bits = _write_planned_whole(to, to_step, n, source)
            elif step_a == 4 and step_b == 4:
                bits = _write_planned_half(to, to_step, n, source)
            else:
                bits = _write_planned(to, to_step, n, source)
            needed = fitting_step(0, bits)
            if needed <= to_step:
                break
            to_step = _widen(state, j, start, needed)


@inner
def copy_run(state, source, n, start):
    """Write n rows of one input, from row `source` on (named as in a plan), behind row `start` of the result."""
    side = ADDRESS_A if source >= 0 else ADDRESS_B
    first = source if source >= 0 else ~source
    for j in range(load(state, COLUMNS)):
        if column_field(state, j, LIVE) == 0:
            continue
        by = column_field(state, j, side + 1)
        at = column_field(state, j, side) + by * first
        floor = column_field(state, j, FLOOR)
        to_step = column_field(state, j, STEP)
        while True:
            to = column_field(state, j, ROOM) + to_step * start
            bits = 0
            if by == to_step and floor == LEAST:
                copy_words(at, by, 0, n, to, by)
            else:
                bits = _write_clamped(to, to_step, n, (at, by, floor))
            needed = fitting_step(0, bits)
            if needed <= to_step:
                break
            to_step = _widen(state, j, start, needed)


@inner
def mark_equal(state, same, n, start, has_before):
    """Write to `same` whether row start + r of the result agrees with the row before it in the compared columns; whether any
    does.
    """
    names = FIELDS + PER_COLUMN * load(state, COLUMNS)
    compared = load(state, COMPARED)
    for r in range(n):
        store(same, r, 1)
    if not has_before:
        store(same, 0, 0)
    first = 0 if has_before else 1
    for c in range(compared):
        j = load(state, names + c)
        by = column_field(state, j, STEP)
        at = column_field(state, j, ROOM) + by * start
        if by == 8:
            for r in range(first, n):
                store(same, r, load(same, r) & np.int64(load(at, r) == load(at, r - 1)))
        else:
            for r in range(first, n):
                store(same, r, load(same, r) & np.int64(read(at, by, r) == read(at, by, r - 1)))
    found = 0
    for r in range(n):
        found |= load(same, r)
    return found != 0


@inner
def awaken(state, start, n):
    """Sums are about to change diff columns that were constant so far: write them from row `start` on."""
    for j in range(load(state, KEYS), load(state, COLUMNS)):
        constant = column_field(state, j, CONSTANT_A)
        if column_field(state, j, LIVE) == 0 and constant != 0:
            set_column_field(state, j, LIVE, 1)
            set_column_field(state, j, UNFILLED, start)
            by = max(column_field(state, j, STEP), fitting_step(constant, constant))
            set_column_field(state, j, STEP, by)
            fill_words(column_field(state, j, ROOM), by, start, start + n, constant)


@inner
def close_row(state, row, dirty):
    """Whether the row of the result, which will not grow any more, stays. A sum that does not fit ends the merge."""
    if not dirty:
        return True
    some = False
    for j in range(load(state, KEYS), load(state, COLUMNS)):
        if column_field(state, j, ABOVE) != 0:
            store(state, STATUS, OVERFLOWN)
        set_column_field(state, j, ABOVE, 0)
        if column_field(state, j, LIVE) != 0:
            some = some or read(column_field(state, j, ROOM), column_field(state, j, STEP), row) != 0
    return some


@inner
def fold(state, same, n, start):
    """Sum rows start..start+n of the result into the row before them where `same` says so, and close the gaps.
    Returns (row, dirty): the last row written, not closed yet.
    """
    keys = load(state, KEYS)
    columns = load(state, COLUMNS)
    tail = load(state, TAIL)
    row = start - 1
    is_open = tail != 0
    dirty = load(state, DIRTY) != 0
    for r in range(start, start + n):
        if load(same, r - start) != 0:
            for j in range(keys, columns):
                if column_field(state, j, LIVE) != 0:
                    at = column_field(state, j, ROOM)
                    by = column_field(state, j, STEP)
                    left = read(at, by, row)
                    right = read(at, by, r)
                    total = left + right
                    by = _widen(state, j, start + n, fitting_step(total, total))
                    put(at, by, row, total)
                    set_column_field(state, j, ABOVE, column_field(state, j, ABOVE) + carry(left, right, total))
            dirty = True
            continue
        if not is_open or close_row(state, row, dirty):
            row += 1
        is_open = True
        dirty = False
        if row != r:
            for j in range(columns):
                if column_field(state, j, LIVE) != 0:
                    at = column_field(state, j, ROOM)
                    by = column_field(state, j, STEP)
                    put(at, by, row, read(at, by, r))
    return row, dirty


@inner
def fold_pairs(state, pairs, paired, n, start, kept):
    """Add the second input's diffs to those rows start..start+n of the result that have a partner there, and close the
    gaps that rows without a diff leave. Returns how many rows remain; `kept` is room for their numbers.
    """
    keys = load(state, KEYS)
    columns = load(state, COLUMNS)
    for r in range(n):
        store(kept, r, 1)
    for p in range(paired):
        store(kept, load(pairs, 2 * p), 0)
    for j in range(keys, columns):
        if column_field(state, j, LIVE) == 0:
            continue  # all diffs are 0, and a sum of zeros is one
        at = column_field(state, j, ROOM)
        by = column_field(state, j, STEP)
        b = column_field(state, j, ADDRESS_B)
        step_b = column_field(state, j, STEP_B)
        for p in range(paired):
            place = load(pairs, 2 * p)
            row = start + place
            left = read(at, by, row)
            right = read(b, step_b, load(pairs, 2 * p + 1))
            total = left + right
            if carry(left, right, total) != 0:
                store(state, STATUS, OVERFLOWN)
            if fitting_step(total, total) > by:
                by = _widen(state, j, start + n, fitting_step(total, total))
            put(at, by, row, total)
            store(kept, place, load(kept, place) | np.int64(total != 0))
    many = 0
    for r in range(n):
        there = load(kept, r)
        store(kept, many, r)
        many += there
    if many < n:
        for j in range(columns):
            if column_field(state, j, LIVE) != 0:
                by = column_field(state, j, STEP)
                at = column_field(state, j, ROOM) + by * start
                _write_kept(at, by, many, (at, by, kept))
    return many


@inner
def scan_columns(state):
    """Look at the final rows that were not looked at yet: which columns vary?"""
    rows = load(state, ROWS)
    scanned = load(state, SCANNED)
    for j in range(load(state, COLUMNS)):
        if column_field(state, j, LIVE) == 0 or column_field(state, j, VARIES) != 0 or rows == scanned:
            continue
        at = column_field(state, j, ROOM)
        by = column_field(state, j, STEP)
        if scanned == 0 and column_field(state, j, UNFILLED) == 0:
            set_column_field(state, j, REFERENCE, read(at, by, 0))
        word = column_field(state, j, REFERENCE)
        for r in range(max(scanned, column_field(state, j, UNFILLED)), rows):
            if read(at, by, r) != word:
                set_column_field(state, j, VARIES, 1)
                break
    store(state, SCANNED, rows)


@inner
def fill_constants(state, fuel):
    """Write constants in front of diff columns that came alive late. Returns the fuel left."""
    for j in range(load(state, KEYS), load(state, COLUMNS)):
        stop = column_field(state, j, UNFILLED)
        if stop > 0:
            start = max(0, stop - 4 * min(max(fuel, 1), stop))
            constant = column_field(state, j, CONSTANT_A)
            fill_words(column_field(state, j, ROOM), column_field(state, j, STEP), start, stop, constant)
            set_column_field(state, j, UNFILLED, start)
            fuel -= (stop - start) // 4
    return fuel
