"""What an intersection writes for a word: a record for each combination of rows that have it.

A record is (row of `prefix`, word, times, diff): times meet at their least upper bound, and diffs multiply.

Short names: `e` is the number of an extender; rows have `nd` data and `nt` time columns; `lo` is the least epoch.
"""

from __future__ import annotations

from typing import NamedTuple

from tektite.kernels.compile import inlined, inner
from tektite.kernels.layout.memory import load, store
from tektite.kernels.layout.rows import new_head, place_columns, set_constant, set_stored, step_of, value
from tektite.kernels.operators.extenders import DATA, TIMES, field_of
from tektite.kernels.operators.wide import product_overflows


class Work(NamedTuple):
    """Addresses of scratch memory. Extender e has a cursor for each of its slots, cursors[first_slot[e]:first_slot[e + 1]]. The
    rows of extender e that have the present word are the pairs (batch, row) number first_run[e]..first_run[e + 1] of the run,
    and turn[e] is the one of the present combination. `kept` has the numbers of candidates that passed a filter.
    """

    first_slot: int
    cursors: int
    first_run: int
    turn: int
    kept: int


@inner
def combinations(many, work):
    """How many combinations of the run's rows there are."""
    product = 1
    for e in range(many):
        product *= max(1, load(work.first_run, e + 1) - load(work.first_run, e))
    return product


@inner
def _next_combination(many, work):
    """Move on to the next combination of rows, one of each extender that has some; whether there is one."""
    for e in range(many):
        if load(work.first_run, e + 1) > load(work.first_run, e):
            after = load(work.turn, e) + 1
            if after < load(work.first_run, e + 1):
                store(work.turn, e, after)
                return True
            store(work.turn, e, load(work.first_run, e))
    return False


@inlined
def write_combinations(prefix, nd, nt, lo, extenders, row, word, work, run, out):
    """Write a record (row, word, times, diff) for each combination of the run's rows. Returns whether a product of diffs
    overflows.
    """
    many = extenders.many
    wrong = False
    for e in range(many):
        store(work.turn, e, load(work.first_run, e))
    going = True
    while going:
        store(out, 0, row)
        store(out, 1, word)
        stamp = out + 16
        for t in range(nt):
            store(stamp, t, value(prefix, nd + t, row))
        store(stamp, 0, max(load(stamp, 0), lo))
        diff = value(prefix, nd + nt, row)
        for e in range(many):
            if load(work.first_run, e + 1) > load(work.first_run, e):
                batch = load(run, 2 * load(work.turn, e))
                i = load(run, 2 * load(work.turn, e) + 1)
                column = field_of(extenders, e, DATA)
                times = field_of(extenders, e, TIMES)
                for t in range(times):
                    store(stamp, t, max(load(stamp, t), value(batch, column + t, i)))
                factor = value(batch, column + times, i)
                wrong |= product_overflows(diff, factor)
                diff *= factor
        store(stamp, nt, diff)
        out += 8 * (nt + 3)
        going = _next_combination(many, work)
    return wrong


@inner
def extended_rows(prefix, spec, nt, extended, used, wrong, words):
    """Rows of `used` records (row of `prefix`, word, times, diff): the columns of `prefix` that `spec` lists, the words if
    `words` is 1 and not if it is 0, the `nt` times and the diff. The number of rows is -1 if something is wrong.
    """
    outputs = len(spec)
    stride = nt + 3
    head = new_head(used, outputs + words + nt + 1)
    for c in range(outputs + words + nt + 1):
        if c < outputs and step_of(prefix, spec[c]) == 0:
            set_constant(head, c, value(prefix, spec[c], 0))
        else:
            set_stored(head, c, 0)
    buf = place_columns(head, used)
    for c in range(outputs):
        if step_of(prefix, spec[c]) != 0:
            out = head[3 + 3 * c]
            for o in range(used):
                store(out, o, value(prefix, spec[c], extended[o * stride]))
    for t in range(1 - words, nt + 2):  # the word, the times, the diff
        column = outputs + words - 1 + t
        out = head[3 + 3 * column]
        same = True
        for o in range(used):
            word = extended[o * stride + 1 + t]
            same &= word == extended[1 + t]
            store(out, o, word)
        if same and used > 0 and t > 0:
            set_constant(head, column, extended[1 + t])
    if wrong:
        head[0] = -1
    return buf, head
