"""A reduce by a Python function, as two kernels around it.

`collect` finds the groups to evaluate: one *request* for each key and epoch, and the accumulated rows of each request.
`settle` takes the results and emits their differences from the operator's previous output. Which epochs are evaluated, what
is visible, and which later times remain is decided exactly as in reduce.py.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import kernel
from tektite.kernels.layout.memory import load
from tektite.kernels.layout.pages import address_of
from tektite.kernels.layout.records import columns_room, head_of_columns, room
from tektite.kernels.layout.rows import count, value
from tektite.kernels.layout.scratch import keep, scratch
from tektite.kernels.operators.chain import next_there, pass_events, presence, read_chain
from tektite.kernels.operators.emit import batch_head, push_output, push_values, same_values, write_records
from tektite.kernels.operators.epochs import (
    HIDDEN,
    LATER,
    first_epoch,
    head_of_todo,
    key_epochs,
    later_work,
    one_epoch,
    push_todo,
)
from tektite.kernels.operators.sources import SOURCE, needs_test, next_keys, seek_sources, set_source, set_sources
from tektite.kernels.seek.keys import BLOCK, gather_block


@kernel(
    "Tuple((int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1]))"
    "(int64[::1], int64[::1], int64[::1],"
    " int64[::1], int64[::1], int64[::1], int64, int64)"
)
def collect(work, work_nd, input, old, shape, moment, lo, hi):
    """The groups that the keys of `work` need evaluated at `moment`; arguments as for `reduce` with from_output = 1.

    Returns (buf, head, request_buf, request_head, todo_buf, todo_head). Requests have the columns (key, epoch) and are
    numbered by row; groups have the columns (request, values, multiplicity), sorted. A request whose group is empty has
    no group rows.
    """
    kc, nd, nt, nt_in, vo = shape[0], shape[1], shape[2], shape[3], shape[5]
    nv = nd - kc  # value columns of the input
    n_history = len(input)
    n_past = n_history + len(old)
    n_work = len(work)
    n_all = n_past + n_work
    memory, (table, cursors, begin, end, keys, firsts) = scratch(
        (SOURCE * n_all, 2 * n_all, BLOCK * n_all, BLOCK * n_all, BLOCK * kc, BLOCK + 1)
    )
    rounds = address_of(moment)
    only = one_epoch(work, work_nd, lo, hi, 1)
    set_sources(table, input, old, work, work_nd, nd, nt_in, kc + vo, nt, rounds, lo, only >= 0, True)

    capacity = 64
    buf = np.empty((nv + 2) * capacity, np.int64)
    rows = 0
    request_capacity = 16
    requests = np.empty((kc + 1) * request_capacity, np.int64)
    n_requests = 0
    todo = np.empty(16, np.int64)
    n_todo = 0
    epochs = np.empty(4, np.int64)
    list_ = np.empty(4 * nt, np.int64)
    while True:
        many = next_keys(table, n_past, n_work, kc, keys, firsts, begin, end)
        if many == 0:
            break
        seek_sources(table, 0, n_past, keys, many, kc, begin, end)
        for j in range(many):
            low, flags = first_epoch(table, n_past, n_all, begin, end, j, rounds, only, lo, True)
            epochs[0] = low
            n_epochs = 1
            if flags & LATER != 0:
                epochs, n_epochs = key_epochs(table, n_past, n_past, n_all, begin, end, j, rounds, lo, low, epochs)
            if flags & HIDDEN != 0:
                list_, n = later_work(table, n_past, nt, begin, end, j, rounds, lo, hi, epochs, n_epochs, list_)
                todo, n_todo = push_todo(todo, n_todo, keys, j, kc, nt, list_, n)
            values, counts, many_values, events, n_events = read_chain(
                table, n_history, begin, end, j, cursors, kc, nd, nv, False, low, rounds
            )
            there = presence(counts, many_values, True)
            event = 0
            for q in range(n_epochs):
                event, _ = pass_events(events, event, n_events, epochs[q], True, counts, there)
                i = next_there(there, 0, many_values)
                while i < many_values:
                    buf, capacity = columns_room(buf, capacity, nv + 2, rows, 1)
                    buf[rows] = n_requests
                    for c in range(nv):
                        buf[(1 + c) * capacity + rows] = values[i * nv + c]
                    buf[(1 + nv) * capacity + rows] = counts[i]
                    rows += 1
                    i = next_there(there, i + 1, many_values)
                requests, request_capacity = columns_room(requests, request_capacity, kc + 1, n_requests, 1)
                for c in range(kc):
                    requests[c * request_capacity + n_requests] = load(keys, c * BLOCK + j)
                requests[kc * request_capacity + n_requests] = epochs[q]
                n_requests += 1
    empty = np.empty(0, np.int64)
    buf, head = head_of_columns(buf, capacity, rows, np.arange(nv + 2), empty)
    requests, request_head = head_of_columns(requests, request_capacity, n_requests, np.arange(kc + 1), empty)
    todo_buf, todo_head = head_of_todo(todo, n_todo, kc, nt)
    keep(memory)
    return buf, head, requests, request_head, todo_buf, todo_head


@kernel("Tuple((int64[::1], int64[::1]))(int64, int64, int64[::1], int64[::1], int64[::1], int64, int64)")
def settle(requests, wants, old, shape, moment, lo, hi):
    """Emit evaluated results less what is shown already.

    `requests` are those of `collect`; `wants` has the columns (request, output values, multiplicity), sorted by
    request; `old`, `shape` and `moment` are what `collect` got. The rows are a batch as `reduce` returns it.
    """
    kc, nt, vo = shape[0], shape[2], shape[5]
    n_own = len(old)
    n_requests = count(requests)
    n_wants = count(wants)
    memory, (table, begin, end, keys, firsts) = scratch(
        (SOURCE * n_own, BLOCK * n_own, BLOCK * n_own, BLOCK * kc, BLOCK + 1)
    )
    rounds = address_of(moment)
    for s in range(n_own):
        set_source(table, s, old[s], kc + vo, nt, needs_test(old[s], kc + vo, nt, rounds, lo, hi == lo + 1))
    width = kc + vo + 2
    capacity = n_wants + n_requests + 8
    buf = np.empty(width * capacity, np.int64)
    rows = 0
    list_ = np.empty(8 * (vo + 2), np.int64)
    values = np.empty(8 * (vo + 1), np.int64)
    want = 0
    start = 0
    while start < n_requests:
        many = gather_block(requests, start, kc, keys, firsts)
        seek_sources(table, 0, n_own, keys, many, kc, begin, end)
        for j in range(many):
            first = load(firsts, j)
            low = value(requests, kc, first)
            list_, n = push_output(table, 0, n_own, begin, end, j, kc, vo, rounds, low, list_, 0)
            former = 0
            n_former = 0
            used = 0
            for r in range(first, load(firsts, j + 1)):
                epoch = value(requests, kc, r)
                n_values = 0
                while want < n_wants and value(wants, 0, want) == r:
                    values = room(values, (used + n_values) * (vo + 1), vo + 1)
                    for c in range(vo + 1):
                        values[(used + n_values) * (vo + 1) + c] = value(wants, 1 + c, want)
                    n_values += 1
                    want += 1
                if n_values != n_former or not same_values(values, used, values, former, n_values, vo + 1):
                    list_, n = push_values(list_, n, values, former, n_former, vo, epoch, -1)
                    list_, n = push_values(list_, n, values, used, n_values, vo, epoch, 1)
                    former = used
                    n_former = n_values
                    used += n_values
            if n > 0:
                buf, capacity = columns_room(buf, capacity, width, rows, n)
                rows = write_records(list_, n, keys, j, kc, vo, buf, capacity, rows)
        start = load(firsts, many)
    buf, head = batch_head(buf, capacity, rows, kc, vo, moment, -1, False)
    keep(memory)
    return buf, head
