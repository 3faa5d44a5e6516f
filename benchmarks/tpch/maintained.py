"""TPC-H in an engine: relations as inputs, fed with words that were encoded beforehand, and queries as views over them.

Several engines' worth of relations can live in one engine under different names, so that their texts are held once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import cache
from typing import Protocol

import numpy as np
import sqlglot
from sqlglot import exp

import tektite as tk
from benchmarks.tpch.data import RELATIONS, load, round_robin
from benchmarks.tpch.queries import Query, schema
from benchmarks.workloads import Words
from tektite.engine.core import core_of
from tektite.values.schema import Schema

Batch = dict[str, Words]

COLLECTED_WITHIN = 60.0
"""Seconds that a collection may wait for readers: there are none."""


class Described(Protocol):
    """Whatever knows the columns of relations."""

    schemas: dict[str, Schema]


class Encoded:
    """Relations at a scale factor as words, columns x rows; an engine's dictionary holds the texts. Texts that come all at once
    make a collection of texts due. It has ended here, so that it is no part of the first epochs.
    """

    def __init__(self, engine: tk.Engine, scale: float, relations: Iterable[str] = RELATIONS) -> None:
        self.scale = scale
        self.schemas: dict[str, Schema] = {}
        self.words: dict[str, Words] = {}
        core = core_of(engine)
        for name, table in load(scale, relations).items():
            self.schemas[name] = Schema(table.schema)
            words = self.words[name] = self.schemas[name].encode(table, core.dictionary)
            core.dictionary.pin(words)
        with core.lock.held:
            core.texts.finish(COLLECTED_WITHIN)

    def rows(self, relations: Iterable[str] = RELATIONS) -> int:
        """How many rows some relations have."""
        return sum(self.words[name].shape[1] for name in relations)

    def batches(self, relations: Collection[str], parts: int, most: int | None = None) -> Iterator[Batch]:
        """A load of some relations, round-robin, in parts of about equal size; each is memory of its own. It ends when all
        is loaded, or `most` rows of each relation.
        """
        sizes = {name: min(self.words[name].shape[1], most or 1 << 62) for name in relations}
        for part in round_robin(sizes, parts):
            yield {
                name: np.ascontiguousarray(self.words[name][:, start:stop])
                for name, (start, stop) in part.items()
                if stop > start
            }


class Relations:
    """The inputs of some relations in an engine, their names followed by `suffix`; those in `streams` keep no history."""

    def __init__(
        self,
        engine: tk.Engine,
        encoded: Described,
        relations: Collection[str] = RELATIONS,
        streams: Collection[str] = (),
        suffix: str = "",
    ) -> None:
        self.engine = engine
        self.suffix = suffix
        self.inputs: dict[str, tk.Table] = {}
        for name in relations:
            engine.sql(declared(name, suffix, "stream" if name in streams else "bag"))
            made = self.inputs[name] = engine.table(name + suffix)
            if made.schema != encoded.schemas[name]:
                raise ValueError(f"{name}: declared as {made.schema}, generated as {encoded.schemas[name]}")

    def insert(self, batch: Batch) -> None:
        """Add rows in the open epoch, those of relations that are not here left out."""
        for name, words in batch.items():
            if name in self.inputs:
                core_of(self.inputs[name]).update_words(words)

    def install(self, query: Query, name: str | None = None) -> tk.View:
        """Maintain a query over these relations. Its view has the query's name, unless another is given."""
        wanted = name or query.name + self.suffix
        for statement in query.before:
            self.engine.sql(renamed(statement, self.suffix))
        self.engine.sql(f"CREATE MATERIALIZED VIEW {wanted} AS {renamed(query.select, self.suffix)}")
        return self.engine.view(wanted)

    def forget(self, query: Query, name: str | None = None) -> None:
        """Drop a query's view, and what stands before it in its text."""
        self.engine.sql(f"DROP MATERIALIZED VIEW {name or query.name + self.suffix}")
        for statement in reversed(query.before):
            self.engine.sql(f"DROP VIEW {statement.split()[2]}{self.suffix}")

    def drop(self) -> None:
        """Drop the relations, once nothing reads them."""
        for made in self.inputs.values():
            self.engine.sql(f"DROP TABLE {made.name}")


@cache
def declared(name: str, suffix: str, semantics: str) -> str:
    """The statement that creates a relation, as the standard declares it, with a suffix to its name.

    >>> declared("region", "_7", "stream").split()[:3], declared("region", "_7", "stream").split()[-4:]
    (['create', 'table', 'region_7'], ['with', '(semantics', '=', "'stream')"])
    """
    (found,) = (part for part in schema().split(";") if f"create table {name} (" in part)
    text = found[found.index("create table") :].replace(f"create table {name} (", f"create table {name}{suffix} (")
    return f"{text.rstrip()} with (semantics = '{semantics}')"


@cache
def renamed(text: str, suffix: str) -> str:
    """A statement over relations with a suffix to their names.

    >>> renamed("select n_name from nation, region r", "_7")
    'SELECT n_name FROM nation_7 AS nation, region_7 AS r'
    """
    if not suffix:
        return text
    tree = sqlglot.parse_one(text, read="duckdb")
    for table in list(tree.find_all(exp.Table)):
        if not table.alias and not isinstance(table.parent, exp.Schema):
            table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name)))
        table.set("this", exp.to_identifier(table.name + suffix))
    return tree.sql("duckdb")
