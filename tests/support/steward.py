"""A client that changes who may read what, and clients that follow what they may read, for tests of random schedules.

The steward alone writes `board` and what decides about it: whom its policies let read which topics, and who has the grant. Each
of its statements is an epoch. So a reader has to see, at each complete time, what it may read after one of the statements, in
their order; and nothing, or an error, while it has no grant.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import psycopg
from psycopg.errors import InsufficientPrivilege

from tests.support.server_process import ServerProcess
from tests.support.wire import Follower, JsonClient, json_client

AGAIN = "subscribe again"
"""What a reader is told whose query nobody who asks it may read while a policy changes."""
TOPICS = 4
ROWS = 12
SETUP = """
CREATE TABLE board (k int PRIMARY KEY, topic int, v int);
CREATE TABLE follows (who text, topic int, PRIMARY KEY (who, topic));
ALTER TABLE board ENABLE ROW LEVEL SECURITY;
CREATE POLICY followed ON board USING (topic IN (SELECT topic FROM follows WHERE who = current_user));
PREPARE about(int) AS SELECT k, topic, v FROM board WHERE topic = $1
"""
OPEN = "CREATE POLICY open ON board USING (v % 2 = 0)"
Row = tuple[int, int, int]


class BoardState(NamedTuple):
    """The rows, and who may read which."""

    rows: frozenset[Row] = frozenset()
    follows: frozenset[tuple[str, int]] = frozenset()
    granted: frozenset[str] = frozenset()
    is_open: bool = False
    """Whether everybody may read rows with an even value."""

    def seen_by(self, tenant: str) -> frozenset[Row] | None:
        """What a tenant may read; None without the grant."""
        if tenant not in self.granted:
            return None
        return frozenset(r for r in self.rows if (tenant, r[1]) in self.follows or (self.is_open and r[2] % 2 == 0))


@dataclass
class Steward:
    """The one client that writes, and what it knows."""

    tenants: Sequence[str]
    chance: random.Random
    states: list[BoardState] = field(default_factory=lambda: [BoardState()])
    """What was after each statement that was tried, in order; some have not happened."""
    there: BoardState = field(default_factory=BoardState)
    known: int = 0
    """The place among the states of what was acknowledged."""
    doubtful: BoardState | None = None
    done: int = 0

    def set_up(self, client: psycopg.Connection[Any]) -> None:
        client.execute(SETUP)
        for tenant in self.tenants:
            client.execute(f"GRANT SELECT ON follows TO {tenant}")

    def work(self, server: ServerProcess) -> None:
        """Do something again and again, until the connection breaks."""
        with server.connect("root", "for root") as client:
            while True:
                self.step(client)
                self.done += 1

    def step(self, client: psycopg.Connection[Any]) -> None:
        """One statement."""
        now, chance = self.there, self.chance
        kind, tenant = chance.choice("iiiuudffgo"), chance.choice(self.tenants)
        keys = {k: (k, topic, v) for k, topic, v in now.rows}
        if kind == "i" and len(keys) < ROWS:
            new = [
                (k, chance.randrange(TOPICS), chance.randrange(100))
                for k in chance.sample(range(ROWS), 3)
                if k not in keys
            ]
            text = f"INSERT INTO board VALUES {', '.join(map(str, new))}" if new else "SELECT 1"
            after = now._replace(rows=now.rows | set(new))
        elif kind == "u":  # rows change their topics, and so their readers
            moved = {(k, (topic + 1) % TOPICS, v + 1) for k, topic, v in now.rows if k % 3 == 0}
            text = f"UPDATE board SET topic = (topic + 1) % {TOPICS}, v = v + 1 WHERE k % 3 = 0"
            after = now._replace(rows=frozenset(r for r in now.rows if r[0] % 3) | moved)
        elif kind == "d":
            text, after = (
                "DELETE FROM board WHERE k % 4 = 1",
                now._replace(rows=frozenset(r for r in now.rows if r[0] % 4 != 1)),
            )
        elif kind == "f":
            one = (tenant, chance.randrange(TOPICS))
            text = f"INSERT INTO follows VALUES {one}"
            if one in now.follows:
                text = f"DELETE FROM follows WHERE who = '{one[0]}' AND topic = {one[1]}"
            after = now._replace(follows=now.follows ^ {one})
        elif kind == "g":
            text = (
                f"REVOKE SELECT ON board FROM {tenant}"
                if tenant in now.granted
                else f"GRANT SELECT ON board TO {tenant}"
            )
            after = now._replace(granted=now.granted ^ {tenant})
        elif kind == "o":
            text, after = "DROP POLICY open ON board" if now.is_open else OPEN, now._replace(is_open=not now.is_open)
        else:
            return
        self.try_out(client, text, after)

    def try_out(self, client: psycopg.Connection[Any], text: str, after: BoardState) -> None:
        """A statement, and what is after it."""
        self.doubtful = after
        self.states.append(after)
        client.execute(text)
        self.settled(after)

    def settled(self, state: BoardState) -> None:
        """It is known what is there."""
        self.there, self.doubtful = state, None
        self.states.append(state)
        self.known = len(self.states) - 1

    def check(self, server: ServerProcess, client: psycopg.Connection[Any]) -> None:
        """What there is after a restart is what was acknowledged, with or without the statement that was not."""
        rows = frozenset(client.execute("SELECT k, topic, v FROM board").fetchall())
        follows = frozenset(client.execute("SELECT who, topic FROM follows").fetchall())
        seen = {tenant: self._seen(server, tenant) for tenant in self.tenants}
        possible = [state for state in (self.there, self.doubtful) if state is not None]
        fitting = [
            state for state in possible
            if (rows, follows) == state[:2] and all(state.seen_by(tenant) == seen[tenant] for tenant in self.tenants)
        ]  # fmt: skip
        assert fitting, (rows, follows, seen, possible)
        state = fitting[0]
        if state.is_open != (self.doubtful or state).is_open:  # nobody can tell, if no row is even
            client.execute("DROP POLICY IF EXISTS open ON board")
            self.settled(state._replace(is_open=False))
            return
        self.settled(state)

    @staticmethod
    def _seen(server: ServerProcess, tenant: str) -> frozenset[Row] | None:
        with server.connect(tenant, f"for {tenant}") as client:
            try:
                return frozenset(client.execute("SELECT k, topic, v FROM board").fetchall())
            except InsufficientPrivilege:
                return None

    def check_read(self, tenant: str, since: int, found: frozenset[Row] | None, topic: int) -> None:
        """An answer about one topic is what a tenant may read after one of the statements since a place among the states."""
        possible = [state.seen_by(tenant) for state in self.states[since:]]
        wanted = [None if rows is None else frozenset(r for r in rows if r[1] == topic) for rows in possible]
        assert found in wanted, (tenant, topic, found, wanted)


@dataclass
class BoardReader:
    """One client that follows what it may read of the board, and adds up."""

    tenant: str
    steward: Steward
    chance: random.Random
    is_postgres: bool
    follower: Follower = field(default_factory=Follower)
    lineage: str | None = None
    place: int = 0
    checked: int = 0
    denied: int = 0
    stop: bool = False

    def follow(self, server: ServerProcess, token: str) -> None:
        """Follow until the connection breaks."""
        if self.is_postgres:
            self.by_postgres(server)
        else:
            self.by_socket(server, token)

    def refused(self) -> None:
        """It was told that it has no grant."""
        assert any(state.seen_by(self.tenant) is None for state in self.steward.states[self.place :]), (
            "refused, with a grant"
        )
        self.denied += 1
        raise ConnectionError  # to try again a little later

    def by_postgres(self, server: ServerProcess) -> None:
        rows, at = Counter[Row](), None
        with server.connect(self.tenant, f"for {self.tenant}") as client:
            try:
                for k, topic, v, time, diff in client.cursor().stream("SUBSCRIBE (SELECT k, topic, v FROM board)"):
                    if at is not None and time != at:
                        assert time > at
                        self.look(rows)
                    rows[(k, topic, v)] += diff
                    at = time
                    if self.chance.random() < 0.01:
                        raise ConnectionError
            except InsufficientPrivilege:
                self.refused()
            except psycopg.Error as error:
                if AGAIN not in str(error):
                    raise
                raise ConnectionError from error

    def by_socket(self, server: ServerProcess, token: str) -> None:
        with json_client(server, Authorization=f"Bearer {token}") as client:
            self.subscribe(client)
            while not self.stop:
                try:
                    self.take(client.push(0.1))
                except TimeoutError:
                    continue
                if self.chance.random() < 0.02:
                    raise ConnectionError

    def subscribe(self, client: JsonClient) -> None:
        """Go on behind what was told completely, or begin anew."""
        query: dict[str, Any] = {"subscription": 1, "sql": "SELECT k, topic, v FROM board"}
        since = (
            {"since": self.follower.told, "snapshot": False, "lineage": self.lineage} if self.follower.told >= 0 else {}
        )
        answer = client.ask("interest", **query, **since)
        if answer.get("error", {}).get("code") == "history-gone":
            self.follower = Follower()
            answer = client.ask("interest", **query)
        self.look_for_errors(answer)
        self.lineage = answer["lineage"]

    def look_for_errors(self, message: dict[str, Any]) -> None:
        error = message.get("error")
        if error is None:
            return
        if "the server stops" in error["message"]:
            raise ConnectionError
        if AGAIN in error["message"]:
            self.follower = Follower()
            raise ConnectionError
        if "permission" in error["message"] or "may not" in error["message"]:
            self.refused()
        raise AssertionError(message)

    def take(self, message: dict[str, Any]) -> None:
        self.look_for_errors(message)
        self.follower.take(message)
        if "progress" in message:
            self.look(self.follower.rows)

    def look(self, rows: Counter[Row]) -> None:
        """What was told up to a complete time is what it may read after one of the steward's statements."""
        assert all(n in (0, 1) for n in rows.values()), "a change was lost, or told twice"
        found = frozenset(row for row, n in rows.items() if n)
        states = self.steward.states
        place = next(
            (n for n in range(self.place, len(states)) if (states[n].seen_by(self.tenant) or frozenset()) == found),
            None,
        )
        assert place is not None, (
            "rows that it may not read, or that are gone",
            self.tenant,
            found,
            states[self.place :],
        )
        self.place = place
        self.checked += 1
