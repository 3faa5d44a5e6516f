"""Searches in sorted rows: by columns, or by the words of one column.

`gallop_of` makes the one search that all kernels share: it leaps ahead, twice as far each time, and bisects the last leap. So its
work is logarithmic in the distance of the answer, not in the number of rows. `scan_word` is faster for answers that are near, and
`seek_even` for many answers in a column that grows evenly.

Short names: `at` and `by` are the address and the step of a column.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tektite.kernels.compile import inner
from tektite.kernels.layout.memory import GREATEST, load, load4, read, store
from tektite.kernels.layout.pages import prefetch
from tektite.kernels.layout.rows import value

# Rows that a scan skips or compares at once: one or two cache lines, and a whole number of vectors of any width.
SCAN = 16
# After skipping so often, a scan becomes a search.
MOST_SCANS = 64
# Rows of a run that are compared one by one before a search for its end begins: most runs are shorter.
RUN = 12
# Among fewer rows than these, the second guess of an even column is about as good as a third would be.
_NEAR = 1 << 16


@inner
def compare_rows(a, i, b, k, columns):
    """-1, 0 or 1 as row i of the rows at `a` is before, equal to or after row k of those at `b` in their first
    columns.
    """
    for c in range(columns):
        x = value(a, c, i)
        y = value(b, c, k)
        if x != y:
            return -1 if x < y else 1
    return 0


@inner
def less_mask(x, y):
    """-1 if x < y, otherwise 0, without a branch: compilers make a branch of a comparison in a loop."""
    difference = x - y
    return (difference ^ ((x ^ y) & (difference ^ x))) >> 63


def _bisect_of(is_before: Any) -> Any:
    """A function (low, high, sought) that finds, by halving, the first of rows low..high-1 for which `is_before(sought, row)` is
    false; `high` if it is true for all.
    """

    @inner
    def bisect(low, high, sought):
        while low < high:
            middle = (low + high) >> 1
            if is_before(sought, middle):
                low = middle + 1
            else:
                high = middle
        return low

    return bisect


def gallop_of(is_before: Any) -> Any:
    """A function (rows, start, step, sought) that finds the first row from `start` on for which `is_before(sought, row)` is
    false; `rows` if there is none. It looks `step` rows ahead, then twice as far each time, and bisects the last leap. So its
    work is logarithmic in the distance of the answer, not in the number of rows.
    """
    bisect = _bisect_of(is_before)

    @inner
    def gallop(rows, start, step, sought):
        if start >= rows or not is_before(sought, start):
            return start
        low = start
        while low + step < rows and is_before(sought, low + step):
            low += step
            step <<= 1
        return bisect(low + 1, min(low + step, rows), sought)

    return gallop


@inner
def _is_row_before(sought, row):
    head, other, k, columns = sought
    return compare_rows(head, row, other, k, columns) < 0


@inner
def _is_word_before(sought, row):
    at, step, word = sought
    return read(at, step, row) < word


_gallop_to_row = gallop_of(_is_row_before)
_gallop_to_word = gallop_of(_is_word_before)
_bisect_words = _bisect_of(_is_word_before)


@inner
def gallop_rows(head, rows, start, other, k, columns):
    """The first row from `start` on that is not before row k of the rows at `other` in its first columns."""
    return _gallop_to_row(rows, start, 1, (head, other, k, columns))


@inner
def gallop_word(at, by, rows, start, word):
    """The first row from `start` on whose word in the column at address `at`, of step `by`, is not below `word`."""
    return _gallop_to_word(rows, start, 1, (at, by, word))


@inner
def gallop_from(at, by, rows, start, leap, word):
    """As `gallop_word`, looking `leap` rows ahead at first: for answers that are expected about so far away."""
    return _gallop_to_word(rows, start, leap, (at, by, word))


@inner
def scan_word(at, by, rows, start, word):
    """As `gallop_word`, for answers that are expected within some hundred rows. It compares the last of each SCAN rows, which the
    processor has read ahead, and then all SCAN rows that hold the answer at once. That costs less than the mispredicted branches
    of a search.
    """
    p = start
    last = min(rows, start + MOST_SCANS * SCAN) - SCAN
    while p <= last and read(at, by, p + SCAN - 1) < word:
        p += SCAN
    if p > last:
        return gallop_word(at, by, rows, p, word)
    below = 0
    if by == 4:
        for k in range(SCAN):
            below += 1 if load4(at, p + k) < word else 0
    elif by == 8:
        for k in range(SCAN):
            below += 1 if load(at, p + k) < word else 0
    else:
        for k in range(SCAN):
            below += 1 if read(at, by, p + k) < word else 0
    return p + below


@inner
def word_end(at, by, rows, start, word):
    """The end of the rows with `word` that begin at `start`; `start` itself if the row there has another word, or is none."""
    i = start
    near = min(rows, start + RUN)
    while i < near and read(at, by, i) == word:
        i += 1
    if i < near or i >= rows:
        return i
    if word == GREATEST:
        return rows
    return gallop_word(at, by, rows, i, word + 1)


@inner
def is_even(at, by, start, length):
    """Whether the words of a sorted column grow about evenly with the row, as ids and hashes do."""
    low = np.float64(read(at, by, start))
    span = np.float64(read(at, by, start + length - 1)) - low
    if not span > 0.0:
        return False
    for q in range(1, 8):
        off = np.float64(read(at, by, start + ((length * q) >> 3))) - low - span * q * 0.125
        if abs(off) * 16.0 > span:
            return False
    return True


@inner
def seek_even(at, by, start, rows, keys, many, found):
    """Lower bounds, among rows start..rows, in a column that is even there. The value of a word gives its place, up to an error
    that grows like the root of the distance. So a guess that is corrected by the word found there comes within a few rows, and
    touches fewer cache lines than a binary search. A key that is not near its guess is searched for from there.
    """
    low = np.float64(read(at, by, start))
    last = np.float64(rows - 1)
    slope = np.float64(rows - 1 - start) / (np.float64(read(at, by, rows - 1)) - low)
    for j in range(many):
        guess = np.float64(start) + (np.float64(load(keys, j)) - low) * slope
        p = np.int64(min(max(guess, np.float64(start)), last))
        prefetch(at + by * p)
        store(found, j, p)
    for _ in range(1 if rows - start < _NEAR else 2):
        for j in range(many):
            p = load(found, j)
            guess = np.float64(p) + (np.float64(load(keys, j)) - np.float64(read(at, by, p))) * slope
            p = np.int64(min(max(guess, np.float64(start)), last))
            prefetch(at + by * (p - 9))
            prefetch(at + by * (p + 8))
            store(found, j, p)
    for j in range(many):
        word = load(keys, j)
        p = load(found, j)
        first = max(p - 8, start)
        past = min(p + 8, rows)
        if first > start and read(at, by, first - 1) >= word:
            # The answer lies before: gallop backwards.
            past = first - 1
            step = 16
            first = max(past - step, start)
            while first > start and read(at, by, first - 1) >= word:
                past = first - 1
                step <<= 1
                first = max(past - step, start)
        elif past < rows and read(at, by, past) < word:
            store(found, j, gallop_word(at, by, rows, past, word))
            continue
        elif past - first == 16:
            p = first + 8 if read(at, by, first + 7) < word else first
            p = p + 4 if read(at, by, p + 3) < word else p
            p = p + 2 if read(at, by, p + 1) < word else p
            p = p + 1 if read(at, by, p) < word else p
            store(found, j, p + 1 if read(at, by, p) < word else p)
            continue
        store(found, j, _bisect_words(first, past, (at, by, word)))
