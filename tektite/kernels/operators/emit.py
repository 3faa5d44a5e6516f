"""Writes the differences between a key's old and new values, for grouping kernels.

Short names: `kc` is the number of key columns, `vo` the number of value columns, `j` the number of a key in its block (see
sources.py). `list_` is a list of n records (see records.py). `buf` is a column-major buffer of keys, values, epoch and diff, with
room for `capacity` rows.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner
from tektite.kernels.layout.memory import load, store
from tektite.kernels.layout.pages import address_of
from tektite.kernels.layout.records import head_of_columns, room, sort_records
from tektite.kernels.layout.rows import value
from tektite.kernels.operators.sources import (
    diff_of,
    end_row,
    epoch_of,
    first_row,
    head_of,
    is_tested,
    key_word,
    shown,
)
from tektite.kernels.seek.keys import BLOCK


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
def push_output(sources, first, last, j, vo, low, list_, n):
    """Append the rows of the operator's own output, sources first..last-1, that are shown for key j, negated, as records (values,
    epoch, diff).
    """
    kc = sources.kc
    for s in range(first, last):
        head = head_of(sources, s)
        start = first_row(sources, s, j)
        past = end_row(sources, s, j)
        if past > start:
            list_ = room(list_, n * (vo + 2), (past - start) * (vo + 2))
        for i in range(start, past):
            epoch = low
            if is_tested(sources, s):
                if not shown(sources, s, i):
                    continue
                epoch = max(low, epoch_of(sources, s, i))
            at = n * (vo + 2)
            for c in range(vo):
                list_[at + c] = value(head, kc + c, i)
            list_[at + vo] = epoch
            list_[at + vo + 1] = -value(head, diff_of(sources, s), i)
            n += 1
    return list_, n


@inner
def write_records(list_, n, sources, j, vo, buf, capacity, rows):
    """Sort and consolidate key j's records (values, epoch, diff) into rows of the column-major buffer, which must have
    room for all. Returns the number of rows then.
    """
    kc = sources.kc
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
                buf[c * capacity + rows] = key_word(sources, j, c)
            for c in range(vo + 1):
                buf[(kc + c) * capacity + rows] = list_[at + c]
            buf[(kc + vo + 1) * capacity + rows] = diff
            rows += 1
    return rows


@inner
def write_change(former, n_former, values, n_values, sources, j, vo, epoch, with_epoch, buf, capacity, rows):
    """Write the change of key j from at most one record of values to at most one other. Returns the number of rows
    then.
    """
    kc = sources.kc
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
            buf[c * capacity + rows] = key_word(sources, j, c)
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
def write_block(results, had, many, sources, vo, buf, capacity, rows, plus):
    """Write the changes of a block of keys from former results (at address `results`, if `had`) to new ones (behind
    them), each as `finish_block` leaves them. Diffs are not written while all rows so far have diff 1 (`plus`). Returns
    the number of rows then, and whether that still holds.
    """
    kc = sources.kc
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
            store(column, q, key_word(sources, load(picks, q) & (BLOCK - 1), c))
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
    """Write the diffs 1 that were left out while no row had another one."""
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
