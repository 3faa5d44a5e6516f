"""The epochs at which a grouping kernel evaluates a key at this moment, and the later times that remain: the *todo* list.

Short names: `kc` is the number of key columns, `nt` the number of time columns, `j` the number of a key in its block; the sweep
covers the epochs lo..hi-1.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inlined, inner
from tektite.kernels.layout.memory import load
from tektite.kernels.layout.pages import address_of
from tektite.kernels.layout.records import distinct_records, room, sort_records
from tektite.kernels.layout.rows import address, count, new_head, set_constant, set_stored, step_of, value
from tektite.kernels.operators.sources import head_of, shown, test_of, time_of, times_of
from tektite.kernels.seek.keys import BLOCK

# Flags of a key: it has further epochs than its first one; some of its history is not shown at this moment.
LATER = 1
HIDDEN = 2


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
    if from_output != 0 and epoch < hi - 1:
        return -1
    return epoch


@inner
def fresh_epochs(table, first, last, begin, end, j, lo):
    """The least and the greatest epoch at which the work of sources first..last asks for key j."""
    low = 9223372036854775807
    high = lo
    for s in range(first, last):
        column = time_of(table, s)
        for i in range(load(begin, s * BLOCK + j), load(end, s * BLOCK + j)):
            epoch = max(lo, value(head_of(table, s), column, i))
            low = min(low, epoch)
            high = max(high, epoch)
    return low, high


@inner
def scan_history(table, sources, begin, end, j, moment, low):
    """Flags of key j's history: LATER if a shown row is later than epoch `low`, HIDDEN if a row is not shown."""
    flags = 0
    for s in range(sources):
        if test_of(table, s) == 0:
            continue
        head = head_of(table, s)
        for i in range(load(begin, s * BLOCK + j), load(end, s * BLOCK + j)):
            if not shown(head, time_of(table, s), times_of(table, s), i, moment):
                flags |= HIDDEN
            elif value(head, time_of(table, s), i) > low:
                flags |= LATER
    return flags


@inlined
def first_epoch(table, n_past, n_all, begin, end, j, moment, only, lo, with_history):
    """The first epoch at which key j is evaluated, and flags: LATER if there are further ones, HIDDEN if some of its history is
    not shown at this moment. `only` is the one epoch of all keys, -1 if they differ.
    """
    low = only
    flags = 0
    if only < 0:
        low, high = fresh_epochs(table, n_past, n_all, begin, end, j, lo)
        flags = 0 if low == high else LATER
    if with_history:
        flags |= scan_history(table, n_past, begin, end, j, moment, low)
    return low, flags


@inner
def key_epochs(table, sources, fresh, last, begin, end, j, moment, lo, low, epochs):
    """All epochs at which key j is evaluated: fresh ones (sources fresh..last) and shown ones of sources 0..sources-1
    later than `low`, ascending. Returns the list and its length.
    """
    n = 0
    for s in range(last):
        if s >= sources and s < fresh:
            continue
        if s < sources and test_of(table, s) == 0:
            continue
        head = head_of(table, s)
        first = load(begin, s * BLOCK + j)
        past = load(end, s * BLOCK + j)
        epochs = room(epochs, n, past - first + 1)
        for i in range(first, past):
            epoch = max(lo, value(head, time_of(table, s), i))
            if s >= fresh or (epoch > low and shown(head, time_of(table, s), times_of(table, s), i, moment)):
                if n == 0 or epochs[n - 1] != epoch:
                    epochs[n] = epoch
                    n += 1
    sort_records(epochs, n, 1, 1)
    return epochs, distinct_records(epochs, n, 1)


@inner
def later_work(table, sources, nt, begin, end, j, moment, lo, hi, epochs, n_epochs, list_):
    """The times after this moment at which key j must be looked at again, because of history that is not shown:
    the least upper bounds of that history with the epochs of this moment. Records of `nt` words, sorted, distinct.
    """
    n = 0
    least = nt == 2 and hi == lo + 1
    for s in range(sources):
        if test_of(table, s) == 0:
            continue
        head = head_of(table, s)
        at = time_of(table, s)
        for i in range(load(begin, s * BLOCK + j), load(end, s * BLOCK + j)):
            if shown(head, at, times_of(table, s), i, moment):
                continue
            if least and n == 1:
                # Times form a chain: the evaluation at the next one will find those after it.
                list_[1] = min(list_[1], value(head, at + 1, i))
                continue
            list_ = room(list_, n * nt, nt)
            list_[n * nt] = max(epochs[0], value(head, at, i))
            for c in range(1, nt):
                there = value(head, at + c, i) if c < times_of(table, s) else 0
                list_[n * nt + c] = max(load(moment, c - 1), there)
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


@inner
def push_todo(todo, n, keys, j, kc, nt, list_, many):
    """Append key j's later times, `many` records of the list, to the todo list, which has n records (key, time)."""
    width = kc + nt
    todo = room(todo, n * width, many * width)
    for q in range(many):
        for c in range(kc):
            todo[n * width + c] = load(keys, c * BLOCK + j)
        for c in range(nt):
            todo[n * width + kc + c] = list_[q * nt + c]
        n += 1
    return todo, n
