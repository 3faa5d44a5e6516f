"""Last rows: decides which of several rows with one key counts last, where rows have no order.

An order column decides. Of rows with the same value in it, the old image of an update comes first. Without an order column,
equal rows are harmless. If a feed has both images of updates, the rows of a key can be counted: what the key held, plus each
row that came, minus each row that went, leaves the one that it holds in the end. Promise: what is counted is a chain of
changes from what the input holds; anything else is refused.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tektite.engine.constraints import columns_text
from tektite.errors import IncorrectError
from tektite.spark.feed import AFTER, FORGET, PUT, REMOVE, REPLACE, Feed
from tektite.values.dictionary import Dictionary
from tektite.values.words import Words

HeldRows = Callable[[Words], Words]
"""Looks up the input's rows (columns x rows) with the keys of some rows; both in the schema's column order."""


def key_ends(keys: Words) -> Words:
    """The place of the last row of each key, if rows with equal keys are adjacent."""
    ends = np.ones(keys.shape[1], bool)
    ends[:-1] = (keys[:, 1:] != keys[:, :-1]).any(axis=0)
    return np.flatnonzero(ends)


def moments(feed: Feed, whole: Words) -> Words:
    """The time at which each row counts, as comparable numbers: by the order column; of rows with the same value in it, old
    images count first.
    """
    width = len(feed.schema.names)
    when = whole[width + 1] if feed.order is not None else np.zeros(whole.shape[1], np.int64)
    after = whole[width] != FORGET
    if after.all():
        return when
    order = np.lexsort([after, when])
    changed = np.zeros(len(order), np.int64)
    changed[1:] = (when[order][1:] != when[order][:-1]) | (after[order][1:] != after[order][:-1])
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.cumsum(changed)
    return ranks


def settled(feed: Feed, whole: Words, held: HeldRows, dictionary: Dictionary) -> Words:
    """Rows (columns, operation, order) in which the last row of each key is certain: those given, with one row in place of
    each key that can be counted. Keys without a certain result are refused.
    """
    clashing = contradictions(feed, whole)
    if not len(clashing):
        return whole
    keys = list(feed.keys or range(len(feed.schema.names)))
    if feed.order is not None or feed.operation is None:
        raise uncertain(feed, whole[:, clashing[0]], keys, dictionary)
    group = groups(whole[keys])
    among = np.isin(group, group[clashing])
    return np.concatenate([whole[:, ~among], counted(feed, whole[:, among], keys, held, dictionary)], axis=1)


def groups(keys: Words) -> Words:
    """A number for each row, equal for rows with one key, ascending like the keys."""
    order = np.lexsort(keys[::-1])
    ends = key_ends(keys[:, order])
    found = np.empty(keys.shape[1], np.int64)
    found[order] = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=-1))
    return found


def contradictions(feed: Feed, whole: Words) -> Words:
    """Rows that share their key with another row that may also be last but says something else; without an order, also rows
    that are inserted and appear as an old image.
    """
    width = len(feed.schema.names)
    keys = list(feed.keys or range(width))
    others = [column for column in range(width) if column not in keys]
    when = moments(feed, whole)
    order = np.lexsort([when, *whole[keys]])
    ends = key_ends(whole[keys][:, order])
    lasts = when[order] == np.repeat(when[order][ends], np.diff(ends, prepend=-1))
    clash = lasts[:-1] & lasts[1:]
    clash[ends[:-1]] = False
    first, second = order[:-1], order[1:]
    puts = whole[width] > 0
    differ = (whole[others][:, first] != whole[others][:, second]).any(axis=0) & puts[first]
    found: Words = first[clash & (differ | (puts[first] != puts[second])) & (whole[width, first] != FORGET)]
    if feed.order is not None or not (whole[width] == FORGET).any():
        return found
    order = np.lexsort([whole[width], *whole[:width]])
    before, after = whole[:, order[:-1]], whole[:, order[1:]]
    both = (before[width] == FORGET) & (after[width] > 0) & (before[:width] == after[:width]).all(axis=0)
    return np.concatenate([found, order[:-1][both]])


def counted(feed: Feed, whole: Words, keys: list[int], held: HeldRows, dictionary: Dictionary) -> Words:
    """One row for each key: the result of counting everything that came and went, or that the key is gone.

    That holds for feeds with old images of updates. Not counted are

    * keys without any image: in an upsert, a feed may repeat an insert or a delete;
    * keys of which an update replaced a row that the feed does not contain.

    If a key held nothing, and only images came and went, nobody knows whether a row passed through or an update found a row
    that was never reported.
    """
    width = len(feed.schema.names)
    group = groups(whole[keys])
    some = np.unique(group, return_index=True)[1]
    there = held(whole[:width, some])
    rows = np.concatenate([whole[:width], there], axis=1)
    kinds = np.concatenate([whole[width], np.full(there.shape[1], PUT)])
    group = groups(rows[keys])
    whose = whole.shape[1]

    def count(wanted: Words) -> Words:
        """For each key, the number of some rows that have it."""
        return np.bincount(group[wanted], minlength=len(some))

    # Equal rows are adjacent, and so are the rows of one key.
    order = np.lexsort([*rows, group])
    ends = key_ends(rows[:, order])
    sums = np.add.reduceat(np.where(kinds > 0, 1, -1)[order], np.concatenate([[0], ends[:-1] + 1]))
    of = group[order][ends]
    total = np.bincount(of, weights=sums, minlength=len(some))
    told = np.arange(len(kinds)) < whose
    sure = (count(told & (kinds == FORGET)) > 0) & (count(told & (kinds == REPLACE)) == 0)
    sure &= (np.bincount(of, weights=(sums < 0) | (sums > 1), minlength=len(some)) == 0) & (total <= 1)
    sure &= (total > 0) | (count(~told) > 0) | (count(told & ((kinds == PUT) | (kinds == REMOVE))) > 0)
    if not sure.all():
        raise uncertain(feed, whole[:, some[int(np.argmin(sure))]], keys, dictionary)
    left = order[ends][sums == 1]
    gone = some[total == 0]
    found = np.empty((len(whole), len(left) + len(gone)), np.int64)
    found[:width] = np.concatenate([rows[:, left], whole[:width, gone]], axis=1)
    found[width] = np.repeat([AFTER, REMOVE], [len(left), len(gone)])
    return found


def uncertain(feed: Feed, row: Words, keys: list[int], dictionary: Dictionary) -> IncorrectError:
    """The error for a key whose last row is unknown."""
    what = "several rows" if feed.order is None else f"several rows with one value of {feed.order!r}"
    such = ", such as _commit_version in Delta's change feed, or ts_ms or the log's position in Debezium's"
    return IncorrectError(
        f"table {feed.name!r}: found {what} for {columns_text(feed.schema, keys, row, dictionary)} that say different things, "
        f"and nothing says which comes last: name a column that does, order='...'{such if feed.operation else ''}"
    )
