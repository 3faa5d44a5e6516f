"""Finding keys in sorted rows.

A *block* holds up to BLOCK keys in ascending order, column by column: key j's column c is word c * BLOCK + j.
`seek_block` finds, for each of them, the first row whose leading columns are not smaller:

* If keys are far apart in the rows, all searches of a block advance together, so that their cache misses overlap: by
  interpolation if the first column grows evenly, otherwise by binary search.
* If they are close, each search scans from the end of the previous one.

Either way the work depends on the number of keys, not of rows.

Short names: `kc` is the number of key columns, `j` the number of a key in its block, `at` and `by` the address and the step of a
column.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tektite.kernels.compile import inner
from tektite.kernels.layout.memory import load, load4, read, store
from tektite.kernels.layout.pages import prefetch
from tektite.kernels.layout.rows import address, count, step_of, value

NULL = -(2**63)
GREATEST = 2**63 - 1

# Keys sought together. Enough to hide misses; small enough that the rows they touch stay in the second-level cache.
BLOCK = 256
# Rows that a scan skips or compares at once: one or two cache lines, and a whole number of vectors of any width.
SCAN = 16
# After skipping so often, a scan becomes a search.
MOST_SCANS = 64
# Keys that lie closer together than this, in bytes of their column, are scanned for. The processor itself reads so far ahead, and
# that takes less time than the two or three cache lines that a search waits for (measured from 100 to 3,000 bytes).
_CLOSE = 768
# Rows of a run that are compared one by one before a search for its end begins: most runs are shorter.
_RUN = 12
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
def compare_key(head, i, keys, j, kc):
    """-1, 0 or 1 as row i is before, equal to or after key j of the block at address `keys`."""
    for c in range(kc):
        x = value(head, c, i)
        y = load(keys, c * BLOCK + j)
        if x != y:
            return -1 if x < y else 1
    return 0


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


def _gallop_of(is_before: Any) -> Any:
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
def _is_key_before(sought, row):
    head, keys, j, kc = sought
    return compare_key(head, row, keys, j, kc) < 0


@inner
def _is_key_not_after(sought, row):
    head, keys, j, kc = sought
    return compare_key(head, row, keys, j, kc) <= 0


@inner
def _is_row_before(sought, row):
    head, other, k, columns = sought
    return compare_rows(head, row, other, k, columns) < 0


@inner
def _is_word_before(sought, row):
    at, step, word = sought
    return read(at, step, row) < word


_gallop_to_key = _gallop_of(_is_key_before)
_gallop_past_key = _gallop_of(_is_key_not_after)
_gallop_to_row = _gallop_of(_is_row_before)
_gallop_to_word = _gallop_of(_is_word_before)
_bisect_words = _bisect_of(_is_word_before)


@inner
def gallop(head, rows, start, keys, j, kc):
    """The first row from `start` on whose key is not before key j."""
    return _gallop_to_key(rows, start, 1, (head, keys, j, kc))


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
def scan_key(head, rows, start, keys, j, kc):
    """As `gallop` for two and more key columns, for answers that are expected within some hundred rows. Like `scan_word`, it
    skips the rows with a smaller first word, then those with the same first and a smaller second word.
    """
    at = address(head, 0)
    by = step_of(head, 0)
    word = load(keys, j)
    p = start
    if p < rows and read(at, by, p) < word:
        p = scan_word(at, by, rows, p, word)
    second = address(head, 1)
    second_by = step_of(head, 1)
    second_word = load(keys, BLOCK + j)
    last = min(rows, p + MOST_SCANS * SCAN) - SCAN
    while p <= last and read(at, by, p + SCAN - 1) == word and read(second, second_by, p + SCAN - 1) < second_word:
        p += SCAN
    if p <= last:
        below = 0
        for k in range(SCAN):
            same = read(at, by, p + k) == word
            below += 1 if same & (read(second, second_by, p + k) < second_word) else 0
        p += below
    return gallop(head, rows, p, keys, j, kc)


@inner
def word_end(at, by, rows, start, word):
    """The end of the rows with `word` that begin at `start`; `start` itself if the row there has another word, or is none."""
    i = start
    near = min(rows, start + _RUN)
    while i < near and read(at, by, i) == word:
        i += 1
    if i < near or i >= rows:
        return i
    if word == GREATEST:
        return rows
    return gallop_word(at, by, rows, i, word + 1)


@inner
def group_end(head, rows, start, keys, j, kc):
    """The end of the rows with key j that begin at `start`; `start` itself if the row there has another key."""
    if kc == 0:
        return rows
    if kc == 1:
        return word_end(address(head, 0), step_of(head, 0), rows, start, load(keys, j))
    i = start
    near = min(rows, start + _RUN)
    while i < near and compare_key(head, i, keys, j, kc) == 0:
        i += 1
    if i < near or i >= rows:
        return i
    return _gallop_past_key(rows, i, 1, (head, keys, j, kc))


@inner
def _is_even(at, by, start, length):
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
def _seek_even(at, by, start, rows, keys, many, found):
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


@inner
def seek_block(head, start, keys, many, kc, found):
    """For each of `many` >= 1 ascending keys write to `found` the first row from `start` on that is not before it.

    No row before `start` may be one of the answers.
    """
    rows = count(head)
    if kc == 0 or start >= rows:
        for j in range(many):
            store(found, j, start)
        return
    at = address(head, 0)
    by = step_of(head, 0)
    if by == 0:
        p = start
        for j in range(many):
            p = gallop(head, rows, p, keys, j, kc)
            store(found, j, p)
        return
    reach = _CLOSE // by * many
    if start + reach >= rows or read(at, by, start + reach) >= load(keys, many - 1):
        p = start
        if kc == 1:
            for j in range(many):
                p = scan_word(at, by, rows, p, load(keys, j))
                store(found, j, p)
        elif start + 3 * many >= rows or read(at, by, start + 3 * many) >= load(keys, many - 1):
            # The next key is about the next row: a comparison or two find it.
            for j in range(many):
                p = gallop(head, rows, p, keys, j, kc)
                store(found, j, p)
        else:
            for j in range(many):
                p = scan_key(head, rows, p, keys, j, kc)
                store(found, j, p)
        return
    # Search no further than about where the last key lies.
    while start + reach < rows and read(at, by, start + reach) < load(keys, many - 1):
        reach <<= 1
    stop = min(start + reach + 1, rows)
    length = stop - start
    if length > 2048 and _is_even(at, by, start, length):
        _seek_even(at, by, start, stop, keys, many, found)
        if kc > 1:
            for j in range(many):
                store(found, j, gallop(head, rows, load(found, j), keys, j, kc))
        return
    for j in range(many):
        store(found, j, start)
    while length > 1:
        half = length >> 1
        ahead = at + by * (half - 1)
        for j in range(many):
            p = load(found, j)
            store(found, j, p + half if read(ahead, by, p) < load(keys, j) else p)
        length -= half
    for j in range(many):
        p = load(found, j)
        store(found, j, p + 1 if read(at, by, p) < load(keys, j) else p)
    if kc > 1:
        for j in range(many):
            store(found, j, gallop(head, rows, load(found, j), keys, j, kc))


@inner
def gather_block(head, start, kc, keys, firsts):
    """Copy the next up to BLOCK distinct keys from row `start` on into the block at `keys`, the rows at which they
    begin, and one past the last one's end, to `firsts`. Returns how many.
    """
    rows = count(head)
    many = 0
    i = start
    if kc == 0:
        store(firsts, 0, start)
        store(firsts, 1, rows)
        return 1 if start < rows else 0
    if kc == 1:
        at = address(head, 0)
        by = step_of(head, 0)
        while i < rows and many < BLOCK:
            word = read(at, by, i)
            store(keys, many, word)
            store(firsts, many, i)
            many += 1
            i += 1
            if i < rows and read(at, by, i) == word:
                i = group_end(head, rows, i, keys, many - 1, kc)
    else:
        while i < rows and many < BLOCK:
            for c in range(kc):
                store(keys, c * BLOCK + many, value(head, c, i))
            store(firsts, many, i)
            many += 1
            i = group_end(head, rows, i, keys, many - 1, kc)
    store(firsts, many, i)
    return many


@inner
def has_null(keys, j, kc):
    """Whether any column of key j is NULL."""
    for c in range(kc):
        if load(keys, c * BLOCK + j) == NULL:
            return True
    return False


@inner
def all_same(at, rows):
    """Whether a stored column of `rows` >= 1 words is one word repeated."""
    word = load(at, 0)
    if load(at, rows - 1) != word:
        return False
    for i in range(rows):
        if load(at, i) != word:
            return False
    return True
