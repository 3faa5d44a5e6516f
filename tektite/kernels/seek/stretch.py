"""Finds places in the sorted rows of an arrangement: where a row belongs in each batch, whether a word stands in a stretch."""

from __future__ import annotations

from tektite.kernels.compile import kernel
from tektite.kernels.layout.memory import read
from tektite.kernels.layout.rows import address, count, step_of, value


@kernel("void(int64[::1], int64[::1], int64, int64[::1])")
def row_bounds(table, words, behind, out):
    """For each batch of `table`, write how many of its rows come before the words in its first columns; with `behind`, those that
    have just these words count as well.
    """
    for b in range(len(table)):
        head = table[b]
        low = 0
        high = count(head)
        while low < high:
            middle = (low + high) >> 1
            order = 0
            for c in range(len(words)):
                word = value(head, c, middle)
                if word != words[c]:
                    order = -1 if word < words[c] else 1
                    break
            if order < 0 or (order == 0 and behind != 0):
                low = middle + 1
            else:
                high = middle
        out[b] = low


@kernel("int64(int64, int64, int64, int64, int64)")
def has_word(head, column, first, last, word):
    """Whether one of the rows first..last-1 has the word in a column: 1 or 0."""
    at = address(head, column)
    step = step_of(head, column)
    for i in range(first, last):
        if read(at, step, i) == word:
            return 1
    return 0
