"""The epochs at which a grouping kernel evaluates a key at this moment, and the later times that remain: the *todo* list.

Short names: `nt` is the number of time columns, `j` the number of a key in its block, `low` its first epoch (see also
sources.py).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tektite.kernels.compile import inlined, inner
from tektite.kernels.layout.memory import GREATEST, load
from tektite.kernels.layout.pages import address_of
from tektite.kernels.layout.records import distinct_records, room, sort_records
from tektite.kernels.layout.rows import address, count, new_head, set_constant, set_stored, step_of, value
from tektite.kernels.operators.sources import (
    end_row,
    epoch_of,
    first_row,
    head_of,
    is_tested,
    key_word,
    shown,
    time_of,
    times_of,
)

# Flags of a key: it has further epochs than its first one; some of its history is not shown at this moment.
LATER = 1
HIDDEN = 2


class SweepBounds(NamedTuple):
    """The epochs lo..hi-1 of a sweep, and the one epoch at which all keys are evaluated, or -1 if they differ."""

    lo: int
    hi: int
    only: int


@inner
def one_epoch(work, work_nd, lo, hi, from_output):
    """The one epoch at which every key is evaluated, if that is known from the sweep or from constant columns;
    else -1.
    """
    if hi == lo + 1:
        return lo
    epoch = -1
    for w in range(len(work)):
        if count(work[w]) > 0:
            if step_of(work[w], work_nd[w]) != 0:
                return -1
            here = max(lo, load(address(work[w], work_nd[w]), 0))
            if epoch >= 0 and here != epoch:
                return -1
            epoch = here
    # With histories that may hold later epochs, only the last epoch of the sweep is sure to stay alone.
    if from_output and epoch < hi - 1:
        return -1
    return epoch


@inlined
def epochs_of_key(sources, numbers, sweep, nt, j, with_history, epochs, list_, todo, n_todo):
    """List the epochs at which key j is evaluated, in ascending order, and add its later times to the todo list. Without history
    these are the epochs of its work. Returns the epochs, how many they are, the scratch list, the todo list, and its length.
    """
    low = sweep.only
    flags = 0
    if sweep.only < 0:
        low, high = _fresh_epochs(sources, numbers, j, sweep.lo)
        flags = 0 if low == high else LATER
    if with_history:
        flags |= scan_history(sources, numbers.past, j, low)
    epochs[0] = low
    n_epochs = 1
    if flags & LATER != 0:
        histories = numbers.past if with_history else 0
        epochs, n_epochs = _all_epochs(sources, histories, numbers, j, sweep.lo, low, epochs)
    if flags & HIDDEN != 0:
        list_, n = later_work(sources, numbers.past, nt, j, sweep, epochs, n_epochs, list_)
        todo, n_todo = push_todo(todo, n_todo, sources, j, nt, list_, n)
    return epochs, n_epochs, list_, todo, n_todo


@inner
def _fresh_epochs(sources, numbers, j, lo):
    """The least and the greatest epoch at which the work asks for key j."""
    low = GREATEST
    high = lo
    for s in range(numbers.past, numbers.all):
        head = head_of(sources, s)
        time_at = time_of(sources, s)
        for i in range(first_row(sources, s, j), end_row(sources, s, j)):
            epoch = max(lo, value(head, time_at, i))
            low = min(low, epoch)
            high = max(high, epoch)
    return low, high


@inner
def scan_history(sources, histories, j, low):
    """Flags of key j's rows in sources 0..histories-1: LATER if a shown row is later than epoch `low`, HIDDEN if a row is not
    shown.
    """
    flags = 0
    for s in range(histories):
        if is_tested(sources, s):
            for i in range(first_row(sources, s, j), end_row(sources, s, j)):
                if not shown(sources, s, i):
                    flags |= HIDDEN
                elif epoch_of(sources, s, i) > low:
                    flags |= LATER
    return flags


@inner
def _all_epochs(sources, histories, numbers, j, lo, low, epochs):
    """All epochs at which key j is evaluated: those of its work, and those later than `low` of the rows in sources
    0..histories-1 that are shown, ascending. Returns the list and its length.
    """
    n = 0
    for s in range(numbers.all):
        fresh = s >= numbers.past
        if not fresh and (s >= histories or not is_tested(sources, s)):
            continue
        head = head_of(sources, s)
        time_at = time_of(sources, s)
        first = first_row(sources, s, j)
        past = end_row(sources, s, j)
        epochs = room(epochs, n, past - first + 1)
        for i in range(first, past):
            epoch = max(lo, value(head, time_at, i))
            if fresh or (epoch > low and shown(sources, s, i)):
                if n == 0 or epochs[n - 1] != epoch:
                    epochs[n] = epoch
                    n += 1
    sort_records(epochs, n, 1, 1)
    return epochs, distinct_records(epochs, n, 1)


@inner
def later_work(sources, histories, nt, j, sweep, epochs, n_epochs, list_):
    """The times after this moment at which key j must be looked at again, because of history that is not shown:
    the least upper bounds of that history with the epochs of this moment. Records of `nt` words, sorted, distinct.
    """
    n = 0
    least = nt == 2 and sweep.hi == sweep.lo + 1
    for s in range(histories):
        if not is_tested(sources, s):
            continue
        head = head_of(sources, s)
        at = time_of(sources, s)
        for i in range(first_row(sources, s, j), end_row(sources, s, j)):
            if shown(sources, s, i):
                continue
            if least and n == 1:
                # Times form a chain: the evaluation at the next one will find those after it.
                list_[1] = min(list_[1], value(head, at + 1, i))
                continue
            list_ = room(list_, n * nt, nt)
            list_[n * nt] = max(epochs[0], value(head, at, i))
            for c in range(1, nt):
                there = value(head, at + c, i) if c < times_of(sources, s) else 0
                list_[n * nt + c] = max(load(sources.rounds, c - 1), there)
            n += 1
            if n % 64 == 0:
                sort_records(list_, n, nt, nt)
                n = distinct_records(list_, n, nt)
    sort_records(list_, n, nt, nt)
    n = distinct_records(list_, n, nt)
    if n_epochs > 1 and n > 0:
        own = n
        list_ = room(list_, n * nt, own * (n_epochs - 1) * nt)
        for q in range(own):
            for k in range(1, n_epochs):
                if epochs[k] > list_[q * nt]:
                    list_[n * nt] = epochs[k]
                    for c in range(1, nt):
                        list_[n * nt + c] = list_[q * nt + c]
                    n += 1
        sort_records(list_, n, nt, nt)
        n = distinct_records(list_, n, nt)
    return list_, n


@inner
def push_todo(todo, n, sources, j, nt, list_, many):
    """Append key j's later times, `many` records of the list, to the todo list, which has n records (key, time)."""
    kc = sources.kc
    width = kc + nt
    todo = room(todo, n * width, many * width)
    for q in range(many):
        for c in range(kc):
            todo[n * width + c] = key_word(sources, j, c)
        for c in range(nt):
            todo[n * width + kc + c] = list_[q * nt + c]
        n += 1
    return todo, n


@inner
def head_of_todo(todo, rows, kc, nt):
    """The todo list as a rows object, from its records (key, time). Its diffs are -1: so no key of it counts as one that only
    gains.
    """
    width = kc + nt
    head = new_head(rows, width + 1)
    set_constant(head, width, -1)
    buf = np.empty(rows * width, np.int64)
    for c in range(width):
        for i in range(rows):
            buf[c * rows + i] = todo[i * width + c]
        set_stored(head, c, address_of(buf) + 8 * rows * c)
    return buf, head
