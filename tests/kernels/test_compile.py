"""Kernels are compiled once for a machine, however many processes ask and whichever modules they imported first."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numba
import pytest

from tektite.kernels import compile as kernel_cache


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Three kernels in an empty cache, and the names of those that were compiled since."""
    names: list[str] = []
    monkeypatch.setattr(kernel_cache, "cache_folder", lambda module: tmp_path)
    monkeypatch.setattr(kernel_cache, "_effort", lambda kernel: 0)
    kernels = [kernel_cache.Kernel("module", SimpleNamespace(__name__=f"k{i}"), "void(int64)") for i in range(3)]
    monkeypatch.setattr(kernel_cache, "_KERNELS", kernels)
    monkeypatch.setattr(kernel_cache, "_compile", lambda name, dispatcher, signature: names.append(name))
    return names


def test_each_kernel_is_compiled_once(compiled: list[str]) -> None:
    kernel_cache.compile_kernels()
    kernel_cache.compile_kernels()
    assert compiled == ["module.k0", "module.k1", "module.k2"]


def test_kernels_of_a_module_imported_later_are_compiled(compiled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    everything = kernel_cache._KERNELS
    monkeypatch.setattr(kernel_cache, "_KERNELS", everything[:1])
    kernel_cache.compile_kernels()
    monkeypatch.setattr(kernel_cache, "_KERNELS", everything)
    kernel_cache.compile_kernels()
    assert compiled == ["module.k0", "module.k1", "module.k2"]


def test_progress_counts_what_is_compiled(compiled: list[str]) -> None:
    seen: list[tuple[int, int, str]] = []
    kernel_cache.compile_kernels(lambda *report: seen.append(report))
    assert seen == [(0, 3, "module.k0"), (1, 3, "module.k1"), (2, 3, "module.k2"), (3, 3, "")]


def test_kernel_that_returns_another_type_than_it_declares_is_refused() -> None:
    halved = numba.njit(lambda number: number / 2)
    with pytest.raises(TypeError, match="declares that it returns int64, but it returns float64"):
        kernel_cache._compile("module.halved", halved, "int64(int64)")


ROOT = Path(__file__).parents[2]
COMPILE_ONE = """
from tektite.kernels import compile
from tektite.kernels.layout import rows
compile._KERNELS[:] = [entry for entry in compile._KERNELS if entry.name == 'layout.rows.head_of_array']
compile.compile_kernels()
"""
CALL_IT = """
import numpy
from tektite.kernels.layout.rows import head_of_array
head_of_array(numpy.zeros((2, 4), numpy.int64), 4)
print(sum(head_of_array.stats.cache_hits.values()), sum(head_of_array.stats.cache_misses.values()))
"""


def run(program: str, cache: Path, checkout: Path = ROOT) -> list[str]:
    environment = os.environ | {"TEKTITE_CACHE_DIR": str(cache), "PYTHONPATH": str(checkout)}
    return subprocess.check_output([sys.executable, "-c", program], env=environment, cwd=cache, text=True).split()


def test_call_in_another_process_loads_what_was_compiled(tmp_path: Path) -> None:
    run(COMPILE_ONE, tmp_path)
    assert run(CALL_IT, tmp_path) == ["1", "0"]


def test_copy_at_another_path_loads_what_was_compiled(tmp_path: Path) -> None:
    run(COMPILE_ONE, tmp_path)
    shutil.copytree(ROOT / "tektite", tmp_path / "copy" / "tektite", ignore=shutil.ignore_patterns("__pycache__"))
    for source in (tmp_path / "copy").rglob("*.py"):
        os.utime(source, (0, 0))
    assert run(CALL_IT, tmp_path, tmp_path / "copy") == ["1", "0"]


def test_cache_that_cannot_be_written_compiles_for_the_process(tmp_path: Path) -> None:
    (tmp_path / "kernels").write_text("a file where the folder should be: not even root writes into it")
    program = COMPILE_ONE + CALL_IT.replace("print", "print(compile._KERNELS[0].ready, end=' ');print")
    assert run(program, tmp_path)[0] == "True"


def test_nobody_helps_where_the_cache_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kernels").write_text("a file where the folder should be")
    monkeypatch.setenv("TEKTITE_CACHE_DIR", str(tmp_path))
    assert kernel_cache._start_helpers(2) == []


def test_kernel_in_the_hands_of_another_process_is_waited_for(tmp_path: Path) -> None:
    """Two processes that start together compile the kernel once: the second one finds it when it gets the lock."""
    program = COMPILE_ONE + "print(sum(rows.head_of_array.stats.cache_misses.values()))"
    environment = os.environ | {"TEKTITE_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    both = [
        subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    assert sorted(process.communicate()[0].strip() for process in both) == ["0", "1"]


def test_change_to_a_module_renames_the_folders_of_those_that_import_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = {"low": "", "middle": "from tektite.kernels.low import f", "apart": ""}
    sources["high"] = "from tektite.kernels.middle import f"
    monkeypatch.setattr(kernel_cache, "_FOLDER", tmp_path)

    def folders() -> dict[str, Path]:
        kernel_cache._imports.cache_clear()
        kernel_cache.cache_folder.cache_clear()
        return {name: kernel_cache.cache_folder(name) for name in sources}

    try:
        for name, text in sources.items():
            (tmp_path / f"{name}.py").write_text(text)
        before = folders()
        (tmp_path / "low.py").write_text("f = 1")
        after = folders()
    finally:
        kernel_cache._imports.cache_clear()
        kernel_cache.cache_folder.cache_clear()
    assert {name for name in sources if before[name] != after[name]} == {"low", "middle", "high"}
