"""Splits rows by moment: the rounds of their times."""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner, kernel
from tektite.kernels.layout.memory import load, load4, store, store4
from tektite.kernels.layout.pages import address_of
from tektite.kernels.layout.rows import address, count, same_rows, step_of, value
from tektite.kernels.layout.scratch import keep, scratch
from tektite.kernels.seek.numbering import number_rows
from tektite.kernels.seek.route import new_parts, regroup
from tektite.kernels.sort.numbers import number_sort_of


@inner
def _is_later(rounds, a, b):
    """Whether row a has a later moment than row b, in lexicographic order. `rounds` is a head, the first column of a round, and
    the number of rounds.
    """
    head, first, many = rounds
    for c in range(first, first + many):
        x = value(head, c, a)
        y = value(head, c, b)
        if x != y:
            return x > y
    return False


_sort_by_moment = number_sort_of(_is_later)


@inner
def _is_one_moment(source, first, rounds):
    """Whether all rows have the same rounds."""
    for c in range(first, first + rounds):
        if step_of(source, c) != 0:
            word = value(source, c, 0)
            for i in range(count(source)):
                if value(source, c, i) != word:
                    return False
    return True


@kernel("Tuple((int64[::1], int64[::1], int64[::1], int64[:, ::1]))(int64, int64, int64)")
def partition_moments(source, time_at, nt):
    """Rows grouped by moment (the rounds: columns time_at + 1 .. time_at + nt - 1).

    `moments` lists them in lexicographic order; moment m has rows offsets[m]..offsets[m + 1] of the result.
    """
    rows = count(source)
    first = time_at + 1
    rounds = nt - 1
    if rows == 0 or _is_one_moment(source, first, rounds):
        many = min(rows, 1)
        offsets = np.full(many + 1, rows, np.int64)
        offsets[0] = 0
        moments = np.empty((many, rounds), np.int64)
        for c in range(rounds * many):
            moments[0, c] = value(source, first + c, 0)
        return np.empty(0, np.int64), same_rows(source), offsets, moments

    memory, (columns, firsts) = scratch((2 * rounds, rows))
    for c in range(rounds):
        store(columns, 2 * c, address(source, first + c))
        store(columns, 2 * c + 1, step_of(source, first + c))
    parts = new_parts(rows)
    part = address_of(parts)
    many = number_rows(columns, rounds, rows, part, firsts, False)

    # The rank of each number: its place in the order of moments. The sort moves first rows, whose numbers are known.
    moments = np.empty((many, rounds), np.int64)
    rank = np.empty(many, np.int64)
    _sort_by_moment(firsts, many, (source, first, rounds))
    for m in range(many):
        row = load(firsts, m)
        rank[load4(part, row)] = m
        for c in range(rounds):
            moments[m, c] = value(source, first + c, row)
    for i in range(rows):
        store4(part, i, rank[load4(part, i)])
    offsets = np.zeros(many + 1, np.int64)
    buf, head = regroup(source, part, offsets)
    keep(parts)
    keep(memory)
    return buf, head, offsets, moments
