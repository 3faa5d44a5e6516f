"""Totals over moving frames, for window functions.

A frame is one stretch of rows or several: stretch s of row i's frame is rows low[s, i]..high[s, i]-1. Each stretch moves from row
to row, and what enters or leaves it is added or taken away. Where the bounds never decrease every row enters once and leaves
once, whatever the sizes of frames. Sums are exact, also those of floats, so a row that leaves has no effect afterwards.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner, kernel
from tektite.kernels.operators.aggregate import float_word
from tektite.kernels.operators.limbs import DIGITS, LIMBS, limbs_of, limbs_word
from tektite.kernels.operators.wide import wide_add, wide_float
from tektite.values.words import NULL

COUNT, SUM, AVG, SUM_FLOAT, AVG_FLOAT, MIN, MAX = range(7)


@inner
def better_row(words, one, other, kind):
    """Which of two rows has the lesser (MIN) or greater word; -1 stands for no row."""
    if one < 0 or other < 0:
        return max(one, other)
    if kind == MIN:
        return one if words[one] <= words[other] else other
    return one if words[one] >= words[other] else other


@kernel("int64(int64[::1], int64[::1], int64[:, ::1], int64[:, ::1], int64, int64, int64, int64[::1])")
def frame_totals(words, same, low, high, kind, limit, divisor, out):
    """Write a total of each row's frame to `out`: NULL where a frame has no word but NULL, and COUNT has 0.

    Where `same` is not empty, words with one number in it count once. The average of integers is divided by `divisor`. Returns a
    row whose sum leaves -limit..limit, or -1.
    """
    limbs = np.zeros(LIMBS if kind == SUM_FLOAT or kind == AVG_FLOAT else 1, np.int64)
    digits = np.empty(DIGITS, np.int64)
    held = np.zeros(len(same), np.int64)
    first = np.zeros(len(low), np.int64)
    last = np.zeros(len(low), np.int64)
    sum_high = 0
    sum_low = 0
    present = 0
    for i in range(len(words)):
        for s in range(len(low)):
            while True:
                if last[s] < high[s, i]:
                    sign = 1
                    row = last[s]
                    last[s] += 1
                elif first[s] > low[s, i]:
                    sign = 1
                    first[s] -= 1
                    row = first[s]
                elif last[s] > high[s, i]:
                    sign = -1
                    last[s] -= 1
                    row = last[s]
                elif first[s] < low[s, i]:
                    sign = -1
                    row = first[s]
                    first[s] += 1
                else:
                    break
                word = words[row]
                if word == NULL:
                    continue
                if len(same) > 0:
                    held[same[row]] += sign
                    if held[same[row]] != (1 if sign > 0 else 0):
                        continue
                present += sign
                if kind == SUM or kind == AVG:
                    more = word * sign
                    sum_high, sum_low = wide_add(sum_high, sum_low, more >> 63, more)
                elif kind == SUM_FLOAT or kind == AVG_FLOAT:
                    at, lower, middle, upper = limbs_of(word)
                    limbs[at] += sign * lower
                    if middle != 0:
                        limbs[at + 1] += sign * middle
                    if upper != 0:
                        limbs[at + 2] += sign * upper
        if kind == COUNT:
            out[i] = present
        elif present == 0:
            out[i] = NULL
        elif kind == SUM:
            if sum_high != sum_low >> 63 or sum_low > limit or sum_low < -limit:
                return i
            out[i] = sum_low
        elif kind == AVG:
            out[i] = float_word(wide_float(sum_high, sum_low) / present / divisor)
        else:
            out[i] = limbs_word(limbs, 0, 1 if kind == SUM_FLOAT else present, digits)
    return -1


@kernel("void(int64[::1], int64[::1], int64[::1], int64, int64[::1])")
def frame_extremes(words, low, high, kind, out):
    """Write to `out` which row of each row's frame has the least (MIN) or greatest word; -1 if all are NULL.

    A queue keeps the rows of the frame that no later row of it beats, best first.
    """
    queue = np.empty(len(words), np.int64)
    first = 0
    last = 0
    entered = 0
    for i in range(len(words)):
        while entered < high[i]:
            word = words[entered]
            if word != NULL:
                while last > first and (
                    words[queue[last - 1]] >= word if kind == MIN else words[queue[last - 1]] <= word
                ):
                    last -= 1
                queue[last] = entered
                last += 1
            entered += 1
        while first < last and queue[first] < low[i]:
            first += 1
        out[i] = queue[first] if first < last else -1


@kernel("void(int64[::1], int64[:, ::1], int64[:, ::1], int64, int64[::1])")
def extremes_anywhere(words, low, high, kind, out):
    """As `frame_extremes`, for frames whose bounds move in both directions, and frames of several stretches.

    A tree holds the best row of every stretch of rows whose length is a power of two, so that a frame is a few of them.
    """
    n = len(words)
    tree = np.full(2 * n, -1, np.int64)
    for i in range(n):
        tree[n + i] = i if words[i] != NULL else -1
    for node in range(n - 1, 0, -1):
        tree[node] = better_row(words, tree[2 * node], tree[2 * node + 1], kind)
    for i in range(n):
        best = -1
        for s in range(len(low)):
            begin = low[s, i] + n
            end = high[s, i] + n
            while begin < end:
                if begin & 1:
                    best = better_row(words, best, tree[begin], kind)
                    begin += 1
                if end & 1:
                    end -= 1
                    best = better_row(words, best, tree[end], kind)
                begin >>= 1
                end >>= 1
        out[i] = best
