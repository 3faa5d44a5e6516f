"""Large batches lie in memory up to a budget, and in mapped files beyond it; their rows are the same."""

from __future__ import annotations

import gc
import os
import tempfile
from pathlib import Path

import numpy as np
import pytest

from tektite.dataflow.arrange import consolidate
from tektite.trace.batch import Batch
from tektite.trace.batch_memory import BatchMemory, CountedRows, FileRows, MappedRows
from tektite.trace.chunk import Chunk
from tektite.trace.key_ranges import key_ranges
from tektite.trace.merge import merge_all
from tektite.trace.spine import Spine

SHAPE = (2, 1, 1)
TINY = 1 << 12


def rows(rng: np.random.Generator, many: int, wide: bool = True) -> Chunk:
    words = rng.integers(-(2**40) if wide else 0, 2**40 if wide else 100, (2, many))
    return Chunk.of_array(np.vstack([words, rng.integers(0, 3, (1, many)), rng.choice([-1, 1, 2], (1, many))]))


def content(chunk: Chunk | Batch) -> list[list[int]]:
    return Chunk(chunk.head, chunk.memory).to_array().tolist()


@pytest.mark.parametrize("wide", [True, False])
def test_rows_that_do_not_fit_lie_in_a_file_and_are_the_same(wide: bool, tmp_path: Path) -> None:
    memory = BatchMemory(TINY, str(tmp_path))
    chunk = consolidate([rows(np.random.default_rng(1), 3000, wide)], SHAPE, 0)
    placed = memory.placed(chunk)
    assert isinstance(placed.memory, MappedRows)
    assert content(placed) == content(chunk)
    assert memory.mapped > 0 and memory.resident == 0
    assert os.listdir(tmp_path) == []
    del placed
    gc.collect()
    assert memory.mapped == 0


def test_rows_stay_in_memory_while_there_is_room() -> None:
    memory = BatchMemory(1 << 20)
    chunk = consolidate([rows(np.random.default_rng(1), 3000)], SHAPE, 0)
    placed = memory.placed(chunk)
    assert isinstance(placed.memory, CountedRows)
    assert placed.at == chunk.at
    assert memory.resident == 3000 * (8 + 8 + 1 + 1)
    del placed
    assert memory.resident == 0


def test_small_batches_are_left_alone() -> None:
    memory = BatchMemory(1 << 20)
    chunk = consolidate([rows(np.random.default_rng(1), 100)], SHAPE, 0)
    assert memory.placed(chunk) is chunk


def test_a_full_disk_leaves_rows_in_memory(tmp_path: Path) -> None:
    memory = BatchMemory(TINY, str(tmp_path / "missing"))
    chunk = consolidate([rows(np.random.default_rng(1), 3000)], SHAPE, 0)
    assert content(memory.placed(chunk)) == content(chunk)
    batches = [Batch(chunk.head, chunk.memory, (), (), ())] * 2
    assert merge_all(batches, SHAPE, (), memory).n == chunk.n


def test_rows_stay_in_memory_where_no_folder_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/proc/nowhere"])
    with pytest.raises(FileNotFoundError):
        tempfile.gettempdir()
    memory = BatchMemory(TINY)
    chunk = consolidate([rows(np.random.default_rng(1), 3000)], SHAPE, 0)
    placed = memory.placed(chunk)
    assert content(placed) == content(chunk)
    assert not memory.mapped and memory.resident > 0


def test_a_merge_in_a_file_gives_back_what_it_does_not_need(tmp_path: Path) -> None:
    memory = BatchMemory(TINY, str(tmp_path))
    rng = np.random.default_rng(2)
    parts = [consolidate([rows(rng, 50_000, wide=False)], SHAPE, 0) for _ in range(2)]
    merged = merge_all([Batch(p.head, p.memory, (), (), ()) for p in parts], SHAPE, (), memory)
    assert isinstance(merged.memory, FileRows)
    assert content(merged) == content(consolidate([*parts], SHAPE, 0))


@pytest.mark.parametrize("seed", range(8))
def test_sorting_in_pieces_gives_what_sorting_at_once_gives(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    memory = BatchMemory(TINY, str(tmp_path))
    chunks = [rows(rng, int(rng.integers(1, 6000)), wide=bool(rng.integers(2))) for _ in range(4)]
    chunks.append(consolidate([rows(rng, 5000)], SHAPE, 1))
    low = int(rng.integers(0, 2))
    assert content(consolidate(chunks, SHAPE, low, memory)) == content(consolidate(chunks, SHAPE, low))


@pytest.mark.parametrize("seed", range(6))
def test_a_spine_in_files_holds_what_one_in_memory_holds(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    memory = BatchMemory(TINY, str(tmp_path))
    spines = [Spine(SHAPE, memory=memory), Spine(SHAPE)]
    for epoch in range(12):
        chunk = consolidate([rows(rng, int(rng.choice([1, 50, 5000, 20_000])), wide=False)], SHAPE, 0)
        for spine in spines:
            spine.insert(Batch(chunk.head, chunk.memory, ((epoch,),), ((epoch + 1,),), ((epoch,),)))
    for spine in spines:
        spine.compact_now()
    one, other = (spine.version.batches for spine in spines)
    assert [content(batch) for batch in one] == [content(batch) for batch in other]
    assert isinstance(one[0].memory, FileRows)


def test_restored_batches_stay_where_they_are(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    memory = BatchMemory(1 << 30, str(tmp_path))
    parts = [consolidate([rows(rng, 100_000)], SHAPE, 0) for _ in range(4)]
    batches = [Batch(p.head, p.memory, ((e,),), ((e + 1,),), ((e,),)) for e, p in enumerate(parts)]
    spine = Spine(SHAPE, memory=memory)
    spine.restore(batches)
    assert {id(batch) for batch in spine.version.batches} == {id(batch) for batch in batches}
    before = content(consolidate([Chunk(b.head, b.memory) for b in batches], SHAPE, 0))
    while spine.idle(10_000):
        pass
    assert content(consolidate([Chunk(b.head, b.memory) for b in spine.version.batches], SHAPE, 0)) == before


@pytest.mark.parametrize("seed", range(6))
def test_ranges_of_keys_have_all_rows_and_no_key_twice(seed: int) -> None:
    rng = np.random.default_rng(seed)
    chunks = [
        consolidate([Chunk.of_array(rng.integers(0, 9, (4, int(rng.integers(1, 300)))))], SHAPE, 0) for _ in range(3)
    ]
    for keys in range(3):
        found: list[list[int]] = []
        seen: set[tuple[int, ...]] = set()
        for parts in key_ranges(chunks, keys, 20):
            here = [row for part in parts for row in part.to_array().T.tolist()]
            assert not seen & {tuple(row[:keys]) for row in here}
            seen |= {tuple(row[:keys]) for row in here}
            found += here
        assert sorted(found) == sorted(row for chunk in chunks for row in chunk.to_array().T.tolist())
