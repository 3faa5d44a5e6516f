"""Small reads and writes of clients of a server while one of them installs a heavy query: TPC-H Q9 as a materialized view."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyarrow import parquet

from benchmarks.measure import Others, percentile
from benchmarks.server import tektite_server
from benchmarks.tpch.data import load
from benchmarks.tpch.queries import query, read_by

NAME = "heavy_install"
DESCRIPTION = "p99 of small reads and writes over PostgreSQL's protocol while TPC-H Q9 is installed"

SMALL = "SELECT n FROM counted WHERE k = %s"
WRITE = "INSERT INTO small VALUES (%s, %s)"


def run(scale: float = 1.0, number: int = 9, before: float = 5.0) -> Iterator[dict[str, Any]]:
    """Records of look-ups and inserts, `before` seconds long without, and then as long as the installation takes."""
    import psycopg

    with tektite_server() as url, psycopg.connect(url, autocommit=True) as client:
        asked = query(number, scale)
        with tempfile.TemporaryDirectory() as folder:
            for name, table in load(scale, read_by([number])).items():
                file = Path(folder) / f"{name}.parquet"
                parquet.write_table(table, file)
                columns = ", ".join(f"{field.name} {kind_of(field.type)}" for field in table.schema)
                client.execute(f"CREATE TABLE {name} ({columns})")
                client.execute(f"COPY {name} FROM '{file}'")
        client.execute("CREATE TABLE small (k bigint, x bigint)")
        client.execute("CREATE MATERIALIZED VIEW counted AS SELECT k, count(*) AS n FROM small GROUP BY k")
        probes = [Probe(url, SMALL, lambda at: (at % 100,)), Probe(url, WRITE, lambda at: (at % 100, at))]
        others = Others()
        time.sleep(before)
        alone = [probe.taken() for probe in probes]
        began = time.perf_counter()
        client.execute(f"CREATE MATERIALIZED VIEW heavy AS {asked.select}")
        client.execute("SELECT count(*) FROM heavy")
        seconds = time.perf_counter() - began
        beside = [probe.taken() for probe in probes]
        for probe in probes:
            probe.stop()
        for what, quiet, busy in zip(("look-up", "insert"), alone, beside, strict=True):
            for when, times in (("alone", quiet), (f"while Q{number} installs", busy)):
                if not times:
                    continue  # it was installed before anybody asked
                yield {
                    "what": what, "when": when, "install_seconds": seconds, "many": len(times),
                    "p50_us": percentile(times, 0.5) * 1e6, "p99_us": percentile(times, 0.99) * 1e6,
                    "max_us": times[-1] * 1e6, **others.figures(),
                }  # fmt: skip


def kind_of(type: Any) -> str:
    """What SQL calls a type of Arrow."""
    name = str(type)
    if name.startswith("decimal128"):
        return name.replace("decimal128", "decimal")
    return {"int64": "bigint", "int32": "int", "date32[day]": "date", "double": "double"}.get(name, "varchar")


class Probe:
    """A client that runs one statement again and again, a hundred times a second at most, and notes how long each takes."""

    def __init__(self, url: str, statement: str, values: Any) -> None:
        self._found: list[float] = []
        self._is_over = threading.Event()

        def work() -> None:
            import psycopg

            with psycopg.connect(url, autocommit=True) as client:
                at = 0
                while not self._is_over.wait(0.01):
                    began = time.perf_counter()
                    client.execute(statement, values(at), prepare=True)
                    self._found.append(time.perf_counter() - began)
                    at += 1

        self._thread = threading.Thread(target=work)
        self._thread.start()

    def taken(self) -> list[float]:
        """The times since the last call, in order."""
        found, self._found = self._found, []
        return sorted(found)

    def stop(self) -> None:
        """End it."""
        self._is_over.set()
        self._thread.join()
