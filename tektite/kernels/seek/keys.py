"""Finding keys in sorted rows, a block of keys at a time.

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

from tektite.kernels.compile import inner
from tektite.kernels.layout.memory import load, read, store
from tektite.kernels.layout.rows import address, count, step_of, value
from tektite.kernels.seek.search import (
    MOST_SCANS,
    RUN,
    SCAN,
    compare_rows,
    gallop_of,
    is_even,
    less_mask,
    scan_word,
    seek_even,
    word_end,
)
from tektite.values.words import NULL

# Keys sought together. Enough to hide misses; small enough that the rows they touch stay in the second-level cache.
BLOCK = 256
# Keys that lie closer together than this, in bytes of their column, are scanned for. The processor itself reads so far ahead, and
# that takes less time than the two or three cache lines that a search waits for (measured from 100 to 3,000 bytes).
_CLOSE = 768
# Rows of a run that `block_ends` compares at once.
_NEAR = 8
# Words that `block_ends` needs.
ENDS_WORK = 3 * BLOCK


@inner
def compare_key(head, i, keys, j, kc):
    """-1, 0 or 1 as row i is before, equal to or after key j of the block at address `keys`."""
    for c in range(kc):
        x = value(head, c, i)
        y = load(keys, c * BLOCK + j)
        if x != y:
            return -1 if x < y else 1
    return 0


@inner
def _is_key_before(sought, row):
    head, keys, j, kc = sought
    return compare_key(head, row, keys, j, kc) < 0


@inner
def _is_key_not_after(sought, row):
    head, keys, j, kc = sought
    return compare_key(head, row, keys, j, kc) <= 0


_gallop_to_key = gallop_of(_is_key_before)
_gallop_past_key = gallop_of(_is_key_not_after)


@inner
def gallop(head, rows, start, keys, j, kc):
    """The first row from `start` on whose key is not before key j."""
    return _gallop_to_key(rows, start, 1, (head, keys, j, kc))


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
def group_end(head, rows, start, keys, j, kc):
    """The end of the rows with key j that begin at `start`; `start` itself if the row there has another key."""
    if kc == 0:
        return rows
    if kc == 1:
        return word_end(address(head, 0), step_of(head, 0), rows, start, load(keys, j))
    i = start
    near = min(rows, start + RUN)
    while i < near and compare_key(head, i, keys, j, kc) == 0:
        i += 1
    if i < near or i >= rows:
        return i
    return _gallop_past_key(rows, i, 1, (head, keys, j, kc))


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
    if length > 2048 and is_even(at, by, start, length):
        seek_even(at, by, start, stop, keys, many, found)
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
            # A branch would be predicted wrongly half of the time.
            store(found, j, p + (half & less_mask(read(ahead, by, p), load(keys, j))))
        length -= half
    for j in range(many):
        p = load(found, j)
        store(found, j, p + 1 if read(at, by, p) < load(keys, j) else p)
    if kc > 1:
        for j in range(many):
            store(found, j, gallop(head, rows, load(found, j), keys, j, kc))


@inner
def block_ends(head, keys, many, kc, starts, ends, work):
    """For each of `many` keys of one block write to `ends` the end of the rows with the key, which begin at its place in
    `starts`; that place if the row there has another key. Long runs of all keys are searched for their ends together, so that
    cache misses overlap. `work` has ENDS_WORK words.
    """
    rows = count(head)
    at = address(head, 0)
    by = step_of(head, 0)
    if kc != 1 or by == 0:
        for j in range(many):
            start = load(starts, j)
            store(ends, j, group_end(head, rows, start, keys, j, kc) if start < rows else start)
        return
    long, active, leaps = work, work + 8 * BLOCK, work + 16 * BLOCK
    longs = 0
    for j in range(many):
        start = load(starts, j)
        word = load(keys, j)
        if start + _NEAR >= rows:
            store(ends, j, word_end(at, by, rows, start, word))
            continue
        same = 0
        for k in range(_NEAR):
            same += 1 if read(at, by, start + k) == word else 0
        store(ends, j, start + same)
        store(long, longs, j)
        store(active, longs, j)
        longs += 1 if read(at, by, start + _NEAR) == word else 0
    # From here on ends[j] is a row with key j, of those with long runs.
    leap = _NEAR
    going = longs
    while going > 0:
        leap <<= 1
        left = 0
        for a in range(going):
            j = load(active, a)
            p = load(ends, j)
            ahead = min(p + leap, rows - 1)
            hit = 1 if (read(at, by, ahead) == load(keys, j)) & (p + leap < rows) else 0
            store(ends, j, p + leap * hit)
            store(leaps, j, leap)
            store(active, left, j)
            left += hit
        going = left
    leap >>= 1
    while leap > 0:
        for a in range(longs):
            j = load(long, a)
            p = load(ends, j)
            if leap < load(leaps, j):
                ahead = min(p + leap, rows - 1)
                hit = 1 if (read(at, by, ahead) == load(keys, j)) & (p + leap < rows) else 0
                store(ends, j, p + leap * hit)
        leap >>= 1
    for a in range(longs):
        j = load(long, a)
        store(ends, j, load(ends, j) + 1)


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
    if start + 1 < rows and compare_rows(head, start, head, start + 1, kc) != 0:
        many = min(BLOCK, rows - start)
        if _gather_different(head, start, kc, keys, firsts, many):
            store(firsts, many, group_end(head, rows, start + many - 1, keys, many - 1, kc))
            return many
        many = 0
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
def _gather_different(head, start, kc, keys, firsts, many):
    """Copy the keys of `many` rows from `start` on into the block, and list the rows. Returns whether all keys differ. No branch
    depends on a row: the processor could not predict where a key ends.
    """
    store(firsts, 0, 1)
    for c in range(kc):
        at = address(head, c)
        by = step_of(head, c)
        column = keys + 8 * BLOCK * c
        for i in range(many):
            store(column, i, read(at, by, start + i))
        if c == 0:
            for i in range(1, many):
                store(firsts, i, load(column, i) ^ load(column, i - 1))
        else:
            for i in range(1, many):
                store(firsts, i, load(firsts, i) | (load(column, i) ^ load(column, i - 1)))
    equal = 0
    for i in range(many):
        equal += 1 if load(firsts, i) == 0 else 0
        store(firsts, i, start + i)
    return equal == 0


@inner
def has_null(keys, j, kc):
    """Whether any column of key j is NULL."""
    for c in range(kc):
        if load(keys, c * BLOCK + j) == NULL:
            return True
    return False
