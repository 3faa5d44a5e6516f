"""The three ways that are compared. Two are engines, each in its own process, with the same relations and the same queries.

* *Shared* runs on Spark: its tasks load the relations, all queries read the indexes that the engine keeps of them, and queries
  that dashboards prepare are one dataflow for all their constants. Lineitem is followed as a stream of files.
* *Not shared*: a query loads the relations that it reads when it arrives, and indexes them for itself, as in a system where an
  index belongs to one query. It needs no Spark: its rows lie encoded in files that it maps.
* *Spark SQL* computes each answer anew, over the same files: the relations and the history of lineitem are in Spark's cache. As
  many queries run at a time as there are cores. It uses the Spark that the first side has started. It is not waited for longer
  than `SPARK_SECONDS`.

An operation's seconds are the engine's own work: closing an epoch whose rows have been encoded, until every query has taken it
in. What a change takes through Spark, from the file to the durable epoch, stands beside. The engines differ in two things that
the shared side pays for: its epochs are written to a storage, which Spark's tasks load by, and its process has Spark's driver.
"""

from __future__ import annotations

import gc
import io
import os
import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import psutil

import tektite as tk
from benchmarks.tpch.answers import spoken
from benchmarks.tpch.data import folder
from benchmarks.tpch.maintained import Encoded, Relations
from benchmarks.tpch.sides import INDEXES, NOT_SHARED, SHARED, mapped, resident, warm_up
from examples.demo.queries import Panel
from examples.demo.relations import HISTORY, KEYED, Described, part_name
from tektite.engine.core import core_of
from tektite.runtime import allocator

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from benchmarks.workloads import Words
    from tektite.spark.progress import EpochProgress

SPARK = "Spark SQL"
ENGINES = (SHARED, NOT_SHARED)
SIDES = (*ENGINES, SPARK)

SPARK_SECONDS = 45.0
"""How long Spark SQL may take to compute answers anew."""
WARMING = (3, 9, 13, 21)
"""Queries that Spark SQL computes before it is measured, so that Java has compiled the most of what it needs."""
PATIENCE = 120.0
"""Seconds that a file may take to come out of Spark as an epoch."""

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Turn:
    """What a side reports when it has done what it was asked: seconds of the engine, and through Spark; memory afterwards, of
    the indexes, of the process and of Spark's; the answers that were asked for, and the seconds that each took.
    """

    seconds: float
    through: float = 0.0
    indexed: int = 0
    resident: int = 0
    spark: int = 0
    answers: tuple[Rows | None, ...] = ()
    """None for an answer that was not waited for."""
    each: tuple[float, ...] = ()


@dataclass(frozen=True)
class Note:
    """What a side says while it works: what it does, and how much of that is done."""

    text: str
    done: int = 0
    total: int = 0
    console: str = ""
    """Where the console is."""


Say = Callable[[Note], None]
Argument = Panel | int | tuple[Panel, ...] | None


class Side:
    """What both engines do alike. An operation ends when every answer it concerns is complete."""

    def __init__(self, engine: tk.Engine, scale: float, parts: Path) -> None:
        self.engine = engine
        self.scale = scale
        self.parts = parts

    def load(self, say: Say) -> None:
        """Get ready for the first query."""
        raise NotImplementedError

    def install(self, panel: Panel) -> None:
        """Install a query and read its first answer."""
        raise NotImplementedError

    def drop(self, panel: Panel) -> None:
        """Drop a query, and what was made for it."""
        raise NotImplementedError

    def update(self, part: int) -> Turn:
        """Take in the lineitems of a change and bring every query up to date."""
        raise NotImplementedError

    def answer(self, panel: Panel) -> Rows:
        """A query's present answer."""
        raise NotImplementedError

    def recompute(self, panels: Sequence[Panel]) -> Turn:
        """Compute some answers anew with Spark SQL."""
        raise NotImplementedError

    @property
    def memory(self) -> int:
        """Bytes that the process takes."""
        raise NotImplementedError

    def finished(self, view: tk.View) -> None:
        """Wait for a query's first answer, and read it."""
        self.engine.finish(view)
        view.snapshot()

    def close(self) -> None:
        """End the engine."""
        self.engine.close()


class Shared(Side):
    """All queries read one engine's arrangements, which Spark's tasks have written."""

    def __init__(self, scale: float, parts: Path, work: Path, is_warm: bool, say: Say) -> None:
        import tektite.spark

        say(Note("Spark starts"))
        # Spark asks its sources about every 10 ms whether they have something new, which would be in the others' way.
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
        super().__init__(tk.Engine(spark=self.spark, storage=work / "store", workers=1), scale, parts)
        address = console_address(self.engine)
        say(Note(f"open {address} to see queries arrive and share", console=address))
        self.arriving = work / "lineitem"
        self.arriving.mkdir()
        self.relations = Relations(self.engine, Described(scale))
        self.done: SimpleQueue[EpochProgress] = SimpleQueue()
        self.prepared: dict[int, int] = {}
        """How often each prepared statement is used."""
        self.recomputed = Recomputed(self.spark, scale, parts, self.arriving, is_warm)

    def load(self, say: Say) -> None:
        for name in (*KEYED, "lineitem"):
            place = self.parts / HISTORY if name == "lineitem" else folder(self.scale) / f"{name}.parquet"

            def progress(done: int, total: int, name: str = name) -> None:
                say(Note(f"Spark loads {name}", done, total))

            progress(0, 1)
            self.relations.inputs[name].load(self.spark.read.parquet(str(place)), progress=progress)
        say(Note("indexing the foreign keys"))
        for name, columns in INDEXES.items():
            for column in columns:
                self.engine.sql(f"CREATE INDEX {name}_by_{column} ON {name} ({column})")
        self.engine.settle()
        found = self.spark.read.parquet(str(self.parts / HISTORY)).schema
        stream = self.spark.readStream.schema(found).option("maxFilesPerTrigger", 1).parquet(str(self.arriving))
        self.following = self.relations.inputs["lineitem"].follow(stream, extra="ignore", on_progress=self.done.put)
        say(Note("Spark SQL caches the relations"))
        self.recomputed.begin()

    def install(self, panel: Panel) -> None:
        if not panel.is_prepared:
            self.finished(self.relations.install(panel.query, panel.key))
            return
        self.prepared[panel.number] = self.prepared.get(panel.number, 0) + 1
        if self.prepared[panel.number] == 1:
            self.engine.sql(panel.statement)
        self.engine.sql(panel.execution)

    def drop(self, panel: Panel) -> None:
        if not panel.is_prepared:
            self.relations.forget(panel.query, panel.key)
            return
        self.prepared[panel.number] -= 1
        ends = not self.prepared[panel.number]
        said = f"DEALLOCATE q{panel.number:02d}" if ends else panel.execution.replace("EXECUTE", "DEALLOCATE")
        self.engine.sql(said)

    def update(self, part: int) -> Turn:
        start = time.perf_counter()
        os.link(self.parts / "later" / part_name(part), self.arriving / part_name(part))
        deadline = start + PATIENCE
        while self.done.empty():
            if not self.following.active or time.perf_counter() > deadline:
                self.following.await_termination(0)
                raise RuntimeError(f"the stream did not take {part_name(part)} in")
            time.sleep(0.002)
        found = self.done.get()
        settling = time.perf_counter()
        self.engine.settle()
        over = time.perf_counter()
        return Turn(found.update + found.views + over - settling, over - start)

    def answer(self, panel: Panel) -> Rows:
        if panel.is_prepared:
            return self.engine.sql(panel.execution).rows()
        return self.engine.view(panel.key).rows()

    def recompute(self, panels: Sequence[Panel]) -> Turn:
        return self.recomputed.compute(panels)

    @property
    def memory(self) -> int:
        return int(psutil.Process().memory_info().rss)

    def close(self) -> None:
        super().close()
        self.spark.stop()


def console_address(engine: tk.Engine) -> str:
    """Where a browser finds the console of an engine."""
    with redirect_stdout(io.StringIO()):  # it says where it is, which would spoil the screen
        return engine.console().url


class Recomputed:
    """Spark SQL over the same files."""

    def __init__(self, spark: SparkSession, scale: float, parts: Path, arriving: Path, is_warm: bool) -> None:
        self.is_warm = is_warm
        self.spark = spark.newSession()
        self.scale = scale
        self.parts = parts
        self.arriving = arriving
        self.cores = spark.sparkContext.defaultParallelism

    def begin(self) -> None:
        """Cache what does not change, and let Java warm up if that is wanted."""
        self.spark.conf.set("spark.sql.shuffle.partitions", str(self.cores))
        for name in KEYED:
            frame = self.spark.read.parquet(str(folder(self.scale) / f"{name}.parquet")).cache()
            frame.count()
            frame.createOrReplaceTempView(name)
        self.history = self.spark.read.parquet(str(self.parts / HISTORY)).cache()
        self.history.count()
        if self.is_warm:
            self.compute([Panel(number, 0, self.scale) for number in WARMING])

    def compute(self, panels: Sequence[Panel]) -> Turn:
        """Compute answers over everything that has arrived."""
        arrived = self.spark.read.schema(self.history.schema).parquet(str(self.arriving))
        start = time.perf_counter()
        self.history.unionByName(arrived).createOrReplaceTempView("lineitem")
        with ThreadPoolExecutor(self.cores) as pool:
            found = list(pool.map(lambda panel: self._one(panel, start + SPARK_SECONDS), panels))
        seconds = time.perf_counter() - start
        each = tuple(took for rows, took in found if rows is not None)
        return Turn(seconds, answers=tuple(rows for rows, _ in found), each=each)

    def _one(self, panel: Panel, deadline: float) -> tuple[Rows | None, float]:
        start = time.perf_counter()
        if start > deadline:
            return None, 0.0
        for text in panel.query.before:
            self.spark.sql(text.replace("create view", "create or replace temporary view"))
        rows = [tuple(row) for row in self.spark.sql(spoken(panel.query.select)).collect()]
        return rows, time.perf_counter() - start


class NotShared(Side):
    """Each query brings the relations it reads, and arranges them for itself."""

    def __init__(self, scale: float, parts: Path, changes: int) -> None:
        super().__init__(tk.Engine(autocommit=False), scale, parts)
        self.own: dict[Panel, Relations] = {}
        self.changes = changes

    def load(self, say: Say) -> None:
        say(Note("encoding the relations for the side that does not share"))
        self.encoded = Encoded(self.engine, self.scale)
        self.words = {name: mapped(words) for name, words in self.encoded.words.items()}
        for words in self.words.values():
            core_of(self.engine).dictionary.pin(words)
        self.encoded.words.clear()
        gc.collect()
        allocator.trim()
        later = len(list((self.parts / "later").iterdir()))
        self.begin = self.arrived = self.words["lineitem"].shape[1] - later * self.changes

    def install(self, panel: Panel) -> None:
        relations = self.own[panel] = Relations(
            self.engine, self.encoded, panel.query.relations, suffix=f"_{panel.key}"
        )
        relations.insert(self.words | {"lineitem": self._lineitems(0, self.arrived)})
        self.engine.advance()
        self.finished(relations.install(panel.query))

    def _lineitems(self, start: int, stop: int) -> Words:
        return self.words["lineitem"][:, start:stop]

    def drop(self, panel: Panel) -> None:
        relations = self.own.pop(panel)
        relations.forget(panel.query)
        relations.drop()

    def update(self, part: int) -> Turn:
        self.arrived = self.begin + (part + 1) * self.changes
        words = self._lineitems(self.arrived - self.changes, self.arrived).copy()
        start = time.perf_counter()
        for relations in self.own.values():
            relations.insert({"lineitem": words})
        self.engine.advance()
        self.engine.settle()
        return Turn(time.perf_counter() - start)

    def answer(self, panel: Panel) -> Rows:
        return self.engine.view(f"{panel.query.name}_{panel.key}").rows()

    @property
    def memory(self) -> int:
        return resident()  # what it loads lies in files that it maps, which are not counted


class Remote:
    """A side in its own process: `ask` hands it an operation, `wait` returns its report."""

    def __init__(self, side: str, scale: float, parts: Path, work: Path, changes: int, is_warm: bool) -> None:
        context = get_context("spawn")
        self._here, there = context.Pipe()
        self._process = context.Process(
            target=serve, args=(there, side, scale, parts, work, changes, is_warm), name=f"demo, {side}", daemon=True
        )
        self._process.start()
        there.close()

    def ask(self, operation: str, argument: Argument = None) -> None:
        """Begin an operation: load, install, update, drop, answer or recompute."""
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

    def do(self, operation: str, argument: Argument = None) -> Turn:
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


def serve(
    connection: Connection[Any, Any], name: str, scale: float, parts: Path, work: Path, changes: int, is_warm: bool
) -> None:
    """The process of one engine: do what is asked until nobody asks any more. The parent decides what Ctrl-C means."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    log = os.open(work / f"{name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 2)  # what Java says about itself would spoil the screen
    process = psutil.Process()
    side: Side | None = None
    try:
        if is_warm:
            warm_up()
        if name == SHARED:
            side = Shared(scale, parts, work, is_warm, connection.send)
        else:
            side = NotShared(scale, parts, changes)
        while True:
            try:
                operation, argument = connection.recv()
            except EOFError:
                return
            turn = perform(side, operation, argument, connection.send)
            connection.send(replace(turn, indexed=side.engine.bytes, resident=side.memory, spark=below(process)))
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


def perform(side: Side, operation: str, argument: Argument, say: Say) -> Turn:
    """Do one operation; the seconds it took, and the answers that were asked for."""
    start = time.perf_counter()
    match operation, argument:
        case "load", None:
            side.load(say)
        case "update", int():
            return side.update(argument)
        case "install", Panel():
            side.install(argument)
        case "drop", Panel():
            side.drop(argument)
        case "answer", tuple():
            return Turn(0.0, answers=tuple(map(side.answer, argument)))
        case "recompute", tuple():
            return side.recompute(argument)
        case _:
            raise ValueError(f"no operation {operation!r} of {argument!r}")
    return Turn(time.perf_counter() - start)
