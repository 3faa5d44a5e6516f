"""The general path of a reduce: each key by itself, at each of its epochs."""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inlined
from tektite.kernels.layout.records import columns_room, room, sort_records
from tektite.kernels.layout.rows import value
from tektite.kernels.operators.aggregate import accumulate_row, finish
from tektite.kernels.operators.chain import is_worth_it, push_first
from tektite.kernels.operators.emit import push_output, push_values, same_values, write_change, write_records
from tektite.kernels.operators.epochs import HIDDEN, LATER, first_epoch, key_epochs, later_work, push_todo
from tektite.kernels.operators.reduce_blocks import diff_of, end_row, first_row
from tektite.kernels.operators.sources import head_of, shown, test_of, time_of, times_of
from tektite.kernels.operators.values import walk


@inlined
def _take_apart(block, shape, numbers, sums, rounds, j, low, params, acc, events):
    """Sum key j's rows up to epoch `low` again, and list the later ones as events (epoch, source, row), sorted. Returns the
    events, and how many they are.
    """
    table = block.table
    n_events = 0
    for w in range(sums.slots):
        acc[j * sums.slots + w] = 0
    for s in range(numbers.want):
        if s >= numbers.past and time_of(table, s) != shape.nd:
            continue
        head = head_of(table, s)
        for i in range(first_row(block, s, j), end_row(block, s, j)):
            epoch = low
            if test_of(table, s) != 0:
                if not shown(head, time_of(table, s), times_of(table, s), i, rounds):
                    continue
                epoch = value(head, time_of(table, s), i)
            if epoch <= low:
                accumulate_row(
                    head, i, shape.kc, diff_of(table, s), shape.nf, params, shape.vo, sums.linear, sums.floats, acc,
                    j * sums.slots,
                )  # fmt: skip
            else:
                events = room(events, 3 * n_events, 3)
                events[3 * n_events] = epoch
                events[3 * n_events + 1] = s
                events[3 * n_events + 2] = i
                n_events += 1
    sort_records(events, n_events, 3, 3)
    return events, n_events


@inlined
def _sum_events(block, shape, sums, j, epoch, params, acc, events, event, n_events):
    """Add the rows of key j's events up to an epoch to its sums. Returns the next event, and whether all diffs fit a word."""
    fits = True
    while event < n_events and events[3 * event] <= epoch:
        s = events[3 * event + 1]
        fits &= accumulate_row(
            head_of(block.table, s), events[3 * event + 2], shape.kc, diff_of(block.table, s), shape.nf, params,
            shape.vo, sums.linear, sums.floats, acc, j * sums.slots,
        )  # fmt: skip
        event += 1
    return event, fits


@inlined
def reduce_keys(
    block, shape, numbers, sums, sweep, many, params, digits, acc, prior, todo, n_todo, buf, capacity, rows
):
    """Evaluate each key of a block at each of its epochs, and write the differences. Returns a key whose diffs do not fit a
    word, or -1; a key with a sum that does not, or -1; the todo list and its length; the buffer, its capacity and its rows.
    """
    kc, nd, nt, nf, vo = shape.kc, shape.nd, shape.nt, shape.nf, shape.vo
    table, cursors, begin, end, keys = block.table, block.cursors, block.begin, block.end, block.keys
    rounds, lo, hi = sweep.rounds, sweep.lo, sweep.hi
    linear, slots, least = sums.linear, sums.slots, sums.least
    from_output = shape.from_output
    summed = slots > 0
    backward = shape.backward
    ties = 0 if summed else params[1]
    epochs = np.empty(4, np.int64)
    list_ = np.empty(4 * (vo + 2) + 2 * nt, np.int64)
    values = np.empty(4 * (vo + 1), np.int64)
    former = np.empty(4 * (vo + 1), np.int64)
    events = np.empty(0, np.int64)
    large = -1
    for j in range(many):
        low, flags = first_epoch(
            table, numbers.past, numbers.all, begin, end, j, rounds, sweep.only, lo, from_output
        )  # fmt: skip
        epochs[0] = low
        n_epochs = 1
        if flags & LATER != 0:
            epochs, n_epochs = key_epochs(
                table, numbers.past if from_output else 0, numbers.past, numbers.all, begin, end, j, rounds, lo, low, epochs
            )  # fmt: skip
        if flags & HIDDEN != 0:
            list_, n = later_work(table, numbers.past, nt, begin, end, j, rounds, lo, hi, epochs, n_epochs, list_)
            todo, n_todo = push_todo(todo, n_todo, keys, j, kc, nt, list_, n)

        # What is shown so far: records of the output's history, or one result of the input's.
        n = 0
        n_former = 0
        if from_output:
            list_, n = push_output(
                table, numbers.history, numbers.past, begin, end, j, kc, vo, rounds, low, list_, n
            )  # fmt: skip
        elif summed:
            n_former = finish(prior, j * slots, nf, params, vo, linear, least, digits, former)
            if n_former == 2:
                large = j
                n_former = 1
            former[vo] = 1
        else:
            former, n_former = walk(
                table, numbers.history, begin, end, j, cursors, kc, nd, vo, least, ties, backward, low, rounds, former, 0
            )  # fmt: skip

        n_events = 0
        event = 0
        if summed and n_epochs > 1:
            events, n_events = _take_apart(block, shape, numbers, sums, rounds, j, low, params, acc, events)
        if not summed and is_worth_it(numbers.want, numbers.past, numbers.all, begin, end, j, n_epochs):
            list_, n = push_values(list_, n, former, 0, n_former, vo, low, -1)
            list_, n = push_first(
                table, numbers.want, begin, end, j, cursors, kc, nd, vo, least, ties, backward, epochs, n_epochs, rounds,
                list_, n,
            )  # fmt: skip
            n_epochs = 0
        for q in range(n_epochs):
            epoch = epochs[q]
            if summed:
                event, fits = _sum_events(block, shape, sums, j, epoch, params, acc, events, event, n_events)
                n_values = finish(acc, j * slots, nf, params, vo, linear, least, digits, values)
                values[vo] = 1
                if n_values == 2:
                    large = j
                    n_values = 1
                if not fits:
                    return j, large, todo, n_todo, buf, capacity, rows
            else:
                values, n_values = walk(
                    table, numbers.want, begin, end, j, cursors, kc, nd, vo, least, ties, backward, epoch, rounds, values, 0
                )  # fmt: skip
            if n_epochs == 1 and n <= 1 and n_former + n <= 1 and n_values <= 1:
                # At most one value before and one after: nothing has to be sorted.
                if n == 1:
                    for c in range(vo):
                        former[c] = list_[c]
                    former[vo] = -list_[vo + 1]
                    n_former = 1
                    n = 0
                buf, capacity = columns_room(buf, capacity, kc + vo + 2, rows, n_former + n_values)
                rows = write_change(
                    former, n_former, values, n_values, keys, j, kc, vo, low, sweep.only < 0, buf, capacity, rows
                )  # fmt: skip
            elif n_values != n_former or not same_values(values, 0, former, 0, n_values, vo + 1):
                list_, n = push_values(list_, n, former, 0, n_former, vo, epoch, -1)
                list_, n = push_values(list_, n, values, 0, n_values, vo, epoch, 1)
                former, values = values, former
                n_former = n_values
        if n > 0:
            buf, capacity = columns_room(buf, capacity, kc + vo + 2, rows, n)
            rows = write_records(list_, n, keys, j, kc, vo, buf, capacity, rows)
    return -1, large, todo, n_todo, buf, capacity, rows
