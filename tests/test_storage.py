"""An engine with a storage: what is durable is found again, whatever happens, and what cannot be found is said."""

from __future__ import annotations

import errno
import gc
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from stored import WORDS, Full, PowerCut, Twin, Unlocked, check, declare, play

import tektite as tk
from tektite.storage import compaction, keeper, manifest
from tektite.storage.files import Files
from tektite.storage.leases import Lease
from tektite.storage.manifest import Manifest
from tektite.storage.store import PosixStore
from tektite.trace.chunk import Chunk


def state_of(path: Path) -> manifest.State:
    return Manifest.open(PosixStore(path)).state


def run(path: Any, twin: Twin, start: int, stop: int, **options: Any) -> None:
    """Recover, compare, play some epochs, compare, close."""
    with tk.Engine(storage=path, **options) as engine:
        assert engine.epoch == start
        declare(engine)
        check(engine, twin)
        for epoch in range(start, stop):
            play(engine, twin, epoch)
        check(engine, twin)


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
    with tk.Engine(storage=tmp_path) as engine:
        numbers = engine.input("numbers", n=tk.Int)
        assert (engine.visible, engine.durable) == (0, 0)
        numbers.insert([(1,)])
        engine.advance()
        assert engine.visible == 1
        assert engine.sync() == 1
        assert state_of(tmp_path).epoch == 1


def test_open_epoch_is_not_durable(tmp_path: Path) -> None:
    with tk.Engine(storage=tmp_path) as engine:
        numbers = engine.input("numbers", n=tk.Int)
        numbers.insert([(1,)])
        engine.advance()
        numbers.insert([(2,)])
        numbers.insert([(3,)], time=7)
    with tk.Engine(storage=tmp_path) as engine:
        assert engine.install("all", engine.table("numbers")).rows() == [(1,)]
        assert engine.table("numbers").pending == 0


def test_inputs_closed_one_by_one_keep_their_own_epochs(tmp_path: Path) -> None:
    with tk.Engine(storage=tmp_path) as engine:
        fast, slow, done = (engine.input(name, n=tk.Int) for name in ("fast", "slow", "done"))
        for table in (fast, slow, done):
            table.insert([(1,)])
        fast.advance(5)
        slow.advance(2)
        done.close()
    with tk.Engine(storage=tmp_path) as engine:
        assert [engine.table(name).epoch for name in ("fast", "slow", "done")] == [5, 2, 1]
        assert [engine.table(name).closed for name in ("fast", "slow", "done")] == [False, False, True]
        assert engine.epoch == 5
        with pytest.raises(tk.ConflictError, match="closed"):
            engine.table("done").insert([(2,)])
        engine.table("slow").insert([(2,)], time=3)
        assert engine.advance() == 6
        both = engine.table("fast").concat(engine.table("slow")).concat(engine.table("done"))
        assert sorted(engine.install("all", both).rows()) == [(1,), (1,), (1,), (2,)]


def test_every_type_comes_back(tmp_path: Path) -> None:
    import datetime as dt
    from decimal import Decimal

    columns = {"i": tk.Int, "f": tk.Float, "b": tk.Bool, "d": tk.Date, "t": tk.Timestamp, "s": tk.String}
    columns["m"] = tk.Decimal(12, 2)
    row = (-(2**40), -0.5, True, dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 12, 30, 1), "tea", Decimal("3.25"))
    nulls = (None,) * len(columns)
    with tk.Engine(storage=tmp_path) as engine:
        engine.input("wide", columns).insert([row, nulls])
        engine.advance()
    with tk.Engine(storage=tmp_path) as engine:
        table = engine.input("wide", columns)
        assert set(engine.install("all", table).rows()) == {row, nulls}


def test_streams_come_back_empty_with_their_epoch(tmp_path: Path) -> None:
    with tk.Engine(storage=tmp_path) as engine:
        clicks = engine.input("clicks", stream=True, n=tk.Int)
        clicks.insert([(1,)])
        engine.advance()
    assert not list(state_of(tmp_path).sections("batch"))
    with tk.Engine(storage=tmp_path) as engine:
        clicks = engine.input("clicks", stream=True, n=tk.Int)
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
        ({"key": "dst"}, {"src": tk.Int, "dst": tk.Int}),
        ({"semantics": "set"}, {"src": tk.Int, "dst": tk.Int}),
        ({"stream": True}, {"src": tk.Int, "dst": tk.Int}),
    ],
)
def test_another_declaration_is_an_error_that_names_both(tmp_path: Path, options: Any, columns: Any) -> None:
    with tk.Engine(storage=tmp_path) as engine:
        engine.input("edges", src=tk.Int, dst=tk.Int)
    with tk.Engine(storage=tmp_path) as engine:
        with pytest.raises(
            tk.ConflictError, match=r"stored in .* as Schema\(src=int, dst=int\), bag, but declared as "
        ):
            engine.input("edges", columns, **options)
        engine.input("edges", src=tk.Int, dst=tk.Int)  # which changed nothing
        with pytest.raises(tk.ConflictError, match="there is an input named"):
            engine.input("edges", src=tk.Int, dst=tk.Int)


def test_dropped_input_is_gone_and_its_name_is_free(tmp_path: Path) -> None:
    with tk.Engine(storage=tmp_path) as engine:
        engine.input("a", n=tk.Int).insert([(1,)])
        engine.advance()
        engine.drop("a")
        engine.input("a", s=tk.String).insert([("x",)])
        engine.advance()
    with tk.Engine(storage=tmp_path) as engine:
        assert engine.install("all", engine.table("a")).rows() == [("x",)]
        engine.drop("all")
        engine.drop("a")
    with tk.Engine(storage=tmp_path) as engine, pytest.raises(tk.NotFoundError):
        engine.table("a")
    assert not list(state_of(tmp_path).sections("batch"))


def test_positions_are_the_last_ones_given(tmp_path: Path) -> None:
    with tk.Engine(storage=tmp_path) as engine:
        engine.input("a", n=tk.Int)
        engine.advance(positions={"orders": {"query": "q", "batch": 3}, "gone": {"batch": 1}})
        engine.advance()
        engine.advance(positions={"orders": {"query": "q", "batch": 4}, "gone": None})
        assert engine.positions == {"orders": {"query": "q", "batch": 4}}
    with tk.Engine(storage=tmp_path) as engine:
        assert engine.positions == {"orders": {"query": "q", "batch": 4}}
        with pytest.raises(tk.IncorrectError, match="JSON"):
            engine.advance(positions={"orders": {"batch": object()}})
        assert engine.epoch == 3
    with tk.Engine() as engine, pytest.raises(tk.IncorrectError, match="storage"):
        engine.advance(positions={"orders": {"batch": 4}})


def test_files_stay_few_while_epochs_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "_CLEAN_EVERY", 16)
    counts: Counter[Any] = Counter()
    with tk.Engine(storage=tk.Storage(tmp_path, retention=0.0)) as engine:
        numbers = engine.input("numbers", n=tk.Int, label=tk.String)
        for n in range(600):
            rows = [(n * 10 + i, f"{WORDS[i % 7]}{n}") for i in range(10)]
            counts.update(rows)
            numbers.insert(rows)
            engine.advance()
            engine.sync()
        engine.advance()
    state = state_of(tmp_path)
    bound = compaction.FAN * (compaction.level(6000) + 1)
    assert len(state.live("numbers", 0)) < bound
    assert len(state.texts()) < bound
    assert len(os.listdir(tmp_path / "batches")) < 4 * bound
    assert len(os.listdir(tmp_path / "manifest")) < 200
    with tk.Engine(storage=tmp_path) as engine:
        assert engine.install("all", engine.table("numbers")).multiplicities() == counts


def test_large_batches_are_merged_beside_the_epochs(tmp_path: Path) -> None:
    import numpy as np

    expected = set()
    with tk.Engine(storage=tmp_path) as engine:
        numbers = engine.input("numbers", n=tk.Int)
        for n in range(10):
            rows = np.arange(n * 20_000, (n + 1) * 20_000)
            expected.update(rows.tolist())
            numbers.insert(rows)
            engine.advance()
            engine.sync()
    assert len(state_of(tmp_path).live("numbers", 0)) < 10
    assert any("-merge-" in name for name in state_of(tmp_path).files)
    with tk.Engine(storage=tmp_path) as engine:
        assert {n for (n,) in engine.install("all", engine.table("numbers")).rows()} == expected


class NoMerges(PosixStore):
    """A store that has no room for the results of merges."""

    full = True

    def write(self, name: str, parts: Any, durable: bool = True) -> None:
        if self.full and "-merge-" in name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().write(name, parts, durable)


def test_epochs_go_on_while_merges_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = NoMerges(tmp_path)
    with tk.Engine(storage=tk.Storage(store)) as engine:
        numbers = engine.input("numbers", n=tk.Int)
        for n in range(40):
            numbers.insert([(n,)])
            engine.advance()
            assert engine.sync() == n + 1
        assert len(state_of(tmp_path).live("numbers", 0)) == 40
        assert state_of(tmp_path).version < 60  # nothing is committed for a merge that failed
        store.full = False
        monkeypatch.setattr(engine._session.keeper, "_no_merge_before", 0.0)  # type: ignore[union-attr]
        for n in range(40, 50):
            numbers.insert([(n,)])
            engine.advance()
            engine.sync()
    assert len(state_of(tmp_path).live("numbers", 0)) < 20
    with tk.Engine(storage=tmp_path) as engine:
        assert len(engine.install("all", engine.table("numbers")).rows()) == 50


def test_versions_say_exactly_what_epochs_changed(tmp_path: Path) -> None:
    twin = Twin(13, 40)
    with tk.Engine(storage=tmp_path) as engine:
        declare(engine)
        for epoch in range(40):
            play(engine, twin, epoch)
            if epoch % 3 == 0:
                engine.sync()
    store = PosixStore(tmp_path)
    files = Files(store)
    found: Counter[Any] = Counter()
    for _, change in Manifest(store).changes(after=0):
        for info in change.add:
            if "-merge-" in info.name:
                continue
            for place, section in enumerate(info.sections):
                if section.arrangement == "edges":
                    batch = files.open(info).batch(place)
                    for src, dst, time, diff in Chunk(batch.head, batch.keep).to_array().T.tolist():
                        found[(src, dst), time] += diff
    expected: Counter[Any] = Counter()
    for epoch, (old, new) in enumerate(pairwise(contents["edges"] for contents in twin.contents)):
        for row in old.keys() | new.keys():
            if new[row] != old[row]:
                expected[row, epoch] = new[row] - old[row]
    assert found == expected


def test_leased_version_keeps_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "_CLEAN_EVERY", 4)
    store = PosixStore(tmp_path)
    with tk.Engine(storage=tk.Storage(tmp_path, retention=0.0)) as engine:
        numbers = engine.input("numbers", n=tk.Int)
        for n in range(5):
            numbers.insert([(n,)])
            engine.advance()
            engine.sync()
        held = state_of(tmp_path)
        lease = Lease(store, held.version, 60)
        for n in range(5, 200):
            numbers.insert([(n,)])
            engine.advance()
            engine.sync()
        there = set(os.listdir(tmp_path / "batches"))
        assert set(held.files) <= there
        assert Manifest(store).load(held.version) == held
        lease.release()
        for _ in range(12):
            engine.advance()
            engine.sync()
    assert not set(held.files) & set(os.listdir(tmp_path / "batches"))


# ------------------------------------------------------------------ two engines


def test_second_engine_is_refused_while_the_first_lives(tmp_path: Path) -> None:
    with tk.Engine(storage=tmp_path), pytest.raises(tk.ConflictError, match=f"in use by process {os.getpid()}"):
        tk.Engine(storage=tmp_path)
    tk.Engine(storage=tmp_path).close()


def test_process_that_was_forked_does_not_hold_the_storage(tmp_path: Path) -> None:
    engine = tk.Engine(storage=tmp_path)
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(writer)
        os.read(reader, 1)  # lives until the parent is done
        os._exit(0)
    try:
        engine.close()
        tk.Engine(storage=tmp_path).close()
    finally:
        os.write(writer, b".")
        os.close(reader)
        os.close(writer)
        assert os.waitpid(child, 0)[1] == 0


def test_engine_that_lost_its_storage_stops_and_the_other_goes_on(tmp_path: Path) -> None:
    twin = Twin(3, 20)
    zombie = tk.Engine(storage=tk.Storage(Unlocked(tmp_path)))
    declare(zombie)
    for epoch in range(5):
        play(zombie, twin, epoch)
    zombie.sync()
    second = tk.Engine(storage=tk.Storage(Unlocked(tmp_path)))
    declare(second)
    check(second, twin)
    play(zombie, twin, 5)
    with pytest.raises(tk.ConflictError, match="another engine .* has written"):
        zombie.sync()
    with pytest.raises(tk.ConflictError, match="another engine"):
        play(zombie, twin, 6)
    assert zombie.durable == 5
    for epoch in range(5, 20):
        play(second, twin, epoch)
    check(second, twin)
    second.close()
    with pytest.raises(tk.ConflictError):
        zombie.close()
    run(tmp_path, twin, 20, 20)


# ------------------------------------------------------------------ failing writes


def test_full_disk_delays_durability_and_loses_nothing(tmp_path: Path) -> None:
    twin = Twin(11, 40)
    store = Full(tmp_path)
    engine = tk.Engine(storage=tk.Storage(store))
    declare(engine)
    for epoch in range(10):
        play(engine, twin, epoch)
    engine.sync()
    store.at = store.steps + 3
    for epoch in range(10, 30):
        play(engine, twin, epoch)
    with pytest.raises(tk.FaultError, match=f"cannot be written.*{os.strerror(errno.ENOSPC)}"):
        engine.sync()
    assert engine.visible == 30
    assert engine.durable < 30
    check(engine, twin)
    assert state_of(tmp_path).epoch == engine.durable
    store.full = False
    assert engine.sync() == 30
    for epoch in range(30, 40):
        play(engine, twin, epoch)
    engine.close()
    run(tmp_path, twin, 40, 40)


@pytest.mark.parametrize("step", range(1, 30))
def test_disk_that_is_full_at_any_step_is_only_a_delay(tmp_path: Path, step: int) -> None:
    twin = Twin(step, 8)
    store = Full(tmp_path)
    engine = tk.Engine(storage=tk.Storage(store))
    declare(engine)
    store.at = store.steps + step
    for epoch in range(8):
        play(engine, twin, epoch)
    try:
        engine.sync()
    except tk.FaultError:
        store.full = False
        assert engine.sync() == 8
    engine.close()
    run(tmp_path, twin, 8, 8)


def test_epochs_that_cannot_be_written_are_bounded(tmp_path: Path) -> None:
    store = Full(tmp_path)
    engine = tk.Engine(storage=tk.Storage(store, waiting_bytes=10_000))
    numbers = engine.input("numbers", n=tk.Int)
    engine.sync()
    store.full = True
    with pytest.raises(tk.FaultError, match="epochs wait in memory"):
        for n in range(1000):
            numbers.insert([(i,) for i in range(n * 100, n * 100 + 100)])
            engine.advance()
    epoch, waiting = engine.epoch, numbers.pending
    assert waiting == 100
    assert len(engine.install("all", numbers).rows()) == 100 * epoch
    store.full = False
    engine.sync()
    engine.advance()
    engine.close()
    with tk.Engine(storage=tmp_path) as engine:
        assert len(engine.install("all", engine.table("numbers")).rows()) == 100 * (epoch + 1)


def test_closing_on_a_full_disk_says_so_and_lets_go(tmp_path: Path) -> None:
    store = Full(tmp_path)
    engine = tk.Engine(storage=tk.Storage(store))
    engine.input("numbers", n=tk.Int)
    engine.sync()
    store.full = True
    engine.advance()
    with pytest.raises(tk.FaultError, match="cannot be written"):
        engine.close()
    tk.Engine(storage=tmp_path).close()


@pytest.mark.parametrize("seed", range(6))
def test_what_is_durable_survives_a_power_cut(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "_CLEAN_EVERY", 5)
    twin = Twin(seed, 30)
    store = PowerCut(tmp_path / "disk", tmp_path / "left")
    with tk.Engine(storage=tk.Storage(store, retention=0.0)) as engine:
        declare(engine)
        for epoch in range(30):
            play(engine, twin, epoch)
            if epoch % 6 == seed:
                durable = engine.sync()
                cut = tmp_path / f"cut {epoch}"
                shutil.copytree(store.left, cut)
                with tk.Engine(storage=cut) as again:
                    assert again.epoch == durable
                    check(again, twin)


# ------------------------------------------------------------------ damage, and other people's files


def filled(path: Path) -> Twin:
    twin = Twin(5, 12)
    with tk.Engine(storage=path) as engine:
        declare(engine)
        for epoch in range(12):
            play(engine, twin, epoch)
            engine.sync()
    return twin


@pytest.mark.parametrize("damage", ["cut", "flip", "gone"])
def test_damaged_batch_file_is_named_and_nothing_is_written(tmp_path: Path, damage: str) -> None:
    filled(tmp_path)
    state = state_of(tmp_path)
    whole = [
        info for name, info in state.files.items() if name not in state.dead
    ]  # damage to what is dead does not matter
    name = max(whole, key=lambda info: info.length).name
    path = tmp_path / "batches" / name
    content = path.read_bytes()
    if damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "flip":
        columns = content[64 : content.rindex(b'{"format"')]  # each begins at a multiple of 64; some are not live
        flipped = bytes(byte if at % 64 else byte ^ 8 for at, byte in enumerate(columns))
        path.write_bytes(content[:64] + flipped + content[64 + len(columns) :])
    else:
        path.unlink()
    before = sorted(os.listdir(tmp_path / "manifest"))
    with pytest.raises(tk.FaultError, match=name):
        tk.Engine(storage=tmp_path)
    assert sorted(os.listdir(tmp_path / "manifest")) == before
    path.write_bytes(content)
    tk.Engine(storage=tmp_path).close()


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Twin]:
    place = tmp_path_factory.mktemp("sound")
    return place, filled(place)


@pytest.mark.parametrize("seed", range(40))
def test_any_damage_is_an_error_that_names_a_file_or_does_not_matter(
    seed: int, sound: tuple[Path, Twin], tmp_path: Path
) -> None:
    original, twin = sound
    path = Path(shutil.copytree(original, tmp_path / "storage"))
    rng = random.Random(seed)
    hurt = rng.sample(
        sorted(file for file in path.rglob("*") if file.is_file() and file.name != "lock"), rng.choice([1, 1, 4])
    )
    for file in hurt:
        content = bytearray(file.read_bytes())
        if rng.random() < 0.4:
            file.write_bytes(content[: rng.randrange(len(content))])
        else:
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
            file.write_bytes(content)
    try:
        with tk.Engine(storage=path) as engine:
            assert engine.epoch == 12
            check(engine, twin)
    except tk.TektiteError as error:
        assert any(file.name in str(error) for file in hurt), error


def test_manifest_cut_short_is_healed(tmp_path: Path) -> None:
    twin = filled(tmp_path)
    newest = max((tmp_path / "manifest").glob("*.json"))
    newest.write_bytes(newest.read_bytes()[:50])
    run(tmp_path, twin, 12, 12)


def test_folder_of_something_else_is_refused_untouched(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(tk.IncorrectError, match=r"no Tektite storage: it holds thesis\.tex"):
        tk.Engine(storage=tmp_path)
    assert os.listdir(tmp_path) == ["thesis.tex"]


def test_newer_format_is_refused_untouched(tmp_path: Path) -> None:
    filled(tmp_path)
    newest = max((tmp_path / "manifest").glob("*.json"))
    newest.write_bytes(newest.read_bytes().replace(b"tektite-manifest 1", b"tektite-manifest 9"))
    before = sorted(os.listdir(tmp_path / "manifest"))
    with pytest.raises(tk.UnsupportedError, match=f"{newest.name} has format 9.*upgrade"):
        tk.Engine(storage=tmp_path)
    assert sorted(os.listdir(tmp_path / "manifest")) == before


@pytest.mark.parametrize("where", ["", 7, b"path"])
def test_storage_must_be_a_place(where: Any) -> None:
    with pytest.raises(tk.IncorrectError, match="storage"):
        tk.Engine(storage=where)


def test_folder_that_cannot_be_made_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(tk.FaultError, match="file/below cannot be opened"):
        tk.Engine(storage=tmp_path / "file" / "below")


def test_file_is_no_storage(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(tk.IncorrectError, match="is a file"):
        tk.Engine(storage=tmp_path / "file")


def test_engine_without_storage_has_nothing_to_sync() -> None:
    with tk.Engine() as engine:
        assert (engine.durable, engine.positions) == (0, {})
        with pytest.raises(tk.IncorrectError, match="no storage"):
            engine.sync()


def test_engine_that_nobody_closes_lets_go_of_its_storage(tmp_path: Path) -> None:
    engine = tk.Engine(storage=tmp_path)
    engine.input("a", n=tk.Int).insert([(1,)])
    engine.advance()
    del engine
    gc.collect()
    with tk.Engine(storage=tmp_path) as engine:
        assert engine.install("all", engine.table("a")).rows() == [(1,)]


class Collecting(PosixStore):
    """A store in which garbage collection happens while it writes, as it may in any thread."""

    def sync(self, file: Any) -> None:
        gc.collect()
        super().sync(file)


def test_engine_that_is_collected_by_its_own_writer_loses_nothing(tmp_path: Path) -> None:
    for n in range(3):
        engine = tk.Engine(storage=tk.Storage(Collecting(tmp_path)))
        table = engine.input("a", n=tk.Int)
        table.insert([(n,)])
        engine.advance()
        del engine, table
        for _ in range(500):  # it is let go of by and by
            try:
                PosixStore(tmp_path).lock().release()  # type: ignore[union-attr]
                break
            except tk.ConflictError:
                time.sleep(0.01)
    with tk.Engine(storage=tmp_path) as engine:
        assert sorted(engine.install("all", engine.table("a")).rows()) == [(0,), (1,), (2,)]


PROGRAM = """
import sys
import tektite as tk
engine = tk.Engine(storage=sys.argv[1])
numbers = engine.input("numbers", n=tk.Int)
for n in range(100):
    numbers.insert([(i,) for i in range(100 * n, 100 * n + 100)])
    engine.advance()
"""


def test_program_that_ends_without_closing_loses_nothing(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    with tk.Engine(storage=tmp_path) as engine:
        assert len(engine.install("all", engine.table("numbers")).rows()) == 10_000


def test_file_size_limit_of_the_system_is_a_write_that_fails(tmp_path: Path) -> None:
    program = PROGRAM.replace("for n in", "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\nfor n in")
    program = "import resource, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n" + program
    program += """
numbers.insert([(i,) for i in range(10_000, 50_000)])
engine.advance()
try:
    engine.close()
except tk.FaultError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "cannot be written" in done.stdout
    assert os.strerror(errno.EFBIG) in done.stdout
    with tk.Engine(storage=tmp_path) as engine:
        found = len(engine.install("all", engine.table("numbers")).rows())
        assert found == 100 * engine.epoch


def test_small_file_system_that_fills_up_delays_durability(tmp_path: Path) -> None:
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)], capture_output=True)
    if mounted.returncode:
        pytest.skip("only root may mount a small file system")
    try:
        engine = tk.Engine(storage=place / "engine")
        numbers = engine.input("numbers", n=tk.Int)
        numbers.insert([(n,) for n in range(1000)])
        engine.advance()
        engine.sync()
        (place / "ballast").write_bytes(bytes(180 << 10))
        numbers.insert([(n * 2**33,) for n in range(1000, 15_000)])
        engine.advance()
        with pytest.raises(tk.FaultError, match=os.strerror(errno.ENOSPC)):
            engine.sync()
        assert (engine.visible, engine.durable) == (2, 1)
        (place / "ballast").unlink()
        assert engine.sync() == 2
        engine.close()
        with tk.Engine(storage=place / "engine") as engine:
            assert len(engine.install("all", engine.table("numbers")).rows()) == 15_000
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)
