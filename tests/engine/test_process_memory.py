"""The account of the process's memory adds up to what the process has taken."""

from __future__ import annotations

import sys

import pytest

from tektite.engine.system.process_memory import BLOCK_BYTES, ProcessMemory
from tektite.runtime import allocator
from tektite.runtime.allocator import MemoryFigures

MIB = 1 << 20


def told(monkeypatch: pytest.MonkeyPatch, before: MemoryFigures, after: MemoryFigures, counted: int) -> dict[str, int]:
    """What is told of a process that grows, in bytes by kind."""
    now = [before]
    monkeypatch.setattr(allocator, "figures", lambda: now[0])
    monkeypatch.setattr(sys, "getallocatedblocks", lambda: 1000)
    memory = ProcessMemory()
    now[0] = after
    return {kind: size for kind, _, size in memory.rows(counted, is_mapped=False)}


def test_what_is_allocated_and_never_written_is_nobodys_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Merges have room for the longest possible result."""
    after = MemoryFigures(150 * MIB, 20 * MIB, 500 * MIB)
    found = told(monkeypatch, MemoryFigures(50 * MIB, 20 * MIB, 10 * MIB), after, counted=80 * MIB)
    assert found["objects"] == pytest.approx(20 * MIB, abs=5 * MIB)
    assert found["unreturned"] == 0


@pytest.mark.parametrize("blocks", [0, 100 * MIB // BLOCK_BYTES, 1000 * MIB // BLOCK_BYTES])
def test_objects_are_not_told_to_take_more_than_the_process_has(monkeypatch: pytest.MonkeyPatch, blocks: int) -> None:
    """The size of a small object is an average: there may be many that are smaller."""
    now = [MemoryFigures(50 * MIB, 20 * MIB, 10 * MIB), 1000]
    monkeypatch.setattr(allocator, "figures", lambda: now[0])
    monkeypatch.setattr(sys, "getallocatedblocks", lambda: now[1])
    memory = ProcessMemory()
    now[:] = [MemoryFigures(400 * MIB, 30 * MIB, 100 * MIB), 1000 + blocks]
    counted = 60 * MIB
    found = {kind: size for kind, _, size in memory.rows(counted, is_mapped=False)}
    taken = sum(size for kind, size in found.items() if kind != "process") + counted
    assert taken == pytest.approx(350 * MIB, abs=5 * MIB), "smaller figures are not told"
    assert found["process"] == 50 * MIB and found["libraries"] == 10 * MIB
    assert found["objects"] == pytest.approx(30 * MIB + min(blocks * BLOCK_BYTES, 250 * MIB), abs=5 * MIB)
