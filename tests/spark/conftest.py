"""One Spark session for all the tests of a process: starting Java takes seconds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import tektite.spark


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker("spark")
