"""Sources and sinks as statements: files that grow, folders, what clients push, files of changes, webhooks; and after a kill."""

from __future__ import annotations

import json
import os
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from psycopg import errors
from pyarrow import parquet

from tests.support.patience import PATIENCE, eventually
from tests.support.server import RunningServer, running_server
from tests.support.server_process import server_process


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[RunningServer]:
    with running_server(tmp_path / "s") as found:
        yield found
    assert "internal-error" not in found.log.getvalue()


def test_file_is_read_as_it_grows(stored: RunningServer, tmp_path: Path) -> None:
    file = tmp_path / "sales.csv"
    file.write_text("shop,amount\nnorth,1\nsouth,")
    with psycopg.connect(stored.conninfo(), autocommit=True) as client:
        client.execute("CREATE TABLE sales (amount int, shop text)")
        client.execute(f"CREATE SOURCE s INTO sales FROM '{file}' WITH (every = '10ms')")
        rows = lambda: client.execute("SELECT shop, amount FROM sales ORDER BY amount").fetchall()  # noqa: E731
        eventually(rows, [("north", 1)])
        with file.open("a") as out:
            out.write("2\n,3\n")
        eventually(rows, [("north", 1), ("south", 2), (None, 3)])
        found = client.execute("SHOW SOURCES").fetchall()
        assert found[0][:4] == ("s", "sales", str(file), 3) and found[0][5] is None
        with file.open("a") as out:
            out.write("x,y\n")
        eventually(lambda: "sales.csv" in str(client.execute("SHOW SOURCES").fetchall()[0][5]), True)
        client.execute("DROP SOURCE s")
        assert client.execute("SHOW SOURCES").fetchall() == []


def test_folder_is_watched_for_files_of_every_format(stored: RunningServer, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    with psycopg.connect(stored.conninfo(), autocommit=True) as client:
        client.execute("CREATE TABLE t (x int)")
        client.execute(f"CREATE SOURCE s INTO t FROM '{folder}' WITH (every = '10ms')")
        rows = lambda: [x for (x,) in client.execute("SELECT x FROM t ORDER BY x").fetchall()]  # noqa: E731
        (folder / "a.csv").write_text("x\n1\n")
        eventually(rows, [1])
        (folder / "b.jsonl").write_text('{"x": 2}\n{"x": 3}\n')
        eventually(rows, [1, 2, 3])
        parquet.write_table(pa.table({"x": [4]}), folder / "c.tmp")
        (folder / "c.tmp").rename(folder / "c.parquet")
        eventually(rows, [1, 2, 3, 4])


def test_pushed_rows_with_a_number_are_taken_once(stored: RunningServer) -> None:
    def push(**fields: Any) -> dict[str, Any]:
        data = json.dumps({"source": "s", **fields}).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{stored.http_port}/v1/push", data, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            found: dict[str, Any] = json.loads(answer.read())
            return found

    with psycopg.connect(stored.conninfo(), autocommit=True) as client:
        client.execute("CREATE TABLE t (x int)")
        client.execute("CREATE SOURCE s INTO t FROM HTTP")
        assert push(rows=[[1]], number=1)["taken"]
        assert push(rows=[[2], [3]], number=2)["taken"]
        assert not push(rows=[[2], [3]], number=2)["taken"]
        assert push(rows=[[4]])["taken"]
        assert client.execute("SELECT x FROM t ORDER BY x").fetchall() == [(1,), (2,), (3,), (4,)]


def accumulated(file: Path) -> Counter[Any]:
    held: Counter[Any] = Counter()
    for line in file.read_text().splitlines(keepends=True):
        if not line.endswith("\n"):
            break  # it is being written
        row = json.loads(line)
        held[row["n"]] += row["diff"]
    return Counter({n: count for n, count in held.items() if count})


def test_sink_writes_changes_to_a_file(stored: RunningServer, tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    with psycopg.connect(stored.conninfo(), autocommit=True) as client:
        client.execute("CREATE TABLE t (x int); INSERT INTO t VALUES (1), (2)")
        client.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t")
        client.execute(f"CREATE SINK k FROM v TO '{file}' WITH (every = '10ms')")
        eventually(lambda: accumulated(file) if file.exists() else None, {2: 1})
        client.execute("INSERT INTO t VALUES (3)")
        eventually(lambda: accumulated(file), {3: 1})
        client.execute("DELETE FROM t WHERE x = 1")
        eventually(lambda: accumulated(file), {2: 1})
        assert client.execute("SHOW SINKS").fetchall()[0][:3] == ("k", "v", str(file))
        client.execute("DROP SINK k")
        client.execute("INSERT INTO t VALUES (4)")
        assert accumulated(file) == {2: 1}


def test_webhook_is_sent_again_until_it_succeeds(stored: RunningServer) -> None:
    got: list[dict[str, Any]] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            got.append(body)
            self.send_response(500 if len(got) == 1 else 200)
            self.end_headers()

        def log_message(self, *given: Any) -> None:
            pass

    receiver = HTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    try:
        with psycopg.connect(stored.conninfo(), autocommit=True) as client:
            client.execute("CREATE TABLE t (x int); INSERT INTO t VALUES (1)")
            client.execute(f"CREATE SINK k FROM t TO 'http://127.0.0.1:{receiver.server_port}/' WITH (every = '10ms')")
            eventually(lambda: len(got), 2)
            assert got[0] == got[1] and got[0]["number"] == 1 and [row[0] for row in got[0]["rows"]] == [1]
            client.execute("DELETE FROM t")
            eventually(lambda: len(got), 3)
            assert (got[2]["number"], got[2]["rows"][0][0], got[2]["rows"][0][-1]) == (2, 1, -1)
    finally:
        receiver.shutdown()


def test_files_of_the_server_are_for_superusers(tmp_path: Path) -> None:
    from tektite.sql.access.verifiers import Verifier

    statements = (
        f"CREATE SOURCE s INTO t FROM '{tmp_path}'",
        f"CREATE SINK s FROM t TO '{tmp_path / 'x.json'}'",
        "CREATE SINK s FROM t TO 'http://127.0.0.1:1/'",
        "CREATE SOURCE s INTO t FROM HTTP",
    )
    ann = frozenset({"ann"})
    with (
        running_server(users={"ann": Verifier.of("pw")}, ordinary_users=ann) as server,
        psycopg.connect(server.conninfo(), password="pw", autocommit=True) as client,
    ):
        server.engine.create_table("t", {"x": int})
        server.engine.sql("GRANT ALL ON t TO ann")
        for statement in statements:
            with pytest.raises(errors.InsufficientPrivilege):
                client.execute(statement)


def test_sources_and_sinks_lose_and_repeat_nothing_after_a_kill(tmp_path: Path) -> None:
    """Lines are added while the server is killed again and again: the table has each once, and the file of changes adds up."""
    source, sink = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("")
    with server_process(tmp_path / "s") as server:
        with server.connect() as client:
            client.execute("CREATE TABLE t (n int)")
            client.execute("CREATE MATERIALIZED VIEW v AS SELECT n FROM t WHERE n >= 0")
            client.execute(f"CREATE SOURCE s INTO t FROM '{source}' WITH (every = '1ms')")
            client.execute(f"CREATE SINK k FROM v TO '{sink}' WITH (every = '1ms')")
        written = 0
        for _ in range(3):
            for _ in range(40):
                with source.open("a") as out:
                    out.write("".join(json.dumps({"n": written + n}) + "\n" for n in range(25)))
                    out.flush()
                    os.fsync(out.fileno())
                written += 25
                time.sleep(0.005)
            server.kill()
            server.start()
        with server.connect() as client:
            found = "SELECT count(*), count(DISTINCT n) FROM t"
            eventually(lambda: client.execute(found).fetchone(), (written, written))
            eventually(lambda: accumulated(sink), Counter({n: 1 for n in range(written)}))
