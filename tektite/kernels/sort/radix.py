"""Sorts 64-bit words: LSD radix passes over the leading bits, then insertion sort for the short runs that remain.

Promise: `sort_words` orders words as unsigned integers, except that words that differ only in bits below `low` end in the order
of these bits, or in the order that they came in.

Bits in which all words of a range agree cost nothing. Of the others, no more are sorted by radix than are likely to
distinguish the rows of a range: a 64-bit hash takes no more passes than a dense key. Long runs that agree in these bits are
sorted again as ranges of their own, so skew costs passes over the affected rows only.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner
from tektite.kernels.layout.memory import load, store
from tektite.kernels.layout.pages import address_of
from tektite.kernels.layout.scratch import keep

# A pass writes to one place per value of a digit. Up to 2**10 places their cache lines stay at hand; few rows are not
# worth clearing that many counters.
_DIGIT_BITS = 10
_SMALL_DIGIT_BITS = 8
_SMALL = 4096
# With this many bits more than the number of rows has, few rows still agree.
_SPARE_BITS = 7
# Below this length insertion sort beats setting up counters.
_SHORT = 32


@inner
def bit_length(word):
    """Position of the highest set bit of an unsigned word, plus one; 0 for 0."""
    word = np.uint64(word)
    bits = 0
    for step in (32, 16, 8, 4, 2, 1):
        if word >> np.uint64(step):
            word >>= np.uint64(step)
            bits += step
    return bits + np.int64(word)


@inner
def _insertion(words, start, stop):
    """Sort words start..stop by insertion."""
    for i in range(start + 1, stop):
        word = load(words, i)
        j = i - 1
        while j >= start and np.uint64(load(words, j)) > np.uint64(word):
            store(words, j + 1, load(words, j))
            j -= 1
        store(words, j + 1, word)


@inner
def _distribute(source, target, start, stop, shift, buckets, counts):
    """One pass: move source[start:stop] to target, sorted by one digit. Returns False, having moved nothing, if all words have
    the same digit.
    """
    mask = np.uint64(buckets - 1)
    by = np.uint64(shift)
    for d in range(buckets):
        store(counts, d, 0)
    for i in range(start, stop):
        d = np.int64((np.uint64(load(source, i)) >> by) & mask)
        store(counts, d, load(counts, d) + 1)
    if load(counts, np.int64((np.uint64(load(source, start)) >> by) & mask)) == stop - start:
        return False
    position = start
    for d in range(buckets):
        here = load(counts, d)
        store(counts, d, position)
        position += here
    for i in range(start, stop):
        word = load(source, i)
        d = np.int64((np.uint64(word) >> by) & mask)
        at = load(counts, d)
        store(counts, d, at + 1)
        store(target, at, word)
    return True


@inner
def sort_words(words, spare, size, low):
    """Sort the `size` words at address `words`, with as much scratch memory at `spare`. The result is in one of the two: returns
    its address. It takes addresses because Numba's checks for negative indices would cost a third of the time.
    """
    if size <= _SHORT:
        _insertion(words, np.int64(0), size)
        return words
    # Ranges still to be sorted are disjoint and longer than _SHORT, which bounds how many there can be.
    pending = np.empty(2 * (size // _SHORT + 2), np.int64)
    room = np.empty(1 << _DIGIT_BITS, np.int64)
    counts = address_of(room)
    pending[0] = 0
    pending[1] = size
    depth = 1
    while depth > 0:
        depth -= 1
        start = pending[2 * depth]
        stop = pending[2 * depth + 1]
        length = stop - start
        first = load(words, start)
        mixed = 0
        for i in range(start, stop):
            mixed |= load(words, i) ^ first
        differ = (np.uint64(mixed) >> np.uint64(low)) << np.uint64(low)
        if differ == np.uint64(0):
            continue
        top = bit_length(differ)
        lowest = bit_length(differ & (~differ + np.uint64(1))) - 1
        widest = _SMALL_DIGIT_BITS if length < _SMALL else _DIGIT_BITS
        need = min(top - lowest, bit_length(np.uint64(length)) + 1)
        passes = (need + widest - 1) // widest
        need = min(top - lowest, min(passes * widest, need + _SPARE_BITS - 1))
        digit = (need + passes - 1) // passes
        bottom = top - need
        source = words
        target = spare
        for p in range(passes):
            if _distribute(source, target, start, stop, bottom + p * digit, 1 << digit, counts):
                source, target = target, source
        if length == size:
            words = source
            spare = target
        elif source != words:
            for i in range(start, stop):
                store(words, i, load(source, i))
        if bottom > lowest:
            depth = _settle_runs(words, start, stop, np.uint64(bottom), pending, depth)
    keep(room)
    return words


@inner
def _settle_runs(words, start, stop, shift, pending, depth):
    """Sort short runs of words that agree above `shift`, and list long ones as pending."""
    begin = start
    last = np.uint64(load(words, start)) >> shift
    for i in range(start + 1, stop + 1):
        if i < stop:
            leading = np.uint64(load(words, i)) >> shift
            if leading == last:
                continue
            last = leading
        if i - begin > _SHORT:
            pending[2 * depth] = begin
            pending[2 * depth + 1] = i
            depth += 1
        elif i - begin > 1:
            _insertion(words, begin, i)
        begin = i
    return depth
