"""The first or last values of a key among all sources, and the operator's previous output.

Short names: `nd` and `vo` are the numbers of data columns and of the value columns that are shown; `j` is the number of a key in
its block; `a` is the number of a cursor (see also sources.py).
"""

from __future__ import annotations

from typing import NamedTuple

from tektite.kernels.compile import inlined, inner
from tektite.kernels.layout.memory import load, store
from tektite.kernels.layout.records import room
from tektite.kernels.layout.rows import value
from tektite.kernels.operators.sources import diff_of, end_row, epoch_of, first_row, head_of, is_tested, shown
from tektite.kernels.seek.keys import BLOCK


class FirstValues(NamedTuple):
    """Which values of a key are wanted: the first `k` in the order of the columns behind the key, up to column `nd`; the last, if
    `backward`. Their first `vo` columns are shown. With `ties` > 0, values that agree in so many columns with the last of the k
    are wanted too.
    """

    nd: int
    vo: int
    k: int
    ties: int
    backward: bool


@inlined
def cursors_at(sources, last, j, backward):
    """Put a cursor (source, row) at the first row of key j, or its last, in each of sources 0..last-1 that has any; how many."""
    active = 0
    for s in range(last):
        first = first_row(sources, s, j)
        past = end_row(sources, s, j)
        if first < past:
            store(sources.cursors, 2 * active, s)
            store(sources.cursors, 2 * active + 1, past - 1 if backward else first)
            active += 1
    return active


@inlined
def next_value(sources, j, active, wanted):
    """The first cursor at the next value in order, and the head and row of that value; -1 if all cursors are past their end."""
    best = -1
    chosen = 0
    row = 0
    for a in range(active):
        s = load(sources.cursors, 2 * a)
        i = load(sources.cursors, 2 * a + 1)
        if i < first_row(sources, s, j) or i >= end_row(sources, s, j):
            continue
        better = best < 0
        if not better:
            for c in range(sources.kc, wanted.nd):
                x = value(head_of(sources, s), c, i)
                y = value(chosen, c, row)
                if x != y:
                    better = (x < y) != wanted.backward
                    break
        if better:
            best = a
            chosen = head_of(sources, s)
            row = i
    return best, chosen, row


@inlined
def pass_value(sources, j, a, wanted, chosen, row):
    """Move cursor a past the value in `row` of `chosen`. Returns where it stands then."""
    s = load(sources.cursors, 2 * a)
    head = head_of(sources, s)
    i = load(sources.cursors, 2 * a + 1)
    first = first_row(sources, s, j)
    past = end_row(sources, s, j)
    step = -1 if wanted.backward else 1
    while i >= first and i < past:
        if i != row or head != chosen:
            for c in range(sources.kc, wanted.nd):
                if value(head, c, i) != value(chosen, c, row):
                    store(sources.cursors, 2 * a + 1, i)
                    return i
        i += step
    store(sources.cursors, 2 * a + 1, i)
    return i


@inlined
def _pass_everywhere(sources, j, best, active, wanted, epoch, chosen, row):
    """Move the cursors from `best` on past the value in `row` of `chosen`; its multiplicity as of `epoch`."""
    step = -1 if wanted.backward else 1
    total = 0
    for a in range(best, active):
        s = load(sources.cursors, 2 * a)
        start = load(sources.cursors, 2 * a + 1)
        stop = pass_value(sources, j, a, wanted, chosen, row)
        head = head_of(sources, s)
        tested = is_tested(sources, s)
        diff_at = diff_of(sources, s)
        for i in range(start, stop, step):
            if not tested or (epoch_of(sources, s, i) <= epoch and shown(sources, s, i)):
                total += value(head, diff_at, i)
    return total


@inner
def walk(sources, last, j, wanted, epoch, list_, n):
    """Append the wanted values of key j as of `epoch`, from sources 0..last-1: records of `vo` value words and a multiplicity.
    Only values with positive multiplicity count, each as often as it occurs; where ties are wanted, none is taken in part. All
    sources are walked together in value order, and the walk ends as soon as there are k.
    """
    kc, vo, ties = sources.kc, wanted.vo, wanted.ties
    active = cursors_at(sources, last, j, wanted.backward)
    left = wanted.k
    while left != 0 or ties > 0:
        best, chosen, row = next_value(sources, j, active, wanted)
        if best < 0:
            break
        if left == 0:
            tied = True
            for c in range(ties):
                tied &= value(chosen, kc + c, row) == list_[(n - 1) * (vo + 1) + c]
            if not tied:
                break
        total = _pass_everywhere(sources, j, best, active, wanted, epoch, chosen, row)
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
def top_value(sources, last, j, wanted, epoch, out):
    """What `walk` finds with k = 1, written as column words out[BLOCK * c + j]. Returns whether there is any: 1
    or 0.
    """
    active = cursors_at(sources, last, j, wanted.backward)
    while True:
        best, chosen, row = next_value(sources, j, active, wanted)
        if best < 0:
            return 0
        if _pass_everywhere(sources, j, best, active, wanted, epoch, chosen, row) > 0:
            for c in range(wanted.vo):
                store(out, BLOCK * c + j, value(chosen, sources.kc + c, row))
            return 1


# Rows of the output, at most, that `output_value` looks at, and the scratch memory that it lists them in: pairs (head, row).
_LISTED = 16
LISTED_WORDS = 2 * _LISTED


@inner
def output_value(sources, first, last, j, vo, listed, out):
    """The one value that the operator's own output, sources first..last-1, shows of key j, as column words out[BLOCK * c + j].
    Returns 1, or 0 if it shows nothing, or -1 if it shows anything else or lies in too many rows to look at. `listed` is scratch
    memory.
    """
    kc = sources.kc
    n = 0
    for s in range(first, last):
        for i in range(first_row(sources, s, j), end_row(sources, s, j)):
            if not is_tested(sources, s) or shown(sources, s, i):
                if n == _LISTED:
                    return -1
                store(listed, 2 * n, head_of(sources, s))
                store(listed, 2 * n + 1, i)
                n += 1
    if n == 0:
        return 0
    diff_at = diff_of(sources, first)
    answer = -1
    for a in range(n):
        total = _sum_of_value(listed, n, a, kc, vo, diff_at)
        if total != 0:
            if total != 1 or answer >= 0:
                return -1
            answer = a
    if answer < 0:
        return 0
    for c in range(vo):
        store(out, BLOCK * c + j, value(load(listed, 2 * answer), kc + c, load(listed, 2 * answer + 1)))
    return 1


@inner
def _sum_of_value(listed, n, a, kc, vo, diff_at):
    """The sum of the diffs of the n listed rows that have the same value as row number a; 0 if an earlier one has it, too."""
    head = load(listed, 2 * a)
    i = load(listed, 2 * a + 1)
    total = value(head, diff_at, i)
    for b in range(n):
        if b == a:
            continue
        other = load(listed, 2 * b)
        k = load(listed, 2 * b + 1)
        same = True
        for c in range(kc, kc + vo):
            if value(head, c, i) != value(other, c, k):
                same = False
                break
        if same:
            if b < a:
                return 0
            total += value(other, diff_at, k)
    return total
