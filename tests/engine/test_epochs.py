"""The protocol by which epochs close: preparing changes nothing, applying takes what was prepared, however often."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tektite as tk
from tektite.engine.core import core_of
from tektite.engine.epochs import AdoptedRows, PreparedInput, prepare_epoch
from tektite.engine.write_set import WriteSet
from tests.support.executors import make_engine

pytestmark = pytest.mark.executors


def rows_of(prepared: PreparedInput) -> list[list[list[int]]]:
    """The batches of a prepared input, shard by shard."""
    return [[] if batch is None else batch.to_array().tolist() for batch in prepared.batches]


def state_of(table: tk.Table) -> tuple[Any, ...]:
    core = core_of(table)
    return core.low, core.writes, core.trace.rows, table.pending, list(core.engine.writes.of(core))


@pytest.fixture(params=["bag", "set", "upsert"])
def table(request: pytest.FixtureRequest) -> tk.Table:
    """An input that holds two rows, with updates of the open epoch and of a later one."""
    engine = make_engine(2)
    key = {"primary_key" if request.param == "upsert" else "order_by": "k"}
    made = engine.create_table("t", {"k": tk.Int, "v": tk.Int}, mode=request.param, **key)
    made.insert([(1, 1), (2, 2)])
    engine.advance()
    made.remove([(1, 1)])
    made.insert([(2, 3), (4, 4)])
    made.insert([(5, 5)], time=7)
    return made


def test_preparing_changes_nothing_and_gives_the_same_again(table: tk.Table) -> None:
    before = state_of(table)
    core = core_of(table)
    first, second = (core.prepare(2, core.engine.writes) for _ in range(2))
    assert rows_of(first) == rows_of(second) != [[], []]
    assert first.postponed is not None and [chunk.n for chunk, _ in first.postponed] == [1]
    assert state_of(table) == before


def test_committing_takes_what_was_prepared(table: tk.Table) -> None:
    view = table.engine.install("all", table)
    core = core_of(table.engine)
    with core.lock.held:
        prepared = prepare_epoch(core, [core_of(table)], 2, core.writes)
        assert core.epoch == table.next_epoch == 1
        prepared.apply()
        after = state_of(table)
        prepared.apply()  # as after an interrupt
        assert state_of(table) == after
    assert core.epoch == table.next_epoch == 2
    assert table.pending == 1
    wanted = {(2, 2), (2, 3), (4, 4)} if core_of(table).semantics != "upsert" else {(2, 3), (4, 4)}
    assert {*view.rows()} == wanted


def test_asking_what_writes_would_change_changes_nothing(table: tk.Table) -> None:
    before, writes = state_of(table), WriteSet()
    core_of(table).write([(2, 2)], None, -1, "remove", writes)
    core_of(table).write([(9, 9)], None, 1, "insert", writes)
    words, diffs = core_of(table).changes_by(writes, 0)
    assert {*zip(*words.tolist(), diffs.tolist(), strict=True)} == {(2, 2, -1), (9, 9, 1)}
    assert state_of(table) == before


def test_a_write_set_belongs_to_whoever_has_it(table: tk.Table) -> None:
    view = table.engine.install("all", table)
    core, before = core_of(table.engine), table.pending
    mine = WriteSet()
    core_of(table).write([(8, 8)], None, 1, "insert", mine)
    assert table.pending == before
    assert core.commit(mine) == 1
    assert table.pending == before
    assert {*view.rows()} == {(1, 1), (2, 2), (8, 8)}
    table.engine.advance()
    gained = {(2, 3), (4, 4), (8, 8)}
    assert {*view.rows()} == (gained if core_of(table).semantics == "upsert" else {(2, 2)} | gained)
    assert table.pending == 1
    table.rollback()
    assert table.pending == 0


@pytest.mark.executors("stages", "spark")
def test_an_epoch_that_one_input_refuses_closes_for_none(tmp_path: Path) -> None:
    with make_engine(storage=tmp_path) as engine:
        good, bad = (engine.create_table(name, {"x": tk.Int}) for name in ("good", "bad"))
        good.insert([(1,)])
        bad.remove([(1,)])
        with pytest.raises(tk.IncorrectError, match="negative number of times"):
            engine.advance(positions={"source": {"at": 1}})
        assert engine.next_epoch == good.next_epoch == bad.next_epoch == 0
        assert good.pending == bad.pending == 1
        assert engine.positions == {}
        bad.rollback()
        engine.advance(positions={"source": {"at": 2}})
    with make_engine(storage=tmp_path) as engine:
        assert engine.install("good rows", engine.table("good")).rows() == [(1,)]
        assert engine.positions == {"source": {"at": 2}}


def test_adopted_rows_are_prepared_for_the_epoch_that_is_open(table: tk.Table) -> None:
    engine = table.engine
    other = engine.create_table("other", {"x": tk.Int, "y": tk.Int})
    core, given, adopting = core_of(other), WriteSet(), WriteSet()
    core.write([(1, 1), (2, 2)], None, 1, "insert", given)
    made = core.prepare(2, given)
    adopting.adopted[core] = AdoptedRows(list(made.batches), [], [], low=0, epoch=0)
    first, second = (core.prepare(5, adopting) for _ in range(2))
    assert rows_of(first) == rows_of(second)
    assert {row[2] for batch in rows_of(first) if batch for row in zip(*batch, strict=True)} == {4}


def test_adopted_rows_that_follow_from_older_contents_are_refused(table: tk.Table) -> None:
    core, adopting = core_of(table), WriteSet()
    adopting.adopted[core] = AdoptedRows([None, None], [], [], low=1, epoch=1, writes=core.writes - 1)
    with pytest.raises(tk.ConflictError, match="written to meanwhile"):
        core.prepare(2, adopting)
    adopting.adopted[core] = AdoptedRows([None, None], [], [], low=1, epoch=1, writes=core.writes)
    core.write([(8, 8)], None, 1, "insert", adopting)
    with pytest.raises(tk.ConflictError, match="written to meanwhile"):
        core.prepare(2, adopting)


def test_rows_that_a_language_needs_are_there_as_of_the_last_closed_epoch() -> None:
    engine = make_engine()
    core = core_of(engine)
    schema = tk.Schema(x=tk.Int)
    engine.create_table("other", schema)
    engine.advance()
    engine.advance()
    always = core.constant_input("always", schema, [(1,)])
    since = core.transient_input("since", schema, rows=[(2,)])
    assert (always.closed, always.next_epoch, since.closed, since.next_epoch) == (True, 1, False, 2)
    assert engine.install("both", always.concat(since)).rows() == [(1,), (2,)]
