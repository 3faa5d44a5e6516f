"""Random schedules of clients of both protocols, while the server is killed and started again.

Each tenant has two writers, one for each protocol, and a subscriber. They insert, update, delete, run transactions that conflict,
roll back, make and drop views, leave in the middle of a message, and come back. What is checked:

| of | holds |
|---|---|
| every writer | what was acknowledged is there, nothing twice; what was not happened as a whole or not at all |
| every read | it has all that was acknowledged before it began, to any client of the tenant |
| every subscription | at each complete time each writer's rows are those after one of its operations, in their order |
| every tenant | nobody sees a row of another one |
| counters that all share | each acknowledged increment counts once, each refused one does not |
| a board | each tenant follows and asks for what it may read, while grants, policies and the rows that they look at change |

Tenants ask by prepared statements that they share, too.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.errors import AdminShutdown, InsufficientPrivilege, SerializationFailure
from websockets.exceptions import WebSocketException

from tests.support.nightly import SEED, size
from tests.support.patience import PATIENCE
from tests.support.server_process import ServerProcess, server_process
from tests.support.steward import TOPICS, BoardReader, Steward
from tests.support.wire import Follower, JsonClient, json_client

BROKEN = (psycopg.OperationalError, WebSocketException, OSError, EOFError)
"""What a client sees of a server that dies."""
TENANTS = ("ann", "bob", "eve")
KEYS = 3
SPAN = 1_000_000
"""How many ids each writer has for itself."""
SETUP = """
CREATE TABLE t (owner text, id int, v int, PRIMARY KEY (owner, id));
CREATE TABLE counters (k int PRIMARY KEY, n int);
CREATE MATERIALIZED VIEW sums AS SELECT owner, count(*) AS rows, sum(v) AS total FROM t GROUP BY owner;
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON t USING (owner = current_user);
PREPARE rows_of(text) AS SELECT owner, id, v FROM t WHERE owner = $1
"""
State = frozenset[tuple[int, int]]


class Denied(Exception):
    """The user may not do that."""


class Refused(Exception):
    """A transaction was refused because of another one: nothing of it has happened."""


class Client:
    """One connection, of either protocol."""

    def __init__(self, sql: Callable[[str], list[tuple[Any, ...]]], leave: Callable[[], None]) -> None:
        self.sql = sql
        self.leave = leave
        """Send half of a message, and go."""

    @contextmanager
    def block(self, ends: str = "COMMIT") -> Any:
        """A transaction block."""
        self.sql("BEGIN")
        try:
            yield
        except Refused:
            self.sql("ROLLBACK")
            raise
        self.sql(ends)


@contextmanager
def by_postgres(server: ServerProcess, tenant: str, token: str) -> Any:
    with server.connect(tenant, f"for {tenant}") as client:

        def sql(text: str) -> list[tuple[Any, ...]]:
            try:
                found = client.execute(text)
            except SerializationFailure as error:
                raise Refused from error
            except InsufficientPrivilege as error:
                raise Denied from error
            return found.fetchall() if found.description else []

        def leave() -> None:
            os.write(client.pgconn.socket, b"Q\0\0\1\0SELECT ")
            raise ConnectionError

        yield Client(sql, leave)


@contextmanager
def by_socket(server: ServerProcess, tenant: str, token: str) -> Any:
    with json_client(server, Authorization=f"Bearer {token}") as client:

        def sql(text: str) -> list[tuple[Any, ...]]:
            answer = client.ask("sql", text=text)
            error = answer.get("error")
            if error is None:
                return [tuple(row) for row in answer.get("table", {}).get("rows", [])]
            if error["code"] == "transaction-conflict":
                raise Refused
            if "the server stops" in error["message"]:
                raise ConnectionError
            if "permission" in error["message"] or "may not" in error["message"]:
                raise Denied
            raise AssertionError(answer)

        def leave() -> None:
            client.socket.socket.sendall(b"\x81\xfe\x10\x00\0\0\0\0half of")
            raise ConnectionError

        yield Client(sql, leave)


@dataclass
class Writer:
    """One client that writes, and what it knows of its rows."""

    tenant: str
    number: int
    chance: random.Random
    states: list[State] = field(default_factory=lambda: [frozenset()])
    """What its rows were after each operation that was tried, in order; some have not happened."""
    there: State = frozenset()
    """What was acknowledged."""
    known: int = 0
    """The place of that among the states."""
    doubtful: State | None = None
    """What its rows are if the operation that was not acknowledged has happened."""
    increments: Counter[int] = field(default_factory=Counter)
    unsure: Counter[int] = field(default_factory=Counter)
    """Increments that were not acknowledged."""
    ids: int = 0
    done: int = 0
    refused: int = 0
    others: list[Writer] = field(default_factory=list)
    """The other writers of its tenant."""
    steward: Steward | None = None

    def work(self, server: ServerProcess, token: str) -> None:
        """Do something again and again, until the connection breaks."""
        with (by_socket if self.number % 2 else by_postgres)(server, self.tenant, token) as client:
            while True:
                kind = self.chance.choices(
                    (
                        self.change,
                        self.increment,
                        self.read,
                        self.ask,
                        self.undo,
                        self.define,
                        lambda client: client.leave(),
                    ),
                    (12, 5, 5, 5, 2, 1, 0.3),
                )[0]
                kind(client)
                self.done += 1

    def change(self, client: Client) -> None:
        """Insert, update or delete rows that come in pairs, with one value and its opposite."""
        pairs = sorted(id for id, _ in self.there if id % 2 == 0)
        kind = self.chance.choice(("insert", "insert", "update", "delete")) if pairs else "insert"
        if kind == "insert":
            id, v = self.number * SPAN + self.ids, self.chance.randrange(1, 10**6)
            self.ids += 2
            rows = f"('{self.tenant}', {id}, {v}), ('{self.tenant}', {id + 1}, {-v})"
            self.doubtful = self.there | {(id, v), (id + 1, -v)}
            texts = [f"INSERT INTO t VALUES {rows}"]
            if self.chance.random() < 0.5:
                one, other = rows.split("), ")
                texts = [f"INSERT INTO t VALUES {one})", f"INSERT INTO t VALUES {other}"]
        else:
            id = self.chance.choice(pairs)
            mine = f"owner = '{self.tenant}' AND id IN ({id}, {id + 1})"
            old = {(i, v) for i, v in self.there if i in (id, id + 1)}
            self.doubtful = (self.there - old) | ({(i, -v) for i, v in old} if kind == "update" else set())
            texts = [f"UPDATE t SET v = -v WHERE {mine}" if kind == "update" else f"DELETE FROM t WHERE {mine}"]
        self.states.append(self.doubtful)
        try:
            if len(texts) > 1 or self.chance.random() < 0.3:
                with client.block():
                    for text in texts:
                        client.sql(text)
            else:
                client.sql(texts[0])
        except Refused:
            self.settled(self.there)
            return
        self.settled(self.doubtful)

    def settled(self, state: State) -> None:
        """It is known what its rows are."""
        self.there, self.doubtful = state, None
        self.states.append(state)
        self.known = len(self.states) - 1

    def increment(self, client: Client) -> None:
        """Add one to a counter that all tenants write."""
        key = self.chance.randrange(KEYS)
        try:
            with client.block():
                ((n,),) = client.sql(f"SELECT n FROM counters WHERE k = {key}")
                client.sql(f"UPDATE counters SET n = {n + 1} WHERE k = {key}")
                self.unsure[key] += 1
        except Refused:
            self.refused += 1
        else:
            self.increments[key] += 1
        self.unsure.clear()

    def undo(self, client: Client) -> None:
        """Roll a transaction back."""
        with client.block("ROLLBACK"):
            client.sql(f"INSERT INTO t VALUES ('{self.tenant}', {self.number * SPAN + SPAN - 1}, 1)")
            client.sql(f"DELETE FROM t WHERE id < {self.number * SPAN + SPAN - 1}")

    def define(self, client: Client) -> None:
        """Make a view of the tenant's rows, read it, and drop it."""
        name = f"view_{self.number}"
        client.sql(f"DROP MATERIALIZED VIEW IF EXISTS {name}")
        client.sql(f"CREATE MATERIALIZED VIEW {name} AS SELECT count(*) AS n, coalesce(sum(v), 0) AS total FROM t")
        ((many, total),) = client.sql(f"SELECT n, total FROM {name}")
        assert (many % 2, total) == (0, 0), "half of a transaction"
        client.sql(f"DROP MATERIALIZED VIEW {name}")

    def read(self, client: Client) -> None:
        """Everything that was acknowledged to a client of the tenant is there."""
        before = [other.known for other in self.others]
        whose = self.chance.choice((None, self.tenant, self.tenant, *TENANTS))
        rows = client.sql("SELECT owner, id, v FROM t" if whose is None else f"EXECUTE rows_of('{whose}')")
        assert {owner for owner, _, _ in rows} <= {self.tenant}, "a row of another tenant"
        if whose not in (None, self.tenant):
            assert not rows
            return
        assert part_of(rows, self) == self.there
        for other, known in zip(self.others, before, strict=True):
            found = part_of(rows, other)
            assert found in other.states[known:], "a read does not see what was acknowledged before"

    def ask(self, client: Client) -> None:
        """What it may read of the board, by a statement that all users share."""
        assert self.steward is not None
        since, topic = self.steward.known, self.chance.randrange(TOPICS)
        found: State | None = None
        try:
            found = frozenset(client.sql(f"EXECUTE about({topic})"))
        except Denied:
            found = None
        self.steward.check_read(self.tenant, since, found, topic)

    def check(self, found: State) -> None:
        """Its rows after a restart are those that were acknowledged, with or without what was not."""
        assert found in (self.there, self.doubtful), (self.tenant, self.number, self.there ^ found, self.doubtful)
        self.settled(found)


def part_of(rows: Any, writer: Writer) -> State:
    """The rows of one writer, of rows with an owner; none is there twice."""
    mine = [(id, v) for _, id, v in rows if id // SPAN == writer.number]
    assert len({*mine}) == len(mine), "a row is there twice"
    return frozenset(mine)


@dataclass
class Reader:
    """One client that follows its tenant's rows, and adds up."""

    tenant: str
    writers: list[Writer]
    chance: random.Random
    follower: Follower = field(default_factory=Follower)
    places: dict[int, int] = field(default_factory=dict)
    """How far it has come in the states of each writer."""
    lineage: str | None = None
    checked: int = 0
    wanted: Counter[Any] | None = None
    """The rows that it ends with."""
    stop: bool = False

    def follow(self, server: ServerProcess, token: str) -> None:
        """Follow until the connection breaks, from where it was."""
        with json_client(server, Authorization=f"Bearer {token}") as client:
            self.subscribe(client)
            while not self.stop and (self.wanted is None or +self.follower.rows != self.wanted):
                try:
                    self.take(client.push(0.1))
                except TimeoutError:
                    continue
                draw = self.chance.random()
                if draw < 0.01:  # it goes in the middle of a message
                    client.socket.socket.sendall(b"\x81\xfe\x10\x00\0\0\0\0half of")
                    raise ConnectionError
                if draw < 0.02:
                    assert "error" not in client.ask("uninterest", subscription=1)
                    while client.pushed:
                        self.take(client.pushed.pop(0))
                    self.follower.lost()
                    self.subscribe(client)

    def subscribe(self, client: JsonClient) -> None:
        """Go on behind what was told completely; begin anew, if that is not held any more."""
        query: dict[str, Any] = {"subscription": 1, "sql": "SELECT owner, id, v FROM t"}
        since: dict[str, Any] = {"since": self.follower.told, "snapshot": False, "lineage": self.lineage}
        answer = client.ask("interest", **query, **(since if self.follower.told >= 0 else {}))
        if answer.get("error", {}).get("code") == "history-gone":
            self.follower = Follower()
            answer = client.ask("interest", **query)
        if "the server stops" in answer.get("error", {}).get("message", ""):
            raise ConnectionError
        assert "error" not in answer, answer
        self.lineage = answer["lineage"]

    def take(self, message: dict[str, Any]) -> None:
        """Look at what is complete."""
        if "the server stops" in message.get("error", {}).get("message", ""):
            raise ConnectionError
        assert "error" not in message, message
        self.follower.take(message)
        if "progress" not in message:
            return
        rows = self.follower.rows
        assert all(n in (0, 1) for n in rows.values()), "a change was lost, or told twice"
        there = [row for row, n in rows.items() if n]
        assert {owner for owner, _, _ in there} <= {self.tenant}, "a row of another tenant"
        for writer in self.writers:
            begin = self.places.get(writer.number, 0)
            found = part_of(there, writer)
            # The writer adds a state before it sends the operation.
            place = next((n for n in range(begin, len(writer.states)) if writer.states[n] == found), None)
            assert place is not None, "rows that no operation left behind, or one that came before"
            self.places[writer.number] = place
        self.checked += 1


@dataclass
class Schedule:
    """All clients of one server."""

    server: ServerProcess
    chance: random.Random
    writers: list[Writer] = field(default_factory=list)
    readers: list[Reader] = field(default_factory=list)
    followers: list[BoardReader] = field(default_factory=list)
    steward: Steward = field(default_factory=lambda: Steward(TENANTS, random.Random(0)))
    tokens: dict[str, str] = field(default_factory=dict)
    counted: Counter[int] = field(default_factory=Counter)
    failed: list[BaseException] = field(default_factory=list)

    def set_up(self, seed: int, many: int = 1) -> None:
        """Make the tables and the clients: so many pairs of writers, and readers of each kind, for each tenant."""
        self.steward = Steward(TENANTS, random.Random(f"{seed} steward"))
        with self.server.connect() as client:
            client.execute(SETUP)
            client.execute(f"INSERT INTO counters SELECT x, 0 FROM generate_series(0, {KEYS - 1}) AS s(x)")
            for at, tenant in enumerate(TENANTS):
                client.execute(f"CREATE USER {tenant} PASSWORD 'for {tenant}'")
                client.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON t TO {tenant}")
                client.execute(f"GRANT SELECT, UPDATE ON counters TO {tenant}")
                client.execute(f"GRANT CREATE ON SCHEMA public TO {tenant}")
                (self.tokens[tenant],) = client.execute(f"CREATE TOKEN for_{tenant} FOR {tenant}").fetchone() or ("",)
                numbers = range(2 * at * many, 2 * (at + 1) * many)
                writers = [Writer(tenant, number, random.Random(f"{seed} {number}")) for number in numbers]
                for writer in writers:
                    writer.others = [other for other in writers if other is not writer]
                    writer.steward = self.steward
                self.writers += writers
                for one in range(many):
                    self.readers.append(Reader(tenant, writers, random.Random(f"{seed} {tenant} {one}")))
                    for is_postgres in (False, True):
                        chance = random.Random(f"{seed} {tenant} {one} {is_postgres}")
                        self.followers.append(BoardReader(tenant, self.steward, chance, is_postgres))
            self.steward.set_up(client)
            client.execute("CREATE USER root SUPERUSER PASSWORD 'for root'")

    def run(self, operations: int, number: int) -> None:
        """Let all clients work for some operations; then kill the server, and start it again."""
        over = threading.Event()
        threads = [
            threading.Thread(target=self._repeat, args=(each, work, over))
            for each, work in [
                *((w, w.work) for w in self.writers), *((r, r.follow) for r in (*self.readers, *self.followers)),
                (self.steward, lambda server, token: self.steward.work(server)),
            ]
        ]  # fmt: skip
        for thread in threads:
            thread.start()
        wanted, deadline = self.done + operations, time.monotonic() + PATIENCE
        checked = [reader.checked for reader in self.readers]
        while (
            (self.done < wanted or any(r.checked == n for r, n in zip(self.readers, checked, strict=True)))
            and time.monotonic() < deadline
            and not self.failed
        ):
            time.sleep(0.005)
        over.set()
        said = self.server.kill(number)
        for thread in threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()
        if self.failed:
            raise self.failed[0]
        assert "internal-error" not in said and "Traceback" not in said, said
        self.server.start()

    @property
    def done(self) -> int:
        """How many operations were acknowledged."""
        return sum(writer.done for writer in self.writers)

    def _repeat(
        self, client: Writer | Reader | BoardReader | Steward, work: Callable[..., None], over: threading.Event
    ) -> None:
        while not over.is_set():
            try:
                work(self.server, "" if isinstance(client, Steward) else self.tokens[client.tenant])
                return
            except (*BROKEN, AdminShutdown):
                if isinstance(client, Reader | BoardReader):
                    client.follower.lost()
                elif client.doubtful is not None or (isinstance(client, Writer) and client.unsure):
                    return  # what was not acknowledged is in doubt until somebody looks
                time.sleep(0.01)
            except BaseException as error:
                self.failed.append(error)
                return

    def check(self) -> None:
        """Compare what is there with what the clients know."""
        with self.server.connect("root", "for root") as client:
            rows = client.execute("SELECT owner, id, v FROM t").fetchall()
            for writer in self.writers:
                writer.check(part_of(rows, writer))
                assert {owner for owner, id, _ in rows if id // SPAN == writer.number} <= {writer.tenant}
            expected = Counter(owner for owner, _, _ in rows)
            sums = client.execute("SELECT owner, rows, total FROM sums").fetchall()
            assert sorted(sums) == sorted((owner, many, 0) for owner, many in expected.items())
            for key, n in client.execute("SELECT k, n FROM counters").fetchall():
                least = self.counted[key] + sum(writer.increments[key] for writer in self.writers)
                assert least <= n <= least + sum(writer.unsure[key] for writer in self.writers)
                self.counted[key] = n
            self.steward.check(self.server, client)
        for writer in self.writers:
            writer.increments.clear()
            writer.unsure.clear()

    def finish(self) -> None:
        """Each subscription comes to what is there."""
        for reader in self.readers:
            wanted = Counter((reader.tenant, *row) for writer in reader.writers for row in writer.there)
            reader.wanted = wanted
            over = threading.Event()
            thread = threading.Thread(target=self._repeat, args=(reader, reader.follow, over))
            thread.start()
            thread.join(PATIENCE)
            reader.stop = True
            over.set()
            thread.join(PATIENCE)
            if self.failed:
                raise self.failed[0]
            assert +reader.follower.rows == wanted


def run(seed: int, storage: Path, rounds: int, many: int = 1) -> Schedule:
    chance = random.Random(seed)
    with server_process(storage) as server:
        schedule = Schedule(server, chance)
        schedule.set_up(seed, many)
        for at in range(rounds):
            schedule.run(chance.randrange(30, 200) * many, signal.SIGTERM if at == rounds - 1 else signal.SIGKILL)
            schedule.check()
        schedule.finish()
        return schedule


@pytest.mark.slow
def test_random_schedules_of_clients_and_kills(tmp_path: Path) -> None:
    """One schedule of three kills. TEKTITE_SCHEDULES says how many more, of ten kills each."""
    done = run(1, tmp_path / "1", 3)
    assert done.done > 90 and sum(reader.checked for reader in done.readers) > 3
    assert done.steward.done > 3 and sum(reader.checked for reader in done.followers) > 3
    for seed in range(2, 2 + size("TEKTITE_SCHEDULES", 0)):
        run(seed, tmp_path / str(seed), 10)


@pytest.mark.nightly
@pytest.mark.parametrize("number", range(4))
def test_random_schedules_of_tens_of_clients(number: int, tmp_path: Path) -> None:
    """Forty-six connections, with another seed each day."""
    done = run(SEED + number, tmp_path / "s", 4, many=3)
    assert sum(reader.checked for reader in done.followers) > 10
