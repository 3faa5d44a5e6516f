"""The sources of a grouping kernel, and a key's rows in each.

*Sources* are rows objects sorted by the same key: the history of the input, the history of the operator's own output,
and the work that names the keys to evaluate, in that order. The rows of key j of a block in source s are begin[s * BLOCK
+ j] .. end[s * BLOCK + j]. A table at address `table` has six words for each source: the address of its head, its first
time column, its number of time columns, its test, the row to seek the next keys from, and whether no key has more than
one row there. A source with test 0 is known to have only rows that count, by its constant time columns; the rows of the
others are tested one by one: a row is *shown* at a moment if none of its rounds is past the moment's.

Short names: `kc`, `nd` and `nt` are the numbers of key, data and time columns; `j` is the number of a key in its block; `lo` is
the first epoch of the sweep.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner
from tektite.kernels.layout.memory import load, read, store
from tektite.kernels.layout.pages import prefetch
from tektite.kernels.layout.rows import address, count, step_of, value
from tektite.kernels.seek.keys import BLOCK, gather_block, group_end, seek_block
from tektite.kernels.seek.search import compare_rows

SOURCE = 6
"""Words that a table has for each source."""


@inner
def head_of(table, s):
    """The address of the head of source s."""
    return load(table, SOURCE * s)


@inner
def time_of(table, s):
    """The first time column of source s."""
    return load(table, SOURCE * s + 1)


@inner
def times_of(table, s):
    """The number of time columns of source s."""
    return load(table, SOURCE * s + 2)


@inner
def test_of(table, s):
    """1 if the rows of source s are tested one by one, 0 if all count."""
    return load(table, SOURCE * s + 3)


@inner
def start_of(table, s):
    """The row of source s from which on the next keys are sought."""
    return load(table, SOURCE * s + 4)


@inner
def set_start(table, s, row):
    """Seek the next keys from this row of source s on."""
    store(table, SOURCE * s + 4, row)


@inner
def is_lone(table, s):
    """Whether no key has more than one row in source s, as far as that is known without looking at rows."""
    return load(table, SOURCE * s + 5) != 0


@inner
def set_source(table, s, head, time_at, times, test):
    """Enter a source with `times` time columns from column `time_at` on."""
    store(table, SOURCE * s, head)
    store(table, SOURCE * s + 1, time_at)
    store(table, SOURCE * s + 2, times)
    store(table, SOURCE * s + 3, test)
    store(table, SOURCE * s + 4, 0)
    store(table, SOURCE * s + 5, 0)


@inner
def next_keys(table, base, parts, kc, keys, firsts, begin, end):
    """The next block of keys that the work names (sources base..base + parts), and their ranges there. Returns how
    many.
    """
    if parts == 1:
        many = gather_block(head_of(table, base), start_of(table, base), kc, keys, firsts)
        at = 8 * BLOCK * base
        for j in range(many):
            store(begin + at, j, load(firsts, j))
            store(end + at, j, load(firsts, j + 1))
        if many > 0:
            set_start(table, base, load(firsts, many))
        return many
    many = 0
    while many < BLOCK:
        least = -1
        for s in range(base, base + parts):
            if start_of(table, s) < count(head_of(table, s)) and (
                least < 0
                or compare_rows(
                    head_of(table, s), start_of(table, s), head_of(table, least), start_of(table, least), kc
                )
                < 0
            ):
                least = s
        if least < 0:
            break
        for c in range(kc):
            store(keys, c * BLOCK + many, value(head_of(table, least), c, start_of(table, least)))
        for s in range(base, base + parts):
            rows = count(head_of(table, s))
            first = start_of(table, s)
            past = first
            if first < rows:
                past = group_end(head_of(table, s), rows, first, keys, many, kc)
            store(begin, s * BLOCK + many, first)
            store(end, s * BLOCK + many, past)
            set_start(table, s, past)
        many += 1
    return many


@inner
def seek_sources(table, first, last, keys, many, kc, begin, end):
    """The ranges of a block of keys in sources first..last-1, each sought from where the block before ended."""
    for s in range(first, last):
        head = head_of(table, s)
        rows = count(head)
        at = 8 * BLOCK * s
        seek_block(head, start_of(table, s), keys, many, kc, begin + at)
        if load(begin + at, many - 1) - load(begin + at, 0) > 16 * many:
            # The rows found lie apart: fetch what will be read of them besides the key.
            for c in range(kc, load(head, 2)):
                by = step_of(head, c)
                if by != 0:
                    column = address(head, c)
                    for j in range(many):
                        prefetch(column + by * load(begin + at, j))
        lone = rows > 0 and kc > 0 and time_of(table, s) == kc
        for c in range(times_of(table, s)):
            lone = lone and step_of(head, kc + c) == 0
        store(table, SOURCE * s + 5, np.int64(lone))
        if lone:
            _lone_ends(head, rows, keys, many, kc, begin + at, end + at)
        else:
            for j in range(many):
                store(end + at, j, group_end(head, rows, load(begin + at, j), keys, j, kc))
        set_start(table, s, load(end + at, many - 1))


@inner
def _lone_ends(head, rows, keys, many, kc, begin, end):
    """The ends of keys that have at most one row each. No branch: the processor could not predict which keys have one."""
    for j in range(many):
        store(end, j, np.int64(load(begin, j) < rows))
    for c in range(kc):
        at = address(head, c)
        by = step_of(head, c)
        for j in range(many):
            same = read(at, by, min(load(begin, j), rows - 1)) == load(keys, c * BLOCK + j)
            store(end, j, load(end, j) & np.int64(same))
    for j in range(many):
        store(end, j, load(begin, j) + load(end, j))


@inner
def shown(head, time_at, times, i, moment):
    """Whether none of row i's rounds is past the moment's."""
    for c in range(1, times):
        if value(head, time_at + c, i) > load(moment, c - 1):
            return False
    return True


@inner
def needs_test(head, time_at, times, moment, lo, single):
    """Whether rows must be looked at one by one to know that they are shown and not later than the key's first
    epoch.
    """
    for c in range(1, times):
        if step_of(head, time_at + c) != 0 or load(address(head, time_at + c), 0) > load(moment, c - 1):
            return 1
    if single:
        return 0
    if step_of(head, time_at) != 0 or load(address(head, time_at), 0) > lo:
        return 1
    return 0


@inner
def set_sources(table, history, old, work, work_nd, nd, nt_in, own_nd, nt, rounds, lo, single, tested):
    """Fill in the table: the history of the input (nd data and nt_in time columns), that of the operator's own output (own_nd,
    nt), and the work (work_nd, nt). `single` says that all keys are evaluated at one epoch. If not `tested`, all rows of the
    input's history count. Returns how many rows the histories have.
    """
    rows = 0
    s = 0
    for h in range(len(history)):
        test = needs_test(history[h], nd, nt_in, rounds, lo, single) if tested else 0
        set_source(table, s, history[h], nd, nt_in, test)
        rows += count(history[h])
        s += 1
    for h in range(len(old)):
        set_source(table, s, old[h], own_nd, nt, needs_test(old[h], own_nd, nt, rounds, lo, single))
        rows += count(old[h])
        s += 1
    for w in range(len(work)):
        set_source(table, s, work[w], work_nd[w], nt, 0 if single else 1)
        s += 1
    return rows
