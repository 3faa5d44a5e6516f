"""CREATE SOURCE ... FROM SPARK: a server reads a stream of its Spark session into a table, and goes on after a restart."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tektite as tk
from tektite.pipeline import from_plain
from tektite.server.logs import Log
from tektite.server.plan import ServerPlan
from tests.support.patience import until
from tests.support.server import RunningServer, running, running_server

MADE = """CREATE SOURCE clicks INTO clicks FROM SPARK WITH (format = 'json', path = '{folder}', schema = 'who string, n long',
    'maxFilesPerTrigger' = '1', trigger = '100 milliseconds', bad_rows = 'keep')"""


@contextmanager
def served_on(spark: Any, store: Path) -> Iterator[RunningServer]:
    @contextmanager
    def opened(plan: ServerPlan, log: Log) -> Iterator[tk.Engine]:
        with tk.Engine(spark=spark, storage=str(store)) as engine:
            yield engine

    pipeline = replace(from_plain({}, Path("server.yaml")), storage=str(store))
    with running(ServerPlan(pipeline, port=0, http_port=0), opened) as found:
        yield found


def test_a_stream_is_read_into_a_table_and_goes_on_after_a_restart(spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "1.json").write_text('{"who": "ann", "n": 1}\n{"who": "bob", "n": 2}\n')
    with served_on(spark, tmp_path / "store") as served, tk.connect(served.web_url) as client:
        client.sql("CREATE TABLE clicks (who varchar NOT NULL, n bigint)")
        client.sql(MADE.format(folder=folder))
        clicks = client.table("clicks")
        until(lambda: len(clicks.rows()) == 2)
        (folder / "2.json").write_text('{"who": "cid", "n": 3}\n{"n": 4}\n')
        until(lambda: len(clicks.rows()) == 3)
        (shown,) = client.sql("SHOW SOURCES").table.to_pylist()
        assert (shown["name"], shown["table"], shown["place"], shown["error"]) == ("clicks", "clicks", "spark", None)
        assert [row[1] for row in client.table("clicks_bad_rows").rows()] == ['{"who": null, "n": 4}']
    (folder / "3.json").write_text('{"who": "dan", "n": 5}\n')
    with served_on(spark, tmp_path / "store") as served, tk.connect(served.web_url) as client:
        clicks = client.table("clicks")
        until(lambda: len(clicks.rows()) == 4)
        assert sorted(clicks.rows()) == [("ann", 1), ("bob", 2), ("cid", 3), ("dan", 5)]
        client.sql("DROP SOURCE clicks")
        until(lambda: not spark.streams.active)
        assert client.sql("SHOW SOURCES").rows() == []


def test_a_stream_that_cannot_be_read_is_told_and_disturbs_nobody(spark: Any, tmp_path: Path) -> None:
    with served_on(spark, tmp_path / "store") as served, tk.connect(served.web_url) as client:
        client.sql("CREATE TABLE t (n bigint)")
        client.sql("CREATE SOURCE s INTO t FROM SPARK WITH (format = 'nonsense')")
        until(lambda: client.sql("SHOW SOURCES").table.to_pylist()[0]["error"] is not None)
        assert "nonsense" in client.sql("SHOW SOURCES").table.to_pylist()[0]["error"]
        client.sql("INSERT INTO t VALUES (1)")
        for options, message in (
            ("path = 'x'", "of a format or of a table"),
            ("format = 'json', bad_rows = 'eat'", "bad_rows is stop or keep, not 'eat'"),
            ("format = 'json', max_bad_rows = 'many'", "max_bad_rows is a number"),
        ):
            with pytest.raises(tk.IncorrectError, match=message):
                client.sql(f"CREATE SOURCE u INTO t FROM SPARK WITH ({options})")


def test_a_server_without_spark_says_so() -> None:
    with running_server() as served, tk.connect(served.web_url) as client:
        client.sql("CREATE TABLE t (n bigint)")
        with pytest.raises(tk.UnsupportedError, match="the server has no Spark session"):
            client.sql("CREATE SOURCE s INTO t FROM SPARK WITH (format = 'rate')")
