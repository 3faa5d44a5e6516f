"""Worst-case optimal intersection of two arrangements: as `intersect`, for two extenders whose keys are not empty and that both
contribute times and diffs.

For each row, the candidates of an extender lie in some of its batches, as sorted runs of words. Every run of one extender is
intersected with every run of the other: the words of the shorter run are sought in the longer one (`runs.py`). So a row costs the
fewest candidates of both extenders, times logarithms and batches.

Rows with the same key in their larger extender are adjacent. If they have more words to look up than its longest run has rows,
that run is put into a table of bits, which answers for all of these rows.

If no later step needs the word, rows are *counted*: the words that a row gets at one time become one row with the sum of their
diffs. If the row's columns are not needed either, all rows of one time become one. NULL is not a word.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inlined, inner, kernel
from tektite.kernels.layout.memory import load, store
from tektite.kernels.layout.pages import address_of, prefetch
from tektite.kernels.layout.records import room
from tektite.kernels.layout.rows import address, count, step_of
from tektite.kernels.layout.scratch import keep, scratch
from tektite.kernels.operators.combinations import extended_rows
from tektite.kernels.operators.extenders import (
    COLUMN,
    EXTENDER,
    FOUND,
    SLOTS,
    Extenders,
    batches_of,
    candidates_of,
    fewest_and_largest,
    field_of,
    key_of,
    look_up,
    rows_of,
)
from tektite.kernels.operators.runs import (
    KEPT,
    MANY,
    NO_TABLE,
    PLAIN,
    RUN,
    Meeting,
    cleared,
    counted_words,
    describe_runs,
    filled_table,
    longest_of,
    paired,
    sifted,
    without_last_zero,
)

# Rows of a run for which a table of bits may be made: fewer are scanned as fast.
FEW = 64
# Rows whose runs are asked for before they are needed.
AHEAD = 6
# Candidates after which the kernel returns, so that work can be divided and interrupted.
MOST_WORK = 1 << 24
# Whose turn a row is in: that of an extender, of none because it has no candidates, or it has not been looked at.
NOBODY = 2
UNKNOWN = 3


@inlined
def _ask_for(extenders, row):
    """Ask for the beginning of the first run of each extender of a row."""
    for e in range(2):
        key = key_of(extenders, row, e)
        if batches_of(extenders, e, key) > 0:
            batch, first, _ = rows_of(extenders, e, key, 0)
            column = field_of(extenders, e, COLUMN)
            prefetch(address(batch, column) + step_of(batch, column) * first)


@inner
def _extend_row(meeting, row, ones, one_many, others, other_many, table, kept, done, records, used, capacity):
    """Write the records of a row, as long as there are no more than `capacity`: of `one_many` runs of one extender with those of
    the other, one of which may be in the table. Returns how many records there are, whether a product of diffs overflows, and
    whether the row is complete. `done` says where to go on if it is not: the numbers of two runs, and a row of the shorter one.
    It is 0, 0, 0 for a new row.
    """
    wrong = False
    b_first = load(done, 1)
    for a in range(load(done, 0), one_many):
        for b in range(b_first, other_many):
            short = ones + 8 * RUN * a
            long = others + 8 * RUN * b
            if load(short, MANY) > load(long, MANY) and b != table.run:
                short, long = long, short
            many = load(short, MANY)
            if many == 0:
                continue
            plain = load(short, PLAIN) & load(long, PLAIN)
            i = load(done, 2)
            bad = False
            if plain == 0:
                i, used, bad = paired(meeting, row, short, long, i, records, used, capacity)
            elif used + (1 if meeting.counted else many) <= capacity:
                i = many
                if b == table.run:
                    used, bad = sifted(meeting, row, short, long, table, kept, records, used)
                elif meeting.counted:
                    used, bad = counted_words(meeting, row, short, long, records, used)
                else:
                    i, used, bad = paired(meeting, row, short, long, 0, records, used, capacity)
            wrong |= bad
            if i < many:
                store(done, 0, a)
                store(done, 1, b)
                store(done, 2, i)
                return used, wrong, False
            store(done, 2, 0)
        b_first = 0
    store(done, 0, 0)
    store(done, 1, 0)
    return used, wrong, True


@kernel("Tuple((int64[::1], int64[::1]))(int64, int64, int64, int64[::1], int64[::1], int64, int64, int64, int64[::1])")
def intersect_two(prefix, nd, nt, extenders, spec, counted, lo, limit, state):
    """Rows of `prefix` with every word that both extenders allow: the data columns that `spec` lists, the word unless rows are
    `counted`, times and diff.

    `prefix` has `nd` data columns, `nt` time columns and a diff; epochs count as at least `lo`. The kernel stops behind the row
    with which it has `limit` rows, or has looked up very many words. state[0] says where to go on: 0 at first, twice the number
    of rows at the end. The number of rows is -1 if a product of diffs does not fit a word.
    """
    rows = count(prefix)
    all_ = Extenders(address_of(extenders), len(extenders) // EXTENDER, rows)
    slots = (field_of(all_, 0, SLOTS), field_of(all_, 1, SLOTS))
    memory, (stamp, kept, done, listed, ones, others) = scratch(
        (nt, KEPT + 1, 3, RUN, RUN * max(slots[0], slots[1]), RUN * max(slots[0], slots[1]))
    )
    for part in range(3):
        store(done, part, 0)
    meeting = Meeting(prefix, nd, nt, lo, counted != 0, counted != 0 and len(spec) == 0, stamp)
    stride = nt + 3
    records = np.empty(1024 * stride, np.int64)
    at = address_of(records)
    capacity = len(records) // stride
    used = 0
    work = 0
    wrong = False
    bits = np.zeros(1 << 10, np.int64)
    table = NO_TABLE
    owners = np.full(rows, UNKNOWN, np.int8)
    described = np.int64(-1)  # the key whose runs are at `others`
    many = 0
    place = state[0]
    while place < 2 * rows and used < limit and work < MOST_WORK:
        # A row belongs to the turn of its larger extender.
        owner = place // rows
        here = place - owner * rows
        place += 1
        if here == 0:
            described = np.int64(-1)
        if here + AHEAD < rows:
            ahead = load(field_of(all_, owner, FOUND), here + AHEAD)
            if owners[ahead] == UNKNOWN or owners[ahead] == owner:
                _ask_for(all_, ahead)
        row = load(field_of(all_, owner, FOUND), here)
        if owners[row] != UNKNOWN and owners[row] != owner:
            continue
        _, fewest, largest = fewest_and_largest(all_, row)
        owners[row] = largest if fewest > 0 else NOBODY
        if owners[row] != owner:
            continue
        work += fewest
        key = key_of(all_, row, owner)
        if key != described:
            described = key
            table = cleared(table)
            many = describe_runs(all_, owner, key, others)
            longest = longest_of(others, many)
            run = others + 8 * RUN * longest
            if load(run, MANY) >= FEW and load(run, PLAIN) != 0 and look_up(all_, owner, here, load(run, MANY)):
                bits, table = filled_table(bits, run, longest, listed)
        one_many = describe_runs(all_, 1 - owner, key_of(all_, row, 1 - owner), ones)
        complete = False
        while not complete:
            used, bad, complete = _extend_row(
                meeting, row, ones, one_many, others, many, table, kept, done, at, used, capacity
            )
            wrong |= bad
            if not complete:
                records = room(records, used * stride, (used + candidates_of(all_, row, owner)) * stride)
                at = address_of(records)
                capacity = len(records) // stride
    keep(bits)
    keep(memory)
    state[0] = place
    used = without_last_zero(meeting, at, used)
    return extended_rows(prefix, spec, nt, records, used, wrong, 1 - counted)
