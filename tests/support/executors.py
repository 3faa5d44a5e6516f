"""The executors that tests of behaviour run on, and the factory of their engines.

`threads` is the engine's own executor. With the others every sweep goes through stages of single shards: `stages` runs them in
this process, `spark` as jobs of a Spark session. The marker `executors` says which of them a test runs on:

    pytestmark = pytest.mark.executors                        a module of behaviour: all its tests run on threads
    @pytest.mark.executors("stages", "spark")                 this test runs on these two as well
    @pytest.mark.executors("stages", spark=["joins", 3])      in stages with all parameters, on Spark with those of these ids

Markers of a module and of a test add up. A test makes its engines by `make_engine`, so that they run on the executor whose turn
it is.

`TEKTITE_OTHER_EXECUTORS='stages:2 spark:20'` runs what the markers leave out, and nothing of what they name: on stages one test
of two, on Spark one of twenty. `TEKTITE_SEED` decides which.
"""

from __future__ import annotations

import itertools
import os
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle

import tektite as tk
from tests.support.nightly import SEED
from tests.support.patience import PATIENT_TURN
from tests.support.stages import in_stages

EXECUTORS = ("threads", "stages", "spark")
OTHERS = {
    name: int(share)
    for name, share in (part.split(":") for part in os.environ.get("TEKTITE_OTHER_EXECUTORS", "").split())
}
"""By executor, of how many of the tests that no marker names for it one runs. If it is empty, what markers name runs."""

SCARCE = {"threads": 1, "stages": 20, "spark": 400}
"""Of how many random examples one is tried: about how many times as long as on threads a small sweep takes."""


@dataclass
class Executor:
    """What the engines of a test run on."""

    name: str = "threads"
    folder: Path = Path()
    """Where engines that need a storage have it."""
    session: Any = None
    """The Spark session."""
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def make(self, workers: int | None, options: dict[str, Any]) -> tk.Engine:
        options.setdefault("turn", PATIENT_TURN)
        if self.name == "threads":
            return tk.Engine(workers, **options)
        options.setdefault("storage", self.folder / f"engine {next(self.numbers)}")
        if self.name == "spark":
            return tk.Engine(workers, spark=self.session, job_rows=0, **options)
        return in_stages(tk.Engine(workers, **options))


_current = Executor()


def make_engine(workers: int | None = None, **options: Any) -> tk.Engine:
    """An engine on the executor that the test runs on; the options are those of `tk.Engine`. Unless they say otherwise, epochs
    close by `advance`, so that a test decides what belongs to one.
    """
    options.setdefault("autocommit", False)
    return _current.make(workers, options)


def examples(most: int) -> int:
    """How many of so many random examples there is time for on the executor that a test runs on: two at least, since the first
    one that Hypothesis draws is as small as can be.
    """
    return max(most // SCARCE[_current.name], 2)


@contextmanager
def running_on(executor: Executor) -> Iterator[None]:
    """Let `make_engine` make engines that run on an executor."""
    global _current
    before, _current = _current, executor
    try:
        if executor.name == "threads":
            yield
        else:
            with sent_by_value():
                yield
    finally:
        _current = before


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


# ------------------------------------------------------------------------------------------------- the marker


def chosen(markers: Iterable[pytest.Mark], parameters: str | None = None) -> list[str]:
    """The executors that markers name, for any parameters or for those with this id."""
    found = {"threads"}
    for marker in markers:
        unknown = {*marker.args, *marker.kwargs} - {*EXECUTORS}
        if unknown:
            raise pytest.UsageError(f"the marker executors knows {', '.join(EXECUTORS)}, not {sorted(unknown)}")
        found.update(marker.args)
        for name, ids in marker.kwargs.items():
            if parameters is None or parameters in map(str, ids):
                found.add(name)
    return [name for name in EXECUTORS if name in found]


def id_of_parameters(item: pytest.Item) -> str:
    """The id of a test's parameters without that of its executor."""
    call = item.callspec  # type: ignore[attr-defined]
    return "-".join(part for part in call._idlist if part != call.params["executor"])


def executor_of(item: pytest.Item) -> str | None:
    """The executor of a test that the marker is on."""
    return item.callspec.params["executor"] if item.get_closest_marker("executors") else None  # type: ignore[attr-defined]


def left_out(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """The tests that do not run on the executor that they have."""
    left = []
    for item in items:
        executor = executor_of(item)
        if executor is not None:
            named = chosen(item.iter_markers("executors"), id_of_parameters(item))
            if not runs_on(executor, named, item.nodeid, OTHERS, SEED):
                left.append(item)
    return left


def runs_on(executor: str, named: Iterable[str], test: str, others: dict[str, int], seed: int) -> bool:
    """Whether a test runs on an executor: on those that its markers name; with `others`, on those, if it is drawn."""
    if not others:
        return executor in named
    return executor not in named and executor in others and is_drawn(test, others[executor], seed)


def is_drawn(name: str, share: int, seed: int) -> bool:
    """Whether a name is in the part of a share that a seed draws. Each name is in one part, and `share` seeds in a row draw all.

    >>> [sum(is_drawn(f"test_{at}", 3, seed) for at in range(300)) for seed in (0, 1, 2)]
    [98, 103, 99]
    >>> all(any(is_drawn(f"test_{at}", 3, seed) for seed in (7, 8, 9)) for at in range(300))
    True
    """
    return zlib.crc32(name.encode()) % share == seed % share


def check_ids(items: Iterable[pytest.Item]) -> None:
    """Refuse ids in markers that no test has: the parameters were renamed, and nothing would run."""
    wanted: dict[str, set[str]] = {}
    known: dict[str, set[str]] = {}
    for item in items:
        if executor_of(item) is None:
            continue
        name = f"{item.path.name}: {getattr(item, 'originalname', item.name)}"
        named = (ids for marker in item.own_markers if marker.name == "executors" for ids in marker.kwargs.values())
        wanted.setdefault(name, set()).update(map(str, itertools.chain.from_iterable(named)))
        known.setdefault(name, set()).add(id_of_parameters(item))
    for name, ids in wanted.items():
        if missing := ids - known[name]:
            raise pytest.UsageError(
                f"{name}: the marker executors names {sorted(missing)}, but the ids of its parameters are {sorted(known[name])}"
            )
