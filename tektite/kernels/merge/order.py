"""The order in which a merge takes rows from its inputs: by data and time, or whole groups where times are sorted again.

A *plan* is a list of input rows in the order of the result: row i of the first input is named i, row k of the second ~k. It lies
at an address, `sources`.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inlined, inner
from tektite.kernels.layout.memory import load, read, store
from tektite.kernels.merge.state import (
    ADDRESS_A,
    ADDRESS_B,
    COLUMNS,
    COMPARED,
    COMPARED_DATA,
    FIELDS,
    FLOOR,
    PER_COLUMN,
    SIZE_A,
    SIZE_B,
    STEP_A,
    STEP_B,
    TAKEN_A,
    TAKEN_B,
    column_field,
    compare,
)
from tektite.kernels.sort.numbers import number_sort_of

# An argument that is not a literal: for those Numba would compile a function once more.
_FIRST = np.int64(0)


@inner
def plan_run(state, size):
    """The next rows, up to `size`, if they all come from one input and have no equal in the other: the first of them, and how
    many; else (0, 0). Moves on in the input.
    """
    i = load(state, TAKEN_A)
    k = load(state, TAKEN_B)
    left_a = load(state, SIZE_A) - i
    left_b = load(state, SIZE_B) - k
    n = min(size, left_a)
    if n > 0 and (left_b == 0 or compare(state, i + n - 1, ~k, _FIRST, _FIRST + 1) < 0):
        store(state, TAKEN_A, i + n)
        return i, n
    n = min(size, left_b)
    if n > 0 and (left_a == 0 or compare(state, ~(k + n - 1), i, _FIRST, _FIRST + 1) < 0):
        store(state, TAKEN_B, k + n)
        return ~k, n
    return _FIRST, _FIRST


@inner
def _compared_column(state, number):
    """Of a column that rows are compared by: address and step in the first input, address and step in the second, floor."""
    j = load(state, FIELDS + PER_COLUMN * load(state, COLUMNS) + number)
    return (
        column_field(state, j, ADDRESS_A), column_field(state, j, STEP_A),
        column_field(state, j, ADDRESS_B), column_field(state, j, STEP_B), column_field(state, j, FLOOR),
    )  # fmt: skip


@inlined
def _list_row(sources, pairs, n, paired, i, k, from_a):
    """Make row i of the first input number n of a plan, if `from_a` is 1, else row k of the second. Write (n, k) where the next
    pair goes, in case they are one.
    """
    store(sources, n, ~k ^ ((~k ^ i) & -from_a))
    store(pairs, 2 * paired, n)
    store(pairs, 2 * paired + 1, k)


@inner
def plan_pairs(state, sources, pairs, size):
    """Write a plan of the next n rows, n up to `size`, to `sources`, for inputs of which neither holds two equal rows. Of two
    equal rows, one in each input, the plan lists that of the first, and `pairs` lists (place in the plan, row of the second
    input). Returns (n, number of pairs) and moves on in the inputs.
    """
    i = load(state, TAKEN_A)
    k = load(state, TAKEN_B)
    stop_a = load(state, SIZE_A)
    stop_b = load(state, SIZE_B)
    compared = load(state, COMPARED)
    a0, sa0, b0, sb0, floor0 = _compared_column(state, 0)
    n = 0
    paired = 0
    # No branch depends on a comparison: which side comes next is as good as random.
    if compared == 1:
        while n < size and i < stop_a and k < stop_b:
            x = max(read(a0, sa0, i), floor0)
            y = max(read(b0, sb0, k), floor0)
            from_a = np.int64(x <= y)
            from_b = np.int64(y <= x)
            _list_row(sources, pairs, n, paired, i, k, from_a)
            paired += from_a & from_b
            n += 1
            i += from_a
            k += from_b
    else:
        a1, sa1, b1, sb1, floor1 = _compared_column(state, 1)
        while n < size and i < stop_a and k < stop_b:
            x0 = max(read(a0, sa0, i), floor0)
            y0 = max(read(b0, sb0, k), floor0)
            x1 = max(read(a1, sa1, i), floor1)
            y1 = max(read(b1, sb1, k), floor1)
            same = np.int64(x0 == y0)
            from_a = np.int64(x0 < y0) | (same & np.int64(x1 <= y1))
            from_b = np.int64(y0 < x0) | (same & np.int64(y1 <= x1))
            if compared > 2 and from_a & from_b:
                order = compare(state, i, ~k, np.int64(2), compared)
                from_a = np.int64(order <= 0)
                from_b = np.int64(order >= 0)
            _list_row(sources, pairs, n, paired, i, k, from_a)
            paired += from_a & from_b
            n += 1
            i += from_a
            k += from_b
    n, i, k = _take_rest(sources, n, size, i, stop_a, k, stop_b)
    store(state, TAKEN_A, i)
    store(state, TAKEN_B, k)
    return n, paired


@inner
def _take_rest(sources, n, size, i, stop_a, k, stop_b):
    """Once one input is used up, list rows of the other."""
    if k >= stop_b:
        many = min(size - n, stop_a - i)
        for r in range(many):
            store(sources, n + r, i + r)
        n += max(many, 0)
        i += max(many, 0)
    if i >= stop_a:
        many = min(size - n, stop_b - k)
        for r in range(many):
            store(sources, n + r, ~(k + r))
        n += max(many, 0)
        k += max(many, 0)
    return n, i, k


@inner
def plan(state, sources, size, compared):
    """Write a plan of the next n rows to `sources`, equal rows one after the other. n is at least min(size, rows left), and at
    most one more. Returns n and moves on in the inputs.
    """
    i = load(state, TAKEN_A)
    k = load(state, TAKEN_B)
    stop_a = load(state, SIZE_A)
    stop_b = load(state, SIZE_B)
    n = 0
    if compared > 0:
        a0, sa0, b0, sb0, floor0 = _compared_column(state, 0)
        a1, sa1, b1, sb1, floor1 = _compared_column(state, 1 if compared > 1 else 0)
        # Two columns are compared without a branch that depends on them; only rows equal in both take a closer look.
        while n < size and i < stop_a and k < stop_b:
            x0 = max(read(a0, sa0, i), floor0)
            y0 = max(read(b0, sb0, k), floor0)
            x1 = max(read(a1, sa1, i), floor1)
            y1 = max(read(b1, sb1, k), floor1)
            same0 = np.int64(x0 == y0)
            less = np.int64(x0 < y0) | (same0 & np.int64(x1 < y1))
            if same0 & np.int64(x1 == y1):
                order = 0
                if compared > 2:
                    order = compare(state, i, ~k, np.int64(2), compared)
                if order == 0:
                    store(sources, n, i)
                    store(sources, n + 1, ~k)
                    n += 2
                    i += 1
                    k += 1
                    continue
                less = np.int64(order < 0)
            store(sources, n, ~k ^ ((~k ^ i) & -less))
            n += 1
            i += less
            k += 1 - less
    else:
        # There is nothing to compare: all rows are equal.
        while n < size and i < stop_a:
            store(sources, n, i)
            n += 1
            i += 1
    n, i, k = _take_rest(sources, n, size, i, stop_a, k, stop_b)
    store(state, TAKEN_A, i)
    store(state, TAKEN_B, k)
    return n


@inner
def whole_groups(state, sources, n):
    """Make a planned block end where a group of equal data ends. Returns (group, n): the block is cut back to n rows and `group`
    is empty; if the block lies within one group, `group` is the plan of the n rows of the whole group.
    """
    group = np.empty(0, np.int64)
    compared = load(state, COMPARED_DATA)
    i = load(state, TAKEN_A)
    k = load(state, TAKEN_B)
    stop_a = load(state, SIZE_A)
    stop_b = load(state, SIZE_B)
    last = load(sources, n - 1)
    goes_on = i < stop_a and compare(state, last, i, _FIRST, compared) == 0
    goes_on = goes_on or (k < stop_b and compare(state, last, ~k, _FIRST, compared) == 0)
    if not goes_on:
        return group, n
    start = n - 1
    while start > 0 and compare(state, last, load(sources, start - 1), _FIRST, compared) == 0:
        start -= 1
    for r in range(start, n):
        if load(sources, r) >= 0:
            i -= 1
        else:
            k -= 1
    if start == 0:
        start_a = i
        start_b = k
        while i < stop_a and compare(state, last, i, _FIRST, compared) == 0:
            i += 1
        while k < stop_b and compare(state, last, ~k, _FIRST, compared) == 0:
            k += 1
        start = (i - start_a) + (k - start_b)
        group = np.empty(start, np.int64)
        for r in range(start_a, i):
            group[r - start_a] = r
        for r in range(start_b, k):
            group[i - start_a + r - start_b] = ~r
    store(state, TAKEN_A, i)
    store(state, TAKEN_B, k)
    return group, start


@inner
def _is_after(sought, x, y):
    """Whether input row x comes after y in the compared columns from a first one to a last one."""
    state, first, last = sought
    return compare(state, x, y, first, last) > 0


_sort_rows = number_sort_of(_is_after)


@inner
def sort_groups(state, sources, n):
    """Sort each group of equal data by its clamped times."""
    data = load(state, COMPARED_DATA)
    compared = load(state, COMPARED)
    start = np.int64(0)
    while start < n:
        stop = start + 1
        while stop < n and compare(state, load(sources, start), load(sources, stop), _FIRST, data) == 0:
            stop += 1
        _sort_rows(sources + 8 * start, stop - start, (state, data, compared))
        start = stop
