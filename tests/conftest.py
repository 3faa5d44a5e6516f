"""How the tests run: Hypothesis profiles, and slow tests last."""

from __future__ import annotations

import os
import signal
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, settings

import tektite
from tektite.engine import front

# The first example may wait for a kernel to compile, so no profile has a deadline or minds a slow start.
_PATIENT = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("ci", derandomize=True, **_PATIENT)
settings.register_profile("nightly", max_examples=2000, print_blob=True, **_PATIENT)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_configure() -> None:
    """Let Ctrl-C interrupt what tests start: who runs them in the background may have it ignored, and children inherit that."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One Spark session for all the tests of a process: starting Java takes seconds."""
    import tektite.spark

    folder = tmp_path_factory.mktemp("spark")
    made = tektite.spark.session(
        master="local[2,4]",
        memory="1g",
        config={
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.local.dir": str(folder / "local"),
            "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder}",
        },
    )
    made.sparkContext.setLogLevel("OFF")
    made.conf.set("spark.sql.shuffle.partitions", "2")
    made.conf.set("spark.sql.session.timeZone", "America/New_York")  # no test may get its answers from UTC alone
    yield made
    made.stop()


@pytest.fixture(scope="module", params=["threads", "stages", pytest.param("spark", marks=pytest.mark.spark)])
def executor(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Every engine of the test runs on each of the executors in turn."""
    from tests.support.executors import running_on

    session = request.getfixturevalue("spark") if request.param == "spark" else None
    with running_on(request.param, tmp_path_factory.mktemp("engines"), session):
        yield request.param


@pytest.fixture(autouse=True)
def own_executor(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that names no executor has the engine's own: the one of a neighbour lasts for a module."""
    if "executor" in request.fixturenames:
        yield
        return
    with patch.object(tektite, "Engine", front.Engine):
        yield


ALL = bool(os.environ.get("TEKTITE_ALL_EXECUTORS"))
SHARES = {"stages": 3, "spark": 10}
"""Of the behavioural tests of a module, all of which run on the engine's own threads, one in so many, and at least one, also runs
in stages of single shards in this process, where a small sweep takes some milliseconds, and as Spark jobs, which take some
tenths of a second each. The marker `share(stages=10, spark=100)` says otherwise for tests that are many or heavy. `make nightly`
runs all on all.
"""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Quick failures first, and of what could run on every executor the share that does."""
    shared: dict[tuple[Path, str], list[tuple[int, int, pytest.Item]]] = {}
    for item in items:
        executor = runs_on(item)
        if executor in SHARES and not ALL:
            marker = item.get_closest_marker("share")
            share = SHARES[executor] if marker is None else marker.kwargs.get(executor, SHARES[executor])
            shared.setdefault((item.path, executor), []).append((share, zlib.crc32(item.nodeid.encode()), item))
    dropped: set[pytest.Item] = set()
    for found in shared.values():
        chosen = {item for share, number, item in found if number % share == 0} or {min(found, key=lambda f: f[:2])[2]}
        dropped.update(item for _, _, item in found if item not in chosen)
    if dropped:
        config.hook.pytest_deselected(items=[item for item in items if item in dropped])
        items[:] = [item for item in items if item not in dropped]
    items.sort(key=lambda item: item.get_closest_marker("slow") is not None)


def runs_on(item: pytest.Item) -> str | None:
    """The executor of a test that runs on several."""
    call = getattr(item, "callspec", None)
    return None if call is None else call.params.get("executor")
