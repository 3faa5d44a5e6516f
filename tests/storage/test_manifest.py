"""The manifest: versions in order, one writer at a time, damage found and healed, and nothing counted twice."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from tektite.errors import ConflictError, FaultError, IncorrectError, NotFoundError, UnsupportedError
from tektite.storage.batchfile import FileInfo, Section
from tektite.storage.manifest import (
    CHECKPOINT_EVERY,
    Manifest,
    ManifestChange,
    ManifestState,
    SectionReference,
    encode,
    version_name,
)
from tektite.storage.store import PosixStore


def file_of(name: str, *places: tuple[str, int, int, int]) -> FileInfo:
    """A file with a batch for each (arrangement, shard, lower, upper)."""
    sections = [
        Section("batch", 10, 640, arrangement, shard, (2, 1, 1), ((low,),), ((high,),), ((low,),))
        for arrangement, shard, low, high in places
    ]
    return FileInfo(name, 1000, tuple(sections))


def fill(manifest: Manifest, versions: int) -> None:
    """Versions that add a file each; every fifth merges the five before."""
    manifest.commit(ManifestChange(arrangements={"edges": {"kind": "input"}}, shards=1))
    for n in range(1, versions):
        live = manifest.state.live("edges", 0)
        change = ManifestChange(epoch=n, positions={"edges": {"batch": n}})
        if n % 5:
            change.add.append(file_of(f"f{n}", ("edges", 0, n, n + 1)))
        else:
            change.add.append(file_of(f"m{n}", ("edges", 0, live[0].section.lower[0][0], n + 1)))
            change.remove += live
        manifest.commit(change)


def test_every_version_can_be_read_again(tmp_path: Path) -> None:
    manifest = Manifest.open(PosixStore(tmp_path))
    states = []
    fill(manifest, 1)
    for _ in range(2 * CHECKPOINT_EVERY + 3):
        states.append(manifest.state)
        manifest.commit(ManifestChange(epoch=len(states), add=[file_of(f"f{len(states)}", ("edges", 0, 1, 2))]))
    reader = Manifest.open(PosixStore(tmp_path))
    assert reader.state == manifest.state
    for state in states:
        assert reader.load(state.version) == state
    with pytest.raises(NotFoundError, match="no version 1000"):
        reader.load(1000)


def test_changes_say_what_each_version_did(tmp_path: Path) -> None:
    manifest = Manifest.open(PosixStore(tmp_path))
    fill(manifest, 40)
    state = manifest.load(20)
    for _, change in manifest.changes(after=20):
        state = state.after(change, 0.0)
    assert (state.files, state.dead, state.positions, state.epoch) == (
        manifest.state.files,
        manifest.state.dead,
        manifest.state.positions,
        39,
    )


def test_replaced_sections_leave_and_the_last_one_frees_their_file(tmp_path: Path) -> None:
    manifest = Manifest.open(PosixStore(tmp_path))
    both = file_of("both", ("a", 0, 0, 1), ("b", 0, 0, 1))
    manifest.commit(ManifestChange(add=[both], arrangements={"a": {}, "b": {}}))
    manifest.commit(ManifestChange(add=[file_of("a2", ("a", 0, 0, 2))], remove=[SectionReference("both", 0)]))
    assert [live.file for live in manifest.state.live("a", 0)] == ["a2"]
    assert [live.file for live in manifest.state.live("b", 0)] == ["both"]
    assert manifest.read(2)["freed"] == []
    manifest.commit(ManifestChange(arrangements={"b": None}))
    assert manifest.state.live("b", 0) == []
    assert list(manifest.state.files) == ["a2"]
    assert manifest.read(3)["freed"] == ["both"]
    assert Manifest.open(manifest.store).state == manifest.state


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (ManifestChange(add=[file_of("f1", ("edges", 0, 1, 2))]), "count twice"),
        (ManifestChange(add=[file_of("g", ("nodes", 0, 1, 2))]), "'nodes', which was not declared"),
        (ManifestChange(remove=[SectionReference("f1", 1)]), "not live"),
        (ManifestChange(remove=[SectionReference("f1", 0), SectionReference("f1", 0)]), "not live"),
        (ManifestChange(remove=[SectionReference("absent", 0)]), "not live"),
    ],
)
def test_change_that_does_not_fit_is_refused_and_writes_nothing(
    tmp_path: Path, change: ManifestChange, message: str
) -> None:
    manifest = Manifest.open(PosixStore(tmp_path))
    fill(manifest, 3)
    before = sorted(os.listdir(tmp_path / "manifest"))
    with pytest.raises(IncorrectError, match=message):
        manifest.commit(change)
    assert sorted(os.listdir(tmp_path / "manifest")) == before


def test_of_two_writers_the_second_is_fenced_and_changes_nothing(tmp_path: Path) -> None:
    first, second = (Manifest.open(PosixStore(tmp_path)) for _ in range(2))
    owner = {"process": 17, "host": "here"}
    first.commit(ManifestChange(owner=owner, arrangements={"edges": {}}))
    for _ in range(2):
        with pytest.raises(ConflictError, match="process 17 on here.*version 1"):
            second.commit(ManifestChange(epoch=9))
    second.refresh()
    first.commit(ManifestChange(epoch=1))
    with pytest.raises(ConflictError, match="process 17 on here"):
        second.commit(ManifestChange(epoch=9))
    assert Manifest.open(PosixStore(tmp_path)).state == first.state


def test_many_writers_race_and_one_wins_each_version(tmp_path: Path) -> None:
    won: list[int] = []
    failed: list[BaseException] = []
    start = threading.Barrier(4)

    def write() -> None:
        manifest = Manifest(PosixStore(tmp_path))
        start.wait()
        for _ in range(20):
            try:
                manifest.refresh()
                manifest.commit(ManifestChange(epoch=1))
                won.append(manifest.state.version)
            except ConflictError:
                continue
            except BaseException as error:
                failed.append(error)

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert sorted(won) == list(range(1, len(won) + 1))
    assert Manifest.open(PosixStore(tmp_path)).state.version == len(won)


class Unsure(PosixStore):
    """A store whose creations succeed, but fail to say so while `lost` is set."""

    lost = False

    def sync_folder(self, folder: Path) -> None:
        if self.lost and folder.name == "manifest":
            raise OSError(5, "Input/output error")
        super().sync_folder(folder)


def test_version_that_landed_though_it_failed_is_made_once(tmp_path: Path) -> None:
    store = Unsure(tmp_path)
    manifest = Manifest.open(store)
    fill(manifest, 2)
    change = ManifestChange(epoch=5)
    store.lost = True
    with pytest.raises(OSError, match="Input/output"):
        manifest.commit(change)
    store.lost = False
    assert manifest.commit(change).version == 3
    assert Manifest.open(store).state == manifest.state


@pytest.mark.parametrize("damage", ["cut", "flip", "gone"])
@pytest.mark.parametrize("version", [33, 36, 40])
def test_damaged_version_is_read_from_its_spare_copy_and_put_back(tmp_path: Path, damage: str, version: int) -> None:
    manifest = Manifest.open(PosixStore(tmp_path))
    fill(manifest, 40)
    path = tmp_path / version_name(version)
    whole = path.read_bytes()
    hurt(path, damage)
    reader = Manifest.open(PosixStore(tmp_path))
    assert reader.state == manifest.state
    assert reader.heal() == [version_name(version)]
    assert path.read_bytes() == whole


@pytest.mark.parametrize("damage", ["cut", "flip"])
def test_damage_to_both_copies_is_an_error_that_names_the_file(tmp_path: Path, damage: str) -> None:
    fill(Manifest.open(PosixStore(tmp_path)), 40)
    hurt(tmp_path / version_name(37), damage)
    hurt((tmp_path / version_name(37)).with_suffix(".spare"), damage)
    with pytest.raises(FaultError, match=version_name(37)):
        Manifest.open(PosixStore(tmp_path))


def test_missing_version_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    fill(Manifest.open(PosixStore(tmp_path)), 40)
    (tmp_path / version_name(37)).unlink()
    (tmp_path / version_name(37)).with_suffix(".spare").unlink()
    with pytest.raises(FaultError, match=version_name(37)):
        Manifest.open(PosixStore(tmp_path))


def hurt(path: Path, damage: str) -> None:
    content = path.read_bytes()
    if damage == "cut":
        path.write_bytes(content[:-10])
    elif damage == "flip":
        path.write_bytes(content[:-5] + bytes([content[-5] ^ 4]) + content[-4:])
    else:
        path.unlink()


def test_version_of_another_storage_is_found_out(tmp_path: Path) -> None:
    for name in ("ours", "theirs"):
        fill(Manifest.open(PosixStore(tmp_path / name)), 5)
    for suffix in (".json", ".spare"):
        stray = Path(version_name(4)).with_suffix(suffix)
        (tmp_path / "ours" / stray).write_bytes((tmp_path / "theirs" / stray).read_bytes())
    with pytest.raises(FaultError, match=f"{version_name(4)}.*two storages were mixed"):
        Manifest.open(PosixStore(tmp_path / "ours"))


def test_newer_format_asks_for_an_upgrade(tmp_path: Path) -> None:
    fill(Manifest.open(PosixStore(tmp_path)), 2)
    path = tmp_path / version_name(2)
    path.write_bytes(path.read_bytes().replace(b"tektite-manifest 1 ", b"tektite-manifest 2 "))
    with pytest.raises(UnsupportedError, match=f"{version_name(2)}.*upgrade"):
        Manifest.open(PosixStore(tmp_path))


def test_state_survives_json() -> None:
    state = ManifestState(engine="e").after(
        ManifestChange(add=[], arrangements={"a": {"kind": "input"}}, positions={"a": {"b": 1}}), 2.5
    )
    assert ManifestState.from_json(state.to_json()) == state
    assert encode({"state": state.to_json()}) == encode({"state": ManifestState.from_json(state.to_json()).to_json()})
