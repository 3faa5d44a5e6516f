"""Heads over updates as they arrive at an input. The columns are not copied."""

from __future__ import annotations

from tektite.kernels.compile import inner, kernel
from tektite.kernels.layout.pages import address_of
from tektite.kernels.layout.rows import new_head, set_constant, set_stored


@inner
def _set(head, column, words, word):
    """Make a column of the head: `words` or, if that is empty, the constant `word`."""
    if len(words) > 0:
        set_stored(head, column, address_of(words))
    else:
        set_constant(head, column, word)


@kernel("int64[::1](int64[:, ::1], int64[::1], int64[::1], int64[::1], int64, int64)")
def arriving_rows(columns, order, times, diffs, epoch, diff):
    """A head over updates. Data columns are the rows of `columns` that `order` lists. Each update has its own time and diff. If
    `times` is empty, all have `epoch`; if `diffs` is empty, all have `diff`.
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
    """A head over operations of a set or upsert input. Sorted, they are what `upsert.resolve` takes. The columns are the key,
    the epoch, the place in the order of arrival, 1 to put or 0 to remove, and the value; then the time 0 and the diff 1. If
    `times` is empty, all have `epoch`; if `puts` is empty, all have `put`.
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
