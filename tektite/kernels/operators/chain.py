"""The output of a key at many epochs, in one pass over its rows.

The values of a key are numbered by their first occurrence. `counts` has their multiplicities at the first epoch. Later
changes are a sorted list of events (epoch, value, diff). A bit for each value says whether it is present, so the first values
are found without looking at absent ones.

Short names: `vo` is the number of the values' columns; `j` is the number of a key in its block; `wanted` says which values are
wanted (see values.py and sources.py).
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inlined, inner
from tektite.kernels.layout.memory import load
from tektite.kernels.layout.records import room, sort_records
from tektite.kernels.layout.rows import value
from tektite.kernels.operators.sources import diff_of, end_row, epoch_of, first_row, head_of, is_tested, shown
from tektite.kernels.operators.values import cursors_at, next_value, pass_value
from tektite.kernels.sort.radix import bit_length

# Walks look at the key's fresh rows once an epoch. A chain looks at all rows of the key once, and takes about so many times as
# long for each.
_WORTH = 4


@inner
def is_worth_it(sources, numbers, j, n_epochs):
    """Whether a chain costs less than a walk to the first values at every epoch."""
    rows = 0
    work = 0
    for s in range(numbers.all):
        here = end_row(sources, s, j) - first_row(sources, s, j)
        if s < numbers.want:
            rows += here
        if s >= numbers.past:
            work += here
    return n_epochs > 1 and n_epochs * work > _WORTH * (rows + work)


@inlined
def push_event(events, n, epoch, which, what):
    """Append a record of three words to the n records of a list. Returns the list and its length."""
    events = room(events, 3 * n, 3)
    events[3 * n] = epoch
    events[3 * n + 1] = which
    events[3 * n + 2] = what
    return events, n + 1


@inner
def read_chain(sources, last, j, wanted, low):
    """Key j's values in sources 0..last-1, `vo` words each, their multiplicities at epoch `low`, how many these are; the events,
    and how many.
    """
    vo = wanted.vo
    values = np.empty(16 * vo, np.int64)
    counts = np.empty(16, np.int64)
    events = np.empty(48, np.int64)
    n = 0
    n_events = 0
    step = -1 if wanted.backward else 1
    active = cursors_at(sources, last, j, wanted.backward)
    while True:
        best, chosen, row = next_value(sources, j, active, wanted)
        if best < 0:
            break
        values = room(values, n * vo, vo)
        for c in range(vo):
            values[n * vo + c] = value(chosen, sources.kc + c, row)
        counts = room(counts, n, 1)
        counts[n] = 0
        for a in range(best, active):
            s = load(sources.cursors, 2 * a)
            start = load(sources.cursors, 2 * a + 1)
            stop = pass_value(sources, j, a, wanted, chosen, row)
            tested = is_tested(sources, s)
            for i in range(start, stop, step):
                epoch = low
                if tested:
                    if not shown(sources, s, i):
                        continue
                    epoch = epoch_of(sources, s, i)
                diff = value(head_of(sources, s), diff_of(sources, s), i)
                if epoch <= low:
                    counts[n] += diff
                else:
                    events, n_events = push_event(events, n_events, epoch, n, diff)
        n += 1
    sort_records(events, n_events, 3, 2)
    return values, counts, n, events, n_events


@inner
def presence(counts, n, negative):
    """A bit for each value that is there: its multiplicity is positive, or, if `negative`, not 0."""
    bits = np.zeros((n + 63) >> 6, np.uint64)
    for i in range(n):
        if counts[i] > 0 or (negative and counts[i] != 0):
            bits[i >> 6] |= np.uint64(1) << np.uint64(i & 63)
    return bits


@inner
def pass_events(events, at, n_events, epoch, negative, counts, bits):
    """Apply the events up to an epoch. Returns the next one, and the first value that has changed, -1 if none has."""
    first = -1
    while at < n_events and events[3 * at] <= epoch:
        i = events[3 * at + 1]
        counts[i] += events[3 * at + 2]
        mask = np.uint64(1) << np.uint64(i & 63)
        if counts[i] > 0 or (negative and counts[i] != 0):
            bits[i >> 6] |= mask
        else:
            bits[i >> 6] &= ~mask
        if first < 0 or i < first:
            first = i
        at += 1
    return at, first


@inner
def next_there(bits, i, n):
    """The first value from number i on that is there, or n."""
    if i >= n:
        return n
    word = i >> 6
    left = (bits[word] >> np.uint64(i & 63)) << np.uint64(i & 63)
    while left == np.uint64(0):
        word += 1
        if word == len(bits):
            return n
        left = bits[word]
    return 64 * word + bit_length(left & (~left + np.uint64(1))) - 1


@inner
def _ties(values, i, k, vo, ties):
    """Whether two values begin with the same words."""
    for c in range(ties):
        if values[i * vo + c] != values[k * vo + c]:
            return False
    return True


@inner
def _choose(values, counts, bits, n, vo, k, ties, chosen):
    """The first `k` values that are there, as `walk` takes them: pairs (number of the value, multiplicity). Returns the pairs,
    how many they are, and how many of the k are missing.
    """
    left = k
    m = 0
    i = next_there(bits, 0, n)
    while i < n:
        if left == 0 and not (ties > 0 and _ties(values, i, chosen[2 * m - 2], vo, ties)):
            break
        taken = min(counts[i], left)
        left -= taken
        chosen = room(chosen, 2 * m, 2)
        chosen[2 * m] = i
        chosen[2 * m + 1] = counts[i] if ties > 0 else taken
        m += 1
        i = next_there(bits, i + 1, n)
    return chosen, m, left


@inner
def _push(list_, n, values, i, vo, epoch, diff):
    """Append value number i as a record (values, epoch, diff)."""
    list_ = room(list_, n * (vo + 2), vo + 2)
    for c in range(vo):
        list_[n * (vo + 2) + c] = values[i * vo + c]
    list_[n * (vo + 2) + vo] = epoch
    list_[n * (vo + 2) + vo + 1] = diff
    return list_, n + 1


@inner
def push_first(sources, last, j, wanted, epochs, n_epochs, list_, n):
    """Append records (values, epoch, diff): the wanted values of key j at its first epoch, then the differences of each later
    epoch from the one before.
    """
    vo, k, ties = wanted.vo, wanted.k, wanted.ties
    values, counts, many, events, n_events = read_chain(sources, last, j, wanted, epochs[0])
    bits = presence(counts, many, False)
    former = np.empty(16, np.int64)
    chosen = np.empty(16, np.int64)
    n_former = 0
    left = k
    event = 0
    for q in range(n_epochs):
        event, first = pass_events(events, event, n_events, epochs[q], False, counts, bits)
        if q > 0:
            if first < 0:
                continue
            latest = former[2 * n_former - 2] if n_former > 0 else -1
            if left == 0 and first > latest and not (ties > 0 and _ties(values, first, latest, vo, ties)):
                continue
        chosen, n_chosen, left = _choose(values, counts, bits, many, vo, k, ties, chosen)
        a = 0
        b = 0
        while a < n_former or b < n_chosen:
            if b == n_chosen or (a < n_former and former[2 * a] < chosen[2 * b]):
                list_, n = _push(list_, n, values, former[2 * a], vo, epochs[q], -former[2 * a + 1])
                a += 1
            elif a == n_former or chosen[2 * b] < former[2 * a]:
                list_, n = _push(list_, n, values, chosen[2 * b], vo, epochs[q], chosen[2 * b + 1])
                b += 1
            else:
                if chosen[2 * b + 1] != former[2 * a + 1]:
                    list_, n = _push(
                        list_, n, values, chosen[2 * b], vo, epochs[q], chosen[2 * b + 1] - former[2 * a + 1]
                    )
                a += 1
                b += 1
        former, chosen = chosen, former
        n_former = n_chosen
    return list_, n
