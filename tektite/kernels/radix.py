"""Sorting 64-bit words: an MSD pass while a range outgrows the cache, LSD passes inside it, insertion for short runs.

Promise: `sort_words` orders words as unsigned integers, except that words which differ only in bits below `low` may end in
any order. Digits in which the words of a range agree cost nothing, and no more leading bits are sorted by radix than are
likely to tell the rows of a range apart: a 64-bit hash over few rows takes few passes.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner
from tektite.kernels.pages import empty_words

# Up to this many words, a range and its copy stay in a core's own cache (2 x 8 bytes x 40960 = 640 KiB).
CACHED = 40960
# An MSD pass writes to at most 2**10 places at once: more would outgrow the cache's lines and the TLB.
MSD_BITS = 10
LSD_BITS = 8
# Below this length insertion sort beats setting up histograms.
SHORT = 32


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
    for i in range(start + 1, stop):
        word = words[i]
        j = i - 1
        while j >= start and words[j] > word:
            words[j + 1] = words[j]
            j -= 1
        words[j + 1] = word


@inner
def _copy(source, target, start, stop):
    for i in range(start, stop):
        target[i] = source[i]


@inner
def sort_words(words, spare, size, low):
    """Sort words[:size] (uint64) in place; `spare` is scratch of the same length."""
    if size <= SHORT:
        _insertion(words, 0, size)
        return
    # Ranges still to be sorted are disjoint and longer than SHORT, which bounds how many there can be.
    pending = empty_words(3 * (size // SHORT + 2))
    counts = np.empty(max(1 << MSD_BITS, 8 << LSD_BITS), np.int64)
    pending[0] = 0
    pending[1] = size
    pending[2] = 0
    depth = 1
    while depth > 0:
        depth -= 1
        start = pending[3 * depth]
        stop = pending[3 * depth + 1]
        in_spare = pending[3 * depth + 2]
        length = stop - start
        if in_spare:
            source = spare
            target = words
        else:
            source = words
            target = spare
        first = source[start]
        differ = np.uint64(0)
        for i in range(start, stop):
            differ |= source[i] ^ first
        differ = (differ >> np.uint64(low)) << np.uint64(low)
        if differ == np.uint64(0):
            if in_spare:
                _copy(spare, words, start, stop)
            continue
        top = bit_length(differ)
        span = top - (bit_length(differ & (~differ + np.uint64(1))) - 1)
        if length > CACHED:
            depth = _scatter(source, target, words, start, stop, top, span, 1 - in_spare, counts, pending, depth)
        else:
            depth = _sort_cached(source, target, words, start, stop, top, span, in_spare, counts, pending, depth)


@inner
def _scatter(source, target, words, start, stop, top, span, to_spare, counts, pending, depth):
    """One MSD pass from source to target: buckets end sorted in `words` or on the list of pending ranges."""
    digit = min(span, MSD_BITS)
    shift = np.uint64(top - digit)
    buckets = 1 << digit
    mask = np.uint64(buckets - 1)
    for d in range(buckets):
        counts[d] = 0
    for i in range(start, stop):
        counts[np.int64((source[i] >> shift) & mask)] += 1
    position = start
    for d in range(buckets):
        here = counts[d]
        counts[d] = position
        position += here
    for i in range(start, stop):
        word = source[i]
        d = np.int64((word >> shift) & mask)
        at = counts[d]
        counts[d] = at + 1
        target[at] = word
    if digit == span:
        if to_spare:
            _copy(target, words, start, stop)
        return depth
    # After the scatter counts[d] is where bucket d ends.
    position = start
    for d in range(buckets):
        end = counts[d]
        if end - position > SHORT:
            pending[3 * depth] = position
            pending[3 * depth + 1] = end
            pending[3 * depth + 2] = to_spare
            depth += 1
        elif end > position:
            if to_spare:
                _copy(target, words, position, end)
            _insertion(words, position, end)
        position = end
    return depth


@inner
def _sort_cached(source, target, words, start, stop, top, span, in_spare, counts, pending, depth):
    """LSD passes over the leading bits that probably tell the rows apart; runs that agree in them are left to follow."""
    length = stop - start
    need = min(span, bit_length(np.uint64(length)) + 3)
    if span - need <= 2:
        need = span
    low = top - need
    passes = (need + LSD_BITS - 1) // LSD_BITS
    digit = (need + passes - 1) // passes
    buckets = 1 << digit
    mask = np.uint64(buckets - 1)
    for d in range(passes * buckets):
        counts[d] = 0
    for i in range(start, stop):
        word = source[i] >> np.uint64(low)
        for p in range(passes):
            counts[p * buckets + np.int64(word & mask)] += 1
            word >>= np.uint64(digit)
    for p in range(passes):
        shift = np.uint64(low + p * digit)
        base = p * buckets
        if counts[base + np.int64((source[start] >> shift) & mask)] == length:
            continue
        position = start
        for d in range(base, base + buckets):
            here = counts[d]
            counts[d] = position
            position += here
        for i in range(start, stop):
            word = source[i]
            d = base + np.int64((word >> shift) & mask)
            at = counts[d]
            counts[d] = at + 1
            target[at] = word
        source, target = target, source
        in_spare = 1 - in_spare
    if in_spare:
        _copy(source, words, start, stop)
    if need == span:
        return depth
    shift = np.uint64(low)
    i = start
    while i < stop:
        leading = words[i] >> shift
        end = i + 1
        while end < stop and words[end] >> shift == leading:
            end += 1
        if end - i > SHORT:
            pending[3 * depth] = i
            pending[3 * depth + 1] = end
            pending[3 * depth + 2] = 0
            depth += 1
        elif end - i > 1:
            _insertion(words, i, end)
        i = end
    return depth
