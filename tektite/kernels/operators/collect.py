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
from tektite.kernels.layout.scratch import keep
from tektite.kernels.operators.chain import next_there, pass_events, presence, read_chain
from tektite.kernels.operators.emit import batch_head, push_output, push_values, same_values, write_records
from tektite.kernels.operators.epochs import SweepBounds, epochs_of_key, head_of_todo, one_epoch
from tektite.kernels.operators.sources import (
    Numbers,
    key_word,
    new_sources,
    next_keys,
    seek_sources,
    set_history,
    set_work,
)
from tektite.kernels.operators.values import FirstValues
from tektite.kernels.seek.keys import gather_block


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
    all_values = FirstValues(nd, nv, np.int64(0), np.int64(0), False)
    n_history = len(input)
    n_past = n_history + len(old)
    numbers = Numbers(n_history, n_past, n_past + len(work), n_history)
    sweep = SweepBounds(lo, hi, one_epoch(work, work_nd, lo, hi, True))
    single = sweep.only >= 0
    memory, sources, _ = new_sources(numbers.all, kc, address_of(moment), np.int64(0))
    set_history(sources, np.int64(0), input, nd, nt_in, lo, single, True)
    set_history(sources, n_history, old, kc + vo, nt, lo, single, True)
    set_work(sources, n_past, work, work_nd, nt, single)

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
        many = next_keys(sources, n_past, len(work))
        if many == 0:
            break
        seek_sources(sources, 0, n_past, many)
        for j in range(many):
            epochs, n_epochs, list_, todo, n_todo = epochs_of_key(
                sources, numbers, sweep, nt, j, True, epochs, list_, todo, n_todo
            )
            values, counts, many_values, events, n_events = read_chain(sources, n_history, j, all_values, epochs[0])
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
                    requests[c * request_capacity + n_requests] = key_word(sources, j, c)
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
    memory, sources, _ = new_sources(n_own, kc, address_of(moment), np.int64(0))
    set_history(sources, np.int64(0), old, kc + vo, nt, lo, hi == lo + 1, True)
    width = kc + vo + 2
    capacity = n_wants + n_requests + 8
    buf = np.empty(width * capacity, np.int64)
    rows = 0
    list_ = np.empty(8 * (vo + 2), np.int64)
    values = np.empty(8 * (vo + 1), np.int64)
    want = 0
    start = 0
    while start < n_requests:
        many = gather_block(requests, start, kc, sources.keys, sources.firsts)
        seek_sources(sources, 0, n_own, many)
        for j in range(many):
            first = load(sources.firsts, j)
            low = value(requests, kc, first)
            list_, n = push_output(sources, 0, n_own, j, vo, low, list_, 0)
            former = 0
            n_former = 0
            used = 0
            for r in range(first, load(sources.firsts, j + 1)):
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
                rows = write_records(list_, n, sources, j, vo, buf, capacity, rows)
        start = load(sources.firsts, many)
    buf, head = batch_head(buf, capacity, rows, kc, vo, moment, -1, False)
    keep(memory)
    return buf, head
