"""Heads over updates as they arrive at an input: the columns stay where they are."""

from __future__ import annotations

from tektite.kernels.compile import kernel
from tektite.kernels.pages import address_of
from tektite.kernels.rows import new_head, set_constant, set_stored


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
    if len(times) > 0:
        set_stored(head, data, address_of(times))
    else:
        set_constant(head, data, epoch)
    if len(diffs) > 0:
        set_stored(head, data + 1, address_of(diffs))
    else:
        set_constant(head, data + 1, diff)
    return head
