"""Encoded rows brought to the driver: for engines whose shards live there, and for small micro-batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from pyspark.sql import DataFrame

from tektite.constraints import named
from tektite.dictionary import Dictionary
from tektite.errors import IncorrectError, TektiteError
from tektite.spark.failures import told, untold
from tektite.spark.feed import FORGET, PARCEL, PUT, Feed, encoder, unpack_texts
from tektite.words import NULL, Words


@dataclass(frozen=True)
class Encoded:
    """Rows in the order in which they count: words, what each row does, and the last position among them."""

    words: Words
    diffs: Words
    latest: int

    @property
    def rows(self) -> int:
        """How many there are."""
        return int(self.words.shape[1])


def collect(feed: Feed, frame: DataFrame, dictionary: Dictionary, at_once: bool = False) -> Encoded:
    """Bring the rows of a DataFrame here, encoded; their texts go to the dictionary.

    `at_once` is for what is known to be small: one job, whose tasks hand over what they read, and this process encodes it.
    Otherwise tasks encode, and each partition is brought by a job of its own, so that Spark's driver never holds more than two.
    """
    width = len(feed.schema.names) + 1 + (feed.order is not None)
    parts = [np.empty((width, 0), np.int64)]
    latest = NULL
    feed, frame = feed.needed(frame)
    found = handed_over(feed, frame, dictionary) if at_once else encoded(feed, frame, dictionary)
    for part, last in found:
        parts.append(part)
        latest = max(latest, last)
    whole = np.concatenate(parts, axis=1)
    columns = len(feed.schema.names)
    if feed.order is not None or feed.operation is not None:
        whole = whole[:, np.argsort(moments(feed, whole), kind="stable")]
    if feed.semantics != "bag":
        check_order(feed, whole, dictionary)
    return Encoded(np.ascontiguousarray(whole[:columns]), np.ascontiguousarray(whole[columns]), latest)


def handed_over(feed: Feed, frame: DataFrame, dictionary: Dictionary) -> Iterator[tuple[Words, int]]:
    """The batches of a DataFrame, encoded here, and their last positions. No Python worker has to be asked."""
    for number, batch in enumerate(frame.toArrow().to_batches()):
        try:
            yield feed.encode(batch, dictionary)
        except TektiteError as error:
            raise untold(told(error, f" (batch {number})"), f"input {feed.name!r}") from None


def encoded(feed: Feed, frame: DataFrame, dictionary: Dictionary) -> Iterator[tuple[Words, int]]:
    """The batches of a DataFrame, encoded by its tasks, and their last positions."""
    width = len(feed.schema.names) + 1 + (feed.order is not None)
    for row in frame.mapInArrow(encoder(feed), PARCEL).toLocalIterator(prefetchPartitions=True):
        if row.error is not None:
            raise untold(f"{row.error} (partition {row.part}, batch {row.number})", f"input {feed.name!r}")
        if row.texts:
            dictionary.add(unpack_texts(row.texts))
        yield np.frombuffer(row.words, np.int64).reshape(width, row.rows), row.latest


def key_ends(keys: Words) -> Words:
    """Where the rows of each key end, if those with one key lie together."""
    ends = np.ones(keys.shape[1], bool)
    ends[:-1] = (keys[:, 1:] != keys[:, :-1]).any(axis=0)
    return np.flatnonzero(ends)


def moments(feed: Feed, whole: Words) -> Words:
    """When each row counts, as numbers that compare like that: by the order column, and of rows that share a value of it, those
    that say what was there before count first.
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


def check_order(feed: Feed, whole: Words, dictionary: Dictionary) -> None:
    """Refuse rows that share a key but say different things, if nothing says which of them comes last."""
    width = len(feed.schema.names)
    keys = list(feed.keys or range(width))
    when = moments(feed, whole)
    order = np.lexsort([when, *whole[keys]])
    ends = key_ends(whole[keys][:, order])
    lasts = when[order] == np.repeat(when[order][ends], np.diff(ends, prepend=-1))
    clash = lasts[:-1] & lasts[1:]
    clash[ends[:-1]] = False
    first, second = order[:-1], order[1:]
    others = [c for c in range(width + 1) if c not in keys]
    clash &= (whole[others][:, first] != whole[others][:, second]).any(axis=0) & (whole[width, first] != FORGET)
    at = first[int(np.argmax(clash))] if clash.any() else put_and_forgotten(feed, whole)
    if at is not None:
        what = "several rows" if feed.order is None else f"several rows with one value of {feed.order!r}"
        key = named(feed.schema, keys, whole[:, at], dictionary)
        raise IncorrectError(
            f"input {feed.name!r}: found {what} for {key} that say different things, and nothing says which comes last: "
            "name a column that does, order='...'"
        )


def put_and_forgotten(feed: Feed, whole: Words) -> int | None:
    """A row that one update puts and another one finds there before it, if nothing says which of the two comes first."""
    width = len(feed.schema.names)
    if feed.order is not None or not (whole[width] == FORGET).any():
        return None
    order = np.lexsort([whole[width], *whole[:width]])
    before, after = whole[:, order[:-1]], whole[:, order[1:]]
    both = (before[width] == FORGET) & (after[width] == PUT) & (before[:width] == after[:width]).all(axis=0)
    return int(order[int(np.argmax(both))]) if both.any() else None
