"""Every client offers the same, and behaves in the same way. A new client is one more parameter of `session`."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest

import tektite as tk
from tektite.client_protocol import (
    SessionProtocol,
    SubscriptionProtocol,
    TableProtocol,
    TransactionProtocol,
    ViewProtocol,
)
from tests.support.server import running_server


@contextmanager
def in_process() -> Iterator[SessionProtocol]:
    with tk.Engine() as engine:
        yield engine


@contextmanager
def over_the_wire() -> Iterator[SessionProtocol]:
    with running_server() as served, tk.connect(served.web_url) as session:
        yield session


@pytest.fixture(params=[in_process, over_the_wire])
def session(request: pytest.FixtureRequest) -> Iterator[SessionProtocol]:
    connect: Callable[[], AbstractContextManager[SessionProtocol]] = request.param
    with connect() as made:
        yield made


def orders_and_totals(session: SessionProtocol) -> tuple[TableProtocol, ViewProtocol]:
    orders = session.create_table("orders", {"shop": str, "amount": int})
    totals = session.create_view("totals", "SELECT shop, sum(amount) AS total FROM orders GROUP BY shop")
    return orders, totals


def test_what_a_client_hands_out_offers_the_protocol(session: SessionProtocol) -> None:
    orders, totals = orders_and_totals(session)
    assert isinstance(session, SessionProtocol)
    assert isinstance(orders, TableProtocol) and isinstance(session.table("orders"), TableProtocol)
    assert isinstance(totals, ViewProtocol) and isinstance(session.view("totals"), ViewProtocol)
    assert isinstance(totals.subscribe(), SubscriptionProtocol)
    assert (tuple(session.tables), tuple(session.views)) == (("orders",), ("totals",))
    assert orders.schema == tk.Schema({"shop": tk.String, "amount": tk.Int})


def test_a_write_can_be_read_at_the_time_it_returns(session: SessionProtocol) -> None:
    orders, totals = orders_and_totals(session)
    for amount in (1, 2, 3):
        time = orders.insert([("north", amount)])
        assert time is not None and totals.wait(time, timeout=60)
        assert totals.rows() == [("north", amount * (amount + 1) // 2)]
    orders.remove([("north", 3)])
    assert totals.to_arrow().to_pylist() == [{"shop": "north", "total": 3}]
    assert sorted(orders) == [("north", 1), ("north", 2)] and len(orders) == 2
    assert orders.head(1).num_rows == 1


def test_a_transaction_is_one_time_or_nothing(session: SessionProtocol) -> None:
    orders, totals = orders_and_totals(session)
    changes = totals.subscribe()
    with session.transaction():
        assert orders.insert([("north", 1)]) is None
        session.sql("INSERT INTO orders VALUES ('north', 2)")
    with pytest.raises(ZeroDivisionError), session.transaction():
        orders.insert([("north", 100)])
        raise ZeroDivisionError
    delta = changes.poll(60)
    assert delta is not None and delta.table.to_pylist() == [{"shop": "north", "total": 3, "diff": 1}]
    assert changes.poll(0) is None
    changes.close()


def test_sql_that_writes_says_the_time_at_which_it_can_be_read(session: SessionProtocol) -> None:
    orders, _ = orders_and_totals(session)
    for number, text in enumerate(
        ("INSERT INTO orders VALUES ('north', 1)", "INSERT INTO orders SELECT 'north', 1"), 1
    ):
        assert orders.rows(at=session.sql(text).time) == [("north", 1)] * number
    assert orders.rows(at=session.sql("BEGIN; DELETE FROM orders; COMMIT").time) == []
    assert session.sql("SELECT 1").time is None
    with session.transaction():
        assert session.sql("INSERT INTO orders VALUES ('north', 1)").time is None


def test_a_transaction_can_be_ended_within_its_block(session: SessionProtocol) -> None:
    orders, _ = orders_and_totals(session)
    with session.transaction() as begun:
        assert isinstance(begun, TransactionProtocol) and begun.is_open
        orders.insert([("north", 1)])
        begun.rollback()
        assert not begun.is_open
        for write in (
            lambda: orders.insert([("north", 2)]),
            lambda: session.sql("INSERT INTO orders VALUES ('north', 3)"),
        ):
            with pytest.raises(tk.ConflictError, match="the transaction of this block is over"):
                write()
    assert begun.time is None and orders.rows() == []
    with session.transaction() as begun:
        orders.insert([("north", 4)])
        time = begun.commit()
    assert time is not None and begun.time == time and orders.rows(at=time) == [("north", 4)]
    with pytest.raises(tk.ConflictError):
        begun.commit()
    begun.rollback()


def test_changes_add_up_to_the_answer_in_threads_and_tasks(session: SessionProtocol) -> None:
    orders, totals = orders_and_totals(session)
    seen: list[Counter[tuple[str, int]]] = [Counter(), Counter()]

    def add(into: Counter[tuple[str, int]], table: object) -> None:
        for row in table.to_pylist():  # type: ignore[attr-defined]
            into[row["shop"], row["total"]] += row["diff"]

    def follow(changes: SubscriptionProtocol) -> None:
        for delta in changes:
            add(seen[0], delta.table)

    async def follow_in_a_task(changes: SubscriptionProtocol) -> None:
        async for delta in changes:
            add(seen[1], delta.table)

    first, second = totals.subscribe(), totals.subscribe()
    threads = [
        threading.Thread(target=follow, args=(first,)),
        threading.Thread(target=lambda: asyncio.run(follow_in_a_task(second))),
    ]
    for thread in threads:
        thread.start()
    for amount in range(20):
        orders.insert([("north", amount), ("south", -amount)])
        if amount % 3 == 0:
            orders.remove([("north", amount)])
    orders.finish()  # the view cannot change any more: subscriptions end
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert [+each for each in seen] == [Counter(totals.rows())] * 2


def test_errors_have_codes(session: SessionProtocol) -> None:
    orders, _ = orders_and_totals(session)
    for code, wrong in {
        "not-found": lambda: session.table("nothing"),
        "incorrect": lambda: orders.insert([("north", "one")]),
        "conflict": lambda: session.create_table("orders", {"x": int}),
        "unsupported": lambda: session.sql("CREATE TEMPORARY TABLE t (x int)"),
    }.items():
        with pytest.raises(tk.TektiteError) as raised:
            wrong()
        assert (raised.value.code, raised.value.retryable) == (code, False)


def test_creating_again_and_dropping(session: SessionProtocol) -> None:
    orders, totals = orders_and_totals(session)
    orders.insert([("north", 1)])
    assert session.create_table("orders", {"shop": str, "amount": int}, if_exists="keep").rows() == [("north", 1)]
    counted = session.create_view("totals", "SELECT count(*) AS n FROM orders", if_exists="replace")
    assert counted.rows() == [(1,)]
    with pytest.raises(tk.ConflictError):
        session.drop_table("orders")
    session.drop_view("totals")
    session.drop_table("orders")
    session.drop_table("orders", if_exists=True)
    assert (tuple(session.tables), tuple(session.views)) == ((), ())


def test_a_table_begins_with_the_rows_it_is_made_of(session: SessionProtocol) -> None:
    frame = pd.DataFrame({"item": ["tea", "salt", None], "pieces": [3, None, 7]}, index=[5, 6, 7])
    rows = [(None, 7.0), ("salt", None), ("tea", 3.0)]
    made = session.create_table("stock", frame)
    assert (sorted(made.rows(), key=str), made.schema.names) == (sorted(rows, key=str), ("item", "pieces"))
    assert sorted(session.create_table("stock", frame, if_exists="keep").rows(), key=str) == sorted(rows, key=str)
    assert session.create_table("stock", pa.table({"item": ["oil"]}), if_exists="replace").rows() == [("oil",)]
    view = session.create_view("oils", "SELECT item, 2.50 AS price FROM stock")
    assert session.create_table("copy", view.to_arrow()).rows() == [("oil", Decimal("2.50"))]
    twice = pa.table({"id": [1, 1]})
    with pytest.raises(tk.ConflictError, match="two rows with the key id = 1"):
        session.create_table("keyed", twice, primary_key="id")
    assert "keyed" not in session.tables  # rows that cannot be inserted leave no table
    assert session.create_table("keyed", twice.slice(1), primary_key="id").rows() == [(1,)]
    with pytest.raises(tk.ConflictError, match="two rows with the key id = 1"):
        session.create_table("copy", twice, primary_key="id", if_exists="replace")
    assert session.table("copy").rows() == [("oil", Decimal("2.50"))]  # what was there stays
    assert sorted(session.create_table("dicts", [{"a": 1}, {"a": 2, "b": "x"}]).rows()) == [(1, None), (2, "x")]


def test_a_time_is_waited_for_and_a_subscription_is_a_block_of_both_kinds(session: SessionProtocol) -> None:
    orders, totals = orders_and_totals(session)
    time = orders.insert([("north", 1)])
    assert time is not None
    assert totals.snapshot(at=time, timeout=60).to_pylist() == [{"shop": "north", "total": 1}]
    with pytest.raises(tk.TektiteError, match="no answer for time"):
        totals.snapshot(at=time + 100, timeout=0.05)
    with pytest.raises(tk.IncorrectError, match="say which"):
        totals.snapshot(timeout=1)
    with totals.subscribe() as block:
        assert block.poll(timeout=60) is not None
    assert block.closed

    async def follow() -> int:
        async with totals.subscribe() as changes:
            async for delta in changes:
                return delta.time
        return -1

    assert asyncio.run(asyncio.wait_for(follow(), 60)) >= time


def test_a_list_as_a_parameter_is_a_list(session: SessionProtocol) -> None:
    orders, _ = orders_and_totals(session)
    orders.insert([("north", 1), ("south", 5)])
    for query, value, rows in (
        ("SELECT $1 AS x", [1, 2], [([1, 2],)]),
        ("SELECT $1 AS x", [], [([],)]),
        ("SELECT len($1)", ["a", "b"], [(2,)]),
        ("SELECT unnest($1)", [1, 2], [(1,), (2,)]),
        ("SELECT $1::text[]", ["a"], [(["a"],)]),
        ("SELECT shop FROM orders WHERE amount IN $1", [5, 7], [("south",)]),
        ("SELECT shop FROM orders WHERE amount = ANY($1)", [1], [("north",)]),
        ("SELECT shop FROM orders WHERE list_contains($1, amount)", [1], [("north",)]),
    ):
        assert session.sql(query, [value]).rows() == rows, query
