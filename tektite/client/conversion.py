"""Converts rows from users to tables that can be sent, with the checks of a local engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from tektite.errors import IncorrectError, TektiteError
from tektite.values.dictionary import Dictionary
from tektite.values.schema import Schema
from tektite.wire.rows import value_as_data


def as_table(data: Any, schema: Schema, key: Sequence[str] = ()) -> pa.Table:
    """Rows of a table as Arrow: whole ones or, where a `key` is named, keys alone.

    >>> as_table([(1, "tea")], Schema({"id": int, "name": str})).to_pylist()
    [{'id': 1, 'name': 'tea'}]
    """
    if isinstance(data, pa.Table) and data.schema.equals(schema.arrow):
        return data
    if not hasattr(data, "__len__") and hasattr(data, "__iter__"):
        data = list(data)
    try:
        return _encoded(data, schema)
    except TektiteError as error:
        if not key:
            raise
        try:
            return _encoded(data, schema.select(*key))
        except TektiteError:
            raise error from None


def _encoded(data: Any, schema: Schema) -> pa.Table:
    dictionary = Dictionary()
    return schema.decode(schema.encode(data, dictionary), dictionary)


def as_params(params: Sequence[Any] | Mapping[str, Any], named: Mapping[str, Any]) -> list[Any] | dict[str, Any]:
    """Values of `$1` or `$name`, for a request."""
    if isinstance(params, Mapping):
        return {str(name): value_as_data(value) for name, value in {**params, **named}.items()}
    if not isinstance(params, Sequence) or isinstance(params, str | bytes):
        raise IncorrectError(f"params are a list for $1, $2 and so on, or a dict for $name, not {params!r}")
    if not named:
        return [value_as_data(value) for value in params]
    numbered = {str(number): value for number, value in enumerate(params, 1)}
    return {name: value_as_data(value) for name, value in {**numbered, **named}.items()}
