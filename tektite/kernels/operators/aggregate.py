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
output; `acc` has the accumulators, `slots` for each group; `m` is a row's multiplicity, `d` a diff.
"""

from __future__ import annotations

from tektite.kernels.compile import inner
from tektite.kernels.layout.memory import bits_from_float, load, read, store
from tektite.kernels.layout.rows import address, count, step_of, value
from tektite.kernels.operators.limbs import LIMBS, limbs_word
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


@inner
def is_value(kind):
    """Whether a kind is one of the _VALUE kinds."""
    return COUNT_VALUE <= kind <= AVG_VALUE


@inner
def float_columns(params, vo, linear):
    """How many float columns are summed as limbs."""
    columns = 0
    if linear:
        for v in range(vo):
            if params[5 * v] >= SUM_FLOAT:
                columns = max(columns, params[5 * v + 1] + 1)
    return columns


@inner
def accumulators(params, vo, nf, linear):
    """How many accumulators a group needs: `nf` for diff columns, and those of values or floats."""
    total = nf + LIMBS * float_columns(params, vo, linear)
    if linear:
        for v in range(vo):
            if is_value(params[5 * v]):
                total += 3
    return total


@inner
def accumulate_row(head, i, kc, diff_at, nf, params, vo, linear, floats, acc, base):
    """Add row i to the accumulators from acc[base] on; `nf` diff columns have one, and a limb follows them if there are
    `floats`. False if a diff column no longer fits its word.
    """
    wrong = False
    for f in range(nf):
        d = value(head, diff_at + f, i)
        wrong |= sum_overflows(acc[base + f], d)
        acc[base + f] += d
    if linear:
        slot = base + nf
        if floats > 0 and value(head, kc, i) > 0:
            slot += value(head, kc, i) - 1
            d = value(head, diff_at + nf, i)
            wrong |= sum_overflows(acc[slot], d)
            acc[slot] += d
            return not wrong
        for v in range(vo):
            if is_value(params[5 * v]):
                word = value(head, kc + params[5 * v + 1], i)
                if word != NULL:
                    m = value(head, diff_at, i)
                    high, low = wide_add(acc[slot], acc[slot + 1], product_high(word, m), word * m)
                    acc[slot] = high
                    acc[slot + 1] = low
                    acc[slot + 2] += m
                slot += 3
    return not wrong


@inner
def accumulate_block(head, lone, begin, end, many, kc, diff_at, nf, params, vo, linear, floats, acc, slots):
    """Add the rows begin[j]..end[j] to the accumulators of key j, for a block of keys, column by column, as
    `accumulate_row` does. If `lone` no key has more than one row. Returns a key whose diffs no longer fit their word,
    or -1.
    """
    bad = -1
    last = count(head) - 1
    for f in range(nf):
        at = address(head, diff_at + f)
        by = step_of(head, diff_at + f)
        if lone:
            for j in range(many):
                i = load(begin, j)
                d = read(at, by, min(i, last)) * (load(end, j) - i)
                total = acc[j * slots + f]
                if sum_overflows(total, d):
                    bad = j
                acc[j * slots + f] = total + d
            continue
        for j in range(many):
            total = acc[j * slots + f]
            for i in range(load(begin, j), load(end, j)):
                d = read(at, by, i)
                if sum_overflows(total, d):
                    bad = j
                total += d
            acc[j * slots + f] = total
    if floats > 0:
        for j in range(many):
            for i in range(load(begin, j), load(end, j)):
                slot = value(head, kc, i)
                if slot > 0:
                    slot += j * slots + nf - 1
                    d = value(head, diff_at + nf, i)
                    if sum_overflows(acc[slot], d):
                        bad = j
                    acc[slot] += d
    elif linear and slots > nf:
        diffs = address(head, diff_at)
        diffs_by = step_of(head, diff_at)
        slot = nf
        for v in range(vo):
            if not is_value(params[5 * v]):
                continue
            at = address(head, kc + params[5 * v + 1])
            by = step_of(head, kc + params[5 * v + 1])
            for j in range(many):
                high = acc[j * slots + slot]
                low = acc[j * slots + slot + 1]
                seen = acc[j * slots + slot + 2]
                for i in range(load(begin, j), load(end, j)):
                    word = read(at, by, i)
                    if word != NULL:
                        m = read(diffs, diffs_by, i)
                        high, low = wide_add(high, low, product_high(word, m), word * m)
                        seen += m
                acc[j * slots + slot] = high
                acc[j * slots + slot + 1] = low
                acc[j * slots + slot + 2] = seen
            slot += 3
    return bad


@inner
def float_word(x):
    """The order-preserving word of a double."""
    bits = bits_from_float(x)
    return bits if bits >= 0 else bits ^ 0x7FFFFFFFFFFFFFFF


@inner
def finish_column(acc, base, slot, params, v):
    """The word of output column v of a present group, and whether it fits; if it does not, its low word. `slot` is where
    its own accumulators begin.
    """
    kind = params[5 * v]
    a = params[5 * v + 1]
    if kind == COUNT:
        return acc[base + a], True
    high = 0
    low = 0
    seen = 0
    if kind <= AVG:
        limb = acc[base + params[5 * v + 2]]
        small = acc[base + a]
        high, low = wide_add(limb >> 32, limb << 32, small >> 63, small)
        seen = acc[base]
        if params[5 * v + 3] >= 0:
            seen = acc[base + params[5 * v + 3]]
    else:
        high = acc[slot]
        low = acc[slot + 1]
        seen = acc[slot + 2]
    if kind == COUNT_VALUE:
        return seen, True
    if kind == OVERFLOWS:
        return (0 if high == low >> 63 and low != NULL else 1), True
    if seen == 0:
        return NULL, True
    if kind == SUM or kind == SUM_VALUE:
        return low, high == low >> 63 and low != NULL
    scale = 1.0
    for _ in range(params[5 * v + 4]):
        scale *= 10.0
    return float_word(wide_float(high, low) / (seen * scale)), True


@inner
def finish_float(acc, base, nf, params, v, digits):
    """The word of output column v of a present group, which is of a _FLOAT kind. `digits` is room to round in."""
    seen = acc[base + params[5 * v + 3]]
    if seen == 0:
        return NULL
    return limbs_word(acc, base + nf + LIMBS * params[5 * v + 1], 1 if params[5 * v] == SUM_FLOAT else seen, digits)


@inner
def finish(acc, base, nf, params, vo, linear, least, digits, values):
    """Write the result row of a group to values[:vo]. Returns 1 if the group is present, 0 if not, and 2 if it is present
    and a sum does not fit a word. If not `linear` the group is present from multiplicity `least` on, with no values.
    """
    if not linear:
        return 1 if acc[base] >= least else 0
    if acc[base] == 0:
        return 0
    slot = base + nf
    there = 1
    for v in range(vo):
        if params[5 * v] >= SUM_FLOAT:
            values[v] = finish_float(acc, base, nf, params, v, digits)
            continue
        word, fits = finish_column(acc, base, slot, params, v)
        if not fits:
            there = 2
        values[v] = word
        if is_value(params[5 * v]):
            slot += 3
    return there


@inner
def finish_block(acc, many, slots, nf, params, vo, linear, least, digits, out):
    """Write the results of a block of groups to address `out`, BLOCK words a column, and behind the columns whether
    each is present. Returns a group with a sum that does not fit a word, or -1.
    """
    bad = -1
    there = out + 8 * BLOCK * vo
    for j in range(many):
        first = acc[j * slots]
        store(there, j, (1 if first != 0 else 0) if linear else (1 if first >= least else 0))
    slot = nf
    if linear:
        for v in range(vo):
            column = out + 8 * BLOCK * v
            if params[5 * v] == COUNT:
                a = params[5 * v + 1]
                for j in range(many):
                    store(column, j, acc[j * slots + a])
                continue
            if params[5 * v] >= SUM_FLOAT:
                for j in range(many):
                    if load(there, j) != 0:
                        store(column, j, finish_float(acc, j * slots, nf, params, v, digits))
                continue
            for j in range(many):
                if load(there, j) != 0:
                    word, fits = finish_column(acc, j * slots, j * slots + slot, params, v)
                    store(column, j, word)
                    if not fits:
                        bad = j
            if is_value(params[5 * v]):
                slot += 3
    return bad
