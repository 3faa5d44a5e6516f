"""The general path of a reduce: each key by itself, at each of its epochs."""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inlined
from tektite.kernels.layout.memory import store
from tektite.kernels.layout.records import columns_room, sort_records
from tektite.kernels.operators.aggregate import accumulate_row, finish, group_at
from tektite.kernels.operators.chain import is_worth_it, push_event, push_first
from tektite.kernels.operators.emit import push_output, push_values, same_values, write_change, write_records
from tektite.kernels.operators.epochs import epochs_of_key
from tektite.kernels.operators.sources import (
    diff_of,
    end_row,
    epoch_of,
    first_row,
    head_of,
    is_tested,
    shown,
    time_of,
)
from tektite.kernels.operators.values import walk


@inlined
def _take_apart(sources, numbers, sums, nd, j, low, events):
    """Sum key j's rows up to epoch `low` again, and list the later ones as events (epoch, source, row), sorted. Returns the
    events, and how many they are.
    """
    n_events = 0
    acc = group_at(sums, sums.totals, j)
    for w in range(sums.slots):
        store(acc, w, 0)
    for s in range(numbers.want):
        if s >= numbers.past and time_of(sources, s) != nd:
            continue
        for i in range(first_row(sources, s, j), end_row(sources, s, j)):
            epoch = low
            if is_tested(sources, s):
                if not shown(sources, s, i):
                    continue
                epoch = epoch_of(sources, s, i)
            if epoch <= low:
                accumulate_row(sums, acc, head_of(sources, s), i, diff_of(sources, s))
            else:
                events, n_events = push_event(events, n_events, epoch, s, i)
    sort_records(events, n_events, 3, 3)
    return events, n_events


@inlined
def _sum_events(sources, sums, j, epoch, events, event, n_events):
    """Add the rows of key j's events up to an epoch to its sums. Returns the next event, and whether all diffs fit a word."""
    fits = True
    acc = group_at(sums, sums.totals, j)
    while event < n_events and events[3 * event] <= epoch:
        s = events[3 * event + 1]
        fits &= accumulate_row(sums, acc, head_of(sources, s), events[3 * event + 2], diff_of(sources, s))
        event += 1
    return event, fits


@inlined
def reduce_keys(sources, numbers, sums, wanted, sweep, nt, from_output, many, todo, n_todo, buf, capacity, rows):
    """Evaluate each key of a block at each of its epochs, and write the differences. Returns a key whose diffs do not fit a
    word, or -1; a key with a sum that does not, or -1; the todo list and its length; the buffer, its capacity and its rows.
    """
    vo = wanted.vo
    summed = sums.slots > 0
    epochs = np.empty(4, np.int64)
    list_ = np.empty(4 * (vo + 2) + 2 * nt, np.int64)
    values = np.empty(4 * (vo + 1), np.int64)
    former = np.empty(4 * (vo + 1), np.int64)
    events = np.empty(0, np.int64)
    large = -1
    for j in range(many):
        epochs, n_epochs, list_, todo, n_todo = epochs_of_key(
            sources, numbers, sweep, nt, j, from_output, epochs, list_, todo, n_todo
        )
        low = epochs[0]

        # What is shown so far: records of the output's history, or one result of the input's.
        n = 0
        n_former = 0
        if from_output:
            list_, n = push_output(sources, numbers.history, numbers.past, j, vo, low, list_, n)
        elif summed:
            n_former = finish(sums, group_at(sums, sums.former, j), former)
            if n_former == 2:
                large = j
                n_former = 1
            former[vo] = 1
        else:
            former, n_former = walk(sources, numbers.history, j, wanted, low, former, 0)

        n_events = 0
        event = 0
        if summed and n_epochs > 1:
            events, n_events = _take_apart(sources, numbers, sums, wanted.nd, j, low, events)
        if not summed and is_worth_it(sources, numbers, j, n_epochs):
            list_, n = push_values(list_, n, former, 0, n_former, vo, low, -1)
            list_, n = push_first(sources, numbers.want, j, wanted, epochs, n_epochs, list_, n)
            n_epochs = 0
        for q in range(n_epochs):
            epoch = epochs[q]
            if summed:
                event, fits = _sum_events(sources, sums, j, epoch, events, event, n_events)
                n_values = finish(sums, group_at(sums, sums.totals, j), values)
                values[vo] = 1
                if n_values == 2:
                    large = j
                    n_values = 1
                if not fits:
                    return j, large, todo, n_todo, buf, capacity, rows
            else:
                values, n_values = walk(sources, numbers.want, j, wanted, epoch, values, 0)
            if n_epochs == 1 and n <= 1 and n_former + n <= 1 and n_values <= 1:
                # At most one value before and one after: nothing has to be sorted.
                if n == 1:
                    for c in range(vo):
                        former[c] = list_[c]
                    former[vo] = -list_[vo + 1]
                    n_former = 1
                    n = 0
                buf, capacity = columns_room(buf, capacity, sources.kc + vo + 2, rows, n_former + n_values)
                rows = write_change(
                    former, n_former, values, n_values, sources, j, vo, low, sweep.only < 0, buf, capacity, rows
                )
            elif n_values != n_former or not same_values(values, 0, former, 0, n_values, vo + 1):
                list_, n = push_values(list_, n, former, 0, n_former, vo, epoch, -1)
                list_, n = push_values(list_, n, values, 0, n_values, vo, epoch, 1)
                former, values = values, former
                n_former = n_values
        if n > 0:
            buf, capacity = columns_room(buf, capacity, sources.kc + vo + 2, rows, n)
            rows = write_records(list_, n, sources, j, vo, buf, capacity, rows)
    return -1, large, todo, n_todo, buf, capacity, rows
