"""Totals over moving frames, for window functions.

Row i's frame is rows low[i]..high[i]-1. Neither bound decreases from one row to the next, so every row enters the totals once
and leaves them once, whatever the sizes of frames. Sums are exact, also those of floats, so a row that leaves has no effect
afterwards.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import kernel
from tektite.kernels.layout.memory import load, store
from tektite.kernels.layout.scratch import keep, scratch
from tektite.kernels.operators.aggregate import float_word
from tektite.kernels.operators.limbs import DIGITS, LIMBS, limbs_of, limbs_word
from tektite.kernels.operators.wide import wide_add, wide_float
from tektite.values.words import NULL

COUNT, SUM, AVG, SUM_FLOAT, AVG_FLOAT, MIN, MAX = range(7)


@kernel("int64(int64[::1], int64[::1], int64[::1], int64, int64, int64, int64[::1])")
def frame_totals(words, low, high, kind, limit, divisor, out):
    """Write a total of each row's frame to `out`: NULL where a frame has no word but NULL, and COUNT has 0.

    The average of integers is divided by `divisor`. Returns a row whose sum leaves -limit..limit, or -1.
    """
    memory, (limbs, digits) = scratch((LIMBS, DIGITS))
    for k in range(LIMBS):
        store(limbs, k, 0)
    sum_high = 0
    sum_low = 0
    present = 0
    entered = 0
    left = 0
    for i in range(len(words)):
        while entered < high[i] or left < low[i]:
            sign = 1 if entered < high[i] else -1
            word = words[entered] if sign > 0 else words[left]
            if sign > 0:
                entered += 1
            else:
                left += 1
            if word == NULL:
                continue
            present += sign
            if kind == SUM or kind == AVG:
                more = word * sign
                sum_high, sum_low = wide_add(sum_high, sum_low, more >> 63, more)
            elif kind == SUM_FLOAT or kind == AVG_FLOAT:
                at, first, second, third = limbs_of(word)
                store(limbs, at, load(limbs, at) + sign * first)
                if second != 0:
                    store(limbs, at + 1, load(limbs, at + 1) + sign * second)
                if third != 0:
                    store(limbs, at + 2, load(limbs, at + 2) + sign * third)
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
            out[i] = limbs_word(limbs, 1 if kind == SUM_FLOAT else present, digits)
    keep(memory)
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
