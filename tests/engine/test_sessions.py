"""Sessions and transactions: what belongs to one user, what others see of it, and when."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import tektite as tk
from tektite.engine.lock import EngineLock
from tests.support.executors import make_engine
from tests.support.patience import until
from tests.support.row_changes import row_changes

pytestmark = pytest.mark.executors("stages", spark=["test_a_transaction_of_python_sql_and_datalog_is_one_epoch"])


def bank() -> tuple[tk.Engine, tk.Table, tk.View]:
    engine = make_engine()
    accounts = engine.create_table(
        "accounts", {"name": tk.String, "balance": tk.Int}, mode="upsert", primary_key="name"
    )
    accounts.insert([("ann", 10), ("bob", 10)])
    engine.advance()
    return engine, accounts, engine.install("all", accounts)


def test_a_transaction_of_python_sql_and_datalog_is_one_epoch() -> None:
    engine = make_engine()
    orders = engine.create_table("orders", {"k": tk.Int})
    engine.sql("CREATE TABLE lines (k int, n int)")
    engine.attribute("knows", tk.Int)
    views = [engine.install(f"v {name}", engine.table(name)) for name in ("orders", "lines", "knows")]
    engine.advance()
    before = engine.next_epoch
    with engine.transaction() as tx:
        orders.insert([(1,)])
        engine.sql("INSERT INTO lines VALUES (1, 2)")
        engine.transact([(7, "knows", 8)])
        assert [view.rows() for view in views] == [[], [], []]
    assert engine.next_epoch == before + 1 == tx.time + 1  # type: ignore[operator]
    assert [view.rows(at=tx.time) for view in views] == [[(1,)], [(1, 2)], [(7, 8)]]


def test_a_block_that_raises_writes_nothing() -> None:
    engine, accounts, view = bank()
    with pytest.raises(ZeroDivisionError), engine.transaction():
        accounts.insert([("ann", 0)])
        raise ZeroDivisionError
    assert accounts.pending == 0 and sorted(view.rows()) == [("ann", 10), ("bob", 10)]
    with engine.transaction() as tx:
        accounts.insert([("ann", 0)])
        tx.rollback()
    assert sorted(view.rows()) == [("ann", 10), ("bob", 10)]
    with pytest.raises(tk.ConflictError, match="the transaction is over"):
        tx.commit()


def test_advance_takes_no_transaction_along_and_a_transaction_takes_no_pending_rows_along() -> None:
    engine, accounts, view = bank()
    other = engine.session()
    with other.transaction():
        accounts.insert([("cat", 1)])
        with engine.session():  # somebody else
            accounts.insert([("dog", 2)])
            assert accounts.pending == 1
            engine.advance()
        assert sorted(view.rows()) == [("ann", 10), ("bob", 10), ("dog", 2)]
        with engine.session():
            accounts.insert([("eel", 3)])
    assert sorted(view.rows()) == [("ann", 10), ("bob", 10), ("cat", 1), ("dog", 2)]
    assert accounts.pending == 1
    engine.advance()
    assert ("eel", 3) in view.rows()


def test_sessions_do_not_meet() -> None:
    engine = make_engine()
    engine.sql("CREATE TABLE t (x int)")
    a, b = engine.session(), engine.session()
    a.sql("BEGIN; INSERT INTO t VALUES (1)")
    b.sql("INSERT INTO t VALUES (2)")
    assert b.sql("SELECT x FROM t").rows() == [(2,)]
    assert a.sql("SELECT x FROM t").rows() == [(1,)]
    a.sql("ROLLBACK")
    assert a.sql("SELECT x FROM t").rows() == b.sql("SELECT x FROM t").rows() == [(2,)]


def test_each_thread_has_a_session_of_its_own() -> None:
    engine = make_engine()
    engine.sql("CREATE TABLE t (x int)")
    begun, written = threading.Event(), threading.Event()
    found: list[Any] = []

    def first() -> None:
        engine.sql("BEGIN; INSERT INTO t VALUES (1)")
        begun.set()
        written.wait(60)
        found.append(sorted(engine.sql("SELECT x FROM t").rows()))
        engine.sql("ROLLBACK")

    thread = threading.Thread(target=first)
    thread.start()
    assert begun.wait(60)
    engine.sql("INSERT INTO t VALUES (2)")
    found.append(engine.sql("SELECT x FROM t").rows())
    written.set()
    thread.join()
    assert found == [[(2,)], [(1,)]]
    assert engine.sql("SELECT x FROM t").rows() == [(2,)]


def test_each_task_may_have_a_transaction_of_its_own() -> None:
    engine, accounts, view = bank()

    async def move(name: str, balance: int, before: asyncio.Event, after: asyncio.Event) -> int | None:
        with engine.session().transaction() as tx:
            accounts.insert([(name, balance)])
            after.set()
            await before.wait()
            accounts.insert([(f"{name}'s", balance)])
        return tx.time

    async def both() -> list[int | None]:
        one, two = asyncio.Event(), asyncio.Event()
        return await asyncio.gather(move("cat", 1, two, one), move("dog", 2, one, two))

    times = asyncio.run(both())
    assert len(set(times)) == 2
    assert set(view.rows()) >= {("cat", 1), ("cat's", 1), ("dog", 2), ("dog's", 2)}


def test_a_transaction_reads_what_was_there_when_it_began() -> None:
    engine, accounts, _ = bank()
    total = "SELECT sum(balance) FROM accounts"
    engine.sql(f"CREATE MATERIALIZED VIEW total AS {total}")
    reader, writer = engine.session(), engine.session()
    reader.sql("BEGIN")
    for n in range(1, 4):
        writer.sql(f"UPDATE accounts SET balance = balance + 1; INSERT INTO accounts VALUES ('{n}', 5)")
        engine.idle()
        assert reader.sql(total).rows() == reader.sql("SELECT * FROM total").rows() == [(20,)]
        assert reader.sql("SELECT a.name FROM accounts a JOIN accounts b ON a.balance = b.balance").table.num_rows == 4
    reader.sql("INSERT INTO accounts VALUES ('zoe', 100)")
    assert reader.sql(total).rows() == reader.sql("SELECT * FROM total").rows() == [(120,)]
    assert writer.sql(total).rows() == [(44,)]
    reader.sql("COMMIT")
    assert reader.sql(total).rows() == [(144,)]


@pytest.mark.parametrize("semantics", ["upsert", "bag"])
def test_the_first_to_commit_wins(semantics: str) -> None:
    engine = make_engine()
    key = {"primary_key" if semantics == "upsert" else "order_by": "k"}
    table = engine.create_table("t", {"k": tk.Int, "v": tk.Int}, mode=semantics, **key)
    table.insert([(1, 0), (2, 0)])
    engine.advance()
    view = engine.install("all", table)
    one, two, three = (engine.session() for _ in range(3))
    for session, k in ((one, 1), (two, 1), (three, 2)):
        session.sql(f"BEGIN; UPDATE t SET v = v + 1 WHERE k = {k}")
    one.sql("COMMIT")
    with pytest.raises(tk.TransactionConflict, match="run it again") as found:
        two.sql("COMMIT")
    assert found.value.retryable
    three.sql("COMMIT")  # of another row
    assert sorted(view.rows()) == [(1, 1), (2, 1)]
    two.sql("UPDATE t SET v = v + 1 WHERE k = 1")
    assert sorted(view.rows()) == [(1, 2), (2, 1)]


def test_a_transaction_can_be_repeated_until_it_succeeds() -> None:
    engine, accounts, view = bank()

    def add() -> None:
        for _ in range(20):
            while True:
                try:
                    with engine.transaction():
                        engine.sql("UPDATE accounts SET balance = balance + 1 WHERE name = 'ann'")
                    break
                except tk.TransactionConflict:
                    continue

    threads = [threading.Thread(target=add) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(view.rows()) == [("ann", 70), ("bob", 10)]


def test_a_stack_of_blocks_holds_transactions_too() -> None:
    engine = make_engine()
    table = engine.create_table("t", {"x": tk.Int})
    with ExitStack() as stack:
        transaction = stack.enter_context(engine.transaction())
        table.insert([(1,)])
    assert not transaction.is_open and table.rows() == [(1,)]
    with pytest.raises(ZeroDivisionError), ExitStack() as stack:
        stack.enter_context(engine.transaction())
        table.insert([(2,)])
        raise ZeroDivisionError
    assert table.rows() == [(1,)]


def test_what_makes_no_sense_in_a_transaction_is_refused() -> None:
    engine, accounts, _ = bank()
    with engine.transaction():
        with pytest.raises(tk.ConflictError, match="a transaction is open"):
            engine.advance()
        with pytest.raises(tk.IncorrectError, match="leave out the time"):
            accounts.insert([("x", 1)], time=9)
        with pytest.raises(tk.ConflictError, match="open in this session already"), engine.transaction():
            pass
        with pytest.raises(tk.IncorrectError):
            accounts.insert([("x", "y")])
        accounts.insert([("x", 1)])
    assert engine.sql("SELECT balance FROM accounts WHERE name = 'x'").rows() == [(1,)]


def test_a_commit_says_when_it_can_be_read() -> None:
    engine, accounts, view = bank()
    accounts.insert([("cat", 1)])
    time = engine.advance()
    accounts.insert([("cat", 2)])
    with engine.hold(view, at=time):
        later = engine.advance()
        assert ("cat", 1) in view.rows(at=time) and ("cat", 2) in view.rows(at=later)


def test_a_forgotten_transaction_holds_no_history() -> None:
    engine, accounts, view = bank()
    threading.Thread(target=lambda: engine.sql("BEGIN")).start()
    engine.session().begin()
    for n in range(3):
        accounts.insert([("ann", n)])
        engine.advance()
    assert {info.first for info in engine.indexes(accounts)} == {engine.next_epoch - 1}


@pytest.mark.parametrize("seed", range(4))
def test_random_transactions_are_isolated(seed: int, tmp_path: Path) -> None:
    """Sessions begin, read, write and end at random: each read is what a twin that keeps every version answers."""
    chance = random.Random(seed)
    engine = make_engine(chance.choice([1, 2]), storage=tmp_path / "storage")
    bag = engine.create_table("bag", {"k": tk.Int, "v": tk.Int})
    latest = engine.create_table("latest", {"k": tk.Int, "v": tk.Int}, mode="upsert", primary_key="k")
    engine.advance()
    versions: list[tuple[Counter[tuple[int, int]], dict[int, int]]] = [(Counter(), {})]
    sessions = [engine.session() for _ in range(3)]
    work: dict[int, tuple[int, Counter[tuple[int, int]], dict[int, int | None], Counter[tuple[int, int]]]] = {}

    def read(ask: Callable[[str], Any], rows: Counter[tuple[int, int]], kept: dict[int, int]) -> None:
        assert Counter(ask("SELECT k, v FROM bag").rows()) == +rows
        assert dict(ask("SELECT k, v FROM latest").rows()) == kept
        both = Counter((k, v, kept[k]) for (k, v), n in rows.items() for _ in range(n) if k in kept)
        joined = "SELECT bag.k, bag.v, latest.v FROM bag JOIN latest ON bag.k = latest.k"
        assert Counter(ask(joined).rows()) == both

    for _ in range(60):
        place = chance.randrange(3)
        session = sessions[place]
        if place not in work:
            session.begin()
            work[place] = len(versions) - 1, Counter(), {}, Counter()
        begun, added, put, gone = work[place]
        rows, kept = versions[begun]
        seen = rows + added
        seen.subtract(gone)
        now = {k: v for k, v in (kept | put).items() if v is not None}
        action = chance.randrange(5)
        k, v = chance.randrange(4), chance.randrange(100)
        with session:
            if action == 0:
                bag.insert([(k, v)])
                added[k, v] += 1
            elif action == 1 and +seen:
                row = chance.choice(sorted(+seen))
                bag.remove([row])
                gone[row] += 1
            elif action == 2:
                latest.insert([(k, v)])
                put[k] = v
            elif action == 3:
                read(engine.sql, +seen, now)
            else:
                newest, keys = versions[-1]
                clash = any(keys.get(k) != kept.get(k) for k in put)
                after = newest + added
                after.subtract(gone)
                clash = clash or any(n < 0 for n in after.values())
                transaction = session.open_transaction
                assert transaction is not None
                try:
                    transaction.commit()
                except tk.TransactionConflict:
                    pass
                else:
                    assert not clash
                    versions.append((+after, {k: v for k, v in (keys | put).items() if v is not None}))
                del work[place]
    for session in sessions:
        session.close()
    read(engine.sql, *versions[-1])
    engine.close()
    with make_engine(storage=tmp_path / "storage") as engine:
        read(engine.sql, *versions[-1])


def test_a_long_read_lets_others_go_on(executor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one thread waits for a large join, others write and read: it lets them, and goes on when they have."""
    engine = make_engine(**({"turn": 0.0} if executor == "threads" else {}))
    numbers = engine.create_table("numbers", {"k": tk.Int, "v": tk.Int})
    numbers.insert([(n % 40, n) for n in range(80_000)])
    engine.advance()
    small = engine.install("small", numbers.count())
    large = engine.install("large", numbers.join(numbers.rename(w="v"), on="k").count(by="k"))
    assert not large.current or executor != "threads"  # elsewhere it is computed at once
    ended = threading.Event()
    found: list[Any] = []
    epochs = 0
    let_others = EngineLock.let_others

    def let_two(lock: EngineLock) -> None:
        if threading.current_thread() is thread:
            lock.without(lambda: until(lambda: epochs >= 2))
        let_others(lock)

    def read() -> None:
        found.append(sorted(large.rows()))
        ended.set()

    monkeypatch.setattr(EngineLock, "let_others", let_two)
    thread = threading.Thread(target=read)
    thread.start()
    while not ended.is_set():
        numbers.insert([(100 + epochs, 0)])
        engine.advance()
        assert small.rows() == [(80_001 + epochs,)]
        epochs += 1
    thread.join()
    assert epochs > 1 or executor != "threads"
    assert set(found[0]) >= {(k, 2000 * 2000) for k in range(40)}


def test_a_statement_that_was_overtaken_sees_what_overtook_it() -> None:
    """An UPDATE reads for long, and others update the same row meanwhile: none of the changes is lost."""
    engine = make_engine()
    engine.sql("CREATE TABLE numbers (k int, v int); CREATE TABLE total (id int PRIMARY KEY, n int)")
    engine.table("numbers").insert([(n % 40, n) for n in range(6_000)])
    engine.advance()
    engine.sql("INSERT INTO total VALUES (1, 0)")
    slow = "UPDATE total SET n = n + 1 WHERE id <= (SELECT count(*) FROM numbers a JOIN numbers b ON a.k = b.k)"
    thread = threading.Thread(target=lambda: engine.sql(slow))
    thread.start()
    updates = 0
    while thread.is_alive():
        engine.sql("UPDATE total SET n = n + 1 WHERE id = 1")
        updates += 1
    thread.join()
    assert engine.sql("SELECT n FROM total").rows() == [(updates + 1,)]


def test_a_commit_to_an_input_that_has_gone_is_refused_as_a_whole() -> None:
    for end in (lambda table: table.finish(), lambda table: table.engine.drop(table.name)):
        engine = make_engine()
        gone, stays = engine.create_table("gone", {"x": tk.Int}), engine.create_table("stays", {"x": tk.Int})
        view = engine.install("all", stays)
        session = engine.session()
        session.sql("BEGIN; INSERT INTO gone VALUES (1); INSERT INTO stays VALUES (1)")
        end(gone)
        with pytest.raises(tk.ConflictError, match="'gone' was closed or dropped"):
            session.sql("COMMIT")
        assert view.rows() == []
        with engine.transaction(), pytest.raises(tk.ConflictError, match="a transaction is open"):
            stays.advance()


@pytest.mark.parametrize("how", [{"mode": "set"}, {"checked": False}, {}])
def test_updates_of_one_row_do_not_get_lost(how: dict[str, Any]) -> None:
    engine = make_engine()
    table = engine.create_table("t", {"k": tk.Int, "x": tk.Int}, **how)
    table.insert([(1, 5)])
    engine.advance()
    one, two = engine.session(), engine.session()
    one.sql("BEGIN; UPDATE t SET x = x + 1")
    two.sql("BEGIN; UPDATE t SET x = 5 WHERE k = 1")  # changes nothing, and still writes the row
    one.sql("COMMIT")
    with pytest.raises(tk.TransactionConflict):
        two.sql("COMMIT")
    assert engine.sql("SELECT k, x FROM t").rows() == [(1, 6)]


def test_an_input_behind_the_clock_has_conflicts_and_is_read() -> None:
    engine = make_engine()
    slow = engine.create_table("slow", {"k": tk.Int, "x": tk.Int}, mode="upsert", primary_key="k")
    fast = engine.create_table("fast", {"x": tk.Int})
    slow.insert([(1, 0)])
    engine.advance()
    fast.advance(5)
    session = engine.session()
    with pytest.raises(tk.TransactionConflict), session.transaction():
        assert engine.sql("SELECT * FROM slow").rows() == [(1, 0)]
        slow.insert([(1, 1)])
        with engine.session():
            slow.insert([(1, 100)])
            slow.advance(3)
    assert engine.install("all", slow).rows() == [(1, 100)]


def test_timed_updates_count_when_their_epoch_closes_whoever_closes_it() -> None:
    engine = make_engine()
    table = engine.create_table("t", {"k": tk.Int})
    view = engine.install("v", table)
    engine.advance()
    table.insert([(1,)], time=2)
    table.insert([(2,)])
    changes = row_changes(view, snapshot=False)
    for k in (7, 8, 9):
        engine.sql(f"INSERT INTO t VALUES ({k})")
    assert table.pending == 1
    assert [tuple(change) for change in changes] == [((7,), 1, 1), ((1,), 2, 1), ((8,), 2, 1), ((9,), 3, 1)]


def test_a_goal_asked_before_the_first_epoch_has_its_arguments_whoever_closes_that() -> None:
    engine = make_engine()
    engine.create_table("edge", {"s": tk.Int, "d": tk.Int})
    engine.datalog("r(x, y) :- edge(x, y).  r(x, z) :- r(x, y), edge(y, z).")
    query = engine.query("r($a, ?y)", a=1)
    engine.sql("INSERT INTO edge VALUES (1, 2), (2, 3)")
    assert sorted(query.rows()) == [(1, 2), (1, 3)]


def test_what_a_transaction_cannot_see_is_refused() -> None:
    engine = make_engine()
    stream = engine.create_table("s", {"k": tk.Int}, mode="stream")
    engine.sql("CREATE TABLE t (k int, y int); INSERT INTO t VALUES (1, 10)")
    engine.sql("CREATE MATERIALIZED VIEW v AS SELECT s.k, t.y FROM s JOIN t ON s.k = t.k")
    stream.insert([(1,), (2,)])
    engine.advance()
    session = engine.session()
    session.sql("BEGIN")
    assert session.sql("SELECT * FROM v").rows() == [(1, 10)]
    engine.sql("INSERT INTO t VALUES (3, 30); CREATE MATERIALIZED VIEW later AS SELECT count(*) AS n FROM t")
    with pytest.raises(tk.ConflictError, match="made after the transaction began"):
        session.sql("SELECT (SELECT count(*) FROM t), n FROM later")
    session.sql("INSERT INTO t VALUES (2, 20)")
    with pytest.raises(tk.UnsupportedError, match="reads the stream 's'"):
        session.sql("SELECT * FROM v")


def test_one_session_may_be_used_by_several_threads() -> None:
    engine = make_engine()
    engine.sql("CREATE TABLE t (x int)")
    session = engine.session()
    found: list[Any] = []

    def ask() -> None:
        for _ in range(30):
            found.append(session.sql("SELECT count(*) FROM t").rows())

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[(0,)]] * 90


def test_views_over_an_input_that_ended_before_its_first_epoch_hold_nobody_up() -> None:
    engine = make_engine()
    over, going = engine.create_table("over", {"k": tk.Int}), engine.create_table("going", {"k": tk.Int})
    engine.sql("CREATE MATERIALIZED VIEW v AS SELECT DISTINCT k FROM over")
    over.finish()
    going.insert([(5,)])
    engine.advance()
    assert engine.sql("SELECT going.k FROM going LEFT JOIN v ON going.k = v.k").rows() == [(5,)]
    assert engine.sql("SELECT count(*) FROM v").rows() == [(0,)]
    assert engine.install("both", going.concat(engine.view("v"))).rows() == [(5,)]


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_nothing_is_written_behind_the_end_of_a_transaction_within_its_block(end: str) -> None:
    engine = make_engine(autocommit=True)
    table = engine.create_table("numbers", {"x": int})
    with pytest.raises(tk.ConflictError, match="is over"), engine.transaction() as transaction:
        table.insert([(1,)])
        getattr(transaction, end)()
        table.insert([(2,)])
    assert table.rows() == ([(1,)] if end == "commit" else [])
    table.insert([(3,)])
    assert (3,) in table.rows()
