"""Time that passes by itself: an epoch closes from time to time while some query reads the time."""

from __future__ import annotations

import datetime
import gc
import threading
import weakref
from typing import Any

import pytest

import tektite as tk
from tests.support.patience import eventually, until


def clocks() -> int:
    return sum(thread.name == "tektite-clock" for thread in threading.enumerate())


def test_a_row_leaves_a_view_of_recent_rows_though_nobody_writes() -> None:
    with tk.Engine(clock="20 ms") as engine:
        engine.sql("CREATE TABLE events (id INT, at TIMESTAMP)")
        recent = engine.sql(
            "CREATE MATERIALIZED VIEW recent AS SELECT id FROM events WHERE at > now() - INTERVAL '1 second'"
        ).view
        assert recent is not None
        gone = threading.Event()
        recent.subscribe(lambda delta: gone.set() if -1 in delta.table["diff"].to_pylist() else None)
        events = engine.table("events")
        number = 0
        while (
            not gone.is_set()
        ):  # a row that takes more than a second to get in is never seen: then there is another one
            number += 1
            now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
            events.insert([(number, now), (-number, now + datetime.timedelta(days=1))])
            gone.wait(5)
        eventually(lambda: sorted(recent.rows()), [(-each,) for each in range(number, 0, -1)])
    assert clocks() == 0


def test_no_epoch_closes_while_no_query_reads_the_time() -> None:
    with tk.Engine(clock=0.001) as engine:
        engine.create_table("t", {"n": tk.Int})
        threading.Event().wait(0.05)
        assert engine.next_epoch == 0


def test_the_clock_does_not_keep_an_engine_alive() -> None:
    engine = tk.Engine(clock=0.001)
    found = weakref.ref(engine)
    del engine
    until(lambda: gc.collect() >= 0 and found() is None)


@pytest.mark.parametrize("given", ["soon", 0, -1, True, "1 day", float("inf")])
def test_what_is_no_interval_is_refused(given: Any) -> None:
    with pytest.raises(tk.IncorrectError, match="clock is how often time passes"):
        tk.Engine(clock=given)
