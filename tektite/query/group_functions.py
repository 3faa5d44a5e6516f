"""Functions of many groups at once, over arrays of words: what `builders.reduce_groups` takes.

A function gets `Groups`. For every row of its result it returns the number of the group, the value columns and the multiplicity.
Functions are compared as values: equal functions of one collection share an arrangement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from tektite.dataflow.reduce import GroupResults, Groups
from tektite.errors import IncorrectError
from tektite.expr.program import SEVERAL_ROWS
from tektite.plan.algebra import Narrowed
from tektite.values import composites, types
from tektite.values.dictionary import Dictionary
from tektite.values.types import Type
from tektite.values.words import NULL, Words

Order = tuple[int, bool, bool]
"""A column to order by, whether descending, and whether NULLs come first."""


def ranks(words: Words, type: Type, dictionary: Dictionary) -> Words:
    """Integers in the same order as the values of a column. NULL stays NULL."""
    if type == types.Float:
        return np.where(words == -1, 0, words)  # -0.0 is 0.0
    if type.interned:
        return text_ranks(words, dictionary, type)
    return words


def text_ranks(words: Words, dictionary: Dictionary, type: Type = types.String) -> Words:
    """The rank of each text among the distinct texts of a column; equal values have one rank."""
    ids, places = np.unique(words, return_inverse=True)
    nulls = int(ids[0] == NULL)
    texts = dictionary.lookup(ids[nulls:])
    if type.has_keys:
        texts = composites.key_texts(texts, type)
    order = pc.array_sort_indices(texts).to_numpy()
    found = np.full(len(ids), NULL)
    found[nulls:][order] = np.arange(len(order))
    if type.has_keys and len(order) > 1:
        in_order = texts.take(order)
        new = np.concatenate(([0], np.asarray(pc.not_equal(in_order[1:], in_order[:-1]))))
        found[nulls:][order] = np.cumsum(new)
    return found[places]


def sort_words(groups: Groups, order: Sequence[Order], types: Sequence[Type]) -> list[Words]:
    """The sort keys of the rows of each group, most significant first: for each column, NULLs and then values."""
    found = []
    for column, descending, nulls_first in order:
        values = ranks(groups.columns[column], types[column], groups.dictionary)
        nulls = values == NULL
        found += [~nulls if nulls_first else nulls, ~values if descending else values]
    return found


def sorted_rows(groups: Groups, by: Sequence[Words], backward: bool = False) -> Words:
    """The rows group by group, each group sorted. The words of all columns break ties, so that the order is always the same;
    `backward` says that greater ones come first.
    """
    columns = ~groups.columns if backward else groups.columns
    return np.lexsort((*columns[::-1], *reversed(by), groups.numbers))


def starts_of(numbers: Words) -> Words:
    """For each row, the start of its run of equal numbers. Needs at least one row."""
    begins = np.flatnonzero(np.concatenate(([True], numbers[1:] != numbers[:-1])))
    return np.repeat(begins, np.diff(np.append(begins, len(numbers))))


def of_columns(order: Sequence[Order], places: Mapping[int, int]) -> tuple[Order, ...]:
    """An order over columns that have other numbers."""
    return tuple((places[column], descending, nulls_first) for column, descending, nulls_first in order)


@dataclass(frozen=True)
class TopRows:
    """The first `count` rows of each group in an order. A row counts as often as its multiplicity says."""

    count: int
    order: tuple[Order, ...]
    types: tuple[Type, ...]
    key: int

    @property
    def single(self) -> bool:
        return self.count == 1

    def narrowed(self, outputs: set[int]) -> Narrowed:
        """The same rows without columns that neither the order nor the reader needs."""
        kept = tuple(sorted({*range(self.key), *(column for column, _, _ in self.order), *outputs}))
        places = {column: at for at, column in enumerate(kept)}
        types = tuple(self.types[column] for column in kept)
        return Narrowed(TopRows(self.count, of_columns(self.order, places), types, self.key), kept, kept)

    def __call__(self, groups: Groups) -> GroupResults:
        rows = sorted_rows(groups, sort_words(groups, self.order, self.types))
        counts, numbers = groups.counts[rows], groups.numbers[rows]
        before = np.cumsum(counts) - counts
        before -= before[starts_of(numbers)]
        chosen = np.flatnonzero(before < self.count)
        taken = np.minimum(counts[chosen], self.count - before[chosen])
        return numbers[chosen], groups.columns[self.key :, rows[chosen]], taken


@dataclass(frozen=True)
class AtMostOne:
    """The same rows. A group with more than one row is an error."""

    key: int
    single = True
    only_checks = True

    def narrowed(self, outputs: set[int]) -> Narrowed:
        """The same check of rows with fewer columns."""
        kept = tuple(sorted({*range(self.key), *outputs}))
        return Narrowed(self, kept, kept)

    def __call__(self, groups: Groups) -> GroupResults:
        repeated = np.any(groups.counts > 1) or np.any(groups.numbers[1:] == groups.numbers[:-1])
        if repeated:
            raise IncorrectError(SEVERAL_ROWS)
        return groups.numbers, groups.columns[self.key :], groups.counts
