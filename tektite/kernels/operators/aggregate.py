"""Linear aggregates: sums over the rows of a group, and the values computed from them.

Each output column is described by five words (kind, a, b, c, digits):

    COUNT        a: the diff column to show (0 is the multiplicity)
    SUM          a, b: diff columns that hold the low and the high limb (value = low + high * 2**32);
                 c: diff column that counts the inputs that are not NULL, or -1 if none can be
    AVG          as SUM, divided by diff column c (or by the multiplicity if c is -1) and by 10**digits
    COUNT_VALUE  a: value column of which the words that are not NULL are counted
    SUM_VALUE    a: value column to sum, times the multiplicity
    AVG_VALUE    as SUM_VALUE, divided by the number of words that are not NULL and by 10**digits
    SUM_FLOAT    a: the number of a float column, from 0 on; c: diff column that counts the inputs that are not NULL
    OVERFLOWS    as SUM: 1 if the sum does not fit a word, 0 if it does
    AVG_FLOAT    as SUM_FLOAT, divided by diff column c; the exact quotient is rounded once

The _VALUE kinds are for arrangements that keep plain values. Accumulators are the diff columns, then three words for
each _VALUE column: high and low word of a 128-bit sum, and the number of words that are not NULL.

The _FLOAT kinds are for arrangements whose one value column is a *slot*, and whose last diff column is a limb (see
limbs.py). Slot 0 has all other diffs; slot 1 + LIMBS * a + bin has the limbs of a bin of float column a. Accumulators
are the diff columns but the last, then the LIMBS bins of each float column. _VALUE and _FLOAT do not occur together.

Short names: `kc` is the number of key columns, `nf` of diff columns that have an accumulator, `vo` of value columns of the
output; `acc` is the address of a group's accumulators; `m` is a row's multiplicity, `d` a diff, `v` the number of an output
column.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tektite.kernels.compile import inlined, inner
from tektite.kernels.layout.memory import bits_from_float, load, read, store
from tektite.kernels.layout.pages import address_of
from tektite.kernels.layout.rows import address, count, step_of, value
from tektite.kernels.layout.scratch import scratch
from tektite.kernels.operators.limbs import DIGITS, LIMBS, limbs_word
from tektite.kernels.operators.wide import product_high, sum_overflows, wide_add, wide_float
from tektite.kernels.seek.keys import BLOCK
from tektite.values.words import NULL

COUNT = 0
SUM = 1
AVG = 2
COUNT_VALUE = 3
SUM_VALUE = 4
AVG_VALUE = 5
SUM_FLOAT = 6
AVG_FLOAT = 7
OVERFLOWS = -1

AGGREGATE_WORDS = 5
_KIND, _A, _B, _C, _DIGITS = range(AGGREGATE_WORDS)
# Accumulators of a _VALUE column.
_VALUE_SLOTS = 3


class Sums(NamedTuple):
    """How groups are summed. A group is *linear*, with results as described above, or it is present from multiplicity `least` on,
    with no values. `params` is the address of the descriptions. Each group has `slots` accumulators: `nf` for diff columns, then
    those of values or of `floats` float columns. The groups of a block have theirs at `totals`, and those of their former rows
    at `former`; `digits` is room to round floats in.
    """

    linear: bool
    least: int
    kc: int
    nf: int
    vo: int
    params: int
    floats: int
    slots: int
    totals: int
    former: int
    digits: int


@inner
def new_sums(linear, least, kc, nf, vo, params, with_former):
    """How groups with `nf` diff columns are summed, with room for a block of them; the memory, and the sums."""
    described = address_of(params)
    floats = 0
    values = 0
    if linear:
        for v in range(vo):
            kind = field(described, v, _KIND)
            if kind >= SUM_FLOAT:
                floats = max(floats, field(described, v, _A) + 1)
            elif is_value(kind):
                values += 1
    if floats > 0:
        nf -= 1  # the limb, which is summed bin by bin
    slots = nf + LIMBS * floats + _VALUE_SLOTS * values
    memory, (totals, former, digits) = scratch(
        (BLOCK * slots, BLOCK * slots if with_former else 0, DIGITS if floats > 0 else 0)
    )
    return memory, Sums(linear, least, kc, nf, vo, described, floats, slots, totals, former, digits)


@inner
def field(params, v, number):
    """A word of the description of output column v."""
    return load(params, AGGREGATE_WORDS * v + number)


@inner
def is_value(kind):
    """Whether a kind is one of the _VALUE kinds."""
    return COUNT_VALUE <= kind <= AVG_VALUE


@inner
def group_at(sums, accumulators, j):
    """The address of the accumulators of group j, of those of a block."""
    return accumulators + 8 * sums.slots * j


@inlined
def accumulate_row(sums, acc, head, i, diff_at):
    """Add row i, whose first diff column is `diff_at`, to a group's accumulators. False if a diff column no longer fits its
    word.
    """
    wrong = False
    for f in range(sums.nf):
        wrong |= _add_diff(acc, f, value(head, diff_at + f, i))
    if not sums.linear:
        return not wrong
    if sums.floats > 0 and value(head, sums.kc, i) > 0:
        slot = sums.nf + value(head, sums.kc, i) - 1
        wrong |= _add_diff(acc, slot, value(head, diff_at + sums.nf, i))
        return not wrong
    slot = sums.nf
    for v in range(sums.vo):
        if is_value(field(sums.params, v, _KIND)):
            word = value(head, sums.kc + field(sums.params, v, _A), i)
            if word != NULL:
                m = value(head, diff_at, i)
                high, low = wide_add(load(acc, slot), load(acc, slot + 1), product_high(word, m), word * m)
                store(acc, slot, high)
                store(acc, slot + 1, low)
                store(acc, slot + 2, load(acc, slot + 2) + m)
            slot += _VALUE_SLOTS
    return not wrong


@inner
def _add_diff(acc, slot, d):
    """Add to an accumulator. Returns whether the sum does not fit."""
    total = load(acc, slot)
    store(acc, slot, total + d)
    return sum_overflows(total, d)


@inner
def accumulate_block(sums, head, lone, begin, end, many, diff_at):
    """Add the rows begin[j]..end[j] to the totals of group j, for a block of groups, column by column, as `accumulate_row` does.
    If `lone` no group has more than one row. Returns a group whose diffs no longer fit their word, or -1.
    """
    bad = -1
    for f in range(sums.nf):
        at = address(head, diff_at + f)
        by = step_of(head, diff_at + f)
        if lone:
            bad = max(bad, _add_lone_diffs(sums, f, at, by, count(head) - 1, begin, end, many))
        else:
            bad = max(bad, _add_diffs(sums, f, at, by, begin, end, many))
    if sums.floats > 0:
        for j in range(many):
            acc = group_at(sums, sums.totals, j)
            for i in range(load(begin, j), load(end, j)):
                slot = value(head, sums.kc, i)
                if slot > 0 and _add_diff(acc, sums.nf + slot - 1, value(head, diff_at + sums.nf, i)):
                    bad = j
    elif sums.linear and sums.slots > sums.nf:
        slot = sums.nf
        for v in range(sums.vo):
            if is_value(field(sums.params, v, _KIND)):
                _add_values(sums, slot, head, sums.kc + field(sums.params, v, _A), diff_at, begin, end, many)
                slot += _VALUE_SLOTS
    return bad


@inner
def _add_lone_diffs(sums, f, at, by, last, begin, end, many):
    """Add diff column f of groups that have at most one row each; `last` is the last row there is. No branch depends on which
    groups have one. Returns a group whose sum does not fit, or -1.
    """
    bad = -1
    for j in range(many):
        i = load(begin, j)
        d = read(at, by, min(i, last)) * (load(end, j) - i)
        if _add_diff(group_at(sums, sums.totals, j), f, d):
            bad = j
    return bad


@inner
def _add_diffs(sums, f, at, by, begin, end, many):
    """Add diff column f. Returns a group whose sum does not fit, or -1."""
    bad = -1
    for j in range(many):
        acc = group_at(sums, sums.totals, j)
        total = load(acc, f)
        for i in range(load(begin, j), load(end, j)):
            d = read(at, by, i)
            if sum_overflows(total, d):
                bad = j
            total += d
        store(acc, f, total)
    return bad


@inner
def _add_values(sums, slot, head, column, diff_at, begin, end, many):
    """Add the words of a value column, times multiplicities, to the three accumulators from `slot` on."""
    at = address(head, column)
    by = step_of(head, column)
    diffs = address(head, diff_at)
    diffs_by = step_of(head, diff_at)
    for j in range(many):
        acc = group_at(sums, sums.totals, j)
        high = load(acc, slot)
        low = load(acc, slot + 1)
        seen = load(acc, slot + 2)
        for i in range(load(begin, j), load(end, j)):
            word = read(at, by, i)
            if word != NULL:
                m = read(diffs, diffs_by, i)
                high, low = wide_add(high, low, product_high(word, m), word * m)
                seen += m
        store(acc, slot, high)
        store(acc, slot + 1, low)
        store(acc, slot + 2, seen)


@inner
def float_word(x):
    """The order-preserving word of a double."""
    bits = bits_from_float(x)
    return bits if bits >= 0 else bits ^ 0x7FFFFFFFFFFFFFFF


@inner
def _finish_column(sums, acc, slot, v):
    """The word of output column v of a present group, and whether it fits; if it does not, its low word. `slot` is where
    its own accumulators begin.
    """
    kind = field(sums.params, v, _KIND)
    a = field(sums.params, v, _A)
    if kind == COUNT:
        return load(acc, a), True
    high = 0
    low = 0
    seen = 0
    if kind <= AVG:
        limb = load(acc, field(sums.params, v, _B))
        small = load(acc, a)
        high, low = wide_add(limb >> 32, limb << 32, small >> 63, small)
        present = field(sums.params, v, _C)
        seen = load(acc, present if present >= 0 else 0)
    else:
        high = load(acc, slot)
        low = load(acc, slot + 1)
        seen = load(acc, slot + 2)
    if kind == COUNT_VALUE:
        return seen, True
    if kind == OVERFLOWS:
        return (0 if high == low >> 63 and low != NULL else 1), True
    if seen == 0:
        return NULL, True
    if kind == SUM or kind == SUM_VALUE:
        return low, high == low >> 63 and low != NULL
    scale = 1.0
    for _ in range(field(sums.params, v, _DIGITS)):
        scale *= 10.0
    return float_word(wide_float(high, low) / (seen * scale)), True


@inner
def _finish_float(sums, acc, v):
    """The word of output column v of a present group, which is of a _FLOAT kind."""
    seen = load(acc, field(sums.params, v, _C))
    if seen == 0:
        return NULL
    limbs = acc + 8 * (sums.nf + LIMBS * field(sums.params, v, _A))
    return limbs_word(limbs, 1 if field(sums.params, v, _KIND) == SUM_FLOAT else seen, sums.digits)


@inner
def finish(sums, acc, values):
    """Write the result row of a group to values[:vo]. Returns 1 if the group is present, 0 if not, and 2 if it is present
    and a sum does not fit a word.
    """
    if not sums.linear:
        return 1 if load(acc, 0) >= sums.least else 0
    if load(acc, 0) == 0:
        return 0
    slot = sums.nf
    there = 1
    for v in range(sums.vo):
        kind = field(sums.params, v, _KIND)
        if kind >= SUM_FLOAT:
            values[v] = _finish_float(sums, acc, v)
            continue
        word, fits = _finish_column(sums, acc, slot, v)
        if not fits:
            there = 2
        values[v] = word
        if is_value(kind):
            slot += _VALUE_SLOTS
    return there


@inner
def finish_block(sums, accumulators, many, out):
    """Write the results of a block of groups to address `out`, BLOCK words a column, and behind the columns whether
    each is present. Returns a group with a sum that does not fit a word, or -1.
    """
    bad = -1
    there = out + 8 * BLOCK * sums.vo
    for j in range(many):
        first = load(accumulators, j * sums.slots)
        store(there, j, np.int64(first != 0 if sums.linear else first >= sums.least))
    if not sums.linear:
        return bad
    slot = sums.nf
    for v in range(sums.vo):
        column = out + 8 * BLOCK * v
        kind = field(sums.params, v, _KIND)
        if kind == COUNT:
            a = field(sums.params, v, _A)
            for j in range(many):
                store(column, j, load(accumulators, j * sums.slots + a))
            continue
        for j in range(many):
            if load(there, j) == 0:
                continue
            acc = group_at(sums, accumulators, j)
            if kind >= SUM_FLOAT:
                store(column, j, _finish_float(sums, acc, v))
            else:
                word, fits = _finish_column(sums, acc, slot, v)
                store(column, j, word)
                if not fits:
                    bad = j
        if is_value(kind):
            slot += _VALUE_SLOTS
    return bad
