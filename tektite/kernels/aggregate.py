"""Aggregates that are linear in the rows of a group: sums that come and go with rows, and what is read off them.

Each output column is described by five words (kind, a, b, c, digits):

    COUNT        a: the diff column to show (0 is the multiplicity)
    SUM          a, b: diff columns that hold the low and the high limb (value = low + high * 2**32);
                 c: diff column that counts the inputs that are not NULL, or -1 if none can be
    AVG          as SUM, divided by diff column c (or by the multiplicity if c is -1) and by 10**digits
    COUNT_VALUE  a: value column of which the words that are not NULL are counted
    SUM_VALUE    a: value column to sum, times the multiplicity
    AVG_VALUE    as SUM_VALUE, divided by the number of words that are not NULL and by 10**digits

The last three are for arrangements that keep plain values. Accumulators are the diff columns, then three words for each
_VALUE column: high and low word of a 128-bit sum, and the number of words that are not NULL.
"""

from __future__ import annotations

from tektite.kernels.compile import inner
from tektite.kernels.memory import bits_from_float, load, store
from tektite.kernels.rows import address, mask, value
from tektite.kernels.seek import BLOCK, NULL
from tektite.kernels.wide import product_high, sum_overflows, wide_add, wide_float

COUNT = 0
SUM = 1
AVG = 2
COUNT_VALUE = 3
SUM_VALUE = 4
AVG_VALUE = 5

AGGREGATE_WORDS = 5


@inner
def accumulators(params, vo, nf, linear):
    """How many accumulators a group needs."""
    total = nf
    if linear:
        for v in range(vo):
            if params[5 * v] >= 3:
                total += 3
    return total


@inner
def accumulate_row(head, i, kc, diff_at, nf, params, vo, linear, acc, base):
    """Add row i to the accumulators from acc[base] on. False if a diff column no longer fits its word."""
    wrong = False
    for f in range(nf):
        d = value(head, diff_at + f, i)
        wrong |= sum_overflows(acc[base + f], d)
        acc[base + f] += d
    if linear:
        slot = base + nf
        for v in range(vo):
            if params[5 * v] >= 3:
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
def accumulate_block(head, begin, end, many, kc, diff_at, nf, params, vo, linear, acc, slots):
    """Add the rows begin[j]..end[j] to the accumulators of key j, for a block of keys, column by column. Returns a key
    whose diffs no longer fit their word, or -1.
    """
    bad = -1
    for f in range(nf):
        at = address(head, diff_at + f)
        turn = mask(head, diff_at + f)
        for j in range(many):
            total = acc[j * slots + f]
            for i in range(load(begin, j), load(end, j)):
                d = load(at, i & turn)
                if sum_overflows(total, d):
                    bad = j
                total += d
            acc[j * slots + f] = total
    if linear and slots > nf:
        diffs = address(head, diff_at)
        diffs_turn = mask(head, diff_at)
        slot = nf
        for v in range(vo):
            if params[5 * v] < 3:
                continue
            at = address(head, kc + params[5 * v + 1])
            turn = mask(head, kc + params[5 * v + 1])
            for j in range(many):
                high = acc[j * slots + slot]
                low = acc[j * slots + slot + 1]
                seen = acc[j * slots + slot + 2]
                for i in range(load(begin, j), load(end, j)):
                    word = load(at, i & turn)
                    if word != NULL:
                        m = load(diffs, i & diffs_turn)
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
    """The word of output column v of a present group, and whether it fits. `slot` is where its own accumulators
    begin.
    """
    kind = params[5 * v]
    a = params[5 * v + 1]
    if kind == 0:
        return acc[base + a], True
    high = 0
    low = 0
    seen = 0
    if kind < 3:
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
    if kind == 3:
        return seen, True
    if seen == 0:
        return NULL, True
    if kind == 1 or kind == 4:
        return low, high == low >> 63 and low != NULL
    scale = 1.0
    for _ in range(params[5 * v + 4]):
        scale *= 10.0
    return float_word(wide_float(high, low) / (seen * scale)), True


@inner
def finish(acc, base, nf, params, vo, linear, least, values):
    """Write the result row of a group to values[:vo]. Returns 1 if the group is present, 0 if not, and -1 if a sum does
    not fit a word. If not `linear` the group is present from multiplicity `least` on, with no values.
    """
    if not linear:
        return 1 if acc[base] >= least else 0
    if acc[base] == 0:
        return 0
    slot = base + nf
    for v in range(vo):
        word, fits = finish_column(acc, base, slot, params, v)
        if not fits:
            return -1
        values[v] = word
        if params[5 * v] >= 3:
            slot += 3
    return 1


@inner
def finish_block(acc, many, slots, nf, params, vo, linear, least, out):
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
            if params[5 * v] == 0:
                a = params[5 * v + 1]
                for j in range(many):
                    store(column, j, acc[j * slots + a])
                continue
            for j in range(many):
                if load(there, j) != 0:
                    word, fits = finish_column(acc, j * slots, j * slots + slot, params, v)
                    store(column, j, word)
                    if not fits:
                        bad = j
            if params[5 * v] >= 3:
                slot += 3
    return bad
