"""Kernels are compiled once for a machine, however many processes ask and whichever modules they imported first."""

from __future__ import annotations

from pathlib import Path

import pytest

from tektite.kernels import compile as kernel_cache


class Dispatcher:
    """Stands in for Numba's: remembers what it was asked to compile."""

    def __init__(self) -> None:
        self.signatures: list[str] = []

    def compile(self, signature: str) -> None:
        self.signatures.append(signature)


@pytest.fixture
def dispatchers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Dispatcher]:
    monkeypatch.setattr(kernel_cache, "CACHE", tmp_path / "cache")
    made = [Dispatcher() for _ in range(3)]
    monkeypatch.setattr(kernel_cache, "_KERNELS", [(f"module.k{i}", d, f"void({i})") for i, d in enumerate(made)])
    return made


def test_each_kernel_is_compiled_once(dispatchers: list[Dispatcher]) -> None:
    kernel_cache.compile_kernels()
    kernel_cache.compile_kernels()
    assert [dispatcher.signatures for dispatcher in dispatchers] == [["void(0)"], ["void(1)"], ["void(2)"]]


def test_kernels_of_a_module_imported_later_are_compiled(
    dispatchers: list[Dispatcher], monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = kernel_cache._KERNELS
    monkeypatch.setattr(kernel_cache, "_KERNELS", everything[:1])
    kernel_cache.compile_kernels()
    monkeypatch.setattr(kernel_cache, "_KERNELS", everything)
    kernel_cache.compile_kernels()
    assert [dispatcher.signatures for dispatcher in dispatchers] == [["void(0)"], ["void(1)"], ["void(2)"]]


def test_progress_counts_what_is_compiled(dispatchers: list[Dispatcher]) -> None:
    seen: list[tuple[int, int, str]] = []
    kernel_cache.compile_kernels(lambda *report: seen.append(report))
    assert seen == [(0, 3, "module.k0"), (1, 3, "module.k1"), (2, 3, "module.k2"), (3, 3, "")]
