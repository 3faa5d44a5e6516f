"""How the tests run: Hypothesis profiles, the Spark session, executors, what runs in `make nightly` alone, and in which order."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support.distribution import GroupScheduling, tell_worker, write_groups
from tests.support.executors import EXECUTORS, OTHERS, Executor, check_ids, chosen, executor_of, left_out, running_on
from tests.support.nightly import NIGHTLY, differs_at_night

# The first example may wait for a kernel to compile, so no profile has a deadline or minds a slow start.
_PATIENT = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("ci", max_examples=40, derandomize=True, **_PATIENT)
settings.register_profile("nightly", max_examples=200, print_blob=True, **_PATIENT)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# For the session of the tests, and for those that programs and commands start.
os.environ.setdefault("SPARK_CONF_DIR", str(Path(__file__).parent / "support" / "spark_conf"))


def pytest_configure() -> None:
    """Let Ctrl-C interrupt what tests start: who runs them in the background may have it ignored, and children inherit that.

    Tests kill processes, not machines: what this process writes need not reach the disk, and nobody waits for it.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.fsync = lambda handle: os.fstat(handle) and None  # still fails where the file is closed


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


@pytest.fixture(scope="module", autouse=True)
def executor(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The executor that the engines of a test run on: each of those that its marker names, in turn."""
    name = getattr(request, "param", "threads")
    session = request.getfixturevalue("spark") if name == "spark" else None
    folder = Path() if name == "threads" else tmp_path_factory.mktemp("engines")
    with running_on(Executor(name, folder, session)):
        yield name


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test with the marker `executors` is there once for each executor that the marker names."""
    markers = list(metafunc.definition.iter_markers("executors"))
    if markers:
        marks = {"spark": pytest.mark.spark}
        names = [pytest.param(name, marks=marks.get(name, ())) for name in (EXECUTORS if OTHERS else chosen(markers))]
        metafunc.parametrize("executor", names, indirect=True, scope="module")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what runs elsewhere, let one process have all tests of the Spark session, and begin with the slow tests: a run
    that ends with a long test has one core idle.
    """
    left = {*left_out(items)}
    if not any("::" in argument for argument in config.args):
        check_ids(items)
        if NIGHTLY:
            left |= {item for item in items if not differs_at_night(item)}
        else:
            left |= {item for item in items if item.get_closest_marker("nightly")}
    if left:
        config.hook.pytest_deselected(items=[item for item in items if item in left])
        items[:] = [item for item in items if item not in left]
    examples = str(Path(__file__).parents[1] / "tektite" / "spark") + os.sep  # as text: paths compare slowly
    on_spark = [
        item
        for item in items
        if executor_of(item) == "spark"
        or "spark" in getattr(item, "fixturenames", ())
        or str(item.path).startswith(examples)
    ]
    modules = list(dict.fromkeys(item.path for item in on_spark))
    for item in on_spark:
        # By day, one Java serves all; at night there is so much for Spark that two processes share it.
        item.add_marker(
            pytest.mark.xdist_group(f"spark {modules.index(item.path) % 2}" if NIGHTLY or OTHERS else "spark")
        )
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):  # one browser for all tests of a module
            item.add_marker(pytest.mark.xdist_group("browser"))
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
    write_groups(config, items)


def pytest_collection_finish() -> None:
    """What is there now stays: half a million objects that no later collection of garbage need look at."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    gc.unfreeze()  # libraries complain at the end of the process of objects that are still there


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    tell_worker(node)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> GroupScheduling | None:
    return GroupScheduling(config, log) if config.getoption("dist") == "loadgroup" else None
