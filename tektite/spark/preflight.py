"""Preflight: checks that every executor can run Tektite's tasks, before anything depends on it."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from tektite.errors import FaultError
from tektite.spark.failures import reason
from tektite.spark.session import classic, described
from tektite.storage.store import PosixStore, open_store


@dataclass(frozen=True)
class Preflight:
    """The result of `preflight`. `executors` describe the Python workers that were asked, one for each place."""

    executors: tuple[dict[str, Any], ...]
    problems: tuple[str, ...]
    """Problems; empty if the cluster is ready."""
    notes: tuple[str, ...]
    """Things that work but could be better."""

    def check(self) -> None:
        """Raise if there is a problem."""
        if self.problems:
            raise FaultError("Spark's executors are not ready for Tektite: " + "; ".join(self.problems))


def preflight(spark: SparkSession, storage: str | os.PathLike[str] | None = None) -> Preflight:
    """Ask the executors for their Python, packages, compiled kernels and, if `storage` is a folder, write and read a file
    there.

    >>> import tektite.spark
    >>> spark = tektite.spark.session(config={"spark.ui.enabled": "false"})
    >>> tektite.spark.preflight(spark).problems
    ()
    """
    classic(spark)
    context = spark.sparkContext
    store = None if storage is None else open_store(os.fspath(storage))
    folder = store.url if isinstance(store, PosixStore) else None
    ask = _question(folder, uuid.uuid4().hex)
    tasks = 2 * max(context.defaultParallelism, 1)
    if folder is not None:
        with contextlib.suppress(OSError):  # the executors will say what is wrong with it
            Path(folder).mkdir(parents=True, exist_ok=True)
    with described(spark, "tektite preflight", "what the executors have"):
        try:
            answers = spark.range(0, tasks, 1, tasks).mapInArrow(ask, "answer string").collect()
        except Exception as error:
            raise FaultError(f"a preflight task failed, so no other would do better: {reason(error)}") from error
    found = [json.loads(row["answer"]) for row in answers]
    places = {(answer["host"], answer["python"], answer["executable"]): answer for answer in found}
    problems = list(dict.fromkeys(problem for answer in found for problem in _problems(answer)))
    notes = list(dict.fromkeys(note for answer in found for note in _notes(answer)))
    master = context.master or ""
    if master.startswith("local[") and "," not in master:
        notes.append(f"the master {master!r} never retries a failed task: use local[N,4]")
    return Preflight(tuple(places.values()), tuple(problems), tuple(notes))


def _question(storage: str | None, token: str) -> Any:
    """The task. It is a local function so that it is shipped completely: an executor may lack this package."""

    def ask(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import json
        import os
        import platform
        import socket
        import sys
        from importlib import metadata

        answer: dict[str, Any] = {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "python": platform.python_version(),
            "executable": sys.executable,
            "packages": {},
        }
        for name in ("tektite", "numpy", "pyarrow", "pyspark"):
            try:
                module = __import__(name)
                answer["packages"][name] = getattr(module, "__version__", None) or metadata.version(name)
            except Exception as error:
                answer["packages"][name] = None
                answer.setdefault("errors", {})[name] = f"{type(error).__name__}: {error}"
        if answer["packages"]["tektite"]:
            from tektite.kernels.ready import missing_modules

            answer["uncompiled"] = len(missing_modules())
        if storage is not None:
            path = os.path.join(storage, f".preflight-{token}-{os.getpid()}")
            try:
                with open(path, "xb") as file:
                    file.write(token.encode())
                    file.flush()
                    os.fsync(file.fileno())
                with open(path, "rb") as file:
                    answer["storage"] = "" if file.read() == token.encode() else "it read back something else"
                os.unlink(path)
            except OSError as error:
                answer["storage"] = str(error)
        for _ in batches:
            pass
        yield pa.record_batch({"answer": [json.dumps(answer)]})

    return ask


def _problems(answer: dict[str, Any]) -> Iterator[str]:
    where = answer["host"]
    ours, theirs = sys.version_info[:2], tuple(map(int, answer["python"].split(".")[:2]))
    if ours != theirs:
        yield (
            f"{where} runs Python {answer['python']}, the driver {sys.version.split()[0]}: give both the same one "
            "(spark.pyspark.python)"
        )
    for name, version in answer["packages"].items():
        if version is None:
            yield (
                f"{where} lacks the package {name} ({answer['errors'][name]}): install it there, or send an "
                "environment along (spark.archives)"
            )
        elif version != _here(name):
            yield f"{where} has {name} {version}, the driver {_here(name)}: give both the same one"
    if answer.get("storage"):
        yield f"{where} cannot use the storage folder: {answer['storage']}"


def _notes(answer: dict[str, Any]) -> Iterator[str]:
    if answer.get("uncompiled"):
        yield (
            f"{answer['host']} has {answer['uncompiled']} modules of kernels to compile before its first task: "
            "run `tektite warm` in the image"
        )


def _here(name: str) -> str:
    module = sys.modules.get(name) or __import__(name)
    return getattr(module, "__version__", None) or metadata.version(name)
