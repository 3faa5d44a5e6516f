"""One moment of a reduce on one shard: the new output of each group minus its previous output.

For each key that the work names, and for each epoch e of the key in ascending order, the kernel evaluates the operator on the
input that is visible at the moment with epoch <= e, and emits the difference from the output accumulated so far at (e,
moment). The epochs of a key are the new ones of its work, and all visible epochs of its history after the first of them: at
one moment times are a chain, so a change can affect nothing else here. History that is not visible yet gives todo rows: the
later times at which the key must be evaluated again.

The output is a batch: sorted by key, value and epoch, consolidated, with constant columns folded. Differences of consecutive
results telescope. So it is enough to write every result with +, its predecessor with -, and the visible output history with
-, and to consolidate them per key.

Keys are evaluated in blocks. The kernel takes the first of these paths that fits a block:

| path | when |
|---|---|
| `all_shown` | AT_LEAST at one epoch, every row of the block is visible: two sums say all |
| `write_sums` | sums at one epoch, old results come from the input: the common case, and that of bulk loads |
| `find_tops` | FIRST or LAST of one value at one epoch: minimum and maximum |
| `reduce_keys` | everything else, key by key and epoch by epoch |
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner, kernel
from tektite.kernels.layout.pages import address_of, empty_words
from tektite.kernels.layout.records import columns_room
from tektite.kernels.layout.scratch import keep
from tektite.kernels.operators.aggregate import new_sums
from tektite.kernels.operators.emit import batch_head, write_block, write_ones
from tektite.kernels.operators.epochs import SweepBounds, head_of_todo, one_epoch
from tektite.kernels.operators.reduce_blocks import all_shown, find_tops, sum_block, without_known, write_sums
from tektite.kernels.operators.reduce_keys import reduce_keys
from tektite.kernels.operators.sources import (
    Numbers,
    key_word,
    new_sources,
    next_keys,
    seek_sources,
    set_history,
    set_work,
)
from tektite.kernels.operators.values import LISTED_WORDS, FirstValues
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
def _note(status, code, sources, j):
    """Set a status, and the key that it is about, unless j is -1."""
    if j >= 0:
        status[0] = code
        for c in range(sources.kc):
            status[1 + c] = key_word(sources, j, c)


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
    kc, nd, nt, nt_in, nf, vo = shape[0], shape[1], shape[2], shape[3], shape[4], shape[5]
    from_output = shape[6] != 0
    op = shape[7]
    summed = op == LINEAR or op == AT_LEAST
    least = params[0] if len(params) > 0 else 0
    sums_memory, sums = new_sums(op == LINEAR, least, kc, nf if summed else 0, vo, params, not from_output)
    wanted = FirstValues(nd, vo, least, 0 if summed else params[1], op == LAST)

    history = input if from_output else old
    own = old[: len(old) if from_output else 0]
    n_history = len(history)
    n_past = n_history + len(own)
    n_all = n_past + len(work)
    numbers = Numbers(n_history, n_past, n_all, n_history if from_output else n_all)
    n_results = 2 * BLOCK * (vo + 2)
    memory, sources, results = new_sources(n_all, kc, address_of(moment), n_results + LISTED_WORDS)
    listed = results + 8 * n_results
    sweep = SweepBounds(lo, hi, one_epoch(work, work_nd, lo, hi, from_output))
    single = sweep.only >= 0
    past_rows = set_history(sources, 0, history, nd, nt_in, lo, single, from_output)
    past_rows += set_history(sources, n_history, own, kc + vo, nt, lo, single, True)
    work_rows = set_work(sources, n_past, work, work_nd, nt, single)
    had = past_rows > 0

    # A column-major buffer of key, values, epoch and diff. Diffs are not written while all are 1 (`plus`).
    width = kc + vo + 2
    most = 2 if had else 1  # rows that a key changes by, where it has one result at most
    capacity = most * work_rows + 8
    buf = empty_words(width * capacity)
    rows = 0
    plus = True
    todo = np.empty(16, np.int64)
    n_todo = 0
    status = np.zeros(1 + kc, np.int64)
    bad = -1
    while bad < 0:
        many = next_keys(sources, n_past, len(work))
        if many == 0:
            break
        seek_sources(sources, n_history, n_past, many)
        if n_past > n_history and single and op == AT_LEAST:
            many = without_known(sources, numbers, many, sweep.only)
            if many == 0:
                continue
        seek_sources(sources, 0, n_history, many)
        if from_output and single and op == AT_LEAST:
            if all_shown(sources, numbers, many, sweep.only, least, results):
                buf, capacity = columns_room(buf, capacity, width, rows, many)
                rows, plus = write_block(results, n_past > n_history, many, sources, vo, buf, capacity, rows, plus)
                continue
        if summed:
            bad = sum_block(sources, numbers, sums, nd, from_output, many)
            if bad >= 0:
                break
            if not from_output and single:
                buf, capacity = columns_room(buf, capacity, width, rows, most * many)
                large, rows, plus = write_sums(sources, sums, many, had, results, buf, capacity, rows, plus)
                _note(status, TOO_LARGE, sources, large)
                continue
        elif single and wanted.k == 1 and wanted.ties == 0:
            usual, todo, n_later = find_tops(
                sources, numbers, wanted, sweep, nt, from_output, many, results, listed, todo, n_todo
            )
            if usual:
                n_todo = n_later
                buf, capacity = columns_room(buf, capacity, width, rows, most * many)
                rows, plus = write_block(results, True, many, sources, vo, buf, capacity, rows, plus)
                continue
        if plus:
            plus = False
            write_ones(buf, (kc + vo + 1) * capacity, rows)
        bad, large, todo, n_todo, buf, capacity, rows = reduce_keys(
            sources, numbers, sums, wanted, sweep, nt, from_output, many, todo, n_todo, buf, capacity, rows
        )
        _note(status, TOO_LARGE, sources, large)

    _note(status, OVERFLOW, sources, bad)
    buf, head = batch_head(buf, capacity, rows, kc, vo, moment, sweep.only, plus)
    todo_buf, todo_head = head_of_todo(todo, n_todo, kc, nt)
    keep(memory)
    keep(sums_memory)
    return buf, head, todo_buf, todo_head, status
