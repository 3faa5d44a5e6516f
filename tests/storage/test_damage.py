"""Damage is an error that names the file, or does not matter; other people's folders are left alone."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

import tektite as tk
from tests.support.nightly import few_of
from tests.support.stored import Twin, check, declare, play, run, state_of


def filled(path: Path) -> Twin:
    twin = Twin(5, 12)
    with tk.Engine(storage=path, autocommit=False) as engine:
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
        tk.Engine(storage=tmp_path, autocommit=False)
    assert sorted(os.listdir(tmp_path / "manifest")) == before
    path.write_bytes(content)
    tk.Engine(storage=tmp_path, autocommit=False).close()


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Twin]:
    place = tmp_path_factory.mktemp("sound")
    return place, filled(place)


@pytest.mark.parametrize("seed", few_of(range(40), *range(16)))
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
        with tk.Engine(storage=path, autocommit=False) as engine:
            assert engine.next_epoch == 12
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
    with pytest.raises(tk.IncorrectError, match=r"not a Tektite storage: it holds thesis\.tex"):
        tk.Engine(storage=tmp_path, autocommit=False)
    assert os.listdir(tmp_path) == ["thesis.tex"]


def test_newer_format_is_refused_untouched(tmp_path: Path) -> None:
    filled(tmp_path)
    newest = max((tmp_path / "manifest").glob("*.json"))
    newest.write_bytes(newest.read_bytes().replace(b"tektite-manifest 1", b"tektite-manifest 9"))
    before = sorted(os.listdir(tmp_path / "manifest"))
    with pytest.raises(tk.UnsupportedError, match=f"{newest.name} has format 9.*upgrade"):
        tk.Engine(storage=tmp_path, autocommit=False)
    assert sorted(os.listdir(tmp_path / "manifest")) == before


@pytest.mark.parametrize("where", ["", 7, b"path"])
def test_storage_must_be_a_place(where: Any) -> None:
    with pytest.raises(tk.IncorrectError, match="storage"):
        tk.Engine(storage=where, autocommit=False)


def test_folder_that_cannot_be_made_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(tk.FaultError, match="file/below cannot be opened"):
        tk.Engine(storage=tmp_path / "file" / "below", autocommit=False)


def test_file_is_no_storage(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(tk.IncorrectError, match="is a file"):
        tk.Engine(storage=tmp_path / "file", autocommit=False)
