"""Opens the engine of a server, and declares and installs what its description says.

A storage that another process has open is refused, with the name of that process. A description with sources, sinks or a part
`spark` runs as `tektite run` does, on a Spark session, beside the clients.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

from tektite.engine.engine import Engine
from tektite.errors import TektiteError
from tektite.pipeline import PipelinePlan
from tektite.server.logs import Log
from tektite.server.plan import ServerPlan


@contextmanager
def open_engine(plan: ServerPlan, log: Log) -> Iterator[Engine]:
    """The engine that a server serves, with everything installed, until the block ends."""
    if needs_spark(plan.pipeline):
        with _on_spark(plan.pipeline, log) as engine:
            yield engine
        return
    options: dict[str, Any] = {"autocommit": plan.epochs.kind != "explicit"}
    with Engine(plan.workers, storage=plan.pipeline.storage, **options) as engine:
        for name, declared in plan.pipeline.tables.items():
            engine.create_table(name, declared.schema, **declared.options)
        for name, view in plan.pipeline.views.items():
            engine.sql(view.statement(name))
        yield engine


def check_views(pipeline: PipelinePlan) -> None:
    """Refuse tables and views of a description that could not be installed. Nothing of Spark starts and no storage is opened: a
    view may read what clients have created in a storage, so what is missing there is not refused.
    """
    if needs_spark(pipeline):
        from tektite.spark.soundness import check_pipeline

        check_pipeline(pipeline, Engine)
        return
    with Engine() as engine:
        for name, declared in pipeline.tables.items():
            engine.create_table(name, declared.schema, **declared.options)
        for name, view in pipeline.views.items():
            try:
                engine.sql(view.statement(name))
            except TektiteError as error:
                if pipeline.storage is not None and error.details.get("condition") == "undefined-table":
                    continue
                raise error.reworded(f"{pipeline.file}, views.{name}: {error}") from None


def needs_spark(pipeline: PipelinePlan) -> bool:
    """Whether a pipeline does something that Spark does."""
    sources = any(declared.load or declared.follow for declared in pipeline.tables.values())
    functions = any(view.sql is None for view in pipeline.views.values())
    return bool(sources or functions or pipeline.sinks or pipeline.build or pipeline.master or pipeline.config)


@contextmanager
def _on_spark(pipeline: PipelinePlan, log: Log) -> Iterator[Engine]:
    """The engine of a pipeline that runs in a thread of its own until the block ends."""
    from tektite.spark.run import run

    stop = threading.Event()
    found: SimpleQueue[Engine | BaseException] = SimpleQueue()

    def work() -> None:
        try:
            run(pipeline, Engine, lambda text: log.info("pipeline", message=text), stop, found.put)
        except BaseException as error:
            if not isinstance(error, TektiteError):
                log.error("the pipeline failed", error=repr(error))
            found.put(error)

    thread = threading.Thread(target=work, name="tektite-pipeline")
    thread.start()
    try:
        engine = found.get()
        if isinstance(engine, BaseException):
            raise engine
        yield engine
    finally:
        stop.set()
        thread.join()
