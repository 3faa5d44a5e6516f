"""Merges two sorted, consolidated rows objects step by step, and compacts times.

Promise: however the work is divided, the result is the sorted, consolidated union of both inputs, with each time t replaced
by rep_F(t), where F is the frontier given at the start. Diffs of rows with equal data and time are summed exactly (or the
merge ends with OVERFLOWN), rows whose diffs are zero are dropped, and columns that turn out constant are marked as such.

rep_F(t) is the meet over f in F of join(t, f). Times are tuples of integers, a distributive lattice, so this equals join(t,
meet of F): one *floor* per time column, and each coordinate is clamped by itself.

If the next block of rows comes from one input, as when keys grow with time, it is copied. Any other block is merged in
phases: *plan* which side each row comes from, *copy* column by column, *fold* rows that became equal. Inputs may hold equal
data at many times:

* `DISTINCT`: no time column varies, so equal rows can only come from different sides. Rows are merged by data and time.
* `STREAMED`: clamping keeps the order of times. Rows are merged by data and time.
* `GROUPED`: clamping collapses a column that varies, and a later one varies, too. Rows of equal data are sorted again, whole
  groups at a time.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner, kernel
from tektite.kernels.layout.columns import column_bytes, copy_words, empty_columns
from tektite.kernels.layout.memory import GREATEST, load, store
from tektite.kernels.layout.pages import address_of, empty_words
from tektite.kernels.layout.rows import count, new_head, set_constant, set_stored
from tektite.kernels.layout.scratch import keep, scratch
from tektite.kernels.merge.order import plan, plan_pairs, plan_run, sort_groups, whole_groups
from tektite.kernels.merge.state import (
    COLUMNS,
    COMPARED,
    COMPARED_DATA,
    DIRTY,
    DISTINCT,
    DONE,
    FIELDS,
    KEYS,
    MODE,
    NEEDED,
    OVERFLOWN,
    PER_COLUMN,
    REFERENCE,
    ROOM,
    ROWS,
    RUNNING,
    SIZE_A,
    SIZE_B,
    STATUS,
    STEP,
    STREAMED,
    TAIL,
    TAKEN_A,
    TAKEN_B,
    UNFILLED,
    VARIES,
    column_field,
    prepare,
    set_column_field,
)
from tektite.kernels.merge.write import (
    awaken,
    close_row,
    copy_planned,
    copy_run,
    fill_constants,
    fold,
    fold_pairs,
    mark_equal,
    scan_columns,
)
from tektite.kernels.operators.sums import overflow_head

# Rows that are merged at a time. A plan of equal rows may have one more.
_BLOCK = 1024
# An argument that is not a literal: for those Numba would compile a function once more.
_ALL = np.int64(GREATEST)


@inner
def _advance(state, fuel, sources, pairs, same):
    """Merge `fuel` more input rows, or a few more; returns the status. `sources`, `pairs` and `same` are scratch memory."""
    mode = load(state, MODE)
    rows_in = load(state, SIZE_A) + load(state, SIZE_B)
    while fuel > 0 and load(state, STATUS) == RUNNING:
        left = rows_in - load(state, TAKEN_A) - load(state, TAKEN_B)
        size = min(_BLOCK, min(fuel, left))
        if left == 0:
            fuel = _finish(state, fuel)
        elif mode == DISTINCT:
            fuel -= _merge_distinct(state, size, sources, pairs, same)
        elif mode == STREAMED:
            n = plan(state, sources, size, load(state, COMPARED))
            _write_planned_rows(state, sources, same, n)
            fuel -= n
        else:
            fuel -= _merge_groups(state, size, sources, same)
    return load(state, STATUS)


@inner
def _merge_distinct(state, size, sources, pairs, kept):
    """Merge the next up to `size` rows of inputs that hold no two equal rows each; returns how many input rows these are."""
    start = load(state, ROWS)
    source, n = plan_run(state, size)
    if n > 0:
        copy_run(state, source, n, start)
        store(state, ROWS, start + n)
        scan_columns(state)
        return n
    n, paired = plan_pairs(state, sources, pairs, size)
    copy_planned(state, sources, n, start)
    if paired > 0:
        awaken(state, start, n)
        store(state, ROWS, start + fold_pairs(state, pairs, paired, n, start, kept))
    else:
        store(state, ROWS, start + n)
    scan_columns(state)
    return n + paired


@inner
def _merge_groups(state, size, sources, same):
    """Merge the next groups of equal data, about `size` rows or one group; returns how many input rows these are."""
    n = plan(state, sources, size, load(state, COMPARED_DATA))
    group, n = whole_groups(state, sources, n)
    if len(group) == 0:
        sort_groups(state, sources, n)
        _write_planned_rows(state, sources, same, n)
    else:
        flags = np.empty(n, np.int64)
        sort_groups(state, address_of(group), n)
        _write_planned_rows(state, address_of(group), address_of(flags), n)
        keep(flags)
    keep(group)
    return n


@inner
def _write_planned_rows(state, sources, same, n):
    """Write planned rows behind the result, and sum those that are equal. If rows are streamed, the last one stays open: it is
    the tail.
    """
    tail = load(state, TAIL)
    start = load(state, ROWS) + tail
    copy_planned(state, sources, n, start)
    found = mark_equal(state, same, n, start, tail != 0)
    row = start + n - 1
    dirty = False
    if found or load(state, DIRTY):
        if found:
            awaken(state, start - tail, n + tail)
        row, dirty = fold(state, same, n, start)
    if load(state, MODE) == STREAMED:
        store(state, TAIL, 1)
        store(state, DIRTY, np.int64(dirty))
    elif close_row(state, row, dirty):
        row += 1
    store(state, ROWS, row)
    scan_columns(state)


@inner
def _finish(state, fuel):
    """All input rows are taken: close the tail, fill columns that came alive late, and end the merge. Returns the fuel left."""
    if load(state, TAIL):
        row = load(state, ROWS)
        if close_row(state, row, load(state, DIRTY) != 0):
            row += 1
        store(state, TAIL, 0)
        store(state, DIRTY, 0)
        store(state, ROWS, row)
        scan_columns(state)
        return fuel
    unfilled = 0
    for j in range(load(state, KEYS), load(state, COLUMNS)):
        unfilled += column_field(state, j, UNFILLED)
    if unfilled > 0:
        return fill_constants(state, fuel)
    store(state, STATUS, DONE)
    return fuel


@kernel("int64(int64[::1], int64)")
def advance_merges(states, fuel):
    """Advance every merge whose state's address is listed by `fuel` input rows; returns how many are not running."""
    memory, (sources, same, pairs) = scratch((_BLOCK + 1, _BLOCK + 1, 2 * (_BLOCK + 1)))
    ended = 0
    for m in range(len(states)):
        ended += _advance(states[m], fuel, sources, pairs, same) != RUNNING
    keep(memory)
    return ended


@kernel("int64[::1](int64, int64, int64, int64, int64, int64[:, ::1], int64, int64)")
def open_merge(a, b, nd, nt, nf, frontier, latest_a, latest_b):
    """The state of a merge of the rows at `a` and `b` that has not begun. Columns whose ROOM says NEEDED get memory
    for as many rows as both inputs have together from the caller. An empty frontier leaves times alone; no epoch of
    an input is later than `latest_a` or `latest_b`.
    """
    columns = nd + nt + nf
    state = np.empty(FIELDS + (PER_COLUMN + 1) * columns, np.int64)
    prepare(address_of(state), a, b, nd, nt, nf, frontier, latest_a, latest_b)
    return state


@kernel("int64[::1](int64[::1])")
def merged_head(state):
    """The head of a merge that is done, over the memory in its ROOM fields."""
    columns = state[COLUMNS]
    head = new_head(state[ROWS], columns)
    for j in range(columns):
        base = FIELDS + PER_COLUMN * j
        if state[base + VARIES] != 0:
            set_stored(head, j, state[base + ROOM], state[base + STEP])
        else:
            set_constant(head, j, state[base + REFERENCE])
    return head


@kernel("Tuple((int64[::1], int64[::1]))(int64, int64, int64, int64, int64, int64[:, ::1])")
def merge_rows(a, b, nd, nt, nf, frontier):
    """The whole merge of the rows at `a` and `b` at once: (buf, head), head[0] is -1 if a sum of diffs does not fit."""
    columns = nd + nt + nf
    rows_in = count(a) + count(b)
    block = min(rows_in, _BLOCK) + 1
    memory, (state, sources, same, pairs) = scratch((FIELDS + (PER_COLUMN + 1) * columns, block, block, 2 * block))
    prepare(state, a, b, nd, nt, nf, frontier, _ALL, _ALL)
    needed = 0
    for j in range(columns):
        needed += column_field(state, j, ROOM) == NEEDED
    room = empty_words(needed * rows_in)
    at = address_of(room)
    for j in range(columns):
        if column_field(state, j, ROOM) == NEEDED:
            set_column_field(state, j, ROOM, at)
            at += 8 * rows_in
    if rows_in > 0:
        _advance(state, _ALL, sources, pairs, same)
    if load(state, STATUS) == OVERFLOWN:
        return overflow_head(columns)
    rows = load(state, ROWS)
    head = new_head(rows, columns)
    total = 0
    for j in range(columns):
        if column_field(state, j, VARIES) != 0:
            total += column_bytes(rows, column_field(state, j, STEP))
    buf = room
    lean = total != 8 * len(room)
    if lean:
        buf = empty_columns(total)
    at = address_of(buf)
    for j in range(columns):
        if column_field(state, j, VARIES) != 0:
            by = column_field(state, j, STEP)
            if lean:
                copy_words(column_field(state, j, ROOM), by, 0, rows, at, by)
            set_stored(head, j, at, by)
            at += column_bytes(rows, by)
        else:
            set_constant(head, j, column_field(state, j, REFERENCE))
    keep(room)
    keep(memory)
    return buf, head
