"""Kernels are built once for a content, however many processes ask, and found by whoever has the same content."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tektite.kernels import build, content

ROOT = Path(__file__).parents[2]
# Calls one kernel of a module that compiles fast, and shows which modules the process loaded and what it got.
CALL_IT = """
import sys
import numpy
from tektite.kernels.layout.rows import head_of_array
print(head_of_array(numpy.zeros((2, 4), numpy.int64), 4)[0], 'numba' in sys.modules, 'llvmlite' in sys.modules)
"""
FOUND = ["4", "False", "False"]


def start(program: str, cache: Path, checkout: Path = ROOT, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program],
        env=os.environ | {"TEKTITE_CACHE_DIR": str(cache), "PYTHONPATH": str(checkout), **environment},
        cwd=cache,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(program: str, cache: Path, checkout: Path = ROOT, **environment: str) -> list[str]:
    process = start(program, cache, checkout, **environment)
    out, errors = process.communicate()
    assert process.returncode == 0, errors
    return out.split()


def libraries(cache: Path) -> dict[Path, int]:
    """The libraries of a cache, with when each was written."""
    return {path.relative_to(cache): path.stat().st_mtime_ns for path in cache.rglob("*.so")}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that has what CALL_IT needs."""
    folder = tmp_path_factory.mktemp("cache")
    assert run(CALL_IT, folder) == FOUND
    return folder


def test_only_what_is_called_is_built(cache: Path) -> None:
    assert sorted(path.name.partition("-")[0] for path in libraries(cache)) == ["call", "layout.rows"]


def test_call_in_another_process_loads_what_was_built(cache: Path) -> None:
    before = libraries(cache)
    assert run(CALL_IT, cache) == FOUND
    assert libraries(cache) == before


def test_copy_at_another_path_loads_what_was_built(cache: Path, tmp_path: Path) -> None:
    before = libraries(cache)
    shutil.copytree(ROOT / "tektite", tmp_path / "tektite", ignore=shutil.ignore_patterns("__pycache__"))
    for source in tmp_path.rglob("*.py"):
        os.utime(source, (0, 0))
    assert run(CALL_IT, cache, tmp_path) == FOUND
    assert libraries(cache) == before


def test_cache_that_can_only_be_read_is_used(cache: Path, tmp_path: Path) -> None:
    """As root it can be written all the same: no compiler is there to do so."""
    folder = shutil.copytree(cache, tmp_path / "cache")
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555)
    assert run(CALL_IT, folder, CC="/nothing") == FOUND


def test_cache_that_cannot_be_written_builds_for_the_process(tmp_path: Path) -> None:
    (tmp_path / "kernels").write_text("a file where the folder should be: not even root writes into it")
    (tmp_path / "temporary").mkdir()
    assert run(CALL_IT, tmp_path, TMPDIR=str(tmp_path / "temporary")) == FOUND
    assert not list((tmp_path / "temporary").iterdir())


def test_no_compiler_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    errors = start(CALL_IT, tmp_path, CC="/no/compiler").communicate()[1]
    assert "/no/compiler cannot be run" in errors and "make wheel" in errors


def test_compiler_that_fails_is_an_error_with_what_it_said(tmp_path: Path) -> None:
    errors = start(CALL_IT, tmp_path, CC="cc -no-such-option").communicate()[1]
    assert "cc -no-such-option failed" in errors and "unrecognized" in errors


def test_free_threaded_python_is_refused(cache: Path) -> None:
    errors = start("import sys; sys.abiflags = 't'" + CALL_IT, cache).communicate()[1]
    assert "ImportError: Tektite needs a CPython with a global lock (GIL)" in errors


@pytest.mark.slow
def test_processes_that_start_together_build_once(tmp_path: Path) -> None:
    """The second one waits for the first one, says so, and finds what it built."""
    program = CALL_IT + "import os; print(os.getpid())"
    both = [start(program, tmp_path) for _ in range(2)]
    said = [process.communicate() for process in both]
    assert [out.split()[:3] for out, _ in said] == [FOUND, FOUND]
    assert len(libraries(tmp_path)) == 2
    assert any("which another process compiles" in errors for _, errors in said)


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """Four kernel modules instead of the real ones; a hash is computed anew for each question."""
    texts = {"low": "", "middle": "from tektite.kernels.low import f", "apart": ""}
    texts["high"] = "from tektite.kernels.middle import f"
    monkeypatch.setattr(content, "FOLDER", tmp_path)
    for name in (*content._RECIPE, *(f"{name}.py" for name in texts)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(texts.get(name.removesuffix(".py"), ""))
    forget()
    yield texts
    forget()


def forget() -> None:
    for remembered in (content.source, content.imports, content._digest, content.library_file):
        remembered.cache_clear()


def names(modules: dict[str, str]) -> dict[str, str]:
    forget()
    return {name: content.library_file(name, "some") for name in modules}


def test_change_to_a_module_renames_the_libraries_of_those_that_import_it(
    tmp_path: Path, sources: dict[str, str]
) -> None:
    before = names(sources)
    (tmp_path / "low.py").write_text("f = 1")
    after = names(sources)
    assert {name for name in sources if before[name] != after[name]} == {"low", "middle", "high"}


def test_change_to_the_recipe_renames_all_libraries(tmp_path: Path, sources: dict[str, str]) -> None:
    before = names(sources)
    (tmp_path / "emit.py").write_text("another recipe")
    assert not set(before.values()) & set(names(sources).values())


def test_every_kernel_module_is_found() -> None:
    found = content.kernel_modules()
    assert {"sort.build", "operators.join", "text.strings"} <= set(found)
    assert all("@kernel(" in content.source(module).read_text() for module in found)


def test_progress_counts_what_is_built(tmp_path: Path) -> None:
    seen: list[tuple[int, int, str]] = []
    build.build_libraries(["layout.rows"], "x86-64-v2", tmp_path, 1, lambda *report: seen.append(report))
    assert set(seen[:-1]) == {(0, 1, "layout.rows")} and seen[-1] == (1, 1, "")


WRONG = """
from tektite.kernels.compile import kernel

@kernel("int64(int64)")
def halved(number):
    return number / 2
"""


def test_kernel_that_returns_another_type_than_it_declares_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wrong_kernels.py").write_text(WRONG)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(tmp_path), str(ROOT))))
    with pytest.raises(
        build.BuildError, match="wrong_kernels.halved declares that it returns int64, but it returns float64"
    ):
        build.build_libraries(["wrong_kernels"], "x86-64-v2", tmp_path)
