"""Small row-major lists of records that a kernel collects for one key, sorts and writes out.

A list is a flat array and a count of records of `stride` words each. Kernels use them only as scratch memory: their results
are always columns.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner
from tektite.kernels.layout.columns import all_same
from tektite.kernels.layout.memory import load
from tektite.kernels.layout.pages import address_of, empty_words
from tektite.kernels.layout.rows import fitting_columns, new_head, set_constant, set_stored
from tektite.kernels.layout.scratch import keep

# Records that are sorted by insertion.
_FEW = 12


@inner
def room(array, used, more):
    """The array, or a copy at least twice as long if `more` words do not fit behind the `used` ones."""
    if used + more <= len(array):
        return array
    larger = np.empty(max(2 * len(array), used + more), np.int64)
    for w in range(used):
        larger[w] = array[w]
    return larger


@inner
def compare_records(a, i, b, k, words):
    """-1, 0 or 1 as the words from a[i] on are before, equal to or after those from b[k] on."""
    for c in range(words):
        if a[i + c] != b[k + c]:
            return -1 if a[i + c] < b[k + c] else 1
    return 0


@inner
def sort_records(list_, many, stride, words):
    """Sort records in place by their first `words` words: insertion sort for a few, merge sort for many. Records that come in
    order, as those of a growing aggregate do, cost one comparison each.
    """
    sorted_ = 1
    while sorted_ < many and compare_records(list_, (sorted_ - 1) * stride, list_, sorted_ * stride, words) <= 0:
        sorted_ += 1
    if sorted_ >= many:
        return
    if many <= _FEW:
        for i in range(sorted_, many):
            k = i * stride
            while k > 0 and compare_records(list_, k - stride, list_, k, words) > 0:
                for c in range(k - stride, k):
                    list_[c], list_[c + stride] = list_[c + stride], list_[c]
                k -= stride
        return
    order = _merge_sorted(list_, many, stride, words)
    ordered = np.empty(many * stride, np.int64)
    for i in range(many):
        at = order[2 * i + 1] * stride
        for c in range(stride):
            ordered[i * stride + c] = list_[at + c]
    for w in range(many * stride):
        list_[w] = ordered[w]


@inner
def _merge_sorted(list_, many, stride, words):
    """The records' order, as pairs (first word of a record, number of the record). A step of the sort moves such a pair instead
    of a whole record, and reads a record only if another one begins with the same word.
    """
    source = np.empty(2 * many, np.int64)
    target = np.empty(2 * many, np.int64)
    for start in range(0, many, _FEW):
        for i in range(start, min(start + _FEW, many)):
            k = i
            while k > start and _is_after(source, k - 1, list_[i * stride], i, list_, stride, words):
                source[2 * k] = source[2 * k - 2]
                source[2 * k + 1] = source[2 * k - 1]
                k -= 1
            source[2 * k] = list_[i * stride]
            source[2 * k + 1] = i
    run = _FEW
    while run < many:
        for start in range(0, many, 2 * run):
            i = start
            middle = min(start + run, many)
            k = middle
            end = min(start + 2 * run, many)
            for o in range(start, end):
                take = i
                if i >= middle or (
                    k < end and _is_after(source, i, source[2 * k], source[2 * k + 1], list_, stride, words)
                ):
                    take = k
                    k += 1
                else:
                    i += 1
                target[2 * o] = source[2 * take]
                target[2 * o + 1] = source[2 * take + 1]
        source, target = target, source
        run *= 2
    return source


@inner
def _is_after(pairs, i, word, number, list_, stride, words):
    """Whether the record of pair i comes after another record, given by its first word and its number."""
    if pairs[2 * i] != word:
        return pairs[2 * i] > word
    return compare_records(list_, pairs[2 * i + 1] * stride + 1, list_, number * stride + 1, words - 1) > 0


@inner
def distinct_records(list_, many, stride):
    """Drop repeated records of a sorted list; returns how many are left."""
    kept = 0
    for i in range(many):
        if kept == 0 or compare_records(list_, i * stride, list_, (kept - 1) * stride, stride) != 0:
            for c in range(stride):
                list_[kept * stride + c] = list_[i * stride + c]
            kept += 1
    return kept


@inner
def columns_room(buf, capacity, width, rows, more):
    """A column-major buffer with place for `more` further rows, and its capacity in rows."""
    if rows + more <= capacity:
        return buf, capacity
    wider = max(2 * capacity, rows + more)
    larger = empty_words(width * wider)
    for c in range(width):
        for i in range(rows):
            larger[c * wider + i] = buf[c * capacity + i]
    return larger, wider


@inner
def head_of_columns(buf, capacity, rows, spec, constants):
    """The head over a column-major buffer. Entry c >= 0 of `spec` takes the buffer's column c, entry -1 - c makes the
    constant constants[c]. Columns of one repeated word become constants. Also returns the memory that the head uses: the buffer,
    an empty one if nothing is stored in it, or a smaller one if most of it is unused.
    """
    width = len(spec)
    head = new_head(rows, width)
    if rows == 0:
        return np.empty(0, np.int64), head
    at = address_of(buf)
    stored = 0
    for j in range(width):
        if spec[j] < 0:
            set_constant(head, j, constants[-1 - spec[j]])
        else:
            where = at + 8 * capacity * spec[j]
            if all_same(where, rows):
                set_constant(head, j, load(where, 0))
            else:
                set_stored(head, j, where)
                stored += 1
    if stored == 0:
        keep(buf)
        return np.empty(0, np.int64), head
    if 2 * stored * rows < len(buf) and len(buf) > 4096:
        smaller = fitting_columns(head)
        keep(buf)
        return smaller, head
    return buf, head
