"""Runs a pipeline: load, install, follow, write; until its streams end, it is told to stop, or something fails.

Another run continues where the last one stopped, however that ended. Loads are not repeated, streams continue after the last
durable epoch, and sinks after the last change that they have written.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tektite.engine.core import core_of
from tektite.engine.table import Table
from tektite.errors import FaultError, IncorrectError, TektiteError
from tektite.pipeline import PipelinePlan, SparkSource, TablePlan, ViewPlan
from tektite.spark.failures import explained, reason
from tektite.spark.follow import Following
from tektite.spark.preflight import preflight
from tektite.spark.session import session
from tektite.unknown_options import is_function

SECONDS_BETWEEN = 0.2
SECONDS_A_REPORT = 5.0

Say = Callable[[str], None]


@dataclass
class Metrics:
    """Figures of a run, for its end."""

    name: str
    loaded: dict[str, int] = field(default_factory=dict)
    followed: dict[str, int] = field(default_factory=dict)
    followed_epochs: dict[str, int] = field(default_factory=dict)
    epoch_seconds: dict[str, float] = field(default_factory=dict)
    """Seconds of an epoch of each stream, from its micro-batch to its views: the median of the last ones."""
    epochs: int = 0
    durable: int = 0
    updates: dict[str, int] = field(default_factory=dict)
    """Rows in each view's index."""
    bytes: int = 0
    load_seconds: float = 0.0
    seconds: float = 0.0
    stopped: bool = False

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def run(
    pipeline: PipelinePlan,
    make_engine: Callable[..., Any],
    say: Say,
    stop: threading.Event | None = None,
    ready: Callable[[Any], None] | None = None,
) -> Metrics:
    """Run a pipeline to its end, or until `stop` is set. `ready` is called with the engine when everything is loaded and
    installed; the pipeline then goes on until it is told to stop, also when its streams have ended.
    """
    began = time.perf_counter()
    stop = stop or threading.Event()
    ours = SparkContext._active_spark_context is None  # spark-submit and notebooks have their own
    spark = session(master=pipeline.master, name=pipeline.name, memory=pipeline.memory, config=dict(pipeline.config))
    metrics = Metrics(pipeline.name)
    try:
        checked = preflight(spark, pipeline.storage)
        checked.check()
        for note in checked.notes:
            say(f"note: {note}")
        with (
            make_engine(spark=spark, workers=pipeline.workers, storage=pipeline.storage) as engine,
            loads_given_up(spark, stop) as loading_is_over,
        ):
            try:
                _work(pipeline, engine, spark, metrics, say, stop, loading_is_over, ready)
            except TektiteError as error:
                if not stop.is_set() or loading_is_over.is_set():
                    raise
                say(f"given up: {error}")
                metrics.stopped = True
            metrics.seconds = round(time.perf_counter() - began, 3)
    finally:
        if ours:
            spark.stop()
    return metrics


@contextmanager
def loads_given_up(spark: SparkSession, stop: threading.Event) -> Iterator[threading.Event]:
    """While loads run, which may take hours, `stop` cancels their jobs: nothing of such a load counts, and the next run
    repeats it. The event that is yielded is set when no load runs.
    """
    over = threading.Event()
    tag = f"tektite-{uuid.uuid4().hex}"
    spark.sparkContext.addJobTag(tag)

    def watch() -> None:
        while not over.wait(SECONDS_BETWEEN):
            if stop.is_set():
                spark.sparkContext.cancelJobsWithTag(tag)

    thread = threading.Thread(target=watch, name="tektite-stop", daemon=True)
    thread.start()
    try:
        yield over
    finally:
        over.set()
        thread.join()
        spark.sparkContext.removeJobTag(tag)


def _work(
    pipeline: PipelinePlan,
    engine: Any,
    spark: SparkSession,
    metrics: Metrics,
    say: Say,
    stop: threading.Event,
    loading_is_over: threading.Event,
    ready: Callable[[Any], None] | None,
) -> None:
    began = time.perf_counter()
    inputs = {name: declare(engine, name, plan) for name, plan in pipeline.tables.items()}
    for kept in (True, False):  # a stream's rows are seen by the views that are there when they come
        for name, plan in pipeline.tables.items():
            if plan.load is not None and (plan.options.get("mode") != "stream") == kept and not stop.is_set():
                metrics.loaded[name] = _load(spark, inputs[name], plan.load, say)
        if kept:
            for name, view in pipeline.views.items():
                install(pipeline, engine, name, view)
                say(f"view {name}")
            if pipeline.build is not None:
                pipeline.build(engine, spark)
    loading_is_over.set()
    metrics.load_seconds = round(time.perf_counter() - began, 3)
    queries = [engine.view(s.view).write_changes(s.format, s.path, options=dict(s.options)) for s in pipeline.sinks]
    followings = [
        follow_source(inputs[name], plan.follow)
        for name, plan in pipeline.tables.items()
        if plan.follow is not None and not stop.is_set()
    ]
    if ready is not None and not stop.is_set():
        ready(engine)
    _wait(engine, followings, queries, say, stop)
    if ready is not None:
        stop.wait()
    for following in followings:
        following.stop()
        metrics.followed[following.source.name] = following.rows
        metrics.followed_epochs[following.source.name] = following.epochs
        if following.recent:
            taken = median(one.seconds for one in following.recent)
            metrics.epoch_seconds[following.source.name] = round(taken, 4)
        if following.failure is not None and not stop.is_set():
            raise following.failure
    if core_of(engine).store is not None:
        engine.sync()
    for query in queries:
        if not stop.is_set():
            query.processAllAvailable()
        query.stop()
    metrics.stopped = stop.is_set()
    metrics.epochs, metrics.durable, metrics.bytes = engine.next_epoch, engine.durable, engine.bytes
    metrics.updates = {name: core_of(engine.view(name)).trace.rows for name in engine.views}


def _wait(
    engine: Any, followings: list[Following], queries: list[StreamingQuery], say: Say, stop: threading.Event
) -> None:
    """Wait until every stream has ended or one has failed. Reports progress from time to time."""
    last = time.perf_counter()
    while any(following.active for following in followings) and not stop.wait(SECONDS_BETWEEN):
        if any(f.failure is not None for f in followings) or any(query.exception() is not None for query in queries):
            break
        now = time.perf_counter()
        if now - last >= SECONDS_A_REPORT:
            last = now
            say(progress_line(engine, followings))
    for query in queries:
        failure = query.exception()
        if failure is not None:
            raise FaultError(f"the sink {query.name or query.id} failed: {reason(failure)}")
    say(progress_line(engine, followings))


def progress_line(engine: Any, followings: list[Following]) -> str:
    """The progress of the streams in a line."""
    rows = ", ".join(f"{f.source.name} {f.rows} rows in {f.epochs} epochs" for f in followings)
    lag = max((following.behind() for following in followings), default=0)
    return (
        f"epoch {engine.next_epoch}, durable {engine.durable}, views {lag} epochs behind{f'; {rows}' if rows else ''}"
    )


def declare(engine: Any, name: str, plan: TablePlan) -> Any:
    """Declare a table."""
    return engine.create_table(name, plan.schema, **plan.options)


def _load(spark: SparkSession, target: Any, source: SparkSource, say: Say) -> int:
    began = time.perf_counter()
    once = None if source.position is not None else "pipeline"
    rows = target.load(_frame(spark, target.name, source, False), **_columns(source), upto=source.upto, once=once)
    say(f"load {target.name}: {rows} rows in {time.perf_counter() - began:.1f} s")
    return int(rows)


def follow_source(target: Table, source: SparkSource) -> Following:
    """Let a table follow a stream that is described, on the session of its engine."""
    spark = target.engine.spark
    assert spark is not None
    return target.follow(
        _frame(spark, target.name, source, True),
        **_columns(source),
        trigger=None if source.trigger is None else dict(source.trigger),
        bad_rows=source.bad_rows,  # type: ignore[arg-type]
        max_bad_rows=source.max_bad_rows,
    )


def _columns(source: SparkSource) -> dict[str, Any]:
    return {name: getattr(source, name) for name in ("diff", "operation", "order", "position", "extra")}


def _frame(spark: SparkSession, name: str, source: SparkSource, stream: bool) -> DataFrame:
    """The DataFrame of a table's source."""
    with explained(f"tables.{name}.{'follow' if stream else 'load'}", ""):
        return _read(spark, source, stream)


def _read(spark: SparkSession, source: SparkSource, stream: bool) -> DataFrame:
    reader: Any = spark.readStream if stream else spark.read
    if source.schema is not None:
        reader = reader.schema(source.schema)
    reader = reader.options(**source.options)
    if source.table is not None:
        frame: DataFrame = reader.table(source.table)
    else:
        reader = reader.format(source.format)
        frame = reader.load(source.path) if source.path is not None else reader.load()
    if source.where is not None:
        frame = frame.where(source.where)
    return frame.selectExpr(*source.select) if source.select else frame


def install(pipeline: PipelinePlan, engine: Any, name: str, plan: ViewPlan) -> None:
    """Install a view, and publish it if there is a storage."""
    if plan.sql is not None:
        engine.sql(plan.statement(name))
    else:
        assert plan.python is not None
        engine.install(name, _function(pipeline.folder, name, plan.python)(engine), order_by=plan.order_by)
    if plan.persist and core_of(engine).store is not None:
        engine.view(name).persist()


def _function(folder: Path, view: str, where: str) -> Callable[[Any], Any]:
    """The function named `module:function`. The module may be next to the pipeline."""
    module, _, name = where.partition(":")
    with _importable(folder):
        try:
            found = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise IncorrectError(f"view {view!r}: there is no {where!r}: {error}") from None
    if not is_function(found):
        raise IncorrectError(f"view {view!r}: {where!r} is not a function of an engine")
    made: Callable[[Any], Any] = found
    return made


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    place = os.fspath(folder.absolute())
    sys.path.insert(0, place)
    try:
        yield
    finally:
        sys.path.remove(place)


@contextmanager
def stopped_by_signals(stop: threading.Event, say: Say) -> Iterator[None]:
    """Set `stop` when the process is asked to end. A second request ends it at once."""

    def ask(number: int, _: Any) -> None:
        say(
            f"{signal.Signals(number).name}: stopping after the epoch that is under way (a load is given up, and repeated by the "
            "next run); once more to stop at once"
        )
        stop.set()
        signal.signal(number, signal.SIG_DFL)

    before = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
