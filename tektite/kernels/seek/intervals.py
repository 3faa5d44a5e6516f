"""Finds the intervals that contain the words of a column: which readers of a trace want which of its new rows.

Intervals of words have an owner each, and are sorted by their first word. Their last words are the leaves of a tree whose inner
nodes hold the greatest below them. So the intervals that contain a word are found in time proportional to their number, times the
depth of the tree. The intervals of one owner do not overlap.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner, kernel
from tektite.kernels.layout.memory import load, read, store
from tektite.kernels.layout.pages import address_of, empty_words
from tektite.kernels.layout.rows import address, count, new_head, set_constant, set_stored, step_of
from tektite.values.words import NULL


@kernel("int64[::1](int64[::1])")
def greatest_tree(last):
    """The tree over the last words of intervals: the children of node i are 2i and 2i + 1, the root is 1."""
    leaves = 1
    while leaves < len(last):
        leaves *= 2
    tree = np.full(2 * leaves, NULL, np.int64)
    for i in range(len(last)):
        tree[leaves + i] = last[i]
    for i in range(leaves - 1, 0, -1):
        tree[i] = max(tree[2 * i], tree[2 * i + 1])
    return tree


@inner
def _up_to(sorted_words, word):
    """How many sorted words are at most `word`."""
    low, high = 0, len(sorted_words)
    while low < high:
        middle = (low + high) // 2
        if sorted_words[middle] <= word:
            low = middle + 1
        else:
            high = middle
    return low


@kernel("Tuple((int64, int64[::1], int64[::1]))(int64, int64, int64[::1], int64[::1], int64[::1], int64)")
def owners_of_rows(source, column, first, tree, owners, most):
    """Pairs (owner, row), in the order of rows: the row's word lies in an interval of the owner. Their number comes first; it is
    -1 if there are more than `most`, and the pairs are of no use then.
    """
    rows = count(source)
    at = address(source, column)
    by = step_of(source, column)
    owner = np.empty(most, np.int64)
    row = np.empty(most, np.int64)
    found = 0
    leaves = len(tree) // 2
    stack = np.empty(128, np.int64)
    before = 0
    """Where the pairs of the last row begin: a row with the same word has the same owners."""
    for i in range(rows):
        word = read(at, by, i)
        start = found
        if i > 0 and word == read(at, by, i - 1):
            if found + (start - before) > most:
                return -1, owner, row
            for k in range(before, start):
                owner[found] = owner[k]
                row[found] = i
                found += 1
            before = start
            continue
        before = start
        end = _up_to(first, word)
        if end == 0:
            continue
        depth = 1
        stack[0] = 1
        while depth > 0:
            depth -= 1
            node = stack[depth]
            if tree[node] < word:
                continue
            if node >= leaves:
                if node - leaves < end:
                    if found == most:
                        return -1, owner, row
                    owner[found] = owners[node - leaves]
                    row[found] = i
                    found += 1
                continue
            # The right half begins behind all intervals that start in time: nothing there is wanted.
            leftmost = 2 * node + 1
            while leftmost < leaves:
                leftmost *= 2
            if leftmost - leaves < end:
                stack[depth] = 2 * node + 1
                depth += 1
            stack[depth] = 2 * node
            depth += 1
    return found, owner, row


@kernel("int64[::1](int64, int64, int64[::1], int64[::1], int64[::1], int64)")
def owners_touched(source, column, first, last, owners, slots):
    """The owners, of numbers below `slots`, of intervals in which the word of some row lies. Each is named once."""
    rows = count(source)
    at = address(source, column)
    by = step_of(source, column)
    words = np.empty(1 if by == 0 else rows, np.int64)
    for i in range(len(words)):
        words[i] = read(at, by, i)
    words.sort()
    seen = np.zeros(slots, np.uint8)
    found = np.empty(slots, np.int64)
    many = 0
    for k in range(len(first)):
        upto = _up_to(words, last[k])
        if upto > 0 and words[upto - 1] >= first[k] and seen[owners[k]] == 0:
            seen[owners[k]] = 1
            found[many] = owners[k]
            many += 1
    return found[:many].copy()


@kernel(
    "Tuple((int64[::1], int64[::1], int64[::1], int64[::1]))(int64, int64[::1], int64[::1], int64, int64)",
)
def rows_by_owner(source, owner, row, pairs, slots):
    """The rows of (owner, row) pairs, grouped by owner: memory, head, the owners, and where the rows of each begin. The rows of
    an owner keep their order, and constant columns stay constant.
    """
    counts = np.zeros(slots, np.int64)
    many = 0
    for k in range(pairs):
        if counts[owner[k]] == 0:
            many += 1
        counts[owner[k]] += 1
    found = np.empty(many, np.int64)
    offsets = np.empty(many + 1, np.int64)
    many = 0
    total = 0
    for s in range(slots):
        if counts[s] > 0:
            found[many] = s
            offsets[many] = total
            total += counts[s]
            counts[s] = offsets[many]
            many += 1
    offsets[many] = total
    order = np.empty(pairs, np.int64)
    for k in range(pairs):
        order[counts[owner[k]]] = row[k]
        counts[owner[k]] += 1
    columns = load(source, 2)
    stored = 0
    for j in range(columns):
        if step_of(source, j) != 0:
            stored += 1
    buf = empty_words(stored * pairs)
    head = new_head(pairs, columns)
    out = address_of(buf)
    for j in range(columns):
        by = step_of(source, j)
        if by == 0:
            set_constant(head, j, load(source, 5 + 3 * j))
            continue
        at = address(source, j)
        for k in range(pairs):
            store(out, k, read(at, by, order[k]))
        set_stored(head, j, out)
        out += 8 * pairs
    return buf, head, found, offsets
