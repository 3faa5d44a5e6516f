"""The executors that behavioural tests run on: a module that uses the fixture `executor` runs on each of them.

`threads` is the in-process executor. With the others every sweep goes through stages of single shards: `stages` runs them in
this process, `spark` as jobs of a Spark session.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pyspark import cloudpickle

import tektite as tk
from tests.support.stages import in_stages

current = "threads"
"""The executor that engines run on."""

SCARCE = {"threads": 1, "stages": 20, "spark": 400}
"""Of how many random examples one is tried: about how many times as long as on threads a small sweep takes."""


def examples(most: int) -> int:
    """How many of so many random examples there is time for on the executor that a test runs on: two at least, since the first
    one that Hypothesis draws is as small as can be.
    """
    return max(most // SCARCE[current], 2)


@contextmanager
def running_on(executor: str, folder: Path, spark: Any = None) -> Iterator[None]:
    """Have every engine that a test makes run on an executor."""
    with patch.object(sys.modules[__name__], "current", executor), _made_for(executor, folder, spark):
        yield


@contextmanager
def _made_for(executor: str, folder: Path, spark: Any) -> Iterator[None]:
    if executor == "threads":
        yield
        return
    made = tk.Engine
    number = itertools.count()

    def make(workers: int | None = None, **options: Any) -> tk.Engine:
        options.setdefault("storage", folder / f"engine {next(number)}")
        options.setdefault("turn", 60.0)  # a job takes longer than a turn, and tests look for what an epoch brought
        if executor == "spark":
            return made(workers, spark=spark, job_rows=0, **options)
        return in_stages(made(workers, **options))

    with patch.object(tk, "Engine", make), sent_by_value():
        yield


@contextmanager
def sent_by_value() -> Iterator[None]:
    """Workers cannot import the modules of tests: send their functions whole."""
    here = Path(__file__).parents[1]
    ours = [
        module
        for module in list(sys.modules.values())
        if (file := getattr(module, "__file__", None)) and here in Path(file).parents
    ]
    for module in ours:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in ours:
            cloudpickle.unregister_pickle_by_value(module)
