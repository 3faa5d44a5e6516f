"""TPC-H queries that come and go while the relations load: once over shared arrangements, once each with its own.

*Shared*: the relations are inputs of one engine, kept by their primary keys and indexed by the foreign keys that queries
follow; all queries read these. *Not shared*: the same plans, but a query brings the relations it reads with it, loads what
they hold so far when it arrives, and keeps its own indexes of them, as in a system where an index belongs to one query.
*Lean* is not in the paper: as not shared, but a query keeps of the relations only the rows and columns that it needs.
Each side is an engine in a process of its own; all see the same data and the same queries.

One record of each relation is loaded in turn until orders is used up; after that lineitem alone goes on, if the whole of it
is asked for.

The history that a query reads when it arrives is in files that all processes map, as it was loaded: it is nobody's memory.
"""

from __future__ import annotations

import gc
import tempfile
import time
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import tektite as tk
from benchmarks.tpch.data import RELATIONS
from benchmarks.tpch.maintained import Encoded, Relations
from benchmarks.tpch.queries import QUERIES, query
from benchmarks.workloads import Words
from tektite.engine.core import core_of
from tektite.runtime import allocator

SHARED, NOT_SHARED, LEAN = SIDES = ("shared", "not shared", "lean")

SMALL = 0.01
"""A scale factor for warming up: below it the generator makes partsupp with keys that are there twice."""

# The foreign keys that queries follow from the other side.
INDEXES = {
    "nation": ("n_regionkey",),
    "supplier": ("s_nationkey",),
    "customer": ("c_nationkey",),
    "orders": ("o_custkey",),
    "partsupp": ("ps_suppkey",),
}


@dataclass(frozen=True)
class Turn:
    """What a side reports of one request: seconds, processor seconds, its memory afterwards, and a query's answer where
    there is one. `indexed` is what arrangements take, `grown` by how much the process has grown since it had texts only.
    """

    seconds: float
    cpu: float
    indexed: int
    grown: int
    answer: tuple[tuple[Any, ...], ...] = ()


class Side:
    """One of the two engines. `history` keeps all of lineitem; without it a query sees lineitem from its arrival on."""

    def __init__(self, scale: float, kind: str, history: bool, batch: int, whole: bool = False) -> None:
        self.engine = tk.Engine(autocommit=False)
        encoded = self.encoded = Encoded(self.engine, scale)
        self.scale = scale
        self.kind = kind
        self.streams = () if history else ("lineitem",)
        most = encoded.words["lineitem" if whole else "orders"].shape[1]
        rows = sum(min(encoded.rows([name]), most) for name in RELATIONS)
        parts = encoded.batches(RELATIONS, max(round(rows / batch), 1), most)
        self.batches = [{name: mapped(words) for name, words in part.items()} for part in parts]
        for part in self.batches:
            for words in part.values():
                core_of(self.engine).dictionary.pin(words)
        encoded.words.clear()
        self.loaded = 0
        self.shared = None
        self.own: dict[int, Relations] = {}
        if kind == SHARED:
            self.shared = Relations(self.engine, self.encoded, streams=self.streams)
            for name, columns in INDEXES.items():
                for column in columns:
                    self.engine.sql(f"CREATE INDEX {name}_by_{column} ON {name} ({column})")

    def step(self) -> None:
        """Load the next part and bring every query up to date."""
        batch = self.batches[self.loaded]
        self.loaded += 1
        for relations in (self.shared,) if self.shared is not None else self.own.values():
            relations.insert(batch)
        self.engine.advance()
        self.engine.settle()

    def install(self, number: int) -> None:
        """Install a query and wait for its answer."""
        asked = query(number, self.scale)
        if self.shared is not None:
            view = self.shared.install(asked)
        else:
            streams = asked.relations if self.kind == LEAN else self.streams
            relations = Relations(self.engine, self.encoded, asked.relations, streams, f"_{number}")
            self.own[number] = relations
            # A stream has no past: its reader must be there first.
            if self.kind == LEAN:
                view = relations.install(asked)
            for batch in self.batches[: self.loaded]:
                relations.insert({name: words for name, words in batch.items() if name not in self.streams})
            self.engine.advance()
            if self.kind == NOT_SHARED:
                view = relations.install(asked)
        self.engine.finish(view)
        view.snapshot()

    def retire(self, number: int) -> None:
        """Drop a query, and what only it used."""
        asked = query(number, self.scale)
        if self.shared is not None:
            self.shared.forget(asked)
        else:
            relations = self.own.pop(number)
            relations.forget(asked)
            relations.drop()

    def answer(self, number: int) -> tuple[tuple[Any, ...], ...]:
        """A query's present answer."""
        asked = query(number, self.scale)
        suffix = "" if self.shared is not None else f"_{number}"
        return tuple(self.engine.view(asked.name + suffix).rows())


def mapped(words: Words) -> Words:
    """The same words in a file that has no name and goes with the last who maps it."""
    with tempfile.TemporaryFile() as file:
        np.ascontiguousarray(words).tofile(file)
        # As a plain array: operations on parts of a memmap make memmaps, which takes longer than a short column.
        return np.asarray(np.memmap(file, np.int64, "r", shape=words.shape))


def resident() -> int:
    """The bytes of memory that are the process's own: files that it maps are left out."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon:"))


def warm_up() -> None:
    """Load the compiled kernels and what else Python loads when it is first used, in an engine that nobody sees."""
    with tk.Engine(autocommit=False) as engine:
        encoded = Encoded(engine, SMALL)
        relations = Relations(engine, encoded)
        for number in QUERIES:
            relations.install(query(number, SMALL))
        for batch in encoded.batches(RELATIONS, 3):
            relations.insert(batch)
            engine.advance()
            engine.settle()
        for number in QUERIES:
            engine.view(query(number).name).snapshot()
            relations.forget(query(number, SMALL))
        relations.drop()


def serve(pipe: Connection, scale: float, kind: str, history: bool, batch: int, whole: bool) -> None:
    """Do what the other end asks for, until it closes."""
    warm_up()
    side = Side(scale, kind, history, batch, whole)
    gc.collect()
    pa.default_memory_pool().release_unused()
    allocator.trim()
    start_bytes = resident()
    pipe.send([{name: words.shape[1] for name, words in part.items()} for part in side.batches])
    while True:
        try:
            verb, *arguments = pipe.recv()
        except EOFError:
            return
        cpu, start = time.process_time(), time.perf_counter()
        found = getattr(side, verb)(*arguments)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        pipe.send(Turn(seconds, cpu, side.engine.bytes, max(resident() - start_bytes, 0), found or ()))


class Remote:
    """A side in its process."""

    def __init__(self, scale: float, kind: str, history: bool, batch: int, whole: bool) -> None:
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, scale, kind, history, batch, whole), daemon=True)
        self._process.start()
        theirs.close()

    def ready(self) -> list[dict[str, int]]:
        """Wait until it has its data; how many rows of each relation every part of it has."""
        parts: list[dict[str, int]] = self._pipe.recv()
        return parts

    def do(self, verb: str, *arguments: Any) -> Turn:
        """Ask for something and wait until it is done."""
        self._pipe.send((verb, *arguments))
        found: Turn = self._pipe.recv()
        return found

    def close(self) -> None:
        """End the process."""
        self._pipe.close()
        self._process.join()
