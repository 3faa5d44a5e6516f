"""The first or last values of a key among all sources, and the operator's previous output.

Short names: `kc`, `nd` and `vo` are the numbers of key columns, of data columns, and of the value columns that are shown; `j` is
the number of a key in its block; begin and end are its rows in each source (see sources.py).
"""

from __future__ import annotations

from tektite.kernels.compile import inner
from tektite.kernels.layout.memory import load, store
from tektite.kernels.layout.records import room
from tektite.kernels.layout.rows import value
from tektite.kernels.operators.sources import head_of, shown, test_of, time_of, times_of
from tektite.kernels.seek.keys import BLOCK


@inner
def cursors_at(sources, begin, end, j, backward, cursors):
    """Put a cursor (source, row) at the first row of key j, or its last, in each source that has any; how many."""
    active = 0
    for s in range(sources):
        first = load(begin, s * BLOCK + j)
        past = load(end, s * BLOCK + j)
        if first < past:
            store(cursors, 2 * active, s)
            store(cursors, 2 * active + 1, past - 1 if backward else first)
            active += 1
    return active


@inner
def next_value(table, begin, end, j, cursors, active, kc, nd, backward):
    """The first cursor at the next value in order, and the head and row of that value; -1 if all cursors are past their end."""
    best = -1
    chosen = 0
    row = 0
    for a in range(active):
        s = load(cursors, 2 * a)
        i = load(cursors, 2 * a + 1)
        if i < load(begin, s * BLOCK + j) or i >= load(end, s * BLOCK + j):
            continue
        better = best < 0
        if not better:
            for c in range(kc, nd):
                x = value(head_of(table, s), c, i)
                y = value(chosen, c, row)
                if x != y:
                    better = (x < y) != backward
                    break
        if better:
            best = a
            chosen = head_of(table, s)
            row = i
    return best, chosen, row


@inner
def pass_value(table, begin, end, j, cursors, a, kc, nd, step, chosen, row):
    """Move cursor a past the value in `row` of `chosen`. Returns where it stands then."""
    s = load(cursors, 2 * a)
    head = head_of(table, s)
    i = load(cursors, 2 * a + 1)
    first = load(begin, s * BLOCK + j)
    past = load(end, s * BLOCK + j)
    while i >= first and i < past:
        if i != row or head != chosen:
            for c in range(kc, nd):
                if value(head, c, i) != value(chosen, c, row):
                    store(cursors, 2 * a + 1, i)
                    return i
        i += step
    store(cursors, 2 * a + 1, i)
    return i


@inner
def _pass_everywhere(table, begin, end, j, cursors, best, active, kc, nd, step, epoch, moment, chosen, row):
    """Move the cursors from `best` on past the value in `row` of `chosen`; its multiplicity as of `epoch`."""
    total = 0
    for a in range(best, active):
        s = load(cursors, 2 * a)
        head = head_of(table, s)
        test = test_of(table, s)
        column = time_of(table, s)
        times = times_of(table, s)
        start = load(cursors, 2 * a + 1)
        stop = pass_value(table, begin, end, j, cursors, a, kc, nd, step, chosen, row)
        for i in range(start, stop, step):
            if test == 0 or (value(head, column, i) <= epoch and shown(head, column, times, i, moment)):
                total += value(head, column + times, i)
    return total


@inner
def walk(table, sources, begin, end, j, cursors, kc, nd, vo, k, ties, backward, epoch, moment, list_, n):
    """Append key j's first `k` values (its last, if `backward`) as of `epoch`: records of `vo` leading value words and
    a multiplicity. Only values with positive multiplicity count, each as often as it occurs. With `ties` > 0 the values
    that begin with the same `ties` words as the last of the k are taken too, and none is taken in part. All sources are
    walked together in value order, and the walk ends as soon as k is reached.
    """
    step = -1 if backward else 1
    active = cursors_at(sources, begin, end, j, backward, cursors)
    left = k
    while left != 0 or ties > 0:
        best, chosen, row = next_value(table, begin, end, j, cursors, active, kc, nd, backward)
        if best < 0:
            break
        if left == 0:
            tied = True
            for c in range(ties):
                tied &= value(chosen, kc + c, row) == list_[(n - 1) * (vo + 1) + c]
            if not tied:
                break
        total = _pass_everywhere(table, begin, end, j, cursors, best, active, kc, nd, step, epoch, moment, chosen, row)
        if total > 0:
            taken = min(total, left)
            left -= taken
            if ties == 0:
                total = taken
            list_ = room(list_, n * (vo + 1), vo + 1)
            for c in range(vo):
                list_[n * (vo + 1) + c] = value(chosen, kc + c, row)
            list_[n * (vo + 1) + vo] = total
            n += 1
    return list_, n


@inner
def top_value(table, sources, begin, end, j, cursors, kc, nd, vo, backward, epoch, moment, out):
    """What `walk` finds with k = 1, written as column words out[BLOCK * c + j]. Returns whether there is any: 1
    or 0.
    """
    step = -1 if backward else 1
    active = cursors_at(sources, begin, end, j, backward, cursors)
    while True:
        best, chosen, row = next_value(table, begin, end, j, cursors, active, kc, nd, backward)
        if best < 0:
            return 0
        if _pass_everywhere(table, begin, end, j, cursors, best, active, kc, nd, step, epoch, moment, chosen, row) > 0:
            for c in range(vo):
                store(out, BLOCK * c + j, value(chosen, kc + c, row))
            return 1


@inner
def output_value(table, first, last, begin, end, j, kc, vo, moment, found, out):
    """The one value that the operator's own output shows of key j, as column words out[BLOCK * c + j]. Returns 1, or 0
    if it shows nothing, or -1 if it shows anything else or lies in more than 16 rows. `found` is scratch for 32 words.
    """
    n = 0
    for s in range(first, last):
        head = head_of(table, s)
        for i in range(load(begin, s * BLOCK + j), load(end, s * BLOCK + j)):
            if test_of(table, s) == 0 or shown(head, time_of(table, s), times_of(table, s), i, moment):
                if n == 16:
                    return -1
                store(found, 2 * n, head)
                store(found, 2 * n + 1, i)
                n += 1
    if n == 0:
        return 0
    diff_at = time_of(table, first) + times_of(table, first)
    answer = -1
    for a in range(n):
        head = load(found, 2 * a)
        i = load(found, 2 * a + 1)
        total = value(head, diff_at, i)
        for b in range(n):
            if b == a:
                continue
            other = load(found, 2 * b)
            k = load(found, 2 * b + 1)
            same = True
            for c in range(kc, kc + vo):
                if value(head, c, i) != value(other, c, k):
                    same = False
                    break
            if same:
                if b < a:
                    total = 0
                    break
                total += value(other, diff_at, k)
        if total != 0:
            if total != 1 or answer >= 0:
                return -1
            answer = a
    if answer < 0:
        return 0
    for c in range(vo):
        store(out, BLOCK * c + j, value(load(found, 2 * answer), kc + c, load(found, 2 * answer + 1)))
    return 1
