"""The two sides that are compared: each is one engine in its own process, with the same relations and the same queries.

*Shared* runs on Spark: its tasks load the seven keyed relations into the storage, all queries read the arrangements that
the engine keeps of them, and lineitem is followed as a stream of files. *Not shared*: a query loads the relations that it
reads when it arrives, and indexes them for itself, as in a system where an index belongs to one query; it needs no Spark, since
its rows lie in memory, encoded. Neither side keeps lineitem: a query sees it from its arrival on.

An operation's seconds are the engine's own work, which both sides do alike: closing an epoch whose rows have been encoded, until
every query has taken it in. What an epoch takes through Spark, from the file to the durable epoch, stands beside.
"""

from __future__ import annotations

import hashlib
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import psutil
from pyarrow import parquet

import tektite as tk
from benchmarks.tpch.data import folder, plain
from benchmarks.tpch.maintained import Encoded, Relations
from benchmarks.tpch.queries import query as text_of
from benchmarks.tpch.sides import INDEXES, NOT_SHARED, SHARED, warm_up
from examples.demo.queries import Query
from examples.demo.relations import KEYED, Described, part_name
from tektite.engine.core import core_of

if TYPE_CHECKING:
    from tektite.spark.progress import EpochProgress

SIDES = (SHARED, NOT_SHARED)

PATIENCE = 120.0
"""Seconds that a file may take to come out of Spark as an epoch."""


@dataclass(frozen=True)
class Turn:
    """What a side reports when it has done what it was asked: seconds of the engine, and through Spark; memory afterwards, of
    the indexes, of the process and of Spark's; the digest of an answer.
    """

    seconds: float
    through: float = 0.0
    indexed: int = 0
    resident: int = 0
    spark: int = 0
    answer: str = ""


@dataclass(frozen=True)
class Note:
    """What a side says while it works: what it does, and how much of that is done."""

    text: str
    done: int = 0
    total: int = 0


Say = Callable[[Note], None]


class Side:
    """What both sides do alike. An operation ends when every answer it concerns is complete."""

    def __init__(self, engine: tk.Engine, scale: float, parts: Path) -> None:
        self.engine = engine
        self.scale = scale
        self.parts = parts

    def load(self, say: Say) -> None:
        """Get ready for the first query."""
        raise NotImplementedError

    def install(self, query: Query) -> None:
        """Install a query and read its first answer."""
        raise NotImplementedError

    def drop(self, query: Query) -> None:
        """Drop a query, and what was made for it."""
        raise NotImplementedError

    def update(self, part: int) -> Turn:
        """Take in the lineitems of an epoch and bring every query up to date."""
        raise NotImplementedError

    def view(self, query: Query) -> tk.View:
        """The view of an installed query."""
        raise NotImplementedError

    def answer(self, query: Query) -> str:
        """A digest of a query's present answer."""
        rows = sorted(map(repr, self.view(query).rows()))
        return f"{len(rows)} rows, {hashlib.sha256(repr(rows).encode()).hexdigest()}"

    def finished(self, view: tk.View) -> None:
        """Wait for a query's first answer, and read it."""
        self.engine.finish(view)
        view.snapshot()

    def close(self) -> None:
        """End the engine."""
        self.engine.close()


class Shared(Side):
    """All queries read one engine's arrangements, which Spark's tasks have written."""

    def __init__(self, scale: float, parts: Path, work: Path, say: Say) -> None:
        import tektite.spark

        say(Note("Spark starts"))
        # Spark asks its sources about every 10 ms whether they have something new, which would be in the other side's way.
        self.spark = tektite.spark.session(
            name="tektite demo",
            config={
                "spark.ui.enabled": "false",
                "spark.ui.showConsoleProgress": "false",
                "spark.sql.streaming.pollingDelay": "50ms",
                "spark.local.dir": str(work / "spark"),
                "spark.sql.warehouse.dir": str(work / "warehouse"),
            },
        )
        super().__init__(tk.Engine(spark=self.spark, storage=work / "store", workers=1, autocommit=False), scale, parts)
        self.arriving = work / "lineitem"
        self.arriving.mkdir()
        self.relations = Relations(self.engine, Described(scale), streams=("lineitem",))
        self.done: SimpleQueue[EpochProgress] = SimpleQueue()

    def load(self, say: Say) -> None:
        for name in KEYED:
            frame = self.spark.read.parquet(str(folder(self.scale) / f"{name}.parquet"))

            def progress(done: int, total: int, name: str = name) -> None:
                say(Note(f"Spark loads {name}", done, total))

            progress(0, 1)
            self.relations.inputs[name].load(frame, progress=progress)
        say(Note("indexing the foreign keys"))
        for name, columns in INDEXES.items():
            for column in columns:
                self.engine.sql(f"CREATE INDEX {name}_by_{column} ON {name} ({column})")
        self.engine.settle()
        found = self.spark.read.parquet(str(self.parts)).schema
        stream = self.spark.readStream.schema(found).option("maxFilesPerTrigger", 1).parquet(str(self.arriving))
        self.following = self.relations.inputs["lineitem"].follow(stream, extra="ignore", on_progress=self.done.put)

    def install(self, query: Query) -> None:
        self.finished(self.relations.install(text_of(query.number, self.scale)))

    def drop(self, query: Query) -> None:
        self.relations.forget(text_of(query.number, self.scale))

    def update(self, part: int) -> Turn:
        start = time.perf_counter()
        os.link(self.parts / part_name(part), self.arriving / part_name(part))
        deadline = start + PATIENCE
        while self.done.empty():
            if not self.following.active or time.perf_counter() > deadline:
                self.following.await_termination(0)
                raise RuntimeError(f"the stream did not take {part_name(part)} in")
            time.sleep(0.002)
        found = self.done.get()
        return Turn(found.update + found.views, time.perf_counter() - start)

    def view(self, query: Query) -> tk.View:
        return self.engine.view(text_of(query.number, self.scale).name)

    def close(self) -> None:
        super().close()
        self.spark.stop()


class NotShared(Side):
    """Each query brings the relations it reads, and arranges them for itself."""

    def __init__(self, scale: float, parts: Path) -> None:
        super().__init__(tk.Engine(autocommit=False), scale, parts)
        self.own: dict[int, Relations] = {}

    def load(self, say: Say) -> None:
        say(Note("encoding the relations"))
        self.encoded = Encoded(self.engine, self.scale, KEYED)
        self.encoded.schemas["lineitem"] = Described(self.scale).schemas["lineitem"]

    def install(self, query: Query) -> None:
        asked = text_of(query.number, self.scale)
        relations = Relations(
            self.engine, self.encoded, asked.relations, streams=("lineitem",), suffix=f"_{query.number}"
        )
        self.own[query.number] = relations
        relations.insert(self.encoded.words)
        self.engine.advance()
        self.finished(relations.install(asked))

    def drop(self, query: Query) -> None:
        relations = self.own.pop(query.number)
        relations.forget(text_of(query.number, self.scale))
        relations.drop()

    def update(self, part: int) -> Turn:
        schema = self.encoded.schemas["lineitem"]
        table = plain(parquet.read_table(self.parts / part_name(part), columns=list(schema.names)))
        dictionary = core_of(self.engine).dictionary
        with dictionary.adding():
            words = schema.encode(table, dictionary)
            start = time.perf_counter()
            for relations in self.own.values():
                relations.insert({"lineitem": words})
        self.engine.advance()
        self.engine.settle()
        return Turn(time.perf_counter() - start)

    def view(self, query: Query) -> tk.View:
        return self.engine.view(f"{text_of(query.number, self.scale).name}_{query.number}")


class Remote:
    """A side in its own process: `ask` hands it an operation, `wait` returns its report."""

    def __init__(self, side: str, scale: float, parts: Path, work: Path) -> None:
        context = get_context("spawn")
        self._here, there = context.Pipe()
        self._process = context.Process(
            target=serve, args=(there, side, scale, parts, work), name=f"demo, {side}", daemon=True
        )
        self._process.start()
        there.close()

    def ask(self, operation: str, argument: Query | int | None = None) -> None:
        """Begin an operation: load, install, update, drop or answer."""
        self._here.send((operation, argument))

    def wait(self, on_note: Say) -> Turn:
        """The report of the operation that was begun."""
        while True:
            try:
                found = self._here.recv()
            except EOFError:
                raise RuntimeError(f"the process of {self._process.name!r} ended") from None
            if isinstance(found, Note):
                on_note(found)
            elif isinstance(found, Turn):
                return found
            else:
                raise RuntimeError(f"{self._process.name}: {found}")

    def do(self, operation: str, argument: Query | int | None = None) -> Turn:
        """An operation from beginning to end."""
        self.ask(operation, argument)
        return self.wait(lambda _: None)

    def close(self) -> None:
        """End the process."""
        self._here.close()
        self._process.join(20)
        if self._process.is_alive():
            self._process.terminate()
            self._process.join()


def serve(connection: Connection[Any, Any], name: str, scale: float, parts: Path, work: Path) -> None:
    """The process of one side: do what is asked until nobody asks any more. The parent decides what Ctrl-C means."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    log = os.open(work / f"{name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 2)  # what Java says about itself would spoil the screen
    process = psutil.Process()
    side: Side | None = None
    try:
        warm_up()
        side = Shared(scale, parts, work, connection.send) if name == SHARED else NotShared(scale, parts)
        while True:
            try:
                operation, argument = connection.recv()
            except EOFError:
                return
            turn = perform(side, operation, argument, connection.send)
            memory = {"indexed": side.engine.bytes, "resident": process.memory_info().rss, "spark": below(process)}
            connection.send(replace(turn, **memory))
    except BrokenPipeError:  # the parent has gone
        return
    except Exception as error:
        connection.send(f"{type(error).__name__}: {error}")
    finally:
        if side is not None:
            side.close()


def below(process: psutil.Process) -> int:
    """The memory of the processes that a process has started, and they in turn; they come and go."""
    found = 0
    for child in process.children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            found += child.memory_info().rss
    return found


def perform(side: Side, operation: str, argument: Query | int | None, say: Say) -> Turn:
    """Do one operation; the seconds it took, and the digest of an answer if it was asked for."""
    start = time.perf_counter()
    match operation, argument:
        case "load", None:
            side.load(say)
        case "update", int():
            return side.update(argument)
        case "install", Query():
            side.install(argument)
        case "drop", Query():
            side.drop(argument)
        case "answer", Query():
            return Turn(0.0, answer=side.answer(argument))
        case _:
            raise ValueError(f"no operation {operation!r} of {argument!r}")
    return Turn(time.perf_counter() - start)
