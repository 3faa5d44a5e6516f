"""The wheel runs where a user puts it: without Numba, a compiler, a home folder or a place to write."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]

# Every layer at once: a table, a join, a loop, texts, SQL, Datalog, a restart.
PROGRAM = """
import sys, tempfile
import tektite as tk
with tk.Engine(2, autocommit=False) as engine:
    edges = engine.create_table("edges", {"a": tk.String, "b": tk.String})
    edges.insert([("x", "y"), ("y", "z"), ("z", "x"), ("p", "q")])
    engine.advance()
    engine.sql("CREATE VIEW pairs AS SELECT l.a, count(*) AS n FROM edges l JOIN edges r ON l.b = r.a GROUP BY l.a")
    engine.datalog("reach(x, y) :- edges(x, y). reach(x, z) :- reach(x, y), edges(y, z).")
    print(engine.sql("SELECT sum(n) FROM pairs").table.to_pylist()[0]["sum"], len(engine.view("reach").to_arrow()))
    edges.remove([("z", "x")])
    engine.advance()
    print(engine.sql("SELECT sum(n) FROM pairs").table.to_pylist()[0]["sum"], len(engine.view("reach").to_arrow()))
print(tk.__file__, *[name for name in ("numba", "llvmlite", "setuptools") if name in sys.modules])
"""
ANSWERS = ["3 10", "1 4"]


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the wheel was installed to."""
    folder = tmp_path_factory.mktemp("installed") / "packages"
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--target", str(folder), str(wheel)]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def start(folder: Path, **environment: str) -> subprocess.Popen[str]:
    """Run PROGRAM with the package in a folder, without a home folder, a cache that could be written, or a compiler."""
    nothing = folder.parent / "nothing"
    nothing.touch()
    for name in ("numba", "llvmlite"):  # importing one of them fails
        (folder.parent / "blocked" / name).mkdir(parents=True, exist_ok=True)
        (folder.parent / "blocked" / name / "__init__.py").write_text("raise ImportError('this is for the build')")
    paths = os.pathsep.join([str(folder), str(folder.parent / "blocked")])
    keep = {name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_CACHE_HOME")}
    cannot = {
        "TEKTITE_CACHE_DIR": str(nothing),
        "CC": str(nothing),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": paths,
    }
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        cwd="/",
        env=keep | cannot | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def check(process: subprocess.Popen[str], folder: Path) -> None:
    out, errors = process.communicate()
    assert process.returncode == 0, errors
    assert out.splitlines() == [*ANSWERS, str(folder / "tektite" / "__init__.py")]
    assert not errors


def test_tag_says_every_cpython_from_3_11_on(wheel: Path) -> None:
    name, version, python, interface, platform = wheel.stem.split("-")
    assert (name, python, interface) == ("tektite", "cp311", "abi3")
    assert platform.startswith("manylinux_2_") or not sys.platform.startswith("linux")


def test_wheel_runs_without_numba_home_cache_and_compiler(installed: Path) -> None:
    check(start(installed), installed)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv of util-linux is missing")
def test_wheel_runs_for_a_user_without_rights_and_home(installed: Path) -> None:
    python = f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"  # one that every user may run
    others = [path for path in sys.path if path.endswith("site-packages")]
    with tempfile.TemporaryDirectory() as folder:  # the folders of pytest are for their owner alone
        Path(folder).chmod(0o755)
        shown = shutil.copytree(installed, Path(folder) / "packages")
        paths = {"PYTHONPATH": os.pathsep.join([str(shown), *others])}

        def run(program: str) -> subprocess.CompletedProcess[str]:
            command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", python, "-c", program]
            return subprocess.run(command, cwd="/", env=paths, capture_output=True, text=True)

        if not Path(python).exists() or run("import numpy, pyarrow, sqlglot").returncode:
            pytest.skip(f"no other user can run {python} with this environment's packages")
        done = run(PROGRAM)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines() == [*ANSWERS, str(shown / "tektite" / "__init__.py")]
        assert not done.stderr


def test_wheel_has_the_files_of_the_console(installed: Path) -> None:
    source, copy = (folder / "tektite" / "server" / "web" / "console" for folder in (ROOT, installed))
    files = {path.relative_to(source) for path in source.rglob("*") if path.is_file()}
    assert {path.relative_to(copy) for path in copy.rglob("*") if path.is_file()} == files


def test_copy_at_another_path_runs_from_a_folder_that_cannot_be_written(installed: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(installed, tmp_path / "elsewhere")
    for path in (*copy.rglob("*"), copy):
        path.chmod(0o555)
    before = {path: path.stat().st_mtime_ns for path in copy.rglob("*")}
    check(start(copy), copy)
    assert {path: path.stat().st_mtime_ns for path in copy.rglob("*")} == before


def test_processes_that_start_together_run(installed: Path) -> None:
    both = [start(installed) for _ in range(2)]
    for process in both:
        check(process, installed)


def test_changed_kernel_in_an_installed_package_says_what_to_do(installed: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(installed, tmp_path / "changed")
    with open(copy / "tektite" / "kernels" / "sort" / "build.py", "a") as file:
        file.write("\n# changed\n")
    process = start(copy)
    errors = process.communicate()[1]
    assert process.returncode == 1
    assert "cannot be compiled" in errors and "this is for the build" in errors
