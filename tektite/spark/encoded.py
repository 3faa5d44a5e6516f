"""Brings encoded rows to the driver: for engines whose shards are there, and for small micro-batches."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from pyspark.sql import DataFrame

from tektite.errors import IncorrectError, TektiteError
from tektite.spark.failures import error_from_text, error_text
from tektite.spark.feed import ENCODED, Feed, encoder, unpack_texts
from tektite.spark.last_rows import HeldRows, moments, settled
from tektite.values.dictionary import Dictionary
from tektite.values.words import NULL, Words


class BadRow(NamedTuple):
    """A row that does not fit an input, as JSON, and why."""

    row: str
    reason: str


class BadRows:
    """Rows that do not fit an input. More than `most` are an error."""

    def __init__(self, name: str, most: int) -> None:
        self.name = name
        self.most = most
        self.found: list[BadRow] = []

    def add(self, bad: BadRow) -> None:
        """Keep one more."""
        if len(self.found) == self.most:
            raise IncorrectError(
                f"table {self.name!r}: {bad.reason}, in the row {bad.row}, and max_bad_rows have been kept"
            )
        self.found.append(bad)


@dataclass(frozen=True)
class Encoded:
    """Rows of a feed in the order in which they count (columns, operation, perhaps order), and their last position."""

    feed: Feed
    whole: Words
    latest: int
    rejected: tuple[BadRow, ...] = ()
    """Rows that do not fit the input, where these are to be kept apart."""

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.whole.shape[1])

    def settled(self, held: HeldRows, dictionary: Dictionary) -> tuple[Words, Words]:
        """The words of the rows that count, and what each does, by what the input holds."""
        width = len(self.feed.schema.names)
        whole = self.whole if self.feed.semantics == "bag" else settled(self.feed, self.whole, held, dictionary)
        return np.ascontiguousarray(whole[:width]), np.ascontiguousarray(whole[width])


def collect(
    feed: Feed, frame: DataFrame, dictionary: Dictionary, at_once: bool = False, most_bad: int | None = None
) -> Encoded:
    """Bring the encoded rows of a DataFrame to this process, and their texts to the dictionary.

    `at_once` is for small frames: one job, whose tasks pass on what they read, and this process encodes it. Otherwise tasks
    encode, and one job brings each partition, so that Spark's driver never holds more than two. Of a small frame, up to
    `most_bad` rows that do not fit are kept apart; without it, the first one is an error.
    """
    rejected = None if most_bad is None else BadRows(feed.name, most_bad)
    width = len(feed.schema.names) + 1 + (feed.order is not None)
    parts = [np.empty((width, 0), np.int64)]
    latest = NULL
    feed, frame = feed.needed(frame)
    found = handed_over(feed, frame, dictionary, rejected) if at_once else encoded(feed, frame, dictionary)
    for part, last in found:
        parts.append(part)
        latest = max(latest, last)
    whole = np.concatenate(parts, axis=1)
    if feed.order is not None or feed.operation is not None:
        whole = whole[:, np.argsort(moments(feed, whole), kind="stable")]
    return Encoded(feed, whole, latest, () if rejected is None else tuple(rejected.found))


def handed_over(
    feed: Feed, frame: DataFrame, dictionary: Dictionary, rejected: BadRows | None = None
) -> Iterator[tuple[Words, int]]:
    """The batches of a DataFrame, encoded in this process, and their last positions. Uses no Python worker. Rows that do not fit
    go to `rejected`, if it is given.
    """
    for number, batch in enumerate(frame.toArrow().to_batches()):
        try:
            yield feed.encode(batch, dictionary)
        except TektiteError as error:
            if rejected is None:
                raise error_from_text(error_text(error, f" (batch {number})"), f"table {feed.name!r}") from None
            yield from without_bad_rows(feed, batch, dictionary, rejected)


def without_bad_rows(feed: Feed, batch: Any, dictionary: Dictionary, rejected: BadRows) -> Iterator[tuple[Words, int]]:
    """The rows of a batch that can be encoded, in their order. The others are found by halving."""
    waiting = [(0, batch.num_rows)]
    while waiting:
        start, stop = waiting.pop()
        part = batch.slice(start, stop - start)
        try:
            yield feed.encode(part, dictionary)
        except TektiteError as error:
            if stop - start > 1:
                middle = (start + stop) // 2
                waiting += [(middle, stop), (start, middle)]
                continue
            named = part.rename_columns(list(feed.named)) if feed.named else part
            (row,) = named.to_pylist()
            rejected.add(BadRow(json.dumps(row, default=str, ensure_ascii=False), str(error)))


def encoded(feed: Feed, frame: DataFrame, dictionary: Dictionary) -> Iterator[tuple[Words, int]]:
    """The batches of a DataFrame, encoded by its tasks, and their last positions."""
    width = len(feed.schema.names) + 1 + (feed.order is not None)
    for row in frame.mapInArrow(encoder(feed), ENCODED).toLocalIterator(prefetchPartitions=True):
        if row.error is not None:
            raise error_from_text(f"{row.error} (partition {row.part}, batch {row.number})", f"table {feed.name!r}")
        if row.texts:
            dictionary.add(unpack_texts(row.texts))
        yield np.frombuffer(row.words, np.int64).reshape(width, row.rows), row.latest
