"""What every grouping kernel does for a key: find its rows in all sources, its epochs, its later work, its first
values.

*Sources* are rows objects sorted by the same key: the history of the input, the history of the operator's own output,
and the work that names the keys to look at, in that order. The rows of key j of a block in source s are begin[s * BLOCK
+ j] .. end[s * BLOCK + j]. A table at address `table` has six words for each source: the address of its head, its first
time column, its number of time columns, its test, the row to seek the next keys from, and whether no key has more than
one row there. A source with test 0 is known
to have only rows that count, by its constant time columns; the rows of the others are tested one by one: a row is
*shown* at a moment if none of its rounds is past the moment's.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner
from tektite.kernels.memory import load, read, store
from tektite.kernels.pages import address_of
from tektite.kernels.records import distinct_records, head_of_columns, room, sort_records
from tektite.kernels.rows import address, count, step_of, value
from tektite.kernels.seek import BLOCK, compare_rows, gather_block, group_end, prefetch, seek_block


@inner
def head_of(table, s):
    return load(table, 6 * s)


@inner
def time_of(table, s):
    """The first time column of source s."""
    return load(table, 6 * s + 1)


@inner
def times_of(table, s):
    """The number of time columns of source s."""
    return load(table, 6 * s + 2)


@inner
def test_of(table, s):
    return load(table, 6 * s + 3)


@inner
def start_of(table, s):
    """The row of source s from which on the next keys are sought."""
    return load(table, 6 * s + 4)


@inner
def is_lone(table, s):
    """Whether no key has more than one row in source s, as far as that is known without looking at rows."""
    return load(table, 6 * s + 5) != 0


@inner
def set_source(table, s, head, time_at, times, test):
    store(table, 6 * s, head)
    store(table, 6 * s + 1, time_at)
    store(table, 6 * s + 2, times)
    store(table, 6 * s + 3, test)
    store(table, 6 * s + 4, 0)
    store(table, 6 * s + 5, 0)


@inner
def next_keys(table, base, parts, kc, keys, firsts, begin, end):
    """The next block of keys that the work names (sources base..base + parts), and their ranges there. Returns how
    many.
    """
    if parts == 1:
        many = gather_block(head_of(table, base), start_of(table, base), kc, keys, firsts)
        at = 8 * BLOCK * base
        for j in range(many):
            store(begin + at, j, load(firsts, j))
            store(end + at, j, load(firsts, j + 1))
        if many > 0:
            store(table, 6 * base + 4, load(firsts, many))
        return many
    many = 0
    while many < BLOCK:
        least = -1
        for s in range(base, base + parts):
            if start_of(table, s) < count(head_of(table, s)) and (
                least < 0
                or compare_rows(
                    head_of(table, s), start_of(table, s), head_of(table, least), start_of(table, least), kc
                )
                < 0
            ):
                least = s
        if least < 0:
            break
        for c in range(kc):
            store(keys, c * BLOCK + many, value(head_of(table, least), c, start_of(table, least)))
        for s in range(base, base + parts):
            rows = count(head_of(table, s))
            first = start_of(table, s)
            past = first
            if first < rows:
                past = group_end(head_of(table, s), rows, first, keys, many, kc)
            store(begin, s * BLOCK + many, first)
            store(end, s * BLOCK + many, past)
            store(table, 6 * s + 4, past)
        many += 1
    return many


@inner
def seek_sources(table, sources, keys, many, kc, begin, end):
    """The ranges of a block of keys in sources 0..sources-1, each sought from where the block before ended."""
    for s in range(sources):
        head = head_of(table, s)
        rows = count(head)
        at = 8 * BLOCK * s
        seek_block(head, start_of(table, s), keys, many, kc, begin + at)
        if load(begin + at, many - 1) - load(begin + at, 0) > 16 * many:
            # The rows found lie apart: fetch what will be read of them besides the key.
            for c in range(kc, load(head, 2)):
                by = step_of(head, c)
                if by != 0:
                    column = address(head, c)
                    for j in range(many):
                        prefetch(column + by * load(begin + at, j))
        lone = rows > 0 and kc > 0 and time_of(table, s) == kc
        for c in range(times_of(table, s)):
            lone = lone and step_of(head, kc + c) == 0
        store(table, 6 * s + 5, np.int64(lone))
        if lone:
            _lone_ends(head, rows, keys, many, kc, begin + at, end + at)
        else:
            for j in range(many):
                store(end + at, j, group_end(head, rows, load(begin + at, j), keys, j, kc))
        store(table, 6 * s + 4, load(end + at, many - 1))


@inner
def _lone_ends(head, rows, keys, many, kc, begin, end):
    """The ends of keys that have at most one row each: whether it is there is as good as random, so nothing branches."""
    for j in range(many):
        store(end, j, np.int64(load(begin, j) < rows))
    for c in range(kc):
        at = address(head, c)
        by = step_of(head, c)
        for j in range(many):
            same = read(at, by, min(load(begin, j), rows - 1)) == load(keys, c * BLOCK + j)
            store(end, j, load(end, j) & np.int64(same))
    for j in range(many):
        store(end, j, load(begin, j) + load(end, j))


@inner
def shown(head, time_at, times, i, moment):
    """Whether none of row i's rounds is past the moment's."""
    for c in range(1, times):
        if value(head, time_at + c, i) > load(moment, c - 1):
            return False
    return True


@inner
def needs_test(head, time_at, times, moment, lo, single):
    """Whether rows must be looked at one by one to know that they are shown and not later than the key's first
    epoch.
    """
    for c in range(1, times):
        if step_of(head, time_at + c) != 0 or load(address(head, time_at + c), 0) > load(moment, c - 1):
            return 1
    if single:
        return 0
    if step_of(head, time_at) != 0 or load(address(head, time_at), 0) > lo:
        return 1
    return 0


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
    """Flags of key j's history: 1 if a shown row is later than epoch `low`, 2 if a row is not shown."""
    flags = 0
    for s in range(sources):
        if test_of(table, s) == 0:
            continue
        head = head_of(table, s)
        for i in range(load(begin, s * BLOCK + j), load(end, s * BLOCK + j)):
            if not shown(head, time_of(table, s), times_of(table, s), i, moment):
                flags |= 2
            elif value(head, time_of(table, s), i) > low:
                flags |= 1
    return flags


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
                # Times form a chain: the next one will find those after it.
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
def walk(table, sources, begin, end, j, cursors, kc, nd, vo, k, backward, epoch, moment, list_, n):
    """Append key j's first `k` values (its last, if `backward`) as of `epoch`: records of `vo` leading value words and
    a multiplicity. Only values with positive multiplicity count, each as often as it occurs; k < 0 takes every
    value whose multiplicity is not 0. All sources are walked together in value order and left as soon as k is reached.
    """
    step = -1 if backward else 1
    active = 0
    for s in range(sources):
        first = load(begin, s * BLOCK + j)
        past = load(end, s * BLOCK + j)
        if first < past:
            store(cursors, 2 * active, s)
            store(cursors, 2 * active + 1, past - 1 if backward else first)
            active += 1
    left = k
    while left != 0:
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
        if best < 0:
            break
        total = 0
        for a in range(best, active):
            s = load(cursors, 2 * a)
            head = head_of(table, s)
            i = load(cursors, 2 * a + 1)
            first = load(begin, s * BLOCK + j)
            past = load(end, s * BLOCK + j)
            while i >= first and i < past:
                same = True
                for c in range(kc, nd):
                    if value(head, c, i) != value(chosen, c, row):
                        same = False
                        break
                if not same:
                    break
                if test_of(table, s) == 0 or (
                    value(head, time_of(table, s), i) <= epoch
                    and shown(head, time_of(table, s), times_of(table, s), i, moment)
                ):
                    total += value(head, time_of(table, s) + times_of(table, s), i)
                i += step
            store(cursors, 2 * a + 1, i)
        if total > 0 or (k < 0 and total != 0):
            if k > 0:
                total = min(total, left)
                left -= total
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
    active = 0
    for s in range(sources):
        first = load(begin, s * BLOCK + j)
        past = load(end, s * BLOCK + j)
        if first < past:
            store(cursors, 2 * active, s)
            store(cursors, 2 * active + 1, past - 1 if backward else first)
            active += 1
    while True:
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
        if best < 0:
            return 0
        total = 0
        for a in range(best, active):
            s = load(cursors, 2 * a)
            head = head_of(table, s)
            test = test_of(table, s)
            column = time_of(table, s)
            times = times_of(table, s)
            i = load(cursors, 2 * a + 1)
            first = load(begin, s * BLOCK + j)
            past = load(end, s * BLOCK + j)
            while i >= first and i < past:
                same = True
                if i != row or head != chosen:
                    for c in range(kc, nd):
                        if value(head, c, i) != value(chosen, c, row):
                            same = False
                            break
                if not same:
                    break
                if test == 0 or (value(head, column, i) <= epoch and shown(head, column, times, i, moment)):
                    total += value(head, column + times, i)
                i += step
            store(cursors, 2 * a + 1, i)
        if total > 0:
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


@inner
def push_values(list_, n, values, first, many, vo, epoch, sign):
    """Append value records first..first+many as records (values, epoch, sign * multiplicity)."""
    list_ = room(list_, n * (vo + 2), many * (vo + 2))
    for q in range(first, first + many):
        at = n * (vo + 2)
        for c in range(vo):
            list_[at + c] = values[q * (vo + 1) + c]
        list_[at + vo] = epoch
        list_[at + vo + 1] = sign * values[q * (vo + 1) + vo]
        n += 1
    return list_, n


@inner
def push_output(table, first, last, begin, end, j, kc, vo, moment, low, list_, n):
    """Append what the operator's own output shows of key j, negated, as records (values, epoch, diff)."""
    for s in range(first, last):
        head = head_of(table, s)
        start = load(begin, s * BLOCK + j)
        past = load(end, s * BLOCK + j)
        if past > start:
            list_ = room(list_, n * (vo + 2), (past - start) * (vo + 2))
        for i in range(start, past):
            epoch = low
            if test_of(table, s) != 0:
                if not shown(head, time_of(table, s), times_of(table, s), i, moment):
                    continue
                epoch = max(low, value(head, time_of(table, s), i))
            at = n * (vo + 2)
            for c in range(vo):
                list_[at + c] = value(head, kc + c, i)
            list_[at + vo] = epoch
            list_[at + vo + 1] = -value(head, time_of(table, s) + times_of(table, s), i)
            n += 1
    return list_, n


@inner
def write_records(list_, n, keys, j, kc, vo, buf, capacity, rows):
    """Sort and consolidate key j's records (values, epoch, diff) into rows of the column-major buffer, which must have
    room for all. Returns the number of rows then.
    """
    stride = vo + 2
    sort_records(list_, n, stride, vo + 1)
    q = 0
    while q < n:
        at = q * stride
        diff = list_[at + vo + 1]
        q += 1
        while q < n:
            same = True
            for c in range(vo + 1):
                if list_[q * stride + c] != list_[at + c]:
                    same = False
                    break
            if not same:
                break
            diff += list_[q * stride + vo + 1]
            q += 1
        if diff != 0:
            for c in range(kc):
                buf[c * capacity + rows] = load(keys, c * BLOCK + j)
            for c in range(vo + 1):
                buf[(kc + c) * capacity + rows] = list_[at + c]
            buf[(kc + vo + 1) * capacity + rows] = diff
            rows += 1
    return rows


@inner
def write_change(former, n_former, values, n_values, keys, j, kc, vo, epoch, with_epoch, buf, capacity, rows):
    """Write the change of key j from at most one record of values to at most one other. Returns the number of rows
    then.
    """
    order = 0
    if n_former == 0 or n_values == 0:
        order = n_former - n_values
    else:
        for c in range(vo):
            if former[c] != values[c]:
                order = 1 if former[c] < values[c] else -1
                break
    diff = -former[vo] if order > 0 else values[vo]
    both = n_former + n_values == 2
    if order == 0:
        if not both or former[vo] == values[vo]:
            return rows
        diff -= former[vo]
        both = False
    for _ in range(2):
        for c in range(kc):
            buf[c * capacity + rows] = load(keys, c * BLOCK + j)
        if order > 0:
            for c in range(vo):
                buf[(kc + c) * capacity + rows] = former[c]
        else:
            for c in range(vo):
                buf[(kc + c) * capacity + rows] = values[c]
        if with_epoch:
            buf[(kc + vo) * capacity + rows] = epoch
        buf[(kc + vo + 1) * capacity + rows] = diff
        rows += 1
        if not both:
            break
        both = False
        order = -order
        diff = -former[vo] if order > 0 else values[vo]
    return rows


@inner
def write_block(results, had, many, keys, kc, vo, buf, capacity, rows, plus):
    """Write the changes of a block of keys from former results (at address `results`, if `had`) to new ones (behind
    them), each as `finish_block` leaves them. Diffs are not written while all rows so far have diff 1 (`plus`). Returns
    the number of rows then, and whether that still holds.
    """
    side = BLOCK * (vo + 1)
    picks = results + 8 * 2 * side
    n = 0
    lost = False
    for j in range(many):
        former = had and load(results, BLOCK * vo + j) != 0
        new = load(results, side + BLOCK * vo + j) != 0
        if not former:
            store(picks, n, side + j)
            n += 1 if new else 0
            continue
        order = 0
        if new:
            for v in range(vo):
                x = load(results, BLOCK * v + j)
                y = load(results, side + BLOCK * v + j)
                if x != y:
                    order = -1 if x < y else 1
                    break
            if order == 0:
                continue
        lost = True
        if order > 0:
            store(picks, n, side + j)
            n += 1
        store(picks, n, j)
        n += 1
        if order < 0:
            store(picks, n, side + j)
            n += 1
    at = address_of(buf) + 8 * rows
    for c in range(kc):
        column = at + 8 * capacity * c
        for q in range(n):
            store(column, q, load(keys, BLOCK * c + (load(picks, q) & (BLOCK - 1))))
    for v in range(vo):
        column = at + 8 * capacity * (kc + v)
        for q in range(n):
            store(column, q, load(results, BLOCK * v + load(picks, q)))
    if plus and lost:
        plus = False
        write_ones(buf, (kc + vo + 1) * capacity, rows)
    if not plus:
        column = at + 8 * capacity * (kc + vo + 1)
        for q in range(n):
            store(column, q, 1 if load(picks, q) >= side else -1)
    return rows + n, plus


@inner
def write_ones(buf, at, many):
    """Write the diffs that were left out."""
    for i in range(many):
        buf[at + i] = 1


@inner
def batch_head(buf, capacity, rows, kc, vo, moment, only, plus):
    """The head of an emitted batch over its buffer of keys, values, epoch and diff. If `only` >= 0 it is every row's
    epoch; if `plus` every diff is 1.
    """
    rounds = len(moment)
    spec = np.empty(kc + vo + rounds + 2, np.int64)
    constants = np.empty(rounds + 2, np.int64)
    for c in range(kc + vo + 1):
        spec[c] = c
    for c in range(rounds):
        spec[kc + vo + 1 + c] = -1 - c
        constants[c] = moment[c]
    spec[kc + vo + 1 + rounds] = kc + vo + 1
    if only >= 0:
        spec[kc + vo] = -1 - rounds
        constants[rounds] = only
    if plus:
        spec[kc + vo + 1 + rounds] = -2 - rounds
        constants[rounds + 1] = 1
    return head_of_columns(buf, capacity, rows, spec, constants)


@inner
def same_values(a, first, b, start, many, words):
    """Whether `many` records of `words` words are the same from record `first` of a and `start` of b on."""
    for w in range(many * words):
        if a[first * words + w] != b[start * words + w]:
            return False
    return True
