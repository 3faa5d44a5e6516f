"""Subscriptions over a wire: each adds up to the view at every complete time, whatever happens to its connection."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

import tektite as tk
from tests.support.patience import PATIENCE, eventually, until
from tests.support.server import RunningServer, running_server
from tests.support.wire import Follower, JsonClient, json_client

QUERY = "SELECT k, count(*) AS n, sum(v) AS total FROM t GROUP BY k"


class Oracle:
    """One writer, which knows what the table holds at each time."""

    def __init__(self, client: JsonClient, seed: int) -> None:
        self._client = client
        self._chance = random.Random(seed)
        self._rows: list[tuple[int, int]] = []
        self.answers: dict[int, Counter[tuple[Any, ...]]] = {}

    def create(self) -> None:
        self._client.ask("create-table", name="t", columns=["k", "v"], types=["int", "int"])
        self._client.ask("create-view", name="v", query=QUERY)

    def write(self) -> int:
        """Insert or remove some rows; the time of that."""
        if self._rows and self._chance.random() < 0.4:
            gone = [self._rows.pop(self._chance.randrange(len(self._rows))) for _ in range(min(3, len(self._rows)))]
            told = self._client.ask("remove", table="t", rows=[list(row) for row in gone])["time"]
        else:
            new = [
                (self._chance.randrange(4), self._chance.randrange(100)) for _ in range(self._chance.randrange(1, 4))
            ]
            self._rows += new
            told = self._client.ask("insert", table="t", rows=[list(row) for row in new])["time"]
        found: Counter[tuple[Any, ...]] = Counter()
        for key in {k for k, _ in self._rows}:
            values = [v for k, v in self._rows if k == key]
            found[key, len(values), sum(values)] = 1
        self.answers[told] = found
        return int(told)

    def at(self, told: int) -> Counter[tuple[Any, ...]]:
        known = [each for each in list(self.answers) if each <= told]  # the writer adds to them meanwhile
        return self.answers[max(known)] if known else Counter()


@pytest.mark.parametrize("seed", range(4))
def test_subscribers_that_come_go_and_resume_are_told_everything_once(seed: int) -> None:
    chance = random.Random(seed)
    with running_server(limits={"lease_seconds": 3600}) as served, json_client(served) as writer:
        oracle = Oracle(writer, seed)
        oracle.create()
        failed: list[BaseException] = []
        last = threading.Event()
        final: list[int] = []

        def follow(number: int) -> None:
            mine = random.Random(f"{seed} {number}")
            follower, lineage = Follower(), None
            progress, patience = bool(number % 2), 0.5
            try:
                while not (last.is_set() and follower.told >= final[0]):
                    with json_client(served) as client:
                        fields = (
                            {} if follower.told < 0 else {"since": follower.told, "snapshot": False, "lineage": lineage}
                        )
                        lineage = client.ask("interest", subscription=1, name="v", progress=progress, **fields)[
                            "lineage"
                        ]
                        for _ in range(mine.randrange(1, 30)):
                            if last.is_set() and follower.told >= final[0]:
                                break
                            try:
                                follower.take(client.push(patience))
                            except TimeoutError:
                                patience *= 2
                                break
                            if follower.told >= 0:
                                # The writer may not have noted this time yet.
                                eventually(lambda: oracle.at(follower.told), +follower.rows)
                        if mine.random() < 0.5:
                            client.socket.socket.shutdown(socket.SHUT_RDWR)
                    follower.lost()
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=follow, args=(number,)) for number in range(4)]
        for at in range(120):
            if at % 20 == 0 and at // 20 < len(threads):
                threads[at // 20].start()
            told = oracle.write()
            if chance.random() < 0.1:
                time.sleep(0.02)
        writer.ask("advance")
        final.append(told)
        last.set()
        for thread in threads:
            thread.join(PATIENCE)
        assert not failed, failed
        assert not any(thread.is_alive() for thread in threads)


def test_history_that_is_not_held_is_refused() -> None:
    with running_server(limits={"lease_seconds": 0.2}) as served, json_client(served) as client:
        oracle = Oracle(client, 1)
        oracle.create()
        oracle.write()
        client.ask("interest", subscription=1, name="v")
        told = client.push()["progress"]
        client.ask("uninterest", subscription=1)
        for _ in range(5):
            oracle.write()
        client.ask("interest", subscription=2, name="v", since=told, snapshot=False)  # held
        client.ask("uninterest", subscription=2)
        until(lambda: not client.ask("status")["feeds"])
        for _ in range(5):
            oracle.write()
        assert client.code("interest", subscription=3, name="v", since=told, snapshot=False) == "history-gone"
        assert client.code("interest", subscription=4, name="v", since=10_000) == "incorrect"
        assert client.code("interest", subscription=5, name="v", since=0, lineage="other") == "history-gone"


def test_a_subscription_begins_as_of_a_time_that_is_held(served: RunningServer) -> None:
    with json_client(served) as client:
        oracle = Oracle(client, 2)
        oracle.create()
        first = oracle.write()
        with served.engine.hold(served.engine.view("v"), first):
            for _ in range(10):
                last = oracle.write()
            client.ask("interest", subscription=1, name="v", since=first, snapshot=True)
            follower = Follower()
            follower.take(client.push())
            assert follower.told == first and +follower.rows == oracle.at(first)
            while follower.told < last:
                follower.take(client.push())
            assert +follower.rows == oracle.at(last)


def test_a_subscription_goes_on_after_a_restart(tmp_path: Path) -> None:
    with running_server(storage=tmp_path / "s") as served, json_client(served) as client:
        oracle = Oracle(client, 3)
        oracle.create()
        for _ in range(10):
            last = oracle.write()
        lineage = client.ask("interest", subscription=1, name="v")["lineage"]
        follower = Follower()
        while follower.told < last:
            follower.take(client.push())
    with running_server(storage=tmp_path / "s") as served, json_client(served) as client:
        oracle._client = client
        client.ask("interest", subscription=1, name="v", since=follower.told, snapshot=False, lineage=lineage)
        for _ in range(5):
            last = oracle.write()
        while follower.told < last:
            follower.take(client.push())
        assert +follower.rows == oracle.at(last)


@pytest.mark.parametrize(
    "asked", [{"name": "v"}, {"sql": "SELECT k, count(*) AS n FROM t GROUP BY k"}], ids=["view", "query"]
)
def test_a_subscriber_of_what_does_not_change_goes_on_after_a_restart(tmp_path: Path, asked: dict[str, str]) -> None:
    with running_server(storage=tmp_path / "s") as served, tk.connect(served.web_url) as session:
        session.create_table("t", {"k": int, "v": int}).insert([(1, 2)])
        session.create_view("v", "SELECT k, count(*) AS n FROM t GROUP BY k")
        with json_client(served) as client:
            lineage = client.ask("interest", subscription=1, **asked)["lineage"]
            follower = Follower()
            while not follower.rows:
                follower.take(client.push())
            session.create_table("other", {"x": int}).insert([(1,)])  # time goes on, and the subscriber is told nothing
            stopping = threading.Thread(target=served.stop)
            stopping.start()
            with contextlib.suppress(ConnectionClosed):
                while True:
                    follower.take(client.push())
            stopping.join()
    with running_server(storage=tmp_path / "s") as served, json_client(served) as client:
        client.ask("interest", subscription=1, since=follower.told, snapshot=False, lineage=lineage, **asked)
        client.ask("insert", table="t", rows=[[1, 3]])
        while follower.rows[1, 2] == 0:
            follower.take(client.push())
        assert +follower.rows == Counter({(1, 2): 1})


# ---------------------------------------------------------------------- those who do not read


def lazy_socket(served: RunningServer) -> socket.socket:
    """A WebSocket whose client reads nothing unless it is asked to."""
    found = socket.socket()
    found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    found.connect(("127.0.0.1", served.http_port))
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    found.sendall(
        f"GET /v1/socket HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n{key}\r\n".encode()
    )
    assert b" 101 " in found.recv(4096)
    return found


def masked(text: str) -> bytes:
    data = text.encode()
    assert len(data) < 126
    return bytes([0x81, 0x80 | len(data), 0, 0, 0, 0]) + data


def read_messages(found: socket.socket, until: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
    """The messages of a server up to one; ends with the connection."""
    stream, messages = found.makefile("rb"), []
    while head := stream.read(2):
        length = head[1] & 127
        if length > 125:
            length = int.from_bytes(stream.read(2 if length == 126 else 8), "big")
        data = stream.read(length)
        if head[0] & 15 == 8:
            messages.append({"closed": int.from_bytes(data[:2], "big"), "reason": data[2:].decode()})
        elif head[0] & 15 == 1:
            messages.append(json.loads(data))
        if messages and until(messages[-1]):
            break
    return messages


def test_a_client_that_does_not_read_costs_bounded_memory_and_is_disconnected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits = {"buffered_bytes": 1 << 16, "lease_seconds": 1.0}
    with running_server(limits=limits) as served, json_client(served) as writer, json_client(served) as reader:
        writer.ask("sql", text="CREATE TABLE t (k int, s text)")
        lazy = lazy_socket(served)
        lazy.sendall(masked('{"id": 1, "request": "interest", "subscription": 1, "name": "t"}'))
        reader.ask("interest", subscription=1, name="t")
        follower = Follower()
        mine = "{}:{}".format(*lazy.getsockname())
        (wire,) = [each._connection for each in served.server.connections.all() if each._connection.peer == mine]  # type: ignore[attr-defined]
        most, write = 0, wire.write

        def written(data: bytes) -> None:
            nonlocal most
            write(data)
            most = max(most, wire.transport.get_write_buffer_size())

        monkeypatch.setattr(wire, "write", written)
        for number in range(400):
            last = writer.ask("insert", table="t", rows=[[number, "x" * 20_000]])["time"]
            while follower.told < last:
                follower.take(reader.push())
        assert sum(follower.rows.values()) == 400
        eventually(lambda: len(served.server.connections), 2)
        assert 1 << 16 < most < 1 << 20
        until(lambda: "did-not-read" in served.log.getvalue().replace(" ", "-"))
        lazy.close()


def test_a_client_that_reads_late_is_told_what_it_missed_together() -> None:
    with (
        running_server(limits={"buffered_bytes": 1 << 16, "lease_seconds": 3600}) as served,
        json_client(served) as writer,
    ):
        writer.ask("sql", text="CREATE TABLE t (k int, s text)")
        writer.ask("create-view", name="last", query="SELECT max(k) AS k, count(*) AS n, max(s) AS s FROM t")
        lazy = lazy_socket(served)
        lazy.sendall(masked('{"id": 1, "request": "interest", "subscription": 1, "name": "last"}'))
        for number in range(400):
            last = writer.ask("insert", table="t", rows=[[number, f"{number:06}" + "x" * 20_000]])["time"]
        messages = [
            each
            for each in read_messages(lazy, lambda each: each.get("progress", -1) >= last)
            if "subscription" in each
        ]
        follower = Follower()
        for message in messages[1:]:
            follower.take(message)
        assert len(messages) < 390, "nothing was taken together"
        assert +follower.rows == Counter({(399, 400, "000399" + "x" * 20_000): 1})
        lazy.close()


# ---------------------------------------------------------------------- the Python client


def break_connection(session: tk.RemoteSession) -> None:
    """Abort it in the thread that it belongs to, before anything that is asked from here on."""
    reading = session._made.link._socket
    assert reading is not None
    reading.loop.call_soon_threadsafe(reading.transport.abort)


def has_subscribers(served: RunningServer) -> bool:
    """Whether a server tells changes to anybody."""
    return any(feed.subscribers for feed in list(served.server.feeds._feeds.values()))


def test_the_client_resumes_by_itself(served: RunningServer) -> None:
    with tk.connect(served.web_url) as writer, tk.connect(served.web_url) as session:
        table = writer.create_table("t", {"k": int, "v": int})
        view = session.sql(f"CREATE MATERIALIZED VIEW v AS {QUERY}").view_name
        assert view == "v"
        changes = session.view("v").subscribe(progress=True)
        seen: Counter[tuple[int, ...]] = Counter()
        for number in range(60):
            last = table.insert([(number % 3, number)])
            if number % 10 == 5:
                break_connection(session)
            assert last is not None
            while changes.time < last or number == 59:
                delta = changes.poll(PATIENCE)
                assert delta is not None
                for row in delta.table.to_pylist():
                    seen[row["k"], row["n"], row["total"]] += row["diff"]
                if delta.time >= last:
                    break
        assert +seen == Counter(writer.view("v").rows())
        changes.close()


def test_a_new_connection_has_the_settings_of_the_one_before(served: RunningServer) -> None:
    with tk.connect(served.web_url, user="ann") as session:
        session.sql("CREATE ROLE low; CREATE TABLE secret (x int); SET TimeZone = 'Asia/Tokyo'")
        session.sql("SET ROLE low")
        break_connection(session)
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                assert session.sql("SELECT current_user").rows() == [("low",)]
                break
            except tk.TektiteError as error:
                assert error.retryable and time.monotonic() < deadline
        assert session.sql("SHOW TimeZone").rows() == [("Asia/Tokyo",)]
        with pytest.raises(tk.TektiteError, match="permission denied"):
            session.sql("SELECT * FROM secret")


def test_requests_of_a_broken_connection_and_transactions_say_so(served: RunningServer) -> None:
    with tk.connect(served.web_url) as session:
        table = session.create_table("t", {"x": int})
        with pytest.raises(tk.TektiteError) as caught, session.transaction():
            table.insert([(1,)])
            break_connection(session)
            for _ in range(100):
                table.insert([(2,)])
        assert (caught.value.code, caught.value.retryable) == ("connection-lost", True)
        assert table.rows() == []  # on another connection
        table.insert([(3,)])
        assert table.rows() == [(3,)]


def test_threads_wait_while_one_has_a_transaction(served: RunningServer) -> None:
    with tk.connect(served.web_url) as session:
        table = session.create_table("t", {"x": int})
        order: list[str] = []

        def write() -> None:
            table.insert([(2,)])
            order.append("thread")

        thread = threading.Thread(target=write)
        with session.transaction() as transaction:
            table.insert([(1,)])
            thread.start()
            thread.join(0.2)
            order.append("transaction")
            assert table.rows() == [(1,)]
        thread.join(PATIENCE)
        assert order == ["transaction", "thread"]
        assert transaction.time is not None and sorted(table.rows()) == [(1,), (2,)]


def test_what_cannot_travel_says_so(served: RunningServer) -> None:
    engine = tk.Engine()
    query = engine.create_table("t", {"x": int}).count(by="x")
    with tk.connect(served.web_url) as session:
        session.create_table("t", {"x": int})
        with pytest.raises(tk.UnsupportedError, match="does not travel"):
            session.create_view("v", query)
        with pytest.raises(tk.UnsupportedError, match="does not travel"):
            session.table("t").subscribe(print)  # type: ignore[arg-type]
    with pytest.raises(tk.ConflictError, match="closed"):
        session.sql("SELECT 1")
    for wrong in ("localhost", "ftp://localhost", 5, "tektite://:x"):
        with pytest.raises(tk.IncorrectError, match="URL"):
            tk.connect(wrong)  # type: ignore[arg-type]
    with pytest.raises(tk.FaultError, match="cannot connect"):
        tk.connect("tektite://127.0.0.1:1")


def test_a_client_with_an_event_loop(served: RunningServer) -> None:
    async def main() -> None:
        async with await tk.connect_async(served.web_url) as session:
            table = await session.create_table("t", {"k": int, "v": int}, mode="upsert", primary_key="k")
            view = await session.create_view("v", QUERY)
            changes = await session.subscribe("SELECT sum(v) AS total FROM t")
            async with session.transaction() as transaction:
                await table.insert([(1, 1), (2, 2)])
                await table.remove([(1,)])
            assert await view.rows(transaction.time) == [(2, 1, 2)]
            add = await session.prepare("INSERT INTO t VALUES ($1, $2)")
            results = await asyncio.gather(*(add.run([key, key]) for key in range(10, 20)))
            assert all(result.time is not None for result in results)
            total = 0
            async for delta in changes:
                total += sum(row["diff"] * row["total"] for row in delta.table.to_pylist() if row["total"] is not None)
                if total == 2 + sum(range(10, 20)):
                    break
            assert await table.lookup(12) == [(12, 12)]
            assert (await view.head(1)).num_rows == 1 and await table.count() == 11
            with pytest.raises(tk.ConflictError):
                async with session.transaction(), session.transaction():
                    pass

    asyncio.run(main())


def test_a_failing_row_is_told_and_the_subscription_goes_on(served: RunningServer) -> None:
    with tk.connect(served.web_url) as session:
        table = session.create_table("t", {"s": str})
        view = session.create_view("v", "SELECT CAST(s AS int) AS n FROM t")
        changes = view.subscribe()
        table.insert([("1",)])
        assert changes.table().to_pylist() == [{"n": 1, "time": 0, "diff": 1}]
        table.insert([("one",)])
        with pytest.raises(tk.TektiteError, match="one"):
            changes.poll(PATIENCE)
        assert view.error is not None
        table.remove([("one",)])
        table.insert([("2",)])
        delta = changes.poll(PATIENCE)
        assert delta is not None and delta.table.to_pylist() == [{"n": 2, "diff": 1}]
        session.drop_view("v")
        with pytest.raises(tk.ConflictError, match="dropped"):
            changes.poll(PATIENCE)


def test_a_reader_that_is_far_behind_has_the_server_stop(
    served: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tektite.client.subscriptions.WAITING_ROWS", 50)
    with tk.connect(served.web_url) as writer, tk.connect(served.web_url) as session:
        table = writer.create_table("t", {"x": int})
        changes = session.table("t").subscribe()
        made = changes._made
        for number in range(100):
            last = table.insert([(number * 10 + each,) for each in range(10)])
            assert last is not None
            until(lambda: made._is_paused or made.time >= last)  # noqa: B023
            until(lambda: not (made._is_paused and has_subscribers(served)))
        assert made._is_paused and made._waiting_rows < 100
        seen: list[int] = []
        while len(seen) < 1000:
            delta = changes.poll(PATIENCE)
            assert delta is not None
            seen += delta.table.column("x").to_pylist()
        assert sorted(seen) == list(range(1000))


def test_clients_are_told_when_the_server_stops(served: RunningServer) -> None:
    with json_client(served) as client:
        client.ask("sql", text="SELECT 1")
        served.stop()
        with pytest.raises(ConnectionClosed) as caught:
            client.receive()
        assert caught.value.rcvd is not None and caught.value.rcvd.code == 1001 and "stops" in caught.value.rcvd.reason


def test_a_query_that_is_followed_stays_when_others_come_and_go(served: RunningServer) -> None:
    with json_client(served) as client:
        client.ask("create-table", name="t", columns=["k", "v"], types=["int", "int"])
        followers = {number: Follower() for number in (1, 2, 3)}
        for number, text in enumerate(("SELECT k + 1 AS k FROM t", QUERY, "SELECT v FROM t"), 1):
            assert "error" not in client.ask("interest", subscription=number, sql=text)
        client.ask("uninterest", subscription=3)
        time = client.ask("insert", table="t", rows=[[1, 2], [1, 3]])["time"]
        while any(followers[number].told < time for number in (1, 2)):
            message = client.push()
            assert not message.get("end"), message
            followers[message["subscription"]].take(message)
        assert followers[1].rows == Counter({(2,): 2})
        assert followers[2].rows == Counter({(1, 2, 5): 1})


def test_what_a_granularity_holds_back_is_told_at_its_epoch_though_that_changes_something_else() -> None:
    with running_server(limits={"lease_seconds": 3600}) as served, json_client(served) as client:
        client.ask("sql", text="CREATE TABLE t (x int); CREATE TABLE other (x int); INSERT INTO t VALUES (1)")
        client.ask("interest", subscription=1, name="t", granularity=2)
        follower = Follower()
        for number in range(2, 6):
            time = client.ask("sql", text=f"INSERT INTO t VALUES ({number})")["time"]
            client.ask("refresh", subscription=1)
            if time % 2 == 0:
                client.ask("sql", text="INSERT INTO other VALUES (1)")
            while follower.told < time:
                follower.take(client.push())
            assert sorted(follower.rows) == [(x,) for x in range(1, number + 1)]


@pytest.mark.parametrize("granularity", [None, "50 ms", 2])
def test_a_relation_may_have_columns_that_are_called_time_and_diff(served: RunningServer, granularity: Any) -> None:
    asked = {} if granularity is None else {"granularity": granularity}
    with json_client(served) as client:
        client.ask("sql", text='CREATE TABLE t ("time" int, diff int); INSERT INTO t VALUES (70, 80)')
        assert "error" not in client.ask("interest", subscription=1, sql="SELECT * FROM t", **asked)
        client.ask("sql", text="INSERT INTO t VALUES (71, 81)")
        client.ask("sql", text="DELETE FROM t WHERE diff = 80")
        client.ask("sql", text="INSERT INTO t VALUES (72, 82)")
        client.ask("sql", text="CREATE TABLE other (x int); INSERT INTO other VALUES (1)")
        client.ask("sql", text="INSERT INTO other VALUES (1)")
        held: Counter[tuple[int, int]] = Counter()
        while +held != Counter([(71, 81), (72, 82)]):
            for time, diff, _, many in client.push().get("table", {}).get("rows", []):
                held[time, diff] += many
    with tk.connect(served.web_url) as session:
        assert sorted(change.row for change in session.subscribe("SELECT * FROM t").changes()) == [(71, 81), (72, 82)]
