"""Heads over updates as they arrive at an input. The columns are not copied."""

from __future__ import annotations

from tektite.kernels.compile import inner, kernel
from tektite.kernels.layout.pages import address_of
from tektite.kernels.layout.rows import new_head, set_constant, set_stored


@inner
def _set(head, column, words, word):
    """A column of words of its own or, where there are none, of one word."""
    if len(words) > 0:
        set_stored(head, column, address_of(words))
    else:
        set_constant(head, column, word)


@kernel("int64[::1](int64[:, ::1], int64[::1], int64[::1], int64[::1], int64, int64)")
def arriving_rows(columns, order, times, diffs, epoch, diff):
    """A head over updates: data columns are the rows of `columns` that `order` lists. Each update has its own time and diff, or,
    where `times` or `diffs` is empty, all have `epoch` or `diff`.
    """
    data = len(order)
    rows = columns.shape[1]
    head = new_head(rows, data + 2)
    at = address_of(columns)
    for j in range(data):
        set_stored(head, j, at + 8 * rows * order[j])
    _set(head, data, times, epoch)
    _set(head, data + 1, diffs, diff)
    return head


@kernel("int64[::1](int64[:, ::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64, int64)")
def arriving_operations(columns, keys, values, times, arrivals, puts, epoch, put):
    """A head over operations of a set or upsert input, as `upsert.resolve` takes them once they are sorted: the key, epoch, place
    in the order of arrival, 1 to put or 0 to remove, and the value; then no time and the diff 1. Where `times` or `puts` is
    empty, all have `epoch` or `put`.
    """
    rows = columns.shape[1]
    wide = len(keys)
    head = new_head(rows, wide + 3 + len(values) + 2)
    at = address_of(columns)
    for j in range(wide):
        set_stored(head, j, at + 8 * rows * keys[j])
    _set(head, wide, times, epoch)
    set_stored(head, wide + 1, address_of(arrivals))
    _set(head, wide + 2, puts, put)
    for j in range(len(values)):
        set_stored(head, wide + 3 + j, at + 8 * rows * values[j])
    set_constant(head, wide + 3 + len(values) + 1, 1)
    return head
