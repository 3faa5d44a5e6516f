"""Tables can be followed as views can: by Python, and by SQL's SUBSCRIBE, which gives the same subscription."""

from __future__ import annotations

import random
import threading
from collections import Counter
from typing import Any

import pytest

import tektite as tk
from tests.support.executors import make_engine
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.executors


@pytest.mark.executors("stages", spark=["1-upsert"])
@pytest.mark.parametrize("mode", ["bag", "set", "upsert", "append"])
@pytest.mark.parametrize("workers", [1, 2])
def test_the_changes_of_a_table_add_up_to_its_rows(mode: Any, workers: int) -> None:
    engine = make_engine(workers, autocommit=True)
    key = "k" if mode == "upsert" else ()
    table = engine.create_table("t", {"k": tk.Int, "v": tk.String}, mode=mode, primary_key=key)
    choose, found = random.Random(7), Counter[Any]()
    table.insert([(n, "first") for n in range(5)])
    subscription = table.subscribe()
    for _ in range(20):
        table.insert([(choose.randrange(8), choose.choice("ab")) for _ in range(3)])
        if mode != "append":
            table.remove(table.rows()[:1])
        for row, _time, diff in subscription.changes():
            found[row] += diff
        assert +found == Counter(table.rows()) and -found == Counter()


def test_a_stream_tells_what_arrives() -> None:
    engine = make_engine(autocommit=True)
    clicks = engine.create_table("clicks", {"n": tk.Int}, mode="stream")
    clicks.insert([(1,)])
    subscription = clicks.subscribe()
    clicks.insert([(2,), (3,)])
    assert [tuple(change) for change in subscription.changes()] == [((2,), 1, 1), ((3,), 1, 1)]
    with pytest.raises(tk.ConflictError, match="table 'clicks' is a stream, so that it has no contents to begin with"):
        clicks.subscribe(snapshot=True)


def test_a_thread_waits_for_a_table_until_it_ends() -> None:
    engine = make_engine(autocommit=True)
    table = engine.create_table("t", {"n": tk.Int})
    subscription, told = table.subscribe(), []
    thread = threading.Thread(target=lambda: told.extend(delta.table["n"].to_pylist() for delta in subscription))
    thread.start()
    for n in range(3):
        table.insert([(n,)])
    table.finish()
    thread.join(PATIENCE)
    assert not thread.is_alive() and [n for batch in told for n in batch] == [0, 1, 2]
    with pytest.raises(tk.ConflictError, match="the subscription to table 't' has ended: the table has ended"):
        subscription.poll(0)


def test_a_callback_gets_each_epoch_of_a_table() -> None:
    engine = make_engine(autocommit=True)
    table = engine.create_table("t", {"n": tk.Int})
    told: list[tuple[int, list[int]]] = []
    listener = table.subscribe(lambda delta: told.append((delta.time, delta.table["n"].to_pylist())), snapshot=False)
    with engine.transaction() as both:
        table.insert([(1,)])
        table.insert([(2,)])
    alone = table.insert([(3,)])
    listener.close()
    table.insert([(4,)])
    assert told == [(both.time, [1, 2]), (alone, [3])]


def test_dropping_a_table_and_closing_the_engine_end_subscriptions() -> None:
    engine = make_engine(autocommit=True)
    one, two = (engine.create_table(name, {"n": tk.Int}) for name in ("one", "two"))
    dropped, closed = one.subscribe(), two.subscribe()
    one.insert([(1,)])
    engine.drop_table("one")
    assert [tuple(change) for change in dropped.changes()] == [((1,), 0, 1)]
    with pytest.raises(tk.ConflictError, match="table 'one' was dropped"):
        dropped.poll(0)
    with pytest.raises(tk.ConflictError, match="table 'one' was dropped"):
        one.subscribe()
    engine.close()
    assert list(closed) == []


def test_a_subscription_begins_behind_a_time_that_is_held() -> None:
    engine = make_engine(autocommit=True)
    table = engine.create_table("t", {"n": tk.Int})
    first = table.insert([(1,)])
    with engine.hold(table, first):
        table.insert([(2,)])
        table.insert([(3,)])
        assert [change.row for change in table.subscribe(since=first).changes()] == [(2,), (3,)]
    with pytest.raises(tk.IncorrectError, match="table 't' can be read at times"):
        table.subscribe(since=9)


@pytest.mark.parametrize("statement", ["SUBSCRIBE t", "SUBSCRIBE TO v", "SUBSCRIBE (SELECT n FROM t WHERE n > 0)"])
def test_sql_subscribes_to_the_same(statement: str) -> None:
    engine = make_engine(autocommit=True)
    table = engine.create_table("t", {"n": tk.Int})
    engine.create_view("v", table.filter(tk.col("n") > 0))
    subscription = engine.sql(statement).subscription
    assert isinstance(subscription, tk.Subscription)
    time = table.insert([(5,)])
    delta = subscription.poll(PATIENCE)
    assert delta is not None and (delta.time, delta.table.to_pylist()) == (time, [{"n": 5, "diff": 1}])
    assert isinstance(subscription.source, tk.Table | tk.View) is ("SELECT" not in statement)
