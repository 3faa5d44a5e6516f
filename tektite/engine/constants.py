"""Rows of constants as a collection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tektite.engine.core import core_of
from tektite.errors import IncorrectError
from tektite.plan import algebra as plan
from tektite.query.collection import Collection
from tektite.values.equal_keys import key_words
from tektite.values.frames import arrow_table
from tektite.values.schema import Schema


def constants(engine: Any, schema: Schema, rows: Sequence[tuple[Any, ...]], as_set: bool = False) -> Collection:
    """A collection that always holds these rows, each as often as it is named, or `as_set` once: 0.0 and -0.0 are equal.

    >>> import tektite as tk
    >>> engine = tk.Engine()
    >>> primes = constants(engine, tk.Schema(prime=tk.Int), [(2,), (3,)])
    >>> view = engine.install("primes", primes)
    >>> _ = engine.advance()
    >>> sorted(view.rows())
    [(2,), (3,)]
    """
    return _collection(engine, schema, list(rows), as_set)


def given_values(engine: Any, data: Any, schema: Any = None) -> Collection:
    """A collection of the rows of `data`, in any form that tables take. Without a schema, Arrow infers it."""
    if schema is not None:
        return _collection(engine, Schema(schema), data)
    try:
        types = _inferred(data)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise IncorrectError(f"values: {error}. {_GIVE_TYPES}") from None
    if types is None:
        raise IncorrectError(f"values: {type(data).__name__} has no names of columns. {_GIVE_TYPES}")
    for field in types:
        if pa.types.is_null(field.type):
            raise IncorrectError(f"values: column {field.name!r} holds no value that has a type. {_GIVE_TYPES}")
    return _collection(engine, Schema(types), data)


_GIVE_TYPES = "Give the types: values(data, {'id': int, 'name': str})"


def _inferred(data: Any) -> pa.Schema | None:
    """The names and Arrow types of the columns of some data; None if it has no names."""
    if isinstance(data, Mapping):
        return pa.schema([(str(name), pa.array(column).type) for name, column in data.items()])
    if isinstance(data, list) and data and isinstance(data[0], Mapping):
        return pa.Table.from_pylist(data).schema
    if isinstance(data, pa.Table | pa.RecordBatch):
        return data.schema
    if hasattr(data, "__arrow_c_schema__"):
        return pa.schema(data)
    if hasattr(data, "__arrow_c_stream__"):
        return arrow_table(data).schema
    return None


def _collection(engine: Any, schema: Schema, data: Any, as_set: bool = False) -> Collection:
    dictionary = core_of(engine).dictionary
    with dictionary.adding():
        words = schema.encode(data, dictionary)
        if as_set:
            for column, type in enumerate(schema.types):
                words[column] = key_words(words[column], type, dictionary)
            words = np.ascontiguousarray(np.unique(words, axis=1))
        dictionary.pin(words)
    return Collection(engine, plan.Rows(schema, words))
