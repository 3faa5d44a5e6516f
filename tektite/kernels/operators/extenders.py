"""The extenders of an intersection: which of them proposes words, and the filter of another one's words.

A filter never drops a word that an extender has.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tektite.kernels.compile import inlined, inner
from tektite.kernels.layout.memory import load, load4, read, store, store1
from tektite.kernels.layout.pages import address_of
from tektite.kernels.layout.rows import address, step_of
from tektite.kernels.seek.candidates import first_span, number_of, size_of, span_of, spans_end
from tektite.kernels.seek.search import word_end

# What `extenders` says of each: the address of what `find_candidates` found, its slots, the columns of its key, how many columns
# behind the key must be the word, its data columns, its time columns, whether it is complete, whether it may be passed over where
# it does not propose.
FOUND = 0
SLOTS = 1
COLUMN = 2
EQUAL = 3
DATA = 4
TIMES = 5
COMPLETE = 6
OPTIONAL = 7
EXTENDER = 8
# A word is put into a filter in about a thirtieth of the time that a search in all batches takes. So filling one costs no more
# than a constant times what the rows look up.
PAYS = 32
# Places of a filter for each word, at least: of words that are not there, at most one in so many passes it. A filter of very many
# words has fewer, so that it stays near the processor.
PLACES = 64
PLACES_OF_MANY = 16
MANY = 4096
# Marks of filters that are told apart before all places have to be cleared.
MARKS = 127
# Candidates that are sifted at once: their row numbers stay in the first-level cache.
SIFTED = 512


class Extenders(NamedTuple):
    """The extenders: the address of what is said of each, how many they are, and how many rows they extend."""

    table: int
    many: int
    rows: int


class ExtenderFilter(NamedTuple):
    """A filter of 2 ** (64 - shift) places at the address `marks`: a word may be there if its place has this mark. A filter whose
    mark is 0 lets every word pass.
    """

    marks: int
    shift: int
    mark: int


@inner
def field_of(extenders, e, field):
    """A word that is said of extender e."""
    return load(extenders.table, EXTENDER * e + field)


@inner
def key_of(extenders, row, e):
    """The number of the key that a row has in an extender."""
    return number_of(field_of(extenders, e, FOUND), extenders.rows, row)


@inner
def candidates_of(extenders, row, e):
    """How many candidates an extender has for a row."""
    return size_of(field_of(extenders, e, FOUND), extenders.rows, key_of(extenders, row, e))


@inner
def batches_of(extenders, e, key):
    """How many batches of an extender have rows with a key."""
    found = field_of(extenders, e, FOUND)
    return spans_end(found, extenders.rows, key) - first_span(found, extenders.rows, key)


@inner
def rows_of(extenders, e, key, number):
    """One of these batches, the first row with the key in it and the end of these rows."""
    found = field_of(extenders, e, FOUND)
    span = span_of(found, extenders.rows, first_span(found, extenders.rows, key) + number)
    return load(span, 0), load(span, 1), load(span, 2)


@inner
def fewest_and_largest(extenders, row):
    """The extender with the fewest candidates for a row, how many these are, and the keyed extender with the most."""
    proposer = 0
    fewest = candidates_of(extenders, row, 0)
    largest = 0
    most = np.int64(-1)
    for e in range(extenders.many):
        size = candidates_of(extenders, row, e)
        if size < fewest:
            proposer = e
            fewest = size
        if size >= most and field_of(extenders, e, COLUMN) > 0:
            largest = e
            most = size
    return proposer, fewest, largest


@inner
def look_up(extenders, e, place, many):
    """Whether the rows from `place` on, in the order of extender e's keys, that have the same key look up so many words."""
    found = field_of(extenders, e, FOUND)
    key = number_of(found, extenders.rows, load(found, place))
    words = 0
    for ahead in range(place, extenders.rows):
        row = load(found, ahead)
        if number_of(found, extenders.rows, row) != key:
            break
        _, fewest, largest = fewest_and_largest(extenders, row)
        if largest == e:
            words += fewest
            if words >= many:
                return True
    return False


@inner
def _slot(word, shift):
    """The place of a word in a filter of 2 ** (64 - shift) places."""
    return np.int64((np.uint64(word) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(shift))


@inner
def _passes(filter_, word):
    return read(filter_.marks, 1, _slot(word, filter_.shift)) == filter_.mark


@inner
def filled_filter(memory, mark, extenders, e, key):
    """A filter of all words that an extender has for a key. Returns it, and the memory of marks, replaced where it is too small
    or all marks are used. `mark` is that of the filter before.
    """
    shift = 63
    size = size_of(field_of(extenders, e, FOUND), extenders.rows, key)
    while (np.int64(1) << (64 - shift)) < (PLACES if size <= MANY else PLACES_OF_MANY) * size:
        shift -= 1
    mark += 1
    needed = (np.int64(1) << (64 - shift)) + 8  # a read of the last byte touches seven more
    if needed > len(memory) or mark > MARKS:
        memory = np.zeros(max(len(memory), needed), np.int8)
        mark = 1
    marks = address_of(memory)
    for slot in range(batches_of(extenders, e, key)):
        batch, start, end = rows_of(extenders, e, key, slot)
        at = address(batch, field_of(extenders, e, COLUMN))
        by = step_of(batch, field_of(extenders, e, COLUMN))
        if by == 4:
            for i in range(start, end):
                store1(marks, _slot(load4(at, i), shift), mark)
        else:
            for i in range(start, end):
                store1(marks, _slot(read(at, by, i), shift), mark)
    return memory, ExtenderFilter(marks, shift, mark)


@inner
def _sift(at, by, start, end, filter_, kept):
    """Write the numbers of the rows whose words pass a filter to `kept`; returns how many."""
    many = 0
    if by == 4:
        for i in range(start, end):
            store(kept, many, i)
            many += _passes(filter_, load4(at, i))
    else:
        for i in range(start, end):
            store(kept, many, i)
            many += _passes(filter_, read(at, by, i))
    return many


@inlined
def next_candidates(at, by, start, end, complete, filter_, kept):
    """Write the next rows of start..end whose words pass the filter to `kept`: of an extender that is not complete, one row for
    each word. Returns how many these are, and the row to go on at.
    """
    many = 0
    if not complete:
        while start < end and many < SIFTED:
            word = read(at, by, start)
            if filter_.mark == 0 or _passes(filter_, word):
                store(kept, many, start)
                many += 1
            start = word_end(at, by, end, start, word)
        return many, start
    stop = min(end, start + SIFTED)
    if filter_.mark != 0:
        return _sift(at, by, start, stop, filter_, kept), stop
    for i in range(start, stop):
        store(kept, many, i)
        many += 1
    return many, stop
