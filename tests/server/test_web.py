"""HTTP and WebSocket: every request, in both forms, and who may ask."""

from __future__ import annotations

import base64
import datetime
import http.client
import json
import shutil
import ssl
import subprocess
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

import tektite as tk
from tektite.server.scram import Verifier
from tektite.wire.messages import arrow_bytes, table_of
from tests.support.patience import PATIENCE, eventually, until
from tests.support.server import RunningServer, running_server
from tests.support.wire import Follower, json_client

ARROW = "application/vnd.apache.arrow.stream"


def post(served: RunningServer, path: str, body: Any, **headers: str) -> tuple[int, dict[str, str], bytes]:
    client = http.client.HTTPConnection("127.0.0.1", served.http_port, timeout=PATIENCE)
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    client.request("POST", path, data, {name.replace("_", "-"): value for name, value in headers.items()})
    found = client.getresponse()
    return found.status, {name.lower(): value for name, value in found.getheaders()}, found.read()


# ---------------------------------------------------------------------- the requests of 3DF


def test_rules_of_both_languages_are_registered_and_followed(served: RunningServer) -> None:
    with json_client(served) as client:
        for name in ("knows", "likes"):
            assert client.ask("create-attribute", name=name, type="int", cardinality="many") == {"id": client._number}
        answer = client.ask(
            "register",
            datalog="[(friend ?a ?b) [?a :knows ?b]] [(friend ?a ?b) [?b :knows ?a]]",
            sql={"liked": "SELECT v, count(*) AS n FROM likes GROUP BY v"},
        )
        assert (answer["predicates"], answer["views"]) == (["friend"], ["liked"])
        client.ask(
            "register", datalog="reach(x, y) :- knows(x, y).  reach(x, z) :- reach(x, y), knows(y, z).", name="other"
        )
        followers = [Follower(), Follower(), Follower()]
        for number, name in enumerate(["friend", "liked", "reach"]):
            assert client.ask("interest", subscription=number, name=name)["relation"]["kind"] == "view"
        moment = client.ask("transact", facts=[[1, "knows", 2], [2, "knows", 3], [1, "likes", 3]])["time"]
        moment = client.ask("transact", facts="[:db/retract 2 :knows 3] [4 :likes 3]")["time"]
        while any(follower.told < moment for follower in followers):
            found = client.push()
            followers[found["subscription"]].take(found)
        contents = [{row for row, n in follower.contents.items() if n} for follower in followers]
        assert contents == [{(1, 2), (2, 1)}, {(3, 2)}, {(1, 2)}]
        assert client.rows("query", text="reach(1, ?)") == [[1, 2]]
        assert client.rows("query", text="[:find ?b :in ?a :where (friend ?a ?b)]", params={"a": 2}) == [[1]]
        assert client.ask("uninterest", subscription=0) == {"id": client._number}
        assert client.code("uninterest", subscription=0) == "not-found"


def test_time_is_closed_by_clients_where_the_server_leaves_it_to_them() -> None:
    from tektite.server.epochs import EpochPolicy

    with running_server(epochs=EpochPolicy("explicit")) as served, json_client(served) as client:
        client.ask("sql", text="CREATE TABLE t (x int)")
        client.ask("advance")
        assert client.ask("insert", table="t", rows=[[1]])["time"] is None
        assert client.rows("rows", relation="t") == []
        last = client.ask("advance")["time"]
        assert client.rows("rows", relation="t") == [[1]]
        assert client.ask("advance", to=last + 5)["time"] == last + 4
        assert client.ask("tick")["current"] is True
        assert client.ask("status")["next_epoch"] == last + 5
        client.ask("close-input", table="t")
        assert client.code("insert", table="t", rows=[[1]]) == "conflict"


def test_interest_in_a_query_installs_it_and_it_goes_with_the_last_one() -> None:
    query = "SELECT x % 10 AS last, count(*) AS n FROM t GROUP BY x % 10"
    with running_server(limits={"lease_seconds": 0.2}) as served, json_client(served) as client:
        client.ask("sql", text="CREATE TABLE t (x int); INSERT INTO t VALUES (1), (11), (2)")
        client.ask("create-view", name="stays", query="SELECT count(*) AS n FROM t")
        before = len(served.engine._core.views)
        with json_client(served) as other:
            for each, number in ((client, 1), (client, 2), (other, 1)):
                each.ask("interest", subscription=number, sql=query, logged=number == 1)
                assert sorted(row[:2] for row in each.push()["table"]["rows"]) == [[1, 2], [2, 1]]
            client.ask("interest", subscription=3, name="stays")
            client.push()
            assert len(served.engine._core.views) == before + 1 and len(served.server.feeds) == 2
            assert served.log.getvalue().count("info interest") == 3
            for number in (1, 2, 3):
                client.ask("uninterest", subscription=number)
            client.ask("insert", table="t", rows=[[3]])
            assert other.push()["table"]["rows"][0][:2] == [3, 1]
        eventually(lambda: (len(served.engine._core.views), len(served.server.feeds)), (before, 0))
        assert client.rows("rows", relation="stays") == [[4]]


def test_rules_that_several_follow_stay_until_the_last_has_gone() -> None:
    with (
        running_server(limits={"lease_seconds": 0.1}) as served,
        json_client(served) as one,
        json_client(served) as other,
    ):
        one.ask("create-table", name="edge", columns=["a", "b"], types=["int", "int"])
        one.ask("register", datalog="reach(x, y) :- edge(x, y).  reach(x, z) :- reach(x, y), edge(y, z).")
        for client in (one, other):
            client.ask("interest", subscription=1, name="reach", progress=client is other)
        one.ask("uninterest", subscription=1)
        time.sleep(0.5)
        one.ask("insert", table="edge", rows=[[1, 2], [2, 3]])
        follower = Follower()
        while len(+follower.rows) < 3:
            follower.take(other.push())
        other.ask("uninterest", subscription=1)
        until(lambda: "reach" not in served.engine._core.views)
        other.ask("interest", subscription=2, name="reach")
        assert len(other.push()["table"]["rows"]) == 3
        one.ask("create-table", name="t", columns=["a"], types=["int"])
        one.ask("interest", subscription=3, name="t")
        one.ask("drop", relation="t", kind="table")
        one.ask("create-table", name="t", columns=["b"], types=["string"])
        one.ask("insert", table="t", rows=[["x"]])
        assert one.ask("interest", subscription=4, name="t")["relation"]["columns"] == ["b"]
        found = []
        while not any(each.get("end") for each in found) or not any("table" in each for each in found):
            found.append(one.push())
        assert [each["subscription"] for each in found if each.get("end")] == [3]
        assert [(each["subscription"], each["table"]["rows"][0][0]) for each in found if "table" in each] == [(4, "x")]


def test_clients_that_go_while_a_query_is_installed_leave_nothing() -> None:
    with running_server(limits={"lease_seconds": 0.1}) as served, json_client(served) as client:
        client.ask("create-table", name="t", columns=["a", "b"], types=["int", "int"])
        client.ask("insert", table="t", rows=[[n, n % 7] for n in range(5000)])
        client.ask("tick")
        before = (len(served.engine._core.views), len(served.server.feeds))
        for number in range(12):
            with json_client(served) as going:
                query = f"SELECT x.b, count(*) AS n FROM t x JOIN t y ON x.b = y.b WHERE x.a > {number} GROUP BY x.b"
                going.send("interest", subscription=1, sql=query)
                time.sleep(number * 0.01)
                going.socket.socket.close()
        eventually(lambda: (len(served.engine._core.views), len(served.server.feeds)), before)
        assert client.ask("count", relation="t")["count"] == 5000
    assert "internal-error" not in served.log.getvalue()


def test_what_is_collected_behind_a_feeds_end_moves_no_hold() -> None:
    with running_server(limits={"lease_seconds": 0.1}) as served, json_client(served) as client:
        client.ask("create-table", name="t", columns=["a"], types=["int"])
        client.ask("create-view", name="v", query="SELECT a FROM t")
        client.ask("insert", table="t", rows=[[0]])
        with json_client(served) as going:
            going.ask("interest", subscription=1, name="v")
            going.push()
            (feed,) = served.server.feeds._feeds.values()
            client.ask("insert", table="t", rows=[[1]])
            going.push()
        until(lambda: not len(served.server.feeds) and feed._held is None)
        client.ask("insert", table="t", rows=[[2]])
        time.sleep(0.2)
        feed._take_in_worker()  # as a worker does that had to wait while the feed was closed
        assert feed._held is None
    assert "internal-error" not in served.log.getvalue()


def test_a_stream_is_followed_from_here_on(served: RunningServer) -> None:
    with json_client(served) as client:
        client.ask("create-table", name="s", columns=["a"], types=["int"], mode="stream")
        client.ask("insert", table="s", rows=[[1]])
        assert client.code("interest", subscription=1, name="s", snapshot=True) == "conflict"
        client.ask("interest", subscription=2, name="s")
        last = client.ask("insert", table="s", rows=[[2], [2], [None]])["time"]
        follower = Follower()
        while follower.told < last:
            follower.take(client.push())
        assert follower.rows == {(2,): 2, (None,): 1}


def test_granularity_takes_epochs_together(served: RunningServer) -> None:
    with json_client(served) as client:
        client.ask("sql", text="CREATE TABLE t (x int)")
        client.ask("create-view", name="v", query="SELECT count(*) AS n FROM t")
        first = client.ask("insert", table="t", rows=[[0]])["time"]
        client.ask("interest", subscription=1, name="v", granularity=10)
        follower = Follower()
        follower.take(client.push())
        assert dict(follower.contents) == {(1,): 1}
        last = (first // 10 + 3) * 10
        for number in range(first + 1, last + 5):
            assert client.ask("insert", table="t", rows=[[number]])["time"] == number
        client.ask("refresh", subscription=1)
        times = [message["progress"] for message in client.pushed]
        assert times and all((each + 1) % 10 == 0 for each in times)
        for message in client.pushed:
            follower.take(message)
            assert dict(+follower.rows) == {(message["progress"] - first + 1,): 1}
        assert client.code("interest", subscription=2, name="v", granularity="soon") == "incorrect"
        client.ask("interest", subscription=3, name="v", granularity="1 h")
        client.ask("interest", subscription=4, name="v", granularity="20 ms")
        for number in range(30):
            last = client.ask("insert", table="t", rows=[[number]])["time"]
        told = {number: Follower() for number in (1, 3, 4)}
        while told[4].told < last:
            message = client.push()
            told[message["subscription"]].take(message)
        client.ask("refresh", subscription=4)
        for message in client.pushed:
            told[message["subscription"]].take(message)
        assert told[3].told < last


# ---------------------------------------------------------------------- statements


def test_statements_prepared_and_in_transactions(served: RunningServer) -> None:
    with json_client(served) as client, json_client(served) as other:
        client.ask("sql", text="CREATE TABLE t (k int PRIMARY KEY, d date, v decimal(9, 2))")
        answer = client.ask("prepare", name="add", text="INSERT INTO t VALUES ($1, $2, $3)")
        assert answer["parameters"] == {"1": "int", "2": "date", "3": "decimal(9, 2)"}
        day = {"type": "date", "value": "2024-02-29"}
        for key in range(3):
            assert (
                client.ask("execute", name="add", params=[key, day, {"type": "decimal", "value": "1.50"}])["time"]
                == key
            )
        assert client.code("execute", name="add", params=[0, day, None]) == "conflict"
        assert client.rows("sql", text="SELECT * FROM t WHERE k = $1", params=[1]) == [[1, "2024-02-29", "1.50"]]
        for _ in range(3):  # the second time it is known, and looked up
            assert client.rows("sql", text="SELECT v FROM t WHERE k = $1", params=[2]) == [["1.50"]]
        assert client.rows("lookup", relation="t", key=[0]) == [[0, "2024-02-29", "1.50"]]
        client.ask("deallocate", name="add")
        assert client.code("execute", name="add", params=[]) == "not-found"
        client.ask("begin")
        client.ask("sql", text="DELETE FROM t WHERE k > 0")
        assert client.ask("count", relation="t")["count"] == 1
        assert other.ask("count", relation="t")["count"] == 3
        other.ask("sql", text="UPDATE t SET v = 2 WHERE k = 1")
        failed = client.ask("commit")["error"]
        assert failed["code"] == "transaction-conflict" and failed["retryable"]
        client.ask("begin")
        client.ask("insert", table="t", rows=[[7, None, None]])
        assert client.code("sql", text="SELECT nonsense") == "not-found"  # and the transaction goes on
        assert isinstance(client.ask("commit")["time"], int)
        client.ask("begin")
        client.ask("insert", table="t", rows=[[8, None, None]])
        client.ask("rollback")
        assert other.rows("sql", text="SELECT k FROM t ORDER BY k") == [[0], [1], [2], [7]]


def test_a_statement_is_cancelled(served: RunningServer) -> None:
    with json_client(served) as client:
        client.ask("sql", text="CREATE TABLE t (x int)")
        client.ask("insert", table="t", rows=[[n] for n in range(2000)])
        number = client.send("sql", text="SELECT count(*) FROM t a, t b, t c WHERE a.x + b.x + c.x = 7")
        client.socket.send('{"id": 99, "request": "cancel"}')
        found = client.receive()
        assert found["id"] == number and found["error"]["code"] == "cancelled"
        assert client.ask("count", relation="t")["count"] == 2000


def test_values_of_every_type_travel_both_ways(served: RunningServer) -> None:
    kinds = {"i": "int", "f": "float", "b": "bool", "s": "string", "d": "date", "t": "timestamp", "m": "decimal(12, 3)"}
    values: list[Any] = [2**62, 1.5, True, 'a "b" \U0001f600', "2024-02-29", "2024-02-29T01:02:03.000004", "-1.250"]
    special = [None, "NaN", None, "", None, None, None]
    with json_client(served) as client, tk.connect(served.web_url) as session:
        client.ask("create-table", name="t", columns=list(kinds), types=list(kinds.values()))
        client.ask("insert", table="t", rows=[values, special])
        found = client.rows("rows", relation="t")
        assert sorted(found, key=str) == sorted([values, special], key=str)
        table = session.table("t")
        moment = datetime.datetime(2024, 2, 29, 1, 2, 3, 4)
        row = (2**62, 1.5, True, 'a "b" \U0001f600', moment.date(), moment, Decimal("-1.250"))
        assert row in table.rows()
        table.remove([row])
        assert len(table) == 1
        text = "SELECT $1 + 1 AS i, $2 AS d, $3 AS m"
        assert session.sql(text, [2**61, moment.date(), Decimal("1.5")]).rows() == [
            (2**61 + 1, moment.date(), Decimal("1.5"))
        ]
        now = datetime.datetime.now(datetime.UTC)
        assert session.sql("SELECT $1", [now]).rows() == [(now,)]


# ---------------------------------------------------------------------- HTTP


def test_requests_over_http_as_json_and_as_arrow(served: RunningServer) -> None:
    assert post(served, "/v1/sql", {"text": "CREATE TABLE t (x int, s text)"})[0] == 200
    rows = pa.table({"x": [1, 2], "s": ["a", None]})
    status, _, body = post(served, "/v1/insert?table=t", arrow_bytes(rows), Content_Type=ARROW)
    assert (status, json.loads(body)) == (200, {"time": 0})
    status, headers, body = post(served, "/v1/sql", {"text": "SELECT * FROM t ORDER BY x"}, Accept=ARROW)
    assert (status, headers["content-type"]) == (200, ARROW)
    assert table_of(body).to_pylist() == rows.to_pylist()
    assert json.loads(headers["tektite-answer"])["message"] == "SELECT"
    for path, said, wanted in (
        ("/v1/sql", {"text": "SELECT y FROM t"}, 404), ("/v1/sql", {"txt": "SELECT 1"}, 400), ("/v1/sql", b"{", 400),
        ("/v1/nothing", {}, 404), ("/v1/insert?table=t", b"ARROW1", 400), ("/v1/begin", {}, 400),
        ("/v1/sql", {"text": "BEGIN; INSERT INTO t VALUES (3, '')"}, 400), ("/elsewhere", {}, 404),
        ("/v1/interest", {"subscription": 1, "name": "t"}, 400),
        ("/v1/create-table", {"name": "t", "columns": [], "types": []}, 400),
    ):  # fmt: skip
        status, headers, body = post(served, path, said, **({"Content_Type": ARROW} if "insert" in path else {}))
        assert status == wanted and json.loads(body)["error"]["message"], (path, body)
    assert json.loads(post(served, "/v1/count", {"relation": "t"})[2]) == {"count": 2}


def test_many_requests_on_one_connection(served: RunningServer) -> None:
    client = http.client.HTTPConnection("127.0.0.1", served.http_port, timeout=PATIENCE)
    for number in range(20):
        client.request("POST", "/v1/sql", json.dumps({"text": "SELECT $1 + 1 AS n", "params": [number]}))
        assert json.loads(client.getresponse().read())["table"]["rows"] == [[number + 1]]


# ---------------------------------------------------------------------- who may ask


def test_users_are_asked_for_over_http_and_websocket() -> None:
    right = "Basic " + base64.b64encode(b"ann:secret").decode()
    wrong = ("Basic " + base64.b64encode(b"ann:other").decode(), "Basic !!", "Basic YQ==", "Bearer abc", "Digest x")
    with running_server(users={"ann": Verifier.of("secret")}) as served:
        ask = {"text": "SELECT current_user"}
        assert post(served, "/v1/sql", ask)[0] == 401
        assert "www-authenticate" in post(served, "/v1/sql", ask)[1]
        assert b'"ann"' in post(served, "/v1/sql", ask, Authorization=right)[2]
        for header in wrong:
            assert post(served, "/v1/sql", ask, Authorization=header)[0] == 401
            with pytest.raises(InvalidStatus), json_client(served, Authorization=header):
                pass
        with json_client(served, Authorization=right) as client:
            assert client.ask("hello")["user"] == "ann"
        with json_client(served) as client:
            assert client.ask("hello", user="ann", password="secret")["user"] == "ann"
            assert client.ask("status")["user"] == "ann"
        for fields in ({"user": "ann", "password": "other"}, {"user": "ann"}, {"token": "x"}, {"protocol": 99}):
            with json_client(served) as client:
                assert "error" in client.ask("hello", **fields)
                with pytest.raises(ConnectionClosed):
                    client.receive()
        with json_client(served) as client:
            assert client.code("sql", text="SELECT 1") == "authentication"
        with tk.connect(f"tektite://ann:secret@127.0.0.1:{served.http_port}") as session:
            assert session.sql("SELECT 1").rows() == [(1,)]
        for wrong_one in ({"password": "other"}, {"token": "x"}):
            with pytest.raises(tk.TektiteError) as caught:
                tk.connect(f"tektite://ann@127.0.0.1:{served.http_port}", **wrong_one)
            assert caught.value.code == "authentication"


def test_tls_is_spoken_where_there_is_a_certificate(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed: it makes the certificate of this test")
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    options = ["-newkey", "rsa:2048", "-nodes", "-keyout", str(key), "-out", str(certificate), "-days", "1"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run(["openssl", "req", "-x509", *options, *names], check=True, capture_output=True)
    trusting = ssl.create_default_context(cafile=str(certificate))
    with running_server(certificate=str(certificate), private_key=str(key), users={"ann": Verifier.of("x")}) as served:
        url = f"tektites://ann:x@localhost:{served.http_port}"
        with tk.connect(url, ssl=trusting) as session:
            table = session.create_table("t", {"x": int})
            with table.subscribe() as changes:
                table.insert([(n,) for n in range(50_000)])
                delta = changes.poll(PATIENCE)
                assert delta is not None and delta.table.num_rows == 50_000
        with pytest.raises(tk.FaultError, match="cannot connect.*cafile"):
            tk.connect(url)  # which trusts nobody who signed it
        with pytest.raises(tk.FaultError, match="tektites://"):
            tk.connect(f"tektite://ann:x@localhost:{served.http_port}", open_seconds=5)
        client = http.client.HTTPSConnection("localhost", served.http_port, timeout=PATIENCE, context=trusting)
        client.request("POST", "/v1/sql", json.dumps({"text": "SELECT 1"}))
        assert client.getresponse().status == 401


def test_pages_of_other_sites_are_refused(served: RunningServer) -> None:
    own = f"127.0.0.1:{served.http_port}"
    ask = {"text": "SELECT 1"}
    assert post(served, "/v1/sql", ask, Origin=f"http://{own}")[0] == 200
    assert post(served, "/v1/sql", ask, Origin="http://evil.example")[0] == 403
    assert post(served, "/v1/sql", ask, Host="evil.example")[0] == 403  # a name that was pointed here
    for headers in ({"Origin": "http://evil.example"}, {"Host": "evil.example"}):
        with pytest.raises(InvalidStatus), json_client(served, **headers):
            pass


# ---------------------------------------------------------------------- the catalog


def test_rules_are_replaced_by_those_of_the_same_name(served: RunningServer) -> None:
    with json_client(served) as client:
        client.ask("create-table", name="edge", columns=["a", "b"], types=["int", "int"])
        client.ask("insert", table="edge", rows=[[1, 2], [2, 3]])
        client.ask("register", datalog="p(x) :- edge(x, _).", name="mine")
        assert client.rows("query", text="p(x)") == [[1], [2]]
        client.ask("register", datalog="p(y) :- edge(_, y).", name="mine")
        assert client.rows("query", text="p(x)") == [[2], [3]]
        assert client.code("register", datalog="p(y) :- edge(_, y, _).", name="mine") == "incorrect"
        assert client.code("register", datalog="p(x) :- edge(x, _).", name="other") == "conflict"
        assert client.rows("query", text="p(x)") == [[2], [3]]
        client.ask("rows", relation="p")  # there is a view of it from now on
        assert client.code("register", datalog="p(x) :- edge(x, _).", name="mine") == "conflict"
        assert client.rows("query", text="p(x)") == [[2], [3]]


def test_rules_without_a_name_are_added_to_what_is_there(tmp_path: Path) -> None:
    with running_server(storage=tmp_path / "s") as served, json_client(served) as client:
        client.ask("create-table", name="edge", columns=["a", "b"], types=["int", "int"])
        client.ask("insert", table="edge", rows=[[1, 2], [2, 3]])
        client.ask("register", datalog="first(x) :- edge(x, _).")
        client.ask("register", datalog="second(y) :- edge(_, y).")
        client.ask("register", datalog="both(x) :- first(x), second(x).")
        client.ask("register", datalog="first(x) :- edge(x, _).")  # again, as a program does that is started again
        assert client.rows("query", text="both(x)") == [[2]]
        assert client.code("register", datalog="second(y) :- edge(_, y), y > 2.") == "conflict"  # both reads it
        client.ask("register", datalog="third(x) :- edge(x, 3).")
        assert client.code("register", datalog="third(x) :- edge(x, 2, _).") == "incorrect"
        client.ask("register", datalog="third(x) :- edge(x, 2).")  # in place of the one before
        client.ask("register", datalog="fourth(x) :- edge(x, 2).", name="mine")
        assert client.code("register", datalog="fourth(x) :- edge(x, 3).") == "conflict"  # it has a name
        expected = [client.rows("query", text=f"{name}(x)") for name in ("first", "second", "both", "third", "fourth")]
        assert expected == [[[1], [2]], [[2], [3]], [[2]], [[1]], [[1]]]
    with running_server(storage=tmp_path / "s") as served, json_client(served) as client:
        found = [client.rows("query", text=f"{name}(x)") for name in ("first", "second", "both", "third", "fourth")]
        assert found == expected


def test_what_clients_register_comes_back(tmp_path: Path) -> None:
    with running_server(storage=tmp_path / "s") as served, json_client(served) as client:
        client.ask("create-attribute", name="knows", type="int", cardinality="one")
        client.ask("register", datalog="old(x) :- knows(x, y).", name="p")
        client.ask(
            "register", datalog="reach(x, y) :- knows(x, y).  reach(x, z) :- reach(x, y), knows(y, z).", name="p"
        )
        client.ask("create-view", name="many", query="SELECT v, count(*) AS n FROM knows GROUP BY v")
        client.ask("create-view", name="gone", query="SELECT count(*) AS n FROM knows")
        client.ask("drop", relation="gone", kind="view")
        client.ask("transact", facts=[[1, "knows", 5], [1, "knows", 2], [2, "knows", 3]])
        lineage = client.ask("hello")["lineage"]
        assert (
            client.code("create-view", name="x", query="SELECT * FROM knows WHERE v = $1", params=[1]) == "unsupported"
        )
    with running_server(storage=tmp_path / "s") as served, json_client(served) as client:
        assert client.ask("hello")["lineage"] == lineage
        assert sorted(client.rows("query", text="reach(1, ?)")) == [[1, 2], [1, 3]]
        assert client.code("query", text="old(?)") == "not-found"
        assert sorted(client.rows("rows", relation="many")) == [[2, 1], [3, 1]]
        assert client.ask("relations")["views"] == ["many"]
        client.ask("transact", facts=[[1, "knows", 3]])
        assert sorted(client.rows("query", text="reach(1, ?)")) == [[1, 3]]
    assert "could-not" not in served.log.getvalue()


def test_what_the_server_keeps_for_itself_is_not_there_for_clients(tmp_path: Path) -> None:
    with running_server(storage=tmp_path / "s") as served, json_client(served) as client:
        hidden = "__catalog"
        assert hidden in served.engine._core.inputs
        assert client.code("rows", relation=hidden) == client.code("count", relation=hidden) == "not-found"
        assert (
            client.code("insert", table=hidden, rows=[["x", 1, "", ""]])
            == client.code("close-input", table=hidden)
            == "not-found"
        )
        assert (
            client.code("drop", relation=hidden, kind="table")
            == client.code("describe", relation=hidden)
            == "not-found"
        )
        assert client.code("interest", subscription=1, name=hidden) == "not-found"
        assert client.code("interest", subscription=1, sql=f"SELECT * FROM {hidden}") == "not-found"


def test_all_doors_show_the_same(served: RunningServer) -> None:
    with psycopg.connect(served.conninfo(), autocommit=True) as postgres, json_client(served) as client:
        postgres.execute("CREATE TABLE t (x int)")
        for number in range(10):
            postgres.execute("INSERT INTO t VALUES (%s)", (number,), prepare=True)
            assert client.ask("count", relation="t")["count"] == 2 * number + 1
            client.ask("insert", table="t", rows=[[number]])
            assert postgres.execute("SELECT count(*) FROM t").fetchone() == (2 * number + 2,)
