"""An engine with a storage finds what is durable again, at every start."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

import tektite as tk
from tektite.engine.core import core_of
from tektite.storage.clean_up import outdated_files
from tektite.storage.manifest import FOLDER, Manifest, ManifestChange
from tektite.storage.steady_clock import Ages
from tektite.storage.store import open_store
from tests.support.stored import Twin, run, state_of


@pytest.mark.parametrize("seed", range(4))
def test_inputs_are_found_again_at_every_start(tmp_path: Path, seed: int) -> None:
    twin = Twin(seed, 60)
    bounds = [0, 1, 2, 10, 10, 45, 60]
    for start, stop in zip(bounds, bounds[1:], strict=False):
        run(tmp_path, twin, start, stop)


def test_number_of_workers_may_change(tmp_path: Path) -> None:
    twin = Twin(7, 40)
    for place, workers in enumerate([2, 1, 3, 3]):
        run(tmp_path, twin, 10 * place, 10 * place + 10, workers=workers)
        run(tmp_path, twin, 10 * place + 10, 10 * place + 10)
        state = state_of(tmp_path)
        assert state.shards == workers
        assert {live.section.shard for live in state.sections("batch")} <= set(range(workers))


def test_epoch_is_visible_at_once_and_durable_after_sync(tmp_path: Path) -> None:
    with tk.Engine(storage=tmp_path, autocommit=False) as engine:
        numbers = engine.create_table("numbers", {"n": tk.Int})
        assert (engine.next_epoch, engine.durable) == (0, 0)
        numbers.insert([(1,)])
        engine.advance()
        assert engine.next_epoch == 1
        assert engine.sync() == 1
        assert state_of(tmp_path).epoch == 1


def test_open_epoch_is_not_durable(tmp_path: Path) -> None:
    with tk.Engine(storage=tmp_path, autocommit=False) as engine:
        numbers = engine.create_table("numbers", {"n": tk.Int})
        numbers.insert([(1,)])
        engine.advance()
        numbers.insert([(2,)])
        numbers.insert([(3,)], time=7)
    with tk.Engine(storage=tmp_path, autocommit=False) as engine:
        assert engine.install("all", engine.table("numbers")).rows() == [(1,)]
        assert engine.table("numbers").pending == 0


def test_inputs_closed_one_by_one_keep_their_own_epochs(tmp_path: Path) -> None:
    with tk.Engine(storage=tmp_path, autocommit=False) as engine:
        fast, slow, done = (engine.create_table(name, {"n": tk.Int}) for name in ("fast", "slow", "done"))
        for table in (fast, slow, done):
            table.insert([(1,)])
        fast.advance(5)
        slow.advance(2)
        done.finish()
    with tk.Engine(storage=tmp_path, autocommit=False) as engine:
        assert [engine.table(name).next_epoch for name in ("fast", "slow", "done")] == [5, 2, 1]
        assert [engine.table(name).closed for name in ("fast", "slow", "done")] == [False, False, True]
        assert engine.next_epoch == 5
        with pytest.raises(tk.ConflictError, match="closed"):
            engine.table("done").insert([(2,)])
        engine.table("slow").insert([(2,)], time=3)
        assert engine.advance() == 5
        both = engine.table("fast").concat(engine.table("slow")).concat(engine.table("done"))
        assert sorted(engine.install("all", both).rows()) == [(1,), (1,), (1,), (2,)]


def test_every_type_comes_back(tmp_path: Path) -> None:
    import datetime as dt
    from decimal import Decimal

    columns = {"i": tk.Int, "f": tk.Float, "b": tk.Bool, "d": tk.Date, "t": tk.Timestamp, "s": tk.String}
    columns["m"] = tk.Decimal(12, 2)
    row = (-(2**40), -0.5, True, dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 12, 30, 1), "tea", Decimal("3.25"))
    nulls = (None,) * len(columns)
    with tk.Engine(storage=tmp_path, autocommit=False) as engine:
        engine.create_table("wide", columns).insert([row, nulls])
        engine.advance()
    with tk.Engine(storage=tmp_path, autocommit=False) as engine:
        table = engine.create_table("wide", columns)
        assert set(engine.install("all", table).rows()) == {row, nulls}


def test_streams_come_back_empty_with_their_epoch(tmp_path: Path) -> None:
    with tk.Engine(storage=tmp_path, autocommit=False) as engine:
        clicks = engine.create_table("clicks", {"n": tk.Int}, mode="stream")
        clicks.insert([(1,)])
        engine.advance()
    assert not list(state_of(tmp_path).sections("batch"))
    with tk.Engine(storage=tmp_path, autocommit=False) as engine:
        clicks = engine.create_table("clicks", {"n": tk.Int}, mode="stream")
        seen = engine.install("seen", clicks)
        clicks.insert([(2,)])
        engine.advance()
        assert seen.rows() == [(2,)]


@pytest.mark.parametrize(
    ("options", "columns"),
    [
        ({}, {"src": tk.Int}),
        ({}, {"src": tk.Int, "dst": tk.Float}),
        ({}, {"src": tk.Int, "to": tk.Int}),
        ({"order_by": "dst"}, {"src": tk.Int, "dst": tk.Int}),
        ({"mode": "set"}, {"src": tk.Int, "dst": tk.Int}),
        ({"mode": "stream"}, {"src": tk.Int, "dst": tk.Int}),
    ],
)
def test_another_declaration_is_an_error_that_names_both(tmp_path: Path, options: Any, columns: Any) -> None:
    with tk.Engine(storage=tmp_path, autocommit=False) as engine:
        engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
    with tk.Engine(storage=tmp_path, autocommit=False) as engine:
        with pytest.raises(
            tk.ConflictError, match=r"stored in .* as Schema\(src=int, dst=int\), bag, but declared as "
        ):
            engine.create_table("edges", columns, **options)
        engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})  # which changed nothing
        with pytest.raises(tk.ConflictError, match="there is a table named"):
            engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})


def test_dropped_input_is_gone_and_its_name_is_free(tmp_path: Path) -> None:
    with tk.Engine(storage=tmp_path, autocommit=False) as engine:
        engine.create_table("a", {"n": tk.Int}).insert([(1,)])
        engine.advance()
        engine.drop("a")
        engine.create_table("a", {"s": tk.String}).insert([("x",)])
        engine.advance()
    with tk.Engine(storage=tmp_path, autocommit=False) as engine:
        assert engine.install("all", engine.table("a")).rows() == [("x",)]
        engine.drop("all")
        engine.drop("a")
    with tk.Engine(storage=tmp_path, autocommit=False) as engine, pytest.raises(tk.NotFoundError):
        engine.table("a")
    assert not list(state_of(tmp_path).sections("batch"))


def test_positions_are_the_last_ones_given(tmp_path: Path) -> None:
    with tk.Engine(storage=tmp_path, autocommit=False) as engine:
        engine.create_table("a", {"n": tk.Int})
        engine.advance(positions={"orders": {"query": "q", "batch": 3}, "gone": {"batch": 1}})
        engine.advance()
        engine.advance(positions={"orders": {"query": "q", "batch": 4}, "gone": None})
        assert engine.positions == {"orders": {"query": "q", "batch": 4}}
    with tk.Engine(storage=tmp_path, autocommit=False) as engine:
        assert engine.positions == {"orders": {"query": "q", "batch": 4}}
        with pytest.raises(tk.IncorrectError, match="JSON"):
            engine.advance(positions={"orders": {"batch": object()}})
        assert engine.next_epoch == 3
    with tk.Engine(autocommit=False) as engine, pytest.raises(tk.IncorrectError, match="storage"):
        engine.advance(positions={"orders": {"batch": 4}})


# ------------------------------------------------------------------ errors of rows


def test_errors_of_rows_are_found_again_after_a_restart(tmp_path: Path) -> None:
    with tk.Engine(storage=tmp_path, autocommit=False) as engine:
        engine.create_table("s", {"x": tk.String}).insert([("1",), ("bad",)])
        engine.advance()
    with tk.Engine(storage=tmp_path, autocommit=False) as engine:
        source = engine.create_table("s", {"x": tk.String})
        view = engine.install("v", source.select(y=tk.col("x").cast(tk.Int)))
        with pytest.raises(tk.IncorrectError, match="found 'bad'"):
            view.rows()
        source.remove([("bad",)])
        engine.advance()
        assert view.rows() == [(1,)]


def test_what_is_published_stays_as_it_is_while_a_row_fails(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with tk.Engine(storage=tmp_path, autocommit=False) as engine:
        source = engine.create_table("s", {"x": tk.String})
        first = engine.install("first", source.select(y=tk.col("x").cast(tk.Int)))
        view = engine.install("v", first.select("y"))
        view.persist()

        def stored() -> int | None:
            engine.advance()
            engine.sync()
            return Manifest.open(open_store(tmp_path)).state.lows.get("v")

        source.insert([("1",)])
        before = stored()
        assert before == core_of(view).low
        source.insert([("2",), ("bad",)])
        assert stored() == before
        assert any("found 'bad'" in record.getMessage() for record in caplog.records)
        source.remove([("bad",)])
        assert stored() == core_of(view).low


def test_clock_that_is_set_neither_deletes_early_nor_stops_cleaning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(str(tmp_path))
    versions = Manifest.open(store)
    for _ in range(40):
        versions.commit(ManifestChange())
    year = 365 * 86400.0
    really = time.time
    monkeypatch.setattr(time, "time", lambda: really() + year)
    assert outdated_files(store, versions.state, 3600.0).names == []
    monkeypatch.undo()
    for file in (tmp_path / FOLDER).iterdir():
        os.utime(file, (really() + year, really() + year))
    seen = Ages()
    assert outdated_files(store, versions.state, 0.2, seen).names == []
    deadline = time.monotonic() + 60
    while not outdated_files(store, versions.state, 0.2, seen).names:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_files_that_are_written_after_the_clock_was_set_back_are_not_old(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    versions = Manifest.open(store)
    seen = Ages()
    assert outdated_files(store, versions.state, 3600.0, seen).names == []
    for _ in range(40):
        versions.commit(ManifestChange())
    ago = time.time() - 365 * 86400.0
    for file in (tmp_path / FOLDER).iterdir():
        os.utime(file, (ago, ago))
    assert outdated_files(store, versions.state, 3600.0, Ages()).names, "what is old for who looks for the first time"
    assert outdated_files(store, versions.state, 3600.0, seen).names == []
