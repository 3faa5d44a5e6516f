"""What a server tells a user of few rights about its engine, through each of its doors."""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import errors

import tektite as tk
from tektite.engine.system.relations import SYSTEM
from tektite.sql.access.verifiers import Verifier
from tests.support.patience import PATIENCE, eventually
from tests.support.server import RunningServer, running_server
from tests.support.wire import JsonClient, json_client

VIEWS = "SELECT name FROM system.views"


@pytest.fixture
def guarded() -> Iterator[RunningServer]:
    """A server with a superuser, and ann, who may read one table and one view."""
    with running_server(users={"root": Verifier.of("pw")}) as found:
        found.engine.sql("""
            CREATE TABLE docs (id int); CREATE TABLE secret (code int); INSERT INTO secret VALUES (4711);
            CREATE TABLE secret_words (word varchar); INSERT INTO secret_words VALUES ('w4711');
            CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n FROM docs;
            CREATE MATERIALIZED VIEW secret_codes AS SELECT code FROM secret WHERE code <> 4712;
            CREATE MATERIALIZED VIEW secret_broken AS SELECT CAST(word AS int) AS n FROM secret_words;
            CREATE MATERIALIZED VIEW derived AS SELECT max(code) AS m FROM secret WHERE code <> 4713;
            CREATE USER ann PASSWORD 'pw'; GRANT SELECT ON docs, counted, derived TO ann
        """)
        yield found
    assert "internal-error" not in found.log.getvalue()


def hello(client: JsonClient, user: str = "ann") -> JsonClient:
    assert "error" not in client.ask("hello", user=user, password="pw")
    return client


def fetched(server: RunningServer, path: str, user: str, body: dict[str, Any] | None = None) -> tuple[int, str]:
    """The status and the text of a request of HTTP."""
    proof = base64.b64encode(f"{user}:pw".encode()).decode()
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{server.http_port}{path}", data, {"authorization": f"Basic {proof}"}
    )
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


def test_postgres_clients_see_their_part_and_keep_it_up_to_date(guarded: RunningServer) -> None:
    with psycopg.connect(guarded.conninfo("ann"), password="pw", autocommit=True) as ann:
        assert sorted(ann.execute(VIEWS).fetchall()) == [("counted",), ("derived",)]
        assert ann.execute("SELECT definition FROM system.views WHERE name = 'derived'").fetchall() == [(None,)]
        ann.execute(f"DECLARE followed CURSOR FOR SUBSCRIBE {VIEWS}")
        held: dict[str, int] = {}

        def seen() -> set[str]:
            for name, *_, diff in ann.execute("FETCH ALL followed").fetchall():
                held[name] = held.get(name, 0) + diff
            return {name for name, many in held.items() if many}

        eventually(seen, {"counted", "derived"})
        guarded.engine.sql("GRANT SELECT ON secret_codes TO ann")
        eventually(seen, {"counted", "derived", "secret_codes"})
        guarded.engine.sql("REVOKE SELECT ON secret_codes, derived FROM ann")
        eventually(seen, {"counted"})
        with pytest.raises(errors.InsufficientPrivilege):
            ann.execute("CREATE POLICY more ON system.views USING (true)")


def test_websocket_clients_see_their_part_and_keep_it_up_to_date(guarded: RunningServer) -> None:
    held: dict[str, int] = {}

    def take(client: JsonClient, wanted: set[str]) -> None:
        while {name for name, many in held.items() if many} != wanted:
            for name, *_, diff in client.push(30).get("table", {}).get("rows", []):
                held[name] = held.get(name, 0) + diff

    with json_client(guarded) as ann:
        hello(ann)
        assert sorted(ann.rows("sql", text=VIEWS)) == [["counted"], ["derived"]]
        ann.ask("interest", subscription=1, sql=VIEWS)
        take(ann, {"counted", "derived"})
        guarded.engine.sql("GRANT SELECT ON secret_codes TO ann")
        take(ann, {"counted", "derived", "secret_codes"})
        guarded.engine.sql("REVOKE SELECT ON secret_codes FROM ann")
        take(ann, {"counted", "derived"})


def test_a_relation_is_asked_for_by_its_name(guarded: RunningServer) -> None:
    with json_client(guarded) as ann:
        hello(ann)
        for name in SYSTEM:
            for request in ({"sql": f'SELECT * FROM "{name}"'}, {"name": name}):
                if name.startswith("system.") and "sql" in request:
                    request = {"sql": f"SELECT * FROM {name}"}
                answer = ann.ask("interest", subscription=9, **request)
                if "error" not in answer:
                    ann.ask("refresh", subscription=9)
                    ann.ask("uninterest", subscription=9)
            for request in ("rows", "count", "describe"):
                told = str(ann.ask(request, relation=name))
                assert "4711" not in told and "secret_" not in told
        pushed = str(ann.pushed)
        assert "counted" in pushed
        assert "secret" not in pushed and "4711" not in pushed and "4712" not in pushed and "4713" not in pushed


def test_relations_of_every_kind_are_read_by_requests_and_copied(guarded: RunningServer) -> None:
    guarded.engine.sql("CREATE VIEW plain AS SELECT id + 1 AS next FROM docs; INSERT INTO docs VALUES (1), (2)")
    guarded.engine.sql("CREATE VIEW secret_plain AS SELECT code FROM secret; GRANT SELECT ON plain TO ann")
    with json_client(guarded) as root, json_client(guarded) as ann:
        hello(root, "root"), hello(ann)
        for client in (root, ann):
            assert sorted(client.rows("rows", relation="plain")) == [[2], [3]]
            assert client.rows("lookup", relation="plain", key=[3]) == [[3]]
            assert client.ask("count", relation="plain")["count"] == 2
            told = client.ask("describe", relation="plain")
            assert (told["kind"], told["columns"], told["types"]) == ("view", ["next"], ["int"])
            assert len(client.rows("head", relation="plain", n=1)) == 1
        assert len(root.rows("rows", relation="system.tables")) == 3
        assert [row[0] for row in ann.rows("rows", relation="system.tables")] == ["docs"]
        assert root.ask("count", relation="system.tables")["count"] == 3
        for request in ("rows", "count", "describe"):
            assert ann.code(request, relation="secret_plain") == "permission-denied"
    with psycopg.connect(guarded.conninfo("ann"), password="pw", autocommit=True) as reader:
        with reader.cursor().copy("COPY system.tables (name, rows) TO STDOUT") as copied:
            assert [bytes(row) for row in copied] == [b"docs\t2\n"]
        refused = pytest.raises(psycopg.Error, match="which the engine writes itself")
        with refused, reader.cursor().copy("COPY system.tables FROM STDIN"):
            pass
    with pytest.raises(tk.ConflictError, match="no index of it is kept"):
        guarded.engine.sql("CREATE INDEX i ON system.tables (name)")


def test_http_and_metrics(guarded: RunningServer) -> None:
    status, told = fetched(guarded, "/v1/sql", "ann", {"text": "SELECT * FROM system.views"})
    assert status == 200 and "counted" in told and "secret" not in told and "4713" not in told
    status, told = fetched(guarded, "/metrics", "ann")
    assert status == 403 and "secret_codes" not in told
    assert fetched(guarded, "/metrics", "root")[0] == 200
    granted = "system.views, system.tables, system.indexes, system.dataflows, system.memory"
    assert f"GRANT SELECT ON {granted} TO ann" in told
    guarded.engine.sql(f"GRANT SELECT ON {granted} TO ann")
    assert 'tektite_view_rows{name="secret_codes"}' in fetched(guarded, "/metrics", "ann")[1]


def test_requests_about_a_view_tell_only_those_who_may_know(guarded: RunningServer) -> None:
    guarded.engine.settle()
    with json_client(guarded) as root, json_client(guarded) as ann:
        hello(root, "root"), hello(ann)
        assert "w4711" in str(root.ask("view-state", view="secret_broken"))
        assert ann.code("view-state", view="secret_broken") == "permission-denied"
        assert ann.ask("view-state", view="counted")["view_error"] is None
        assert "4713" in str(root.ask("explain", view="derived"))
        assert ann.code("explain", view="derived") == "permission-denied", "it reads a table that ann may not read"
        assert "docs" in str(ann.ask("explain", view="counted"))
        status = ann.ask("status")
        assert "4711" not in str(status) and status["user"] == "ann"


def test_requests_name_only_what_a_user_has_rights_to(guarded: RunningServer) -> None:
    guarded.engine.sql("GRANT CREATE ON SCHEMA public TO ann")
    with json_client(guarded) as ann:
        hello(ann)
        told = ann.ask("relations")
        assert (told["tables"], told["views"]) == (["docs"], ["counted", "derived"])
        row = {"rows": [[1]]}
        by_name: tuple[tuple[str, dict[str, Any]], ...] = (
            ("describe", {}), ("rows", {}), ("head", {"n": 1}), ("lookup", {"key": [1]}), ("count", {}),
            ("describe", {"kind": "table"}), ("drop", {"kind": "table"}),
        )  # fmt: skip
        of_table: tuple[tuple[str, dict[str, Any]], ...] = (
            ("insert", row), ("insert", {"rows": [{"nothing": 1}]}), ("remove", row), ("close-input", {}),
        )  # fmt: skip
        of_view: tuple[tuple[str, dict[str, Any]], ...] = (
            ("view-state", {}), ("wait", {"time": 0}), ("explain", {}), ("wait", {"time": 10**6, "seconds": 0}),
        )  # fmt: skip
        asked = [("relation", *each) for each in by_name] + [("table", *each) for each in of_table]
        asked += [("view", *each) for each in of_view]
        for field, request, more in asked:
            hidden = "secret_codes" if field == "view" else "secret"
            assert ann.code(request, **{field: hidden}, **more) == "permission-denied", request
            refusal = ann.ask(request, **{field: "secre"}, **more)["error"]
            assert refusal["code"] == "not-found", request
            assert "secret" not in str(refusal)
            assert ("counted" if field == "view" else "docs") in refusal["message"], "what there is for her"
        columns = {"columns": ["x"], "types": ["int"]}
        for choice in ("error", "keep", "replace"):
            refusal = ann.ask("create-table", name="secret", if_exists=choice, **columns)
            assert "code" in refusal["error"] and "int" not in refusal["error"]["message"].split()
        refusal = ann.ask("explain", view="derived")["error"]
        assert refusal["code"] == "permission-denied" and "secret" not in refusal["message"]


def test_rows_of_requests_are_checked_before_the_policies_of_their_table(guarded: RunningServer) -> None:
    guarded.engine.sql("""
        CREATE TABLE notes (id int, owner varchar, day date); GRANT SELECT, INSERT, DELETE ON notes TO ann;
        CREATE POLICY own ON notes USING (owner = current_user); ALTER TABLE notes ENABLE ROW LEVEL SECURITY
    """)
    with json_client(guarded) as ann:
        hello(ann)
        for rows in ([["x", "ann", None]], [[1, "ann"]], [[1, "ann", None, 2]], [{"nothing": 1}], [["x"] * 7]):
            assert ann.code("insert", table="notes", rows=rows) == "incorrect"
        assert ann.code("insert", table="notes", rows=[[1, "bob", None]]) == "permission-denied"
        assert "error" not in ann.ask("insert", table="notes", rows=[[1, "ann", "2024-02-29"]])
        assert "error" not in ann.ask("insert", table="notes", rows=[{"id": 2, "owner": "ann", "day": None}])
        assert ann.rows("rows", relation="notes") == [[1, "ann", "2024-02-29"], [2, "ann", None]]


def test_who_may_delete_and_not_read_does_not_ask_by_removing(guarded: RunningServer) -> None:
    guarded.engine.sql("GRANT INSERT, DELETE ON secret TO ann")
    with json_client(guarded) as ann:
        hello(ann)
        assert ann.code("remove", table="secret", rows=[[4711]]) == "permission-denied"
        assert ann.ask("sql", text="DELETE FROM secret")["message"] == "DELETE 1"


def test_superusers_alone_choose_the_time_to_which_an_engine_advances(guarded: RunningServer) -> None:
    with json_client(guarded) as root, json_client(guarded) as ann:
        hello(root, "root"), hello(ann)
        before = ann.ask("advance")["time"]
        assert ann.code("advance", to=before + 1000) == "permission-denied"
        assert root.ask("advance", to=before + 10)["time"] == before + 9
    with psycopg.connect(guarded.conninfo("ann"), password="pw", autocommit=True) as ann_too:
        with pytest.raises(errors.InsufficientPrivilege):
            ann_too.execute(f"ADVANCE TO {before + 1000}")
        ann_too.execute("ADVANCE")


def test_rules_are_for_superusers_also_where_others_follow_them(guarded: RunningServer) -> None:
    goal = "?- system.views(n, _, _, _, _, _, _, _, _, _, _, _, _)."
    with json_client(guarded) as root, json_client(guarded) as ann:
        hello(root, "root"), hello(ann)
        assert "error" not in root.ask("interest", subscription=1, datalog=goal)
        assert ann.code("interest", subscription=1, datalog=goal) == "permission-denied"
        assert ann.code("query", text=goal) == "permission-denied"
        assert ann.code("register", datalog="known(n) :- docs(n).") == "permission-denied"


def test_who_follows_rules_is_told_no_more_when_it_is_no_superuser(guarded: RunningServer) -> None:
    guarded.engine.sql("CREATE USER boss SUPERUSER PASSWORD 'pw'")
    with json_client(guarded) as root, json_client(guarded) as boss:
        hello(root, "root"), hello(boss, "boss")
        root.ask("register", datalog="codes(x) :- secret(x). others(x) :- codes(x).")
        for number, what in enumerate(({"datalog": "codes(x)"}, {"name": "others"}, {"name": "secret"})):
            assert "error" not in boss.ask("interest", subscription=number, **what)
            assert boss.push()["table"]["rows"][0][0] == 4711
        root.ask("sql", text="ALTER ROLE boss NOSUPERUSER; INSERT INTO secret VALUES (4714)")
        ended, lost = set(), None
        while len(ended) < 2 or lost is None:
            message = boss.push()
            if "end" in message:
                assert message["error"]["code"] == "permission-denied"
                ended.add(message["subscription"])
            elif "table" in message:
                (lost,) = message["table"]["rows"]
                assert message["subscription"] == 2 and (lost[0], lost[-1]) == (4711, -1)
        assert ended == {0, 1}


def test_sources_and_sinks_are_told_to_those_who_know_their_relations(guarded: RunningServer, tmp_path: Path) -> None:
    with json_client(guarded) as root, json_client(guarded) as ann:
        hello(root, "root"), hello(ann)
        for text in (
            f"CREATE SOURCE hidden_source INTO secret FROM '{tmp_path}/secret.csv'",
            f"CREATE SOURCE files INTO docs FROM '{tmp_path}/docs.csv'",
            "CREATE SOURCE pushed INTO docs FROM HTTP",
            f"CREATE SINK hidden_sink FROM secret TO '{tmp_path}/out.csv'",
        ):
            assert "error" not in root.ask("sql", text=text)
        assert {row[0] for row in root.rows("sql", text="SHOW SOURCES")} == {"hidden_source", "files", "pushed"}
        assert [row[:3] for row in ann.rows("sql", text="SHOW SOURCES")] == [
            ["files", "docs", None],
            ["pushed", "docs", "http"],
        ]
        assert ann.rows("sql", text="SHOW SINKS") == []
        said = ann.ask("push", source="hidden_source", rows=[[1]])["error"]
        assert said == {**said, "code": "not-found", "message": "there is no source 'hidden_source'"}
        assert str(tmp_path) not in ann.ask("push", source="files", rows=[[1]])["error"]["message"]
        assert "hidden" not in ann.ask("sql", text="DROP SOURCE nothing")["error"]["message"]


def test_clients_of_two_consoles_have_numbers_of_their_own_and_cancel_each_other() -> None:
    engine = tk.Engine()
    engine.sql("CREATE TABLE many (x int); INSERT INTO many SELECT * FROM generate_series(1, 3000)")
    with engine.console() as one, engine.console() as two, tk.connect(one.url) as first, tk.connect(two.url) as second:
        asked = "SELECT number FROM system.clients"
        numbers = {number for (number,) in first.sql(asked).rows()}
        assert len(numbers) == 2 and numbers == {number for (number,) in second.sql(asked).rows()}
        ports = [url.rpartition(":")[2].strip("/") for url in (one.url, two.url)]
        web = [RunningAt(int(port)) for port in ports]
        with json_client(web[0]) as slow, json_client(web[1]) as asking:
            slow.ask("hello"), asking.ask("hello")
            ran = slow.send("sql", text="SELECT count(*) FROM many a, many b, many c WHERE a.x + b.x + c.x = 7")
            running = "SELECT number FROM system.clients WHERE running LIKE 'sql SELECT count%'"
            eventually(lambda: len(asking.rows("sql", text=running)), 1)
            ((number,),) = asking.rows("sql", text=running)
            assert asking.ask("cancel-client", client=number)["was_running"] is True
            found = slow.receive()
            assert found["id"] == ran and found["error"]["code"] == "cancelled"


class RunningAt:
    """Something that answers on a port of this machine."""

    def __init__(self, http_port: int) -> None:
        self.http_port = http_port
