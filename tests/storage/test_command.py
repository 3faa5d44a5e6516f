"""`tektite storage`: what it shows, deletes and mends."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import tektite as tk
from tektite.__main__ import app
from tektite.storage.leases import Lease
from tektite.storage.manifest import Manifest, ManifestState, version_name
from tektite.storage.store import PosixStore
from tests.support.stored import Twin, check, declare, play


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["storage", *map(str, arguments)], env={"COLUMNS": "200"})


def state_of(path: Path) -> ManifestState:
    return Manifest.open(PosixStore(path)).state


@pytest.fixture(scope="module")
def twin() -> Twin:
    return Twin(21, 40)


@pytest.fixture(scope="module")
def original(twin: Twin, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A storage with merges behind it, made beside the epochs, whose inputs have not been deleted."""
    place = tmp_path_factory.mktemp("storage")
    with tk.Engine(storage=place, autocommit=False) as engine:
        declare(engine)
        for epoch in range(40):
            play(engine, twin, epoch)
            engine.sync()
    return place


@pytest.fixture
def path(tmp_path: Path, original: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(original, tmp_path / "storage"))


def damage(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[:64] + bytes([content[64] ^ 1]) + content[65:])


def found_again(path: Path, twin: Twin, epoch: int = 40) -> None:
    with tk.Engine(storage=path, autocommit=False) as engine:
        assert engine.next_epoch == epoch
        check(engine, twin)


def test_inspect_shows_inputs_rows_and_positions(path: Path) -> None:
    shown = run("inspect", path, "--files", "--verify")
    assert shown.exit_code == 0, shown.output
    for text in (
        f"by process {os.getpid()}",
        "edges",
        "prices",
        "Schema(item=int, label=string), key (item), upsert",
        '{"epoch": 40}',
        "is sound",
    ):
        assert text in shown.output
    assert all(name[:30] in shown.output for name in state_of(path).files)


def test_inspect_as_json_is_the_state(path: Path) -> None:
    shown = json.loads(run("inspect", path, "--json").output)
    assert shown.pop("url") == str(path)
    assert ManifestState.from_json(shown) == state_of(path)


def test_inspect_finds_damage(path: Path) -> None:
    state = state_of(path)
    name = next(name for name in state.files if name not in state.dead)
    damage(path / "batches" / name)
    assert run("inspect", path).exit_code == 0
    shown = run("inspect", path, "--verify")
    assert shown.exit_code == 1
    assert name in shown.output


@pytest.mark.parametrize("command", ["inspect", "vacuum", "repair"])
def test_what_is_no_storage_is_said(command: str, tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "absent"):
        shown = run(command, place)
        assert shown.exit_code == 1
        assert "there is no storage at" in shown.output
    (tmp_path / "else").mkdir()
    shown = run(command, tmp_path)
    assert shown.exit_code == 1
    assert "not a Tektite storage" in shown.output
    assert os.listdir(tmp_path) in (["else"], ["else", "lock"], ["lock", "else"])


def test_vacuum_deletes_what_no_version_needs(path: Path, twin: Twin) -> None:
    (path / "batches" / ".writing-abc").write_bytes(b"half a file")
    (path / "batches" / "0000000007-epoch-0-abc.batch").write_bytes(b"written by a task that died")
    before = {folder: sorted(os.listdir(path / folder)) for folder in ("batches", "manifest")}
    dry = run("vacuum", path, "--dry-run", "--retention", 0)
    assert dry.exit_code == 0, dry.output
    assert "would delete batches/.writing-abc" in dry.output
    assert {folder: sorted(os.listdir(path / folder)) for folder in ("batches", "manifest")} == before
    kept = run("vacuum", path)
    assert "0 files" in kept.output
    assert {folder: sorted(os.listdir(path / folder)) for folder in ("batches", "manifest")} == before
    done = run("vacuum", path, "--retention", 0)
    assert done.exit_code == 0, done.output
    state = state_of(path)
    assert sorted(os.listdir(path / "batches")) == sorted(state.files)
    found_again(path, twin)


def test_vacuum_honours_leases(path: Path) -> None:
    state = Manifest(PosixStore(path)).load(30)
    with Lease(PosixStore(path), 30, 60):
        run("vacuum", path, "--retention", 0)
        assert Manifest(PosixStore(path)).load(30) == state
        assert set(state.files) <= set(os.listdir(path / "batches"))
    run("vacuum", path, "--retention", 0)
    assert not set(state.files) <= set(os.listdir(path / "batches"))


@pytest.mark.parametrize("command", ["vacuum", "repair"])
def test_storage_in_use_is_left_alone(path: Path, command: str) -> None:
    with tk.Engine(storage=path, autocommit=False):
        shown = run(command, path)
    assert shown.exit_code == 1
    assert "in use by process" in shown.output


def test_repair_of_a_sound_storage_does_nothing(path: Path, twin: Twin) -> None:
    before = sorted(os.listdir(path / "manifest"))
    assert "nothing is wrong" in run("repair", path).output
    assert sorted(os.listdir(path / "manifest")) == before
    found_again(path, twin)


def test_repair_restores_a_version_from_its_spare_copy(path: Path, twin: Twin) -> None:
    file = path / version_name(state_of(path).version)
    whole = file.read_bytes()
    file.write_bytes(whole[:40])
    dry = run("repair", path, "--dry-run")
    assert "spare copy" in dry.output
    assert file.read_bytes() != whole
    assert run("repair", path).exit_code == 0
    assert file.read_bytes() == whole
    found_again(path, twin)


def test_repair_makes_a_merged_file_again(path: Path, twin: Twin) -> None:
    merged = [name for name in state_of(path).files if "-merge-" in name]
    assert merged
    for name in merged:
        damage(path / "batches" / name)
    shown = run("repair", path)
    assert shown.exit_code == 0, shown.output
    assert all(f"made batches/{name} again" in shown.output for name in merged)
    found_again(path, twin)


def test_damage_to_what_is_dead_is_no_damage(tmp_path: Path) -> None:
    with tk.Engine(storage=tmp_path, autocommit=False) as engine:
        for name in ("dead", "live"):
            engine.create_table(name, {"n": tk.Int}).insert([(1,), (2,)])
        engine.advance()
        engine.drop("dead")
    [(name, [place])] = state_of(tmp_path).dead.items()
    assert place == 0
    damage(tmp_path / "batches" / name)
    assert "nothing is wrong" in run("repair", tmp_path).output
    with tk.Engine(storage=tmp_path, autocommit=False) as engine:
        assert sorted(engine.install("all", engine.table("live")).rows()) == [(1,), (2,)]


def test_repair_gives_nothing_up_unless_told_to(path: Path, twin: Twin) -> None:
    state = state_of(path)
    name = max(name for name in state.files if "-epoch-" in name)
    (path / "batches" / name).unlink()
    before = sorted(os.listdir(path / "manifest"))
    shown = run("repair", path)
    assert shown.exit_code == 1
    assert f"batches/{name}" in shown.output
    assert "--rollback" in shown.output
    assert sorted(os.listdir(path / "manifest")) == before
    with pytest.raises(tk.FaultError, match=name):
        tk.Engine(storage=path, autocommit=False)
    shown = run("repair", path, "--rollback")
    assert shown.exit_code == 0, shown.output
    lost = int(name[:10])
    assert f"epochs {lost - 1} to 39 are lost" in shown.output
    found_again(path, twin, lost - 1)


def test_damaged_manifest_can_be_rolled_back(path: Path, twin: Twin) -> None:
    version = state_of(path).version - 3
    for file in (path / version_name(version), (path / version_name(version)).with_suffix(".spare")):
        file.write_bytes(file.read_bytes()[:100])
    shown = run("repair", path)
    assert shown.exit_code == 1
    assert version_name(version) in shown.output
    shown = run("repair", path, "--rollback")
    assert f"went back to version {version - 1}" in shown.output
    with tk.Engine(storage=path, autocommit=False) as engine:
        assert 30 < engine.next_epoch < 40
        check(engine, twin)


def test_repair_writes_nothing_into_a_folder_that_is_no_storage(tmp_path: Path) -> None:
    (tmp_path / "readme.txt").write_text("other")
    found = run("repair", tmp_path)
    assert found.exit_code == 1 and "is not a Tektite storage" in found.output
    assert [entry.name for entry in tmp_path.iterdir()] == ["readme.txt"]


def test_rollback_says_if_no_version_is_sound(path: Path) -> None:
    assert run("vacuum", path, "--retention", 0).exit_code == 0
    for file in (path / "batches").iterdir():
        file.write_bytes(file.read_bytes()[:10])
    assert "give --rollback" in run("repair", path).output
    assert "no older version is there whose files are all sound" in run("repair", path, "--rollback").output


def test_retention_is_no_negative_number(path: Path) -> None:
    assert run("vacuum", path, "--retention", -5).exit_code == 2
