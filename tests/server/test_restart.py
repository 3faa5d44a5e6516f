"""A server is killed with everything that clients can create. It starts as it was: objects, answers, rights and epoch."""

from __future__ import annotations

import json
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import errors

from tests.support.patience import PATIENCE, eventually
from tests.support.server_process import ServerProcess, server_process
from tests.support.wire import json_client

OBJECTS = """
CREATE SCHEMA shop;
CREATE TABLE shop.orders (id bigint PRIMARY KEY, who text DEFAULT 'nobody', amount numeric(10, 2) NOT NULL, tags text[]);
CREATE TABLE edges (src bigint, dst bigint);
CREATE TABLE pushed (n bigint);
CREATE TABLE read_in (n bigint);
CREATE INDEX by_who ON shop.orders (who);
CREATE VIEW large AS SELECT * FROM shop.orders WHERE amount > 5;
CREATE MATERIALIZED VIEW totals AS SELECT who, count(*) AS n, sum(amount) AS total FROM large GROUP BY who;
CREATE MATERIALIZED VIEW numbers AS SELECT n FROM read_in UNION ALL SELECT n FROM pushed;
CREATE ROLE staff;
CREATE USER ann PASSWORD 'for ann' ROW LIMIT 100;
CREATE USER bob PASSWORD 'for bob';
GRANT USAGE ON SCHEMA shop TO staff;
GRANT SELECT, INSERT ON shop.orders TO staff;
GRANT SELECT ON totals TO ann;
GRANT staff TO ann;
ALTER TABLE shop.orders ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON shop.orders USING (who = current_user);
INSERT INTO shop.orders VALUES (1, 'ann', 9.5, ARRAY['a', NULL]), (2, 'bob', 7, NULL), (3, 'ann', 1, NULL);
INSERT INTO edges VALUES (1, 2), (2, 3);
PREPARE of_who AS SELECT id, amount FROM shop.orders WHERE who = $1;
"""
RULES = "reach(x, y) :- edges(x, y). reach(x, z) :- reach(x, y), edges(y, z)."
SHOWN = (
    "SELECT n.nspname, relname, relkind FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace",
    "SELECT rolname, rolcanlogin, rolsuper FROM pg_roles",
    "SELECT grantee, table_name, privilege_type FROM information_schema.role_table_grants",
    "SELECT tablename, policyname, cmd, roles, qual FROM pg_policies",
    "SELECT table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns",
    "SHOW SOURCES",
    "SHOW SINKS",
    "SELECT * FROM shop.orders",
    "SELECT * FROM totals",
    "SELECT * FROM numbers",
    "EXECUTE of_who('ann')",
)


def seen(client: psycopg.Connection[Any]) -> dict[str, Counter[str]]:
    """What each of the queries shows, without how many rows a source or sink has had since the start."""
    found = {}
    for text in SHOWN:
        cursor = client.execute(text)
        kept = [
            at
            for at, column in enumerate(cursor.description or ())
            if not (text[:4] == "SHOW" and column.name == "rows")
        ]
        found[text] = Counter(str([row[at] for at in kept]) for row in cursor.fetchall())
    return found


def push(server: ServerProcess, token: str, numbers: list[int], number: int) -> bool:
    """Push rows to a source; whether they were taken."""
    data = json.dumps({"source": "doorbell", "rows": [[n] for n in numbers], "number": number}).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    request = urllib.request.Request(f"http://127.0.0.1:{server.http_port}/v1/push", data, headers)
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return bool(json.loads(answer.read())["taken"])


@pytest.mark.slow
def test_everything_comes_back_after_a_kill(tmp_path: Path) -> None:
    lines, changes = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    lines.write_text('{"n": 1}\n{"n": 2}\n')
    with server_process(tmp_path / "s") as server:
        with server.connect() as client:
            client.execute(OBJECTS)
            client.execute(f"CREATE SOURCE reader INTO read_in FROM '{lines}' WITH (every = '1ms')")
            client.execute("CREATE SOURCE doorbell INTO pushed FROM HTTP")
            client.execute(f"CREATE SINK writer FROM numbers TO '{changes}' WITH (every = '1ms')")
            (token,) = client.execute("CREATE TOKEN door FOR bob").fetchone() or ("",)
            client.execute("CREATE USER root SUPERUSER PASSWORD 'for root'; GRANT INSERT ON pushed TO bob")
            (of_root,) = client.execute("CREATE TOKEN of_root FOR root").fetchone() or ("",)
            with json_client(server, Authorization=f"Bearer {of_root}") as rules:
                answer = rules.ask("register", datalog=RULES)
                assert "error" not in answer, answer
            assert push(server, token, [10, 11], 1)
            numbers = [(1,), (2,), (10,), (11,)]
            eventually(lambda: sorted(client.execute("SELECT n FROM numbers").fetchall()), numbers)
            eventually(lambda: accumulated(changes), Counter({1: 1, 2: 1, 10: 1, 11: 1}))
        with server.connect("root", "for root") as client:
            before = seen(client)
            epoch = time_of(server, token)
        assert reached(server, of_root) == [[1, 2], [1, 3], [2, 3]]
        server.kill()
        server.start()
        with server.connect("root", "for root") as client:
            assert seen(client) == before
            assert time_of(server, token) >= epoch, "an epoch that a client knows was lost"
            client.execute("INSERT INTO shop.orders (id, amount) VALUES (4, 8)")
            assert client.execute("SELECT n, total::text FROM totals WHERE who = 'nobody'").fetchall() == [(1, "8.00")]
            client.execute("INSERT INTO edges VALUES (3, 4)")
            assert reached(server, of_root) == [[1, 2], [1, 3], [1, 4], [2, 3], [2, 4], [3, 4]]
            assert not push(server, token, [10, 11], 1)
            assert push(server, token, [12], 2)
            with lines.open("a") as out:
                out.write('{"n": 3}\n')
            numbers = [(1,), (2,), (3,), (10,), (11,), (12,)]
            eventually(lambda: sorted(client.execute("SELECT n FROM numbers").fetchall()), numbers)
            eventually(lambda: accumulated(changes), Counter({n: 1 for (n,) in numbers}))
        with server.connect("ann", "for ann") as client:
            assert client.execute("SELECT id FROM shop.orders ORDER BY id").fetchall() == [(1,), (3,)]
            assert client.execute("SELECT n FROM totals WHERE who = 'bob'").fetchall() == [(1,)]
            assert (
                client.execute("EXECUTE of_who('ann')").fetchall()
                and not client.execute("EXECUTE of_who('bob')").fetchall()
            )
            for refused in ("DELETE FROM shop.orders", "SELECT * FROM edges", "CREATE TABLE x (y int)"):
                with pytest.raises(errors.InsufficientPrivilege):
                    client.execute(refused)
        with pytest.raises(psycopg.OperationalError, match="authentication failed"):
            server.connect("anybody", "x")


def accumulated(file: Path) -> Counter[int]:
    """What the changes in a file add up to."""
    found: Counter[int] = Counter()
    for line in file.read_text().splitlines() if file.exists() else ():
        try:
            change = json.loads(line)
        except ValueError:
            continue  # which is being written
        found[change["n"]] += change["diff"]
    return +found


def reached(server: ServerProcess, token: str) -> list[list[Any]]:
    """What registered rules answer."""
    with json_client(server, Authorization=f"Bearer {token}") as client:
        return sorted(client.rows("query", text="reach(x, y)"))


def time_of(server: ServerProcess, token: str) -> int:
    """The last epoch that a server has closed."""
    with json_client(server, Authorization=f"Bearer {token}") as client:
        answer = client.ask("status")
        return int(answer["next_epoch"]) - 1
