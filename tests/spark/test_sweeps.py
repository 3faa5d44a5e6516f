"""Large sweeps as Spark jobs: what tasks hand to each other and to the driver, and what becomes of those that fail."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import tektite as tk
from tektite.engine.core import core_of
from tektite.runtime import stage_task
from tektite.runtime.messages import StageReport
from tektite.runtime.shipment import Shipment
from tektite.spark.sweep.executor import SparkExecutor
from tektite.spark.sweep.job import checked, read_shipment
from tektite.storage.store import PosixStore
from tests.support.executors import sent_by_value
from tests.support.stages import in_stages, run_stages, staged


@pytest.fixture(scope="module", autouse=True)
def shipped_functions() -> Iterator[None]:
    with sent_by_value():
        yield


def shop(engine: tk.Engine) -> tuple[tk.Table, tk.Table]:
    """Orders and their lines, 300 of them, with texts."""
    orders = engine.create_table("orders", {"id": tk.Int, "customer": tk.String}, order_by=["id"])
    lines = engine.create_table("lines", {"order": tk.Int, "part": tk.String, "price": tk.Int}, order_by=["order"])
    orders.insert([(i, f"customer {i % 7}") for i in range(60)])
    lines.insert([(i % 60, f"part {i % 11}", i) for i in range(300)])
    engine.advance()
    return orders, lines


def revenue(orders: tk.Collection, lines: tk.Collection) -> tk.Collection:
    joined = orders.join(lines, left_on="id", right_on="order")
    return joined.group_by(["customer", "part"]).agg(total=tk.sum("price")).filter(tk.col("part").like("part %1"))


def expected(count: int = 300) -> list[tuple[str, str, int]]:
    found: dict[tuple[str, str], int] = {}
    for i in range(count):
        if f"part {i % 11}".endswith("1"):
            key = (f"customer {i % 60 % 7}", f"part {i % 11}")
            found[key] = found.get(key, 0) + i
    return sorted((*key, total) for key, total in found.items())


def jobs_of(spark: SparkSession, group: str) -> int:
    return len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))


def test_large_sweep_is_one_job_and_a_small_one_none(spark: SparkSession, tmp_path: Path) -> None:
    with tk.Engine(spark=spark, storage=tmp_path, workers=2, job_rows=100, autocommit=False) as engine:
        orders, lines = shop(engine)
        groups = watched(engine)
        view = engine.install("revenue", revenue(orders, lines))
        assert sorted(view.rows()) == expected()
        (group,) = groups
        assert jobs_of(spark, group) == 1
        lines.insert([(0, "part 1", 1000)])
        engine.advance()
        want = [(c, p, total + 1000 * (c == "customer 0" and p == "part 1")) for c, p, total in expected()]
        assert sorted(view.rows()) == want
        assert len(groups) == 1
        lines.insert([(i % 60, f"part {i % 11}", 0) for i in range(300)])
        engine.advance()
        assert sorted(view.rows()) == want
        assert len(groups) == 2


def watched(engine: tk.Engine) -> list[str]:
    """The groups of the jobs that an engine runs from here on, each as often as a sweep has used it."""
    groups: list[str] = []
    engine.on_sweep(lambda sweep: groups.extend(sweep.jobs))
    return groups


def test_queries_that_have_much_to_do_share_one_job(spark: SparkSession, tmp_path: Path) -> None:
    with tk.Engine(spark=spark, storage=tmp_path, workers=2, job_rows=100, autocommit=False) as engine:
        orders, lines = shop(engine)
        by_part = engine.install("by part", lines.count(by="part"))
        first = engine.install("revenue", revenue(orders, lines))
        second = engine.install("largest", first.max("total", by="customer"))
        engine.settle()
        groups = watched(engine)
        lines.insert([(i % 60, f"part {i % 11}", i) for i in range(300)])
        engine.advance()
        engine.settle()
        assert len(set(groups)) == 1
        assert len(groups) > 2
        assert sorted(first.rows()) == [(c, p, 2 * total) for c, p, total in expected()]
        assert sum(n for _, n in by_part.rows()) == 600
        largest: dict[str, int] = {}
        for customer, _, total in first.rows():
            largest[customer] = max(largest.get(customer, total), total)
        assert sorted(second.select("customer", "total").schema.names) == ["customer", "total"]
        assert {row[0]: row[-1] for row in second.rows()} == largest


@pytest.mark.parametrize("large", [1, stage_task.LARGE], ids=["by file", "by shuffle"])
def test_permuted_inbox_gives_identical_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: int) -> None:
    files: list[list[str]] = []
    sent: list[str | None] = []
    monkeypatch.setattr(stage_task, "LARGE", large)

    def twice(shipment: Shipment, group: str, description: str) -> list[StageReport]:
        first = run_stages(shipment, group, description, random.Random(1))
        second = run_stages(shipment, group, description, random.Random(2))
        assert [report.to_json() for report in first] == [report.to_json() for report in second]
        files.append([report.file.name for report in first if report.file is not None])
        sent.extend(report.sent for report in first if report.rows)
        return first

    with staged(tmp_path, workers=3) as engine:
        core_of(engine).coordinator.executor.run = twice  # type: ignore[union-attr]
        orders, lines = shop(engine)
        view = engine.install("revenue", revenue(orders, lines))
        tk_match = tk.match((orders, ("o", "c")), (lines, ("o", "p", "x")), (orders, ("x", "d")), joins="delta")
        engine.install("matched", tk_match)
        assert sorted(view.rows()) == expected()
        assert engine.view("matched").rows()
    assert any(len(names) > 3 for names in files)
    assert sent and all((name is not None) == (large == 1) for name in sent)


def spoiling() -> type[PosixStore]:
    """A storage in which the first file of rows that a task sends to another shard is cut short; it takes down the names of
    all that is written.
    """

    class Spoiling(PosixStore):
        def rename(self, temporary: Path, target: Path) -> None:
            super().rename(temporary, target)
            with open(f"{self.url}/written", "a") as log:
                log.write(f"{target.name}\n")
            if "-sent-" in target.name and not os.path.exists(f"{self.url}/spoilt"):
                os.truncate(target, 100)
                open(f"{self.url}/spoilt", "x").close()

    return Spoiling


def test_many_rows_go_from_task_to_task_by_files_which_end_with_their_job(spark: SparkSession, tmp_path: Path) -> None:
    """One of them is damaged: its job fails for good, and another one takes its place."""
    store = spoiling()(tmp_path)
    with tk.Engine(spark=spark, storage=tk.Storage(store), workers=2, job_rows=1000, autocommit=False) as engine:
        table = engine.create_table("t", {"k": tk.Int, "v": tk.Int})
        view = engine.install("n", table.group_by("v").agg(total=tk.sum("k")))
        groups = watched(engine)
        for epoch in range(2):
            table.insert([(k, 3 * k % 9001) for k in range(20_000)])
            engine.advance()
            totals: dict[int, int] = {}
            for k in range(20_000):
                totals[3 * k % 9001] = totals.get(3 * k % 9001, 0) + k * (epoch + 1)
            assert dict(view.rows()) == totals
        written = (tmp_path / "written").read_text().splitlines()
        assert (tmp_path / "spoilt").exists()
        assert len([name for name in written if name.endswith(".shipment")]) == 3
        assert len(groups) == 2
        assert len([name for name in written if "-sent-" in name]) >= 6
        left = [path.name for path in (tmp_path / "sweeps").iterdir()]
        assert not [name for name in left if "-sent-" in name or name.endswith(".shipment")]


def test_shipment_that_is_not_what_the_driver_wrote_is_not_unpacked(tmp_path: Path) -> None:
    store = PosixStore(tmp_path)
    store.write("sweeps/a.shipment", [b"something else"])
    with pytest.raises(tk.FaultError, match=r"sweeps/a\.shipment is not what the driver of this job has written"):
        read_shipment(store, "sweeps/a.shipment", "0" * 64)


def test_reports_of_another_job_do_not_count(tmp_path: Path) -> None:
    """As they would come if threads that start jobs shared what they tell tasks."""
    shipments: list[Shipment] = []

    def confused(shipment: Shipment, group: str, description: str) -> list[StageReport]:
        shipments.append(shipment)
        reports = run_stages(shipment, group, description)
        return checked(
            shipment, [replace(report, token="another") if len(shipments) == 1 else report for report in reports]
        )

    with staged(tmp_path, workers=2) as engine:
        core_of(engine).coordinator.executor.run = confused  # type: ignore[union-attr]
        view = engine.install("revenue", revenue(*shop(engine)))
        assert sorted(view.rows()) == expected()
    assert len(shipments) == 2


def fails_at(number: int) -> Any:
    def function(batch: pa.Table) -> pa.Table:
        if number in batch.column("price").to_pylist():
            raise ValueError(f"price {number}")
        return batch.select(["price"])

    return function


@pytest.mark.parametrize("where", ["stages", "spark"])
def test_function_that_raises_fails_its_view_alone(spark: SparkSession, tmp_path: Path, where: str) -> None:
    with (
        tk.Engine(spark=spark, storage=tmp_path, workers=2, job_rows=0, autocommit=False)
        if where == "spark"
        else staged(tmp_path, workers=2)
    ) as engine:
        orders, lines = shop(engine)
        good = engine.install("revenue", revenue(orders, lines))
        bad = engine.install("bad", lines.map_batches(fails_at(301), price=tk.Int).count(by="price"))
        on_it = engine.install("on it", bad.max("price", by=[]))
        assert len(bad.rows()) == 300
        lines.insert([(0, "part 0", 301), (1, "part 0", 302)])
        engine.advance()
        assert sorted(good.rows()) == expected()
        with pytest.raises(tk.FaultError, match=r"view 'bad': .*raised ValueError\('price 301'\)"):
            bad.rows()
        with pytest.raises(tk.FaultError, match=r"view 'on it': in 'bad', which it reads: .*raised ValueError"):
            on_it.rows()
        lines.insert([(2, "part 1", 0)])
        engine.advance()
        assert sorted(good.rows()) == expected()


def test_function_that_cannot_be_sent_runs_in_the_driver(tmp_path: Path) -> None:
    lock = threading.Lock()

    def guarded(batch: pa.Table) -> pa.Table:
        with lock:
            return batch.select(["price"])

    with staged(tmp_path, workers=2) as engine:
        orders, lines = shop(engine)
        prices = engine.install("prices", lines.map_batches(guarded, price=tk.Int).distinct())
        total = engine.install("revenue", revenue(orders, lines))
        assert sorted(prices.rows()) == [(i,) for i in range(300)]
        assert sorted(total.rows()) == expected()
        where = {sweep.name: sweep.where for sweep in engine.progress}
        assert where["prices"] == "driver" and where["revenue"] == "jobs"


def dies_once(marker: str) -> Any:
    def function(batch: pa.Table) -> pa.Table:
        if not os.path.exists(marker):
            with open(marker, "w"):
                pass
            os.kill(os.getpid(), signal.SIGKILL)
        return batch.select(["price"])

    return function


def test_killed_worker_is_replaced(spark: SparkSession, tmp_path: Path) -> None:
    with tk.Engine(spark=spark, storage=tmp_path / "store", workers=2, job_rows=0, autocommit=False) as engine:
        _, lines = shop(engine)
        groups = watched(engine)
        view = engine.install("prices", lines.map_batches(dies_once(str(tmp_path / "died")), price=tk.Int).distinct())
        assert sorted(view.rows()) == [(i,) for i in range(300)]
        assert (tmp_path / "died").exists()
        assert len(groups) == 1


def test_job_that_fails_is_run_again_and_in_the_end_fails_its_view_alone(tmp_path: Path) -> None:
    failing: list[str] = []

    def unlucky(shipment: Shipment, group: str, description: str) -> list[StageReport]:
        if "revenue" in description and len(failing) < 2:
            failing.append(description)
            raise RuntimeError("executor lost")
        if "doomed" in description:
            failing.append(description)
            raise RuntimeError("no space left on device")
        return run_stages(shipment, group, description)

    with staged(tmp_path, workers=2) as engine:
        core_of(engine).coordinator.executor.run = unlucky  # type: ignore[union-attr]
        orders, lines = shop(engine)
        view = engine.install("revenue", revenue(orders, lines))
        assert sorted(view.rows()) == expected()
        assert len(failing) == 2
        doomed = engine.install("doomed", lines.count(by="part"))
        with pytest.raises(tk.FaultError, match=r"view 'doomed': 3 jobs .* failed, .*no space left on device"):
            doomed.rows()
        lines.insert([(2, "part 1", 0)])
        engine.advance()
        assert sorted(view.rows()) == expected()


def test_progress_says_where_each_sweep_ran_and_why(spark: SparkSession, tmp_path: Path) -> None:
    with tk.Engine(spark=spark, storage=tmp_path, workers=2, job_rows=100, autocommit=False) as engine:
        orders, lines = shop(engine)
        engine.install("revenue", revenue(orders, lines)).rows()
        lines.insert([(0, "part 1", 1000)])
        engine.advance()
        large, small = [sweep for sweep in engine.progress if sweep.name == "revenue"]
        assert (large.where, large.first, large.time, large.rows) == ("jobs", 0, 0, 360)
        assert large.stages > 1 and large.sent > 0 and large.written > 0
        assert "at least 100 rows" in large.why
        assert (small.where, small.first, small.time, small.rows) == ("driver", 1, 1, 1)
        assert "fewer than 100 rows" in small.why
        assert small.seconds > 0


def test_jobs_say_what_they_are_for(spark: SparkSession, tmp_path: Path) -> None:
    described: list[tuple[str, str]] = []
    with tk.Engine(spark=spark, storage=tmp_path, workers=2, job_rows=0, autocommit=False) as engine:
        sweeps = core_of(engine).coordinator.executor
        assert isinstance(sweeps, SparkExecutor)
        run = sweeps.run

        def noted(shipment: Shipment, group: str, description: str) -> list[StageReport]:
            described.append((group, description))
            return run(shipment, group, description)

        sweeps.run = noted
        edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
        edges.insert([(i, i + 1) for i in range(6)])
        engine.advance()
        reach = edges.distinct().iterate(
            lambda r: (
                r.join(edges, left_on="dst", right_on="src").select("src", dst="dst_right").concat(edges).distinct()
            ),
            name="paths",
        )
        assert len(engine.install("reach", reach).rows()) == 21
    groups = [group for group, _ in described]
    assert all(jobs_of(spark, group) == 1 for group in groups)
    texts = [text for _, text in described]
    assert any(text.startswith("tektite: epoch 0, sweep in ") and "views reach" in text for text in texts)
    assert any("rounds 1 to 2 of loop 'paths'" in text for text in texts)


def test_texts_that_tasks_make_are_known_to_later_stages_and_to_the_driver(tmp_path: Path) -> None:
    with staged(tmp_path, workers=3) as engine:
        _, lines = shop(engine)
        loud = lines.select("order", part=tk.col("part").upper().concat("!"))
        longest = loud.group_by("part").agg(n=tk.count()).select("n", shown=tk.col("part").lower())
        view = engine.install("loud", longest.max("shown", by="n"))
        assert sorted(view.rows()) == [(27, "part 9!"), (28, "part 2!")]


def test_files_of_sweeps_go_with_what_they_hold(tmp_path: Path) -> None:
    with staged(tmp_path, workers=2) as engine:
        orders, lines = shop(engine)
        view = engine.install("revenue", revenue(orders, lines))
        assert sorted(view.rows()) == expected()
        folder = tmp_path / "sweeps"
        assert list(folder.glob("*.batch"))
        for i in range(30):
            lines.insert([(i, "part 1", 0)])
            engine.advance()
        assert sorted(view.rows()) == expected()
        assert len(list(folder.glob("*.batch"))) < 40
    assert not list(folder.glob("*.batch"))


def test_engine_begins_without_what_another_left_behind(tmp_path: Path) -> None:
    with staged(tmp_path, workers=2) as engine:
        shop(engine)
    left = tmp_path / "sweeps" / "0000000001-dead-0-0.batch"
    left.parent.mkdir(exist_ok=True)
    left.write_bytes(b"half")
    with tk.Engine(storage=tmp_path, workers=2, autocommit=False) as engine:
        in_stages(engine)
        assert not left.exists()
        assert len(engine.install("parts", engine.table("lines").select("part").distinct()).rows()) == 11
