"""Transactions of many clients, over both protocols, and what subscriptions tell, are strictly serialisable."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest

import tektite as tk
from tests.support.histories import Observed, Violation, check
from tests.support.patience import PATIENCE
from tests.support.server import RunningServer, running_server

KEYS = 6


class Recorder:
    """Runs clients, and notes what they know."""

    def __init__(self, served: RunningServer, seed: int, transactions: int) -> None:
        self.served = served
        self.history: list[Observed] = []
        self.failed: set[int] = set()
        self.refused = 0
        self._seed = seed
        self._transactions = transactions
        self._values = count(1000)
        self._errors: list[BaseException] = []
        self._first_reads = threading.Barrier(1)

    def run(self, postgres: int, wire: int, subscribers: int) -> None:
        self._first_reads = threading.Barrier(postgres + wire)
        writers = [threading.Thread(target=self._safely, args=(self._postgres, n)) for n in range(postgres)]
        writers += [threading.Thread(target=self._safely, args=(self._wire, 100 + n)) for n in range(wire)]
        over = threading.Event()
        readers = [
            threading.Thread(target=self._safely, args=(self._follow, 200 + n, over)) for n in range(subscribers)
        ]
        for thread in readers + writers:
            thread.start()
        for thread in writers:
            thread.join(5 * PATIENCE)
        over.set()
        for thread in readers:
            thread.join(PATIENCE)
        assert not any(thread.is_alive() for thread in readers + writers)
        if self._errors:
            raise self._errors[0]

    def _safely(self, function: Callable[..., None], *given: Any) -> None:
        try:
            function(*given)
        except BaseException as error:
            self._errors.append(error)

    # ------------------------------------------------------------------ transactions

    def _postgres(self, number: int) -> None:
        with psycopg.connect(self.served.conninfo(), autocommit=True) as client:

            def run(text: str) -> list[tuple[Any, ...]]:
                cursor = client.execute(text, prepare=self._seed % 2 == 0)
                return cursor.fetchall() if cursor.description else []

            self._transact(number, run, lambda: client.transaction(), psycopg.errors.SerializationFailure)

    def _wire(self, number: int) -> None:
        with tk.connect(self.served.web_url) as session:
            self._transact(number, lambda text: session.sql(text).rows(), session.transaction, tk.TransactionConflict)

    def _transact(self, number: int, run: Any, block: Any, conflict: type[Exception]) -> None:
        chance = random.Random(f"{self._seed} {number}")
        for at in range(self._transactions):
            one = Observed(f"client {number}, transaction {at}", time.monotonic(), None)
            keys = chance.sample(range(KEYS), chance.randrange(1, 4)) if at else [0]
            if at and chance.random() < 0.3:  # one statement, which only reads
                one.reads = dict(
                    run(f"SELECT k, v FROM {chance.choice(['r', 'copies'])} WHERE k IN ({', '.join(map(str, keys))})")
                )
                one.ended = time.monotonic()
                self.history.append(one)
                continue
            changed = chance.sample(keys, chance.randrange(0, len(keys) + 1)) if at else keys
            written = {key: next(self._values) for key in changed}
            try:
                with block():
                    for key in keys:
                        one.reads |= dict(run(f"SELECT k, v FROM {chance.choice(['r', 'copies'])} WHERE k = {key}"))
                        if chance.random() < 0.2:
                            time.sleep(chance.random() * 0.003)
                    if not at:  # all but one of them are refused
                        self._first_reads.wait(PATIENCE)
                    for key, value in written.items():
                        run(f"UPDATE r SET v = {value} WHERE k = {key}")
                        assert run(f"SELECT v FROM r WHERE k = {key}") == [(value,)]
            except conflict:
                self.failed |= set(written.values())
                self.refused += 1
                continue
            one.ended = time.monotonic()
            one.writes = written
            self.history.append(one)

    # ------------------------------------------------------------------ subscriptions

    def _follow(self, number: int, over: threading.Event) -> None:
        held: dict[int, int] = {}
        last: str | None = None
        with tk.connect(self.served.web_url) as session:
            view = session.view("copies")
            with view.subscribe(granularity=None if number % 2 else 3) as changes:
                for at in count():
                    is_over = over.is_set()
                    delta = changes.poll(0 if is_over else 0.2)  # in the end, all that the server has
                    if delta is None:
                        if is_over:
                            return
                        continue
                    for row in sorted(delta.table.to_pylist(), key=lambda row: row["diff"]):
                        if row["diff"] < 0:
                            assert held.pop(row["k"]) == row["v"]
                        else:
                            assert row["k"] not in held
                            held[row["k"]] = row["v"]
                    one = Observed(
                        f"subscriber {number}, time {delta.time}, {at}", None, time.monotonic(), dict(held), {}, last
                    )
                    self.history.append(one)
                    last = one.name


def observed(seed: int, transactions: int, clients: int, storage: Path | None = None, **plan: Any) -> Recorder:
    with ExitStack() as stack:
        served = stack.enter_context(running_server(storage=storage, **plan))
        with psycopg.connect(served.conninfo(), autocommit=True) as client:
            client.execute("CREATE TABLE r (k int PRIMARY KEY, v int)")
            client.execute("CREATE MATERIALIZED VIEW copies AS SELECT k, v FROM r")
            client.execute("INSERT INTO r VALUES " + ", ".join(f"({key}, {key})" for key in range(KEYS)))
        recorder = Recorder(served, seed, transactions)
        recorder.run(clients, clients, 3)
        return recorder


def test_hundreds_of_transactions_and_subscriptions_are_strictly_serialisable(tmp_path: Path) -> None:
    for seed, storage in ((1, None), (2, tmp_path / "s")):
        recorder = observed(seed, 40, 4, storage)
        assert len(recorder.history) > 150 and recorder.refused
        assert sum(one.name.startswith("subscriber") for one in recorder.history) > 20
        check(recorder.history, {key: key for key in range(KEYS)}, recorder.failed)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(8))
def test_thousands_of_transactions_and_subscriptions_are_strictly_serialisable(seed: int, tmp_path: Path) -> None:
    from tektite.server.epochs import EpochPolicy

    epochs = EpochPolicy.parse("2 ms" if seed % 3 == 2 else "commit")
    recorder = observed(seed, 200, 8, tmp_path / "s" if seed % 2 else None, epochs=epochs)
    check(recorder.history, {key: key for key in range(KEYS)}, recorder.failed)


# ---------------------------------------------------------------------- the checker itself


def seen(
    name: str, begun: float, ended: float, reads: dict[int, int], writes: dict[int, int] | None = None
) -> Observed:
    return Observed(name, begun, ended, reads, writes or {})


@pytest.mark.parametrize(
    ("history", "message"),
    [
        ([seen("a", 0, 1, {1: 0}, {1: 5}), seen("b", 0, 1, {1: 0}, {1: 6})], "lost update"),
        ([seen("a", 0, 1, {1: 0, 2: 0}, {1: 5}), seen("b", 0, 1, {1: 0, 2: 0}, {2: 6})], "cycle"),  # write skew
        ([seen("a", 0, 1, {1: 0}, {1: 5}), seen("b", 2, 3, {1: 0})], "cycle"),  # a stale read
        (
            [seen("a", 0, 1, {1: 0, 2: 0}, {1: 5, 2: 6}), seen("b", 0, 1, {1: 5, 2: 0})],
            "cycle",
        ),  # half of a transaction
        ([seen("a", 0, 1, {1: 99})], "refused"),
        ([seen("a", 0, 1, {1: 77})], "nobody wrote"),
    ],
)
def test_the_checker_finds_what_is_wrong(history: list[Observed], message: str) -> None:
    with pytest.raises(Violation, match=message):
        check(history, {1: 0, 2: 0}, {99})


def test_the_checker_accepts_what_is_right() -> None:
    first, second = seen("a", 0, 5, {1: 0, 2: 0}, {1: 5}), seen("b", 1, 4, {1: 0, 2: 0})
    unknown = Observed("c", 2, None, {1: 5}, {1: 6})
    check([first, second, unknown], {1: 0, 2: 0}, set())
    check([first, second, unknown, seen("d", 6, 7, {1: 6})], {1: 0, 2: 0}, set())
