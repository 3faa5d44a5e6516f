"""One moment of a reduce on one shard: the new output of each group minus its previous output.

For each key that the work names, and for each epoch e of the key in ascending order, the kernel evaluates the operator on the
input that is visible at the moment with epoch <= e, and emits the difference from the output accumulated so far at (e,
moment). The epochs of a key are the new ones of its work, and all visible epochs of its history after the first of them: at
one moment times are a chain, so a change can affect nothing else here. History that is not visible yet gives todo rows: the
later times at which the key must be evaluated again.

The output is a batch: sorted by key, value and epoch, consolidated, with constant columns folded. Differences of consecutive
results telescope. So it is enough to write every result with +, its predecessor with -, and the visible output history with
-, and to consolidate them per key.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner, kernel
from tektite.kernels.layout.memory import load, read, store
from tektite.kernels.layout.pages import address_of, empty_words
from tektite.kernels.layout.records import columns_room, room, sort_records
from tektite.kernels.layout.rows import address, count, new_head, set_constant, set_stored, step_of, value
from tektite.kernels.operators.aggregate import (
    accumulate_block,
    accumulate_row,
    accumulators,
    finish,
    finish_block,
    float_columns,
)
from tektite.kernels.operators.chain import is_worth_it, push_first
from tektite.kernels.operators.emit import (
    batch_head,
    push_output,
    push_values,
    same_values,
    write_block,
    write_change,
    write_ones,
    write_records,
)
from tektite.kernels.operators.epochs import fresh_epochs, key_epochs, later_work, one_epoch, scan_history
from tektite.kernels.operators.limbs import DIGITS
from tektite.kernels.operators.sources import (
    head_of,
    is_lone,
    needs_test,
    next_keys,
    seek_sources,
    set_source,
    shown,
    test_of,
    time_of,
    times_of,
)
from tektite.kernels.operators.values import output_value, top_value, walk
from tektite.kernels.operators.wide import sum_overflows
from tektite.kernels.seek.keys import BLOCK

# The operators. LINEAR takes five words for each output column (see aggregate.py); FIRST and LAST take k,
# and how many leading values have to tie with the last of the k for a row to be taken too (0: k and no more); AT_LEAST
# takes the least multiplicity from which on the key itself is shown, once.
LINEAR = 0
FIRST = 1
LAST = 2
AT_LEAST = 3

# Status codes. OVERFLOW: accumulated diffs do not fit a word, and the result is not complete. TOO_LARGE: the sum of a group does
# not fit a word, and its low word is shown instead.
FINE = 0
OVERFLOW = 1
TOO_LARGE = 2


@inner
def note(status, code, keys, kc, j):
    """Set a status, and the key that it is about, unless j is -1."""
    if j >= 0:
        status[0] = code
        for c in range(kc):
            status[1 + c] = load(keys, c * BLOCK + j)


@inner
def head_of_todo(todo, rows, kc, nt):
    """Columns of the todo list from its records (key, time): a rows object whose diffs are -1, so that no key of it is taken for
    one that only gains.
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
    """Append key j's later times."""
    width = kc + nt
    todo = room(todo, n * width, many * width)
    for q in range(many):
        for c in range(kc):
            todo[n * width + c] = load(keys, c * BLOCK + j)
        for c in range(nt):
            todo[n * width + kc + c] = list_[q * nt + c]
        n += 1
    return todo, n


@inner
def without_known(table, n_history, n_past, n_all, begin, end, keys, many, kc, rounds, only):
    """Drop the keys of a block that are there already and only gain: by the output, whose ranges are known, each is there once,
    now and from now on, and its work has no diff below 1, as what was put off has. More of it changes nothing, then or later, and
    the input need not be read. The others move up. Returns how many they are.
    """
    kept = 0
    for j in range(many):
        total = 0
        known = True
        for s in range(n_history, n_past):
            head = head_of(table, s)
            time_at = time_of(table, s)
            times = times_of(table, s)
            tested = test_of(table, s) != 0
            for i in range(load(begin, s * BLOCK + j), load(end, s * BLOCK + j)):
                if tested:
                    known &= shown(head, time_at, times, i, rounds) and value(head, time_at, i) <= only
                total += value(head, time_at + times, i)
        known &= total == 1
        if known:
            for s in range(n_past, n_all):
                head = head_of(table, s)
                time_at = time_of(table, s)
                for i in range(load(begin, s * BLOCK + j), load(end, s * BLOCK + j)):
                    known &= value(head, time_at + times_of(table, s), i) > 0
        if known:
            continue
        if kept < j:
            for c in range(kc):
                store(keys, c * BLOCK + kept, load(keys, c * BLOCK + j))
            for s in range(n_history, n_all):
                store(begin, s * BLOCK + kept, load(begin, s * BLOCK + j))
                store(end, s * BLOCK + kept, load(end, s * BLOCK + j))
        kept += 1
    return kept


@inner
def all_shown(table, n_history, n_past, begin, end, many, rounds, only, least, results):
    """Whether two sums say all of a block's keys: every row is shown and not later than `only`, the sums fit, and the
    output's differences add up to once or not at all for each key. If so, whether each key was there (by the output,
    sources n_history..n_past) and is there now (by the input) is written to `results`, as for `write_block`.
    """
    for j in range(2 * BLOCK):
        store(results, j, 0)
    for s in range(n_past):
        head = head_of(table, s)
        time_at = time_of(table, s)
        diff_at = time_at + times_of(table, s)
        at = address(head, diff_at)
        by = step_of(head, diff_at)
        side = BLOCK if s < n_history else 0
        tested = test_of(table, s) != 0
        times = times_of(table, s)
        for j in range(many):
            total = load(results, side + j)
            for i in range(load(begin, s * BLOCK + j), load(end, s * BLOCK + j)):
                if tested and (not shown(head, time_at, times, i, rounds) or value(head, time_at, i) > only):
                    return False
                diff = read(at, by, i)
                if sum_overflows(total, diff):
                    return False
                total += diff
            store(results, side + j, total)
    for j in range(many):
        # Differences at times that are not ordered add up at this one before it corrects them: to 2, or to -1.
        if load(results, j) & ~1 != 0:
            return False
        store(results, BLOCK + j, 1 if load(results, BLOCK + j) >= least else 0)
    return True


@kernel(
    "Tuple((int64[::1], int64[::1], int64[::1], int64[::1], int64[::1]))"
    "(int64[::1], int64[::1], int64[::1], int64[::1],"
    " int64[::1], int64[::1], int64[::1], int64, int64)"
)
def reduce(work, work_nd, input, old, shape, params, moment, lo, hi):
    """Evaluate every key that `work` names, for epochs lo..hi-1 at `moment`.

    shape   kc, nd, nt, nt_in, nf, vo, from_output, op: key and data columns of the input; time columns here and
            in the input; diff columns of the input; value columns of the output; where old results come from; operator
    work    rows sorted by key; part w has work_nd[w] data columns and nt times
    input   the version of the input that includes the work (read if from_output is 1)
    old     from_output 1: the version of the operator's own output before this step (kc + vo data columns, nt times).
            from_output 0 (only with nt = 1): the version of the input without the work; its epochs count as lo

    Returns (buf, head, todo_buf, todo_head, status); status is a code and, if that is not FINE, the offending key.
    """
    kc = shape[0]
    nd = shape[1]
    nt = shape[2]
    nt_in = shape[3]
    nf = shape[4]
    vo = shape[5]
    from_output = shape[6]
    op = shape[7]
    history = input if from_output != 0 else old
    n_history = len(history)
    n_own = len(old) if from_output != 0 else 0
    n_past = n_history + n_own
    n_work = len(work)
    n_all = n_past + n_work
    # Sources that results are computed from: with old results from the input, that is the old input and the work.
    n_want = n_history if from_output != 0 else n_all

    frame = np.empty(8 * n_all + 2 * BLOCK * n_all + kc * BLOCK + BLOCK + 1 + 2 * BLOCK * (vo + 2) + 32, np.int64)
    table = address_of(frame)
    cursors = table + 8 * 6 * n_all
    begin = cursors + 8 * 2 * n_all
    end = begin + 8 * BLOCK * n_all
    keys = end + 8 * BLOCK * n_all
    firsts = keys + 8 * BLOCK * kc
    results = firsts + 8 * (BLOCK + 1)
    scratch = results + 8 * 2 * BLOCK * (vo + 2)
    rounds = address_of(moment)

    only = one_epoch(work, work_nd, lo, hi, from_output)
    single = only >= 0
    past_rows = 0
    for s in range(n_all):
        if s < n_history:
            head = history[s]
            test = needs_test(head, nd, nt_in, rounds, lo, single) if from_output != 0 else 0
            set_source(table, s, head, nd, nt_in, test)
            past_rows += count(head)
        elif s < n_past:
            head = old[s - n_history]
            set_source(table, s, head, kc + vo, nt, needs_test(head, kc + vo, nt, rounds, lo, single))
            past_rows += count(head)
        else:
            set_source(table, s, work[s - n_past], work_nd[s - n_past], nt, 0 if single else 1)
    work_rows = 0
    for w in range(n_work):
        work_rows += count(work[w])

    status = np.zeros(1 + kc, np.int64)
    width = kc + vo + 2
    capacity = work_rows + 8 if past_rows == 0 else 2 * work_rows + 8
    buf = empty_words(width * capacity)
    rows = 0
    plus = True
    todo = np.empty(16, np.int64)
    n_todo = 0
    linear = op == LINEAR
    summed = linear or op == AT_LEAST
    floats = float_columns(params, vo, linear)
    if floats > 0:
        nf -= 1  # the limb, which is summed bin by bin
    slots = accumulators(params, vo, nf, linear)
    digits = np.empty(DIGITS, np.int64)
    least = params[0] if len(params) > 0 else 0
    ties = params[1] if op == FIRST or op == LAST else 0
    acc = np.zeros(BLOCK * slots if summed else 0, np.int64)
    prior = np.zeros(BLOCK * slots if summed and from_output == 0 else 0, np.int64)
    epochs = np.empty(4, np.int64)
    list_ = np.empty(4 * (vo + 2) + 2 * nt, np.int64)
    values = np.empty(4 * (vo + 1), np.int64)
    former = np.empty(4 * (vo + 1), np.int64)
    events = np.empty(0, np.int64)

    while status[0] != OVERFLOW:
        many = next_keys(table, n_past, n_work, kc, keys, firsts, begin, end)
        if many == 0:
            break
        seek_sources(table, n_history, n_past, keys, many, kc, begin, end)
        if n_own > 0 and single and op == AT_LEAST:
            many = without_known(table, n_history, n_past, n_all, begin, end, keys, many, kc, rounds, only)
            if many == 0:
                continue
        seek_sources(table, 0, n_history, keys, many, kc, begin, end)
        bad = -1
        large = -1
        if from_output != 0 and single and op == AT_LEAST:
            # The common case in loops: every row of the block's keys is shown, so that two sums say all.
            if all_shown(table, n_history, n_past, begin, end, many, rounds, only, least, results):
                buf, capacity = columns_room(buf, capacity, width, rows, many)
                rows, plus = write_block(results, n_own > 0, many, keys, kc, vo, buf, capacity, rows, plus)
                continue
        if summed:
            for w in range(many * slots):
                acc[w] = 0
            for s in range(n_want):
                head = head_of(table, s)
                if s == n_past:
                    for w in range(many * slots):
                        prior[w] = acc[w]
                if s >= n_past and time_of(table, s) != nd:
                    continue
                diff_at = time_of(table, s) + times_of(table, s)
                if from_output == 0 or test_of(table, s) == 0:
                    at = 8 * BLOCK * s
                    wrong = accumulate_block(
                        head,
                        is_lone(table, s),
                        begin + at,
                        end + at,
                        many,
                        kc,
                        diff_at,
                        nf,
                        params,
                        vo,
                        linear,
                        floats,
                        acc,
                        slots,
                    )
                    if wrong >= 0:
                        bad = wrong
                else:
                    for j in range(many):
                        for i in range(load(begin, s * BLOCK + j), load(end, s * BLOCK + j)):
                            if shown(head, nd, times_of(table, s), i, rounds):
                                if not accumulate_row(
                                    head, i, kc, diff_at, nf, params, vo, linear, floats, acc, j * slots
                                ):
                                    bad = j
            if from_output == 0 and single and bad < 0:
                # The common case, and the one that bulk loads take: two sums for each key, and no more.
                buf, capacity = columns_room(buf, capacity, width, rows, 2 * many if past_rows > 0 else many)
                if past_rows > 0:
                    large = finish_block(prior, many, slots, nf, params, vo, linear, least, digits, results)
                wrong = finish_block(
                    acc, many, slots, nf, params, vo, linear, least, digits, results + 8 * BLOCK * (vo + 1)
                )
                note(status, TOO_LARGE, keys, kc, max(large, wrong))
                rows, plus = write_block(results, past_rows > 0, many, keys, kc, vo, buf, capacity, rows, plus)
                continue
        elif single and least == 1 and ties == 0:
            # The first or last value of each key, one at most, against the one shown before: minimum and maximum.
            marked = n_todo
            usual = True
            for j in range(many):
                if from_output != 0:
                    if scan_history(table, n_past, begin, end, j, rounds, only) & 2 != 0:
                        epochs[0] = only
                        list_, n = later_work(table, n_past, nt, begin, end, j, rounds, lo, hi, epochs, 1, list_)
                        todo, n_todo = push_todo(todo, n_todo, keys, j, kc, nt, list_, n)
                    former_there = output_value(
                        table, n_history, n_past, begin, end, j, kc, vo, rounds, scratch, results
                    )
                    if former_there < 0:
                        usual = False
                        break
                else:
                    former_there = top_value(
                        table, n_history, begin, end, j, cursors, kc, nd, vo, op == LAST, only, rounds, results
                    )
                store(results, BLOCK * vo + j, former_there)
                there = top_value(
                    table, n_want, begin, end, j, cursors, kc, nd, vo, op == LAST, only, rounds,
                    results + 8 * BLOCK * (vo + 1),
                )  # fmt: skip
                store(results, BLOCK * (2 * vo + 1) + j, there)
            if usual:
                buf, capacity = columns_room(buf, capacity, width, rows, 2 * many if past_rows > 0 else many)
                rows, plus = write_block(results, True, many, keys, kc, vo, buf, capacity, rows, plus)
                continue
            n_todo = marked
        if plus:
            plus = False
            write_ones(buf, (kc + vo + 1) * capacity, rows)

        for j in range(many):
            if bad >= 0:
                break
            low = only
            high = only
            if not single:
                low, high = fresh_epochs(table, n_past, n_all, begin, end, j, lo)
            flags = 0 if low == high else 1
            if from_output != 0:
                flags |= scan_history(table, n_past, begin, end, j, rounds, low)
            epochs[0] = low
            n_epochs = 1
            if flags & 1 != 0:
                epochs, n_epochs = key_epochs(
                    table, n_past if from_output != 0 else 0, n_past, n_all, begin, end, j, rounds, lo, low, epochs
                )
            if flags & 2 != 0:
                list_, n = later_work(table, n_past, nt, begin, end, j, rounds, lo, hi, epochs, n_epochs, list_)
                todo, n_todo = push_todo(todo, n_todo, keys, j, kc, nt, list_, n)

            n = 0
            n_former = 0
            n_values = 0
            if from_output != 0:
                list_, n = push_output(table, n_history, n_past, begin, end, j, kc, vo, rounds, low, list_, n)
            elif summed:
                n_former = finish(prior, j * slots, nf, params, vo, linear, least, digits, former)
                if n_former == 2:
                    large = j
                    n_former = 1
                former[vo] = 1
            else:
                former, n_former = walk(
                    table, n_history, begin, end, j, cursors, kc, nd, vo, least, ties, op == LAST,
                    low, rounds, former, 0,
                )  # fmt: skip

            n_events = 0
            event = 0
            if summed and n_epochs > 1:
                # What comes later than the first epoch is taken out of the sums and put in again epoch by epoch.
                for w in range(slots):
                    acc[j * slots + w] = 0
                for s in range(n_want):
                    if s >= n_past and time_of(table, s) != nd:
                        continue
                    for i in range(load(begin, s * BLOCK + j), load(end, s * BLOCK + j)):
                        epoch = low
                        if test_of(table, s) != 0:
                            if not shown(head_of(table, s), time_of(table, s), times_of(table, s), i, rounds):
                                continue
                            epoch = value(head_of(table, s), time_of(table, s), i)
                        if epoch <= low:
                            accumulate_row(
                                head_of(table, s),
                                i,
                                kc,
                                time_of(table, s) + times_of(table, s),
                                nf,
                                params,
                                vo,
                                linear,
                                floats,
                                acc,
                                j * slots,
                            )
                        else:
                            events = room(events, 3 * n_events, 3)
                            events[3 * n_events] = epoch
                            events[3 * n_events + 1] = s
                            events[3 * n_events + 2] = i
                            n_events += 1
                sort_records(events, n_events, 3, 3)

            if not summed and is_worth_it(n_want, n_past, n_all, begin, end, j, n_epochs):
                list_, n = push_values(list_, n, former, 0, n_former, vo, low, -1)
                list_, n = push_first(
                    table, n_want, begin, end, j, cursors, kc, nd, vo, least, ties, op == LAST,
                    epochs, n_epochs, rounds, list_, n,
                )  # fmt: skip
                n_epochs = 0
            for q in range(n_epochs):
                epoch = epochs[q]
                if summed:
                    while event < n_events and events[3 * event] <= epoch:
                        s = events[3 * event + 1]
                        if not accumulate_row(
                            head_of(table, s), events[3 * event + 2], kc, time_of(table, s) + times_of(table, s), nf,
                            params, vo, linear, floats, acc, j * slots,
                        ):  # fmt: skip
                            bad = j
                        event += 1
                    n_values = finish(acc, j * slots, nf, params, vo, linear, least, digits, values)
                    values[vo] = 1
                    if n_values == 2:
                        large = j
                        n_values = 1
                else:
                    values, n_values = walk(
                        table, n_want, begin, end, j, cursors, kc, nd, vo, least, ties, op == LAST,
                        epoch, rounds, values, 0,
                    )  # fmt: skip
                if n_epochs == 1 and n <= 1 and n_former + n <= 1 and n_values <= 1:
                    if n == 1:
                        for c in range(vo):
                            former[c] = list_[c]
                        former[vo] = -list_[vo + 1]
                        n_former = 1
                        n = 0
                    buf, capacity = columns_room(buf, capacity, width, rows, n_former + n_values)
                    rows = write_change(
                        former, n_former, values, n_values, keys, j, kc, vo, low, not single, buf, capacity, rows
                    )
                elif n_values != n_former or not same_values(values, 0, former, 0, n_values, vo + 1):
                    list_, n = push_values(list_, n, former, 0, n_former, vo, epoch, -1)
                    list_, n = push_values(list_, n, values, 0, n_values, vo, epoch, 1)
                    former, values = values, former
                    n_former = n_values
            if n > 0:
                buf, capacity = columns_room(buf, capacity, width, rows, n)
                rows = write_records(list_, n, keys, j, kc, vo, buf, capacity, rows)
        note(status, TOO_LARGE, keys, kc, large)
        note(status, OVERFLOW, keys, kc, bad)

    buf, head = batch_head(buf, capacity, rows, kc, vo, moment, only, plus)
    todo_buf, todo_head = head_of_todo(todo, n_todo, kc, nt)
    frame[0] = 0  # keeps the frame alive up to here
    return buf, head, todo_buf, todo_head, status
