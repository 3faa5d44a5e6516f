"""Rows that are written to an input, as words: encoded, with one word for equal values in the columns that tell rows apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tektite.dataflow.graph import Outbox
from tektite.errors import IncorrectError, TektiteError
from tektite.values.equal_keys import key_words
from tektite.values.words import Words

if TYPE_CHECKING:
    from tektite.engine.input_core import InputCore

_INT64 = np.dtype(np.int64)
_FEW = 16
"""Numbers up to which Python finds the largest before NumPy has begun."""


def encode(table: InputCore, data: Any) -> Words:
    """The words of rows; those of a NumPy array of integers, which are as they are, are copied by all workers."""
    schema, shards = table.schema, table.trace.shards
    ints = schema.int_columns(data) if shards > 1 else None
    if ints is None:
        return schema.encode(data, table.engine.dictionary)
    rows = ints.shape[1]
    words = np.empty(ints.shape, np.int64)

    def work(worker: int, _: Outbox) -> None:
        schema.encode_ints(ints, words, rows * worker // shards, rows * (worker + 1) // shards)

    table.engine.each_shard(work, rows)
    return words


def encode_keys(table: InputCore, data: Any) -> Words:
    """Rows to remove from an upsert input: whole rows, or keys alone. Other columns become NULL."""
    keys = table.schema.select(*(table.schema.names[c] for c in table.key_columns))
    if not hasattr(data, "__len__") and hasattr(data, "__iter__"):
        data = list(data)
    try:
        words = table.schema.encode(data, table.engine.dictionary)
    except TektiteError as error:
        try:
            found = keys.encode(data, table.engine.dictionary)
        except TektiteError:
            raise error from None
        words = np.full((len(table.schema.names), found.shape[1]), -(2**63), np.int64)
        words[list(table.key_columns)] = found
    return words


def with_equal_keys(table: InputCore, words: Words) -> Words:
    """Rows with one word for equal values in the columns that tell rows apart: 0.0 for -0.0, 1 month for 30 days."""
    for column in table.told_apart:
        keys = key_words(words[column], table.schema.types[column], table.engine.dictionary)
        if not np.array_equal(keys, words[column]):
            words = words.copy()
            words[column] = keys
    return words


def integers(table: InputCore, values: Any, rows: int, what: str) -> Words:
    """Times or diffs of so many rows: one for each, or one for all."""
    if values.__class__ is np.ndarray and values.dtype == _INT64 and values.shape == (rows,):
        return values
    found = np.asarray(values)
    if found.ndim == 0:
        found = np.full(rows, found)
    if found.shape != (rows,):
        raise IncorrectError(f"table {table.name!r}: {rows} rows, but {what} has shape {found.shape}")
    if rows and found.dtype.kind not in "iu":
        raise IncorrectError(f"table {table.name!r}: {what} must be integers, not {found.dtype}")
    if found.dtype == np.uint64 and rows and found.max() > np.iinfo(np.int64).max:
        raise IncorrectError(f"table {table.name!r}: {what} must fit into 64 bits; found {found.max()}")
    return found.astype(np.int64, copy=False)


def is_beyond(numbers: Words, most: int) -> bool:
    """Whether one of the numbers is more than `most` away from 0."""
    if len(numbers) <= _FEW:
        return max(map(abs, numbers.tolist()), default=0) > most
    return max(int(numbers.max()), -int(numbers.min())) > most
