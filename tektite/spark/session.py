"""Spark sessions with the settings that Tektite needs; classic ones, not Spark Connect.

A session of the user's is never changed: `session(base)` derives another one that shares its context.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, cast

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from tektite.errors import IncorrectError, UnsupportedError
from tektite.spark.java import find_java

AT_START: Final = {
    # Tasks talk to their Python workers through a Unix socket, which has half the latency of a TCP socket.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
    # Jobs of different pools share the executors, so that a load of an hour does not delay sweeps.
    "spark.scheduler.mode": "FAIR",
    # The rows of a micro-batch come with the report of their task, without another request.
    "spark.task.maxDirectResultSize": "16m",
}
"""Settings that only a session that starts Spark can make."""

IN_SESSION: Final = {
    # A job's exchanges are planned by Tektite: one partition is one shard, however little it holds.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
}
"""Settings of every session in which Tektite runs jobs."""

ON_LOCAL_DISK: Final = {
    # Spark's choice starts ten processes (readlink, chmod) for each file of a stream's logs, which takes longer than an epoch.
    # This one renames files too; that is atomic on a file system of POSIX's, though not on each that Hadoop knows.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
"""Settings where paths without a scheme are on local or shared POSIX file systems."""


def session(
    base: SparkSession | None = None,
    *,
    master: str | None = None,
    name: str = "tektite",
    memory: str = "1g",
    config: Mapping[str, Any] | None = None,
) -> SparkSession:
    """A Spark session for Tektite: derived from `base`, or from the running Spark, or from one started on this machine.

    `master`, `name`, the driver's `memory` and `config` apply if Spark is started here, unless `spark-submit` sets them.
    The default master retries a failed task, as a cluster does; plain `local[2]` does not.

    >>> import tektite.spark
    >>> spark = tektite.spark.session(memory="1g", config={"spark.ui.enabled": "false"})
    >>> spark.conf.get("spark.sql.adaptive.enabled")
    'false'
    """
    if base is None:
        running = SparkContext._active_spark_context is not None
        base = SparkSession.builder.getOrCreate() if running else _start(master, name, memory, dict(config or {}))
    classic(base)
    derived = base.newSession()
    files = base.sparkContext._jsc.hadoopConfiguration().get("fs.defaultFS")
    for key, value in (IN_SESSION | (ON_LOCAL_DISK if files.startswith("file:") else {})).items():
        derived.conf.set(key, value)
    return derived


def is_connect(found: Any) -> bool:
    """Whether a session or a DataFrame belongs to Spark Connect."""
    return type(found).__module__.startswith("pyspark.sql.connect")


def classic(found: Any) -> SparkSession:
    """The session, if Tektite can use it."""
    if is_connect(found):
        raise UnsupportedError(
            "found a Spark Connect session, whose driver is another process: Tektite needs a classic one, such as "
            "tektite.spark.session() or SparkSession.builder.master(...) without .remote(...) makes"
        )
    if not isinstance(found, SparkSession):
        raise IncorrectError(f"spark is a SparkSession, not {type(found).__name__}: see tektite.spark.session()")
    if found.sparkContext._jsc is None or found.sparkContext._jsc.sc().isStopped():
        raise IncorrectError("the Spark session was stopped: make another one")
    return found


@contextmanager
def described(
    spark: SparkSession,
    group: str | None,
    description: str,
    pool: str | None = None,
    more: Mapping[str, str] | None = None,
) -> Iterator[None]:
    """Give the jobs that this thread runs meanwhile a group and a description for Spark's pages, a pool, and `more`
    properties for their tasks.

    Without a group they keep theirs, as jobs of a stream must: Spark stops them by it.
    """
    context = spark.sparkContext
    ours = {"spark.job.description": description, "spark.jobGroup.id": group, "spark.scheduler.pool": pool}
    ours |= more or {}
    ours = {key: value for key, value in ours.items() if value is not None}
    before = {key: context.getLocalProperty(key) for key in ours}
    for key, value in ours.items():
        context.setLocalProperty(key, cast(str, value))
    try:
        yield
    except KeyboardInterrupt:
        if group is not None:
            context.cancelJobGroup(group)  # Spark's own handler fails if the main thread waits for an answer
        raise
    finally:
        for key, found in before.items():
            context.setLocalProperty(key, cast(str, found))  # None removes the property


def _start(master: str | None, name: str, memory: str, config: dict[str, Any]) -> SparkSession:
    if "SPARK_REMOTE" in os.environ:
        raise UnsupportedError(
            f"the environment asks for a Spark Connect session (SPARK_REMOTE={os.environ['SPARK_REMOTE']!r}): unset it"
        )
    os.environ["JAVA_HOME"] = str(find_java())
    said = _submitted()
    master = said.get("spark.master") or master or os.environ.get("MASTER") or f"local[{os.cpu_count() or 1},4]"
    settings = AT_START | {"spark.sql.adaptive.enabled": "false", "spark.driver.memory": memory}
    if re.fullmatch(r"local(\[.*\])?", master):
        # The only executor is this driver: if it has been silent for minutes, the machine was asleep.
        settings["spark.network.timeout"] = "1h"
    if master.startswith("local"):
        # Workers on this machine use the Python of this process, and its package, installed or not.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        settings["spark.executorEnv.PYTHONPATH"] = str(Path(__file__).parents[2])
        settings["spark.python.daemon.module"] = "tektite.spark.daemon"
    builder = SparkSession.builder.master(master).appName(name)
    for key, value in (settings | config | said).items():
        builder = builder.config(key, value)
    with _interrupts_kept():
        return builder.getOrCreate()


@contextmanager
def _interrupts_kept() -> Iterator[None]:
    """Keep the program's interrupt handler, which Spark replaces."""
    handler = signal.getsignal(signal.SIGINT)
    yield
    theirs = handler is not signal.default_int_handler and threading.current_thread() is threading.main_thread()
    if theirs and handler is not None:
        signal.signal(signal.SIGINT, handler)


def _submitted() -> dict[str, str]:
    """The settings of `spark-submit`, if it has started this program. They override the program's."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return {}
    SparkContext._ensure_initialized()
    return {key: value for key, value in SparkConf().getAll() if key != "spark.app.name"}
