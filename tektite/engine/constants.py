"""Rows of constants as a collection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tektite.engine.core import core_of
from tektite.plan import algebra as plan
from tektite.query.collection import Collection
from tektite.values.schema import Schema
from tektite.values.types import Float
from tektite.values.words import float_keys


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
    dictionary = core_of(engine).dictionary
    with dictionary.adding():
        words = schema.encode(list(rows), dictionary)
        if as_set:
            for column, type in enumerate(schema.types):
                if type == Float:
                    words[column] = float_keys(words[column])
            words = np.ascontiguousarray(np.unique(words, axis=1))
        dictionary.keep(words)
    return Collection(engine, plan.Rows(schema, words))
