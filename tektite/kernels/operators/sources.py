"""The sources of a grouping kernel, and a key's rows in each.

*Sources* are rows objects sorted by the same key. A kernel reads them together, by number: first the history of its input, then
the history of its own output, then the work that names the keys to evaluate. Keys are taken in blocks of up to BLOCK. For each
block, `next_keys` and `seek_sources` find the rows of each key in each source: `first_row` to `end_row` - 1.

A row is *shown* at a moment if none of its rounds is past the moment's. Constant time columns say of some sources that all of
their rows are shown and not later than the first epoch. Rows of other sources are tested one by one: `is_tested`.

Short names: `kc` and `nd` are the numbers of key and data columns; `s` is the number of a source, `i` a row of it; `j` is the
number of a key in its block.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tektite.kernels.compile import inner
from tektite.kernels.layout.memory import load, read, store
from tektite.kernels.layout.pages import prefetch
from tektite.kernels.layout.rows import address, count, step_of, value
from tektite.kernels.layout.scratch import scratch
from tektite.kernels.seek.keys import BLOCK, gather_block, group_end, seek_block
from tektite.kernels.seek.search import compare_rows

# The table has these words for each source: the address of its head; its first time column; its number of time columns; 1 if its
# rows are tested one by one; the row to seek the next keys from; 1 if no key has more than one row there; the part of the work
# that is the same rows, or -1.
_HEAD = 0
_TIME = 1
_TIMES = 2
_TESTED = 3
_START = 4
_LONE = 5
_SAME = 6
_SOURCE = 7


class Sources(NamedTuple):
    """Addresses of the table of sources, of a cursor (source, row) for each, of the first rows and the ends of the present block
    of keys (BLOCK words a source), of the block itself, of the rows where its keys begin in the work, and of the moment's rounds;
    the number of key columns.
    """

    table: int
    cursors: int
    begin: int
    end: int
    keys: int
    firsts: int
    rounds: int
    kc: int


class Numbers(NamedTuple):
    """Sources 0..history-1 are the input's, up to past-1 the output's, up to all-1 the work. Results are computed from sources
    0..want-1: where old results come from the input, these are the old input and the work.
    """

    history: int
    past: int
    all: int
    want: int


@inner
def new_sources(many, kc, rounds, more):
    """Room for so many sources, and for `more` further words: the memory, the sources, and the address of these words."""
    memory, (table, cursors, begin, end, keys, firsts, further) = scratch(
        (_SOURCE * many, 2 * many, BLOCK * many, BLOCK * many, BLOCK * kc, BLOCK + 1, more)
    )
    return memory, Sources(table, cursors, begin, end, keys, firsts, rounds, kc), further


@inner
def head_of(sources, s):
    """The address of the head of source s."""
    return load(sources.table, _SOURCE * s + _HEAD)


@inner
def time_of(sources, s):
    """The first time column of source s."""
    return load(sources.table, _SOURCE * s + _TIME)


@inner
def times_of(sources, s):
    """The number of time columns of source s."""
    return load(sources.table, _SOURCE * s + _TIMES)


@inner
def diff_of(sources, s):
    """The first diff column of source s."""
    return time_of(sources, s) + times_of(sources, s)


@inner
def is_tested(sources, s):
    """Whether the rows of source s are tested one by one. If not, all of them count."""
    return load(sources.table, _SOURCE * s + _TESTED) != 0


@inner
def is_lone(sources, s):
    """Whether no key has more than one row in source s, as far as that is known without looking at rows."""
    return load(sources.table, _SOURCE * s + _LONE) != 0


@inner
def start_of(sources, s):
    """The row of source s from which on the next keys are sought."""
    return load(sources.table, _SOURCE * s + _START)


@inner
def set_start(sources, s, row):
    """Seek the next keys from this row of source s on."""
    store(sources.table, _SOURCE * s + _START, row)


@inner
def first_row(sources, s, j):
    """The first row of key j in source s."""
    return load(sources.begin, s * BLOCK + j)


@inner
def end_row(sources, s, j):
    """The end of the rows of key j in source s."""
    return load(sources.end, s * BLOCK + j)


@inner
def _set_rows(sources, s, j, first, end):
    """Say which rows key j has in source s."""
    store(sources.begin, s * BLOCK + j, first)
    store(sources.end, s * BLOCK + j, end)


@inner
def key_word(sources, j, c):
    """Column c of key j."""
    return load(sources.keys, c * BLOCK + j)


@inner
def move_key(sources, j, to, first, last):
    """Make key j, and its rows in sources first..last-1, number `to` of the block."""
    for c in range(sources.kc):
        store(sources.keys, c * BLOCK + to, key_word(sources, j, c))
    for s in range(first, last):
        _set_rows(sources, s, to, first_row(sources, s, j), end_row(sources, s, j))


@inner
def is_shown(head, time_at, times, i, rounds):
    """Whether none of the rounds of row i of a source is past the moment's `rounds`."""
    for c in range(1, times):
        if value(head, time_at + c, i) > load(rounds, c - 1):
            return False
    return True


@inner
def shown(sources, s, i):
    """Whether row i of source s is shown."""
    return is_shown(head_of(sources, s), time_of(sources, s), times_of(sources, s), i, sources.rounds)


@inner
def epoch_of(sources, s, i):
    """The epoch of row i of source s."""
    return value(head_of(sources, s), time_of(sources, s), i)


@inner
def set_source(sources, s, head, time_at, times, tested):
    """Enter a source with `times` time columns from column `time_at` on."""
    base = _SOURCE * s
    store(sources.table, base + _HEAD, head)
    store(sources.table, base + _TIME, time_at)
    store(sources.table, base + _TIMES, times)
    store(sources.table, base + _TESTED, np.int64(tested))
    store(sources.table, base + _START, 0)
    store(sources.table, base + _LONE, 0)
    store(sources.table, base + _SAME, -1)


@inner
def needs_test(sources, head, time_at, times, lo, single):
    """Whether rows must be looked at one by one to know that they are shown and not later than the key's first epoch. `lo` is the
    first epoch of the sweep; `single` says that all keys are evaluated at one epoch.
    """
    for c in range(1, times):
        if step_of(head, time_at + c) != 0 or load(address(head, time_at + c), 0) > load(sources.rounds, c - 1):
            return True
    if single:
        return False
    return step_of(head, time_at) != 0 or load(address(head, time_at), 0) > lo


@inner
def set_history(sources, s, heads, data, times, lo, single, tested):
    """Enter the batches of a history, with so many data and time columns, from source s on. If not `tested`, all rows count.
    Returns how many rows they have.
    """
    rows = 0
    for h in range(len(heads)):
        test = tested and needs_test(sources, heads[h], data, times, lo, single)
        set_source(sources, s + h, heads[h], data, times, test)
        rows += count(heads[h])
    return rows


@inner
def set_work(sources, s, heads, data, times, single):
    """Enter the parts of the work, part w with data[w] data columns, from source s on, behind all other sources. Returns how many
    rows they have. A history that includes the work mostly has it as a batch of its own: the rows of its keys are known.
    """
    rows = 0
    for w in range(len(heads)):
        set_source(sources, s + w, heads[w], data[w], times, not single)
        rows += count(heads[w])
        for other in range(s):
            if head_of(sources, other) == heads[w]:
                store(sources.table, _SOURCE * other + _SAME, s + w)
    return rows


@inner
def next_keys(sources, base, parts):
    """The next block of keys that the work names (sources base..base + parts), and their ranges there. Returns how
    many.
    """
    if parts == 1:
        many = gather_block(head_of(sources, base), start_of(sources, base), sources.kc, sources.keys, sources.firsts)
        for j in range(many):
            _set_rows(sources, base, j, load(sources.firsts, j), load(sources.firsts, j + 1))
        if many > 0:
            set_start(sources, base, load(sources.firsts, many))
        return many
    many = 0
    while many < BLOCK:
        least = _least_key(sources, base, parts)
        if least < 0:
            break
        for c in range(sources.kc):
            store(sources.keys, c * BLOCK + many, value(head_of(sources, least), c, start_of(sources, least)))
        for s in range(base, base + parts):
            rows = count(head_of(sources, s))
            first = start_of(sources, s)
            past = first
            if first < rows:
                past = group_end(head_of(sources, s), rows, first, sources.keys, many, sources.kc)
            _set_rows(sources, s, many, first, past)
            set_start(sources, s, past)
        many += 1
    return many


@inner
def _least_key(sources, base, parts):
    """Of sources base..base + parts, the one whose next row has the least key; -1 if none has a next row."""
    least = -1
    for s in range(base, base + parts):
        head = head_of(sources, s)
        row = start_of(sources, s)
        if row < count(head) and (
            least < 0 or compare_rows(head, row, head_of(sources, least), start_of(sources, least), sources.kc) < 0
        ):
            least = s
    return least


@inner
def seek_sources(sources, first, last, many):
    """The ranges of a block of keys in sources first..last-1, each sought from where the block before ended."""
    keys, kc = sources.keys, sources.kc
    for s in range(first, last):
        head = head_of(sources, s)
        rows = count(head)
        begin = sources.begin + 8 * BLOCK * s
        end = sources.end + 8 * BLOCK * s
        same = load(sources.table, _SOURCE * s + _SAME)
        if same >= 0:
            for j in range(many):
                _set_rows(sources, s, j, first_row(sources, same, j), end_row(sources, same, j))
            store(sources.table, _SOURCE * s + _LONE, np.int64(_has_lone_keys(sources, s)))
            continue
        seek_block(head, start_of(sources, s), keys, many, kc, begin)
        if load(begin, many - 1) - load(begin, 0) > 16 * many:
            # The rows found lie apart: fetch what will be read of them besides the key.
            for c in range(kc, load(head, 2)):
                by = step_of(head, c)
                if by != 0:
                    column = address(head, c)
                    for j in range(many):
                        prefetch(column + by * load(begin, j))
        lone = _has_lone_keys(sources, s)
        store(sources.table, _SOURCE * s + _LONE, np.int64(lone))
        if lone:
            _lone_ends(head, rows, keys, many, kc, begin, end)
        else:
            for j in range(many):
                store(end, j, group_end(head, rows, load(begin, j), keys, j, kc))
        set_start(sources, s, load(end, many - 1))


@inner
def _has_lone_keys(sources, s):
    """Whether the columns of source s say that no key has more than one row there."""
    head = head_of(sources, s)
    lone = count(head) > 0 and sources.kc > 0 and time_of(sources, s) == sources.kc
    for c in range(times_of(sources, s)):
        lone = lone and step_of(head, sources.kc + c) == 0
    return lone


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
