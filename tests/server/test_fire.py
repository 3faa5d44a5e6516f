"""Clients of both protocols write and follow while the server is killed and started again: what was acknowledged is there,
nothing twice, and what each subscription has told adds up.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
from websockets.exceptions import WebSocketException

from tests.support.wire import Follower, JsonClient, json_client

BROKEN = (psycopg.OperationalError, WebSocketException, OSError, EOFError)
"""What a client sees of a server that dies."""


@dataclass
class ServerProcess:
    """A server in a process of its own."""

    storage: Path
    port: int
    http_port: int
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        options = ["--storage", str(self.storage), "--port", str(self.port), "--http-port", str(self.http_port)]
        self.process = subprocess.Popen([sys.executable, "-m", "tektite", "serve", *options], stderr=subprocess.PIPE)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.process.stderr.read() if self.process.stderr else ""
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.http_port}/ready", timeout=5):
                    return
            except OSError:
                time.sleep(0.05)
        raise AssertionError("the server does not become ready")

    def kill(self, number: int = signal.SIGKILL) -> str:
        assert self.process is not None
        os.kill(self.process.pid, number)
        _, said = self.process.communicate(timeout=60)
        return said.decode()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@dataclass
class Writer:
    """One client, and what it knows of its rows."""

    number: int
    chance: random.Random
    there: set[int] = field(default_factory=set)
    """Rows whose insertion was acknowledged, without those whose removal was."""
    doubtful: tuple[set[int], set[int]] = field(default_factory=lambda: (set(), set()))
    """Rows to come and to go by an operation that was not acknowledged."""
    count: int = 0
    done: int = 0

    def plan(self) -> tuple[list[int], list[int]]:
        """What comes and what goes next."""
        new = [self.count + at for at in range(self.chance.randrange(0, 4))]
        gone = self.chance.sample(sorted(self.there), min(len(self.there), self.chance.randrange(0, 3)))
        self.count += len(new)
        return new, gone

    def postgres(self, server: ServerProcess) -> None:
        with psycopg.connect(host="127.0.0.1", port=server.port, user="a", dbname="tektite", autocommit=True) as client:
            while True:
                new, gone = self.plan()
                self.doubtful = {*new}, {*gone}
                with client.transaction():
                    for row in new:
                        client.execute("INSERT INTO t VALUES (%s, %s)", (self.number, row))
                    for row in gone:
                        client.execute("DELETE FROM t WHERE who = %s AND n = %s", (self.number, row))
                self.acknowledged()

    def wire(self, server: ServerProcess) -> None:
        with json_client(server) as client:
            while True:
                new, gone = self.plan()
                self.doubtful = {*new}, {*gone}
                if self.chance.random() < 0.5:
                    self._ask(client, "begin")
                    self._ask(client, "insert", table="t", rows=[[self.number, row] for row in new])
                    self._ask(client, "remove", table="t", rows=[[self.number, row] for row in gone])
                    self._ask(client, "commit")
                else:
                    self.doubtful = {*new}, set()
                    self._ask(client, "insert", table="t", rows=[[self.number, row] for row in new])
                self.acknowledged()
                if self.chance.random() < 0.05:  # it goes in the middle of a message
                    client.socket.socket.sendall(b"\x81\xfe\x10\x00\0\0\0\0half of")
                    raise ConnectionError

    @staticmethod
    def _ask(client: JsonClient, request: str, **fields: Any) -> None:
        answer = client.ask(request, **fields)
        if "the server stops" in answer.get("error", {}).get("message", ""):
            raise ConnectionError
        assert "error" not in answer, answer

    def acknowledged(self) -> None:
        new, gone = self.doubtful
        self.there = (self.there | new) - gone
        self.doubtful = set(), set()
        self.done += 1

    def check(self, found: Counter[int]) -> None:
        """Its rows are those that were acknowledged, with or without what was not."""
        assert not found or max(found.values()) == 1, "a row is there twice"
        new, gone = self.doubtful
        assert {*found} in (self.there, (self.there | new) - gone), (self.number, self.there ^ {*found}, self.doubtful)
        self.there, self.doubtful = {*found}, (set(), set())


@dataclass
class Reader:
    """One client that follows, and adds up."""

    name: str
    follower: Follower = field(default_factory=Follower)
    lineage: str | None = None
    again: int = 0
    """How often it had to begin anew."""
    stop: bool = False

    def follow(self, server: ServerProcess) -> None:
        with json_client(server) as client:
            since: dict[str, Any] = {"since": self.follower.told, "snapshot": False, "lineage": self.lineage}
            answer = client.ask(
                "interest", subscription=1, name=self.name, **(since if self.follower.told >= 0 else {})
            )
            if answer.get("error", {}).get("code") == "history-gone":
                self.follower, self.again = Follower(), self.again + 1
                answer = client.ask("interest", subscription=1, name=self.name)
            self.lineage = answer["lineage"]
            while not self.stop:
                try:
                    self.follower.take(client.push(0.1))
                except TimeoutError:
                    continue
                assert all(n in (0, 1) for n in self.follower.rows.values()), "a change was lost, or told twice"


def until_broken(work: Any, server: ServerProcess, failed: list[BaseException], over: threading.Event) -> None:
    while not over.is_set():
        try:
            work(server)
            return
        except BROKEN:
            time.sleep(0.01)
        except BaseException as error:
            failed.append(error)
            return


def run(seed: int, storage: Path, rounds: int) -> None:
    chance = random.Random(seed)
    server = ServerProcess(storage, free_port(), free_port())
    writers = [Writer(number, random.Random(f"{seed} {number}")) for number in range(4)]
    readers = [Reader("t"), Reader("per_client")]
    try:
        server.start()
        with json_client(server) as client:
            client.ask("sql", text="CREATE TABLE t (who int, n int)")
            client.ask(
                "create-view",
                name="per_client",
                query="SELECT who, count(*) AS rows, sum(n) AS total FROM t GROUP BY who",
            )
        for at in range(rounds):
            over, failed = threading.Event(), list[BaseException]()
            threads = []
            for number, writer in enumerate(writers):
                work = writer.postgres if number % 2 else writer.wire
                threads.append(threading.Thread(target=until_once_broken, args=(work, server, failed)))
            threads += [
                threading.Thread(target=until_broken, args=(each.follow, server, failed, over)) for each in readers
            ]
            for thread in threads:
                thread.start()
            time.sleep(0.3 + chance.random())
            is_last = at == rounds - 1
            said = server.kill(signal.SIGTERM if is_last else signal.SIGKILL)
            over.set()
            for thread in threads:
                thread.join(60)
            for each in readers:
                each.follower.lost()
            assert not failed, failed
            assert "internal-error" not in said and "Traceback" not in said, said
            server.start()
            with json_client(server) as client:
                rows = client.rows("rows", relation="t")
                for writer in writers:
                    writer.check(Counter(n for who, n in rows if who == writer.number))
                expected = Counter(
                    (w.number, len(w.there), sum(w.there)) for w in writers if w.there
                )  # fmt: skip
                assert Counter(map(tuple, client.rows("rows", relation="per_client"))) == expected
        assert all(writer.done > 5 for writer in writers)
        for each, contents in zip(
            readers, [Counter((w.number, n) for w in writers for n in w.there), expected], strict=True
        ):
            follow = threading.Thread(target=each.follow, args=(server,))
            follow.start()
            deadline = time.monotonic() + 30
            while +each.follower.rows != contents and time.monotonic() < deadline:
                time.sleep(0.02)
            each.stop = True
            follow.join(30)
            assert +each.follower.rows == contents
    finally:
        if server.process is not None and server.process.poll() is None:
            server.process.kill()
            server.process.communicate()


def until_once_broken(work: Any, server: ServerProcess, failed: list[BaseException]) -> None:
    """Work until the connection breaks: what was not acknowledged then is in doubt until somebody looks."""
    try:
        work(server)
    except BROKEN:
        return
    except BaseException as error:
        failed.append(error)


@pytest.mark.slow
def test_what_was_acknowledged_survives_kills(tmp_path: Path) -> None:
    run(1, tmp_path / "s", 3)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(2, 8))
def test_what_was_acknowledged_survives_many_kills(seed: int, tmp_path: Path) -> None:
    run(seed, tmp_path / "s", 10)
