"""Builds libraries of kernels, and the extension module that calls them: `python -m tektite.kernels.build --help`.

Promise: a library appears in its folder complete, or not at all. Any number of processes may build into one folder at the same
time: each locks a library before it builds it, and the others take another one or wait. A lock ends with its process.

A wheel brings what this builds (`make wheel`), so that users need neither Numba nor a C compiler. A checkout builds what its
cache lacks when it is first used, in as many processes as there are cores.
"""

from __future__ import annotations

import argparse
import atexit
import fcntl
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TextIO

from tektite.kernels import content

Progress = Callable[[int, int, str], None]
"""Receives how many libraries were built, of how many, and which one is being built; no name at the end."""

_NATIVE = content.FOLDER / "native"
# Compilers for other machines than this one: Debian's, and what Zig calls the machine, with the oldest C library that has it.
_CROSS = {"aarch64": ("aarch64-linux-gnu-gcc", "aarch64-linux-gnu.2.17")}


class BuildError(RuntimeError):
    """Kernels could not be built: no compiler, or it failed."""


@cache
def folder_to_build_in() -> Path:
    """The cache, or where that cannot be written, a folder that goes with the process."""
    folder = content.cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK | os.X_OK):
            return folder
    except OSError:
        pass
    here = os.getpid()
    made = Path(tempfile.mkdtemp(prefix="tektite-kernels-"))

    def remove() -> None:
        if os.getpid() == here:  # not in a child that was forked
            shutil.rmtree(made, ignore_errors=True)

    atexit.register(remove)
    return made


# ---------------------------------------------------------------------- compiling C


def _run_compiler(arguments: Sequence[str], machine: str) -> None:
    """Run the C compiler that CC names, or the usual one for a kind of machine, or else that of the package ziglang."""
    if machine != content.HERE and machine not in _CROSS:
        raise BuildError(f"this machine, {content.HERE}, cannot build for {machine}: build on such a machine")
    usual, target = ("cc", "") if machine == content.HERE else _CROSS[machine]
    command = shlex.split(os.environ.get("CC", "")) or [usual]
    if shutil.which(command[0]) is None and find_spec("ziglang") is not None:
        command = [sys.executable, "-m", "ziglang", "cc", *(["-target", target] if target else [])]
    try:
        done = subprocess.run(
            [*command, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    except OSError as error:
        raise BuildError(
            f"{command[0]} cannot be run ({error.strerror}): a checkout of Tektite needs a C compiler and Python's headers "
            "(on Debian: build-essential and python3-dev; or pip install ziglang for the compiler). A wheel needs neither: build "
            "one with `make wheel`"
        ) from error
    if done.returncode:
        raise BuildError(f"{shlex.join(command)} failed:\n{done.stdout.strip()}")


@contextmanager
def _new_file(path: Path) -> Iterator[Path]:
    """A file to write that becomes `path` at the end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".building-") as folder:
        made = Path(folder) / path.name
        yield made
        made.replace(path)


def build_calls(folder: Path, machine: str = content.HERE) -> Path:
    """Build the extension module that calls kernels, for a kind of machine, unless it is there.

    Its headers are those of this machine's Python, also for another machine: what the limited interface asks of them is the same
    on all 64-bit ones.
    """
    path = folder / content.calls_file(machine)
    with _lock(path, wait=True):
        if not path.exists():
            import numpy

            includes = [f"-I{found}" for found in (sysconfig.get_paths()["include"], numpy.get_include())]
            free = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []
            with _new_file(path) as made:
                sources = map(str, content.calls_sources())
                _run_compiler(["-O2", "-fPIC", "-shared", *free, *includes, *sources, "-o", str(made)], machine)
    return path


def _build_library(module: str, processor: str, path: Path) -> None:
    """Build the library of a kernel module, in a process that builds for this processor."""
    from importlib import import_module

    from tektite.kernels.compile import KERNELS
    from tektite.kernels.emit import object_of

    import_module(content.full_name(module))
    with _new_file(path) as made:
        objects = []
        for kernel in KERNELS:
            if kernel.module == module:
                objects.append(made.with_name(f"{kernel.name}.o"))
                objects[-1].write_bytes(object_of(kernel))
        strip = [] if sys.platform == "darwin" else ["-s", "-Wl,--gc-sections"]
        runtime = ["-O2", "-fPIC", "-shared", str(_NATIVE / "runtime.c"), "-lm"]
        _run_compiler([*map(str, objects), *runtime, *strip, "-o", str(made)], content.machine_of(processor))


# ---------------------------------------------------------------------- sharing the work


@contextmanager
def _lock(path: Path, wait: bool) -> Iterator[bool]:
    """Hold the lock on building a file; whether this process has it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.with_suffix(".lock"), "a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError:
            yield False
            return
        yield True


def build_libraries(
    modules: Iterable[str], processor: str, folder: Path, processes: int = 1, progress: Progress | None = None
) -> None:
    """Build the libraries of these modules that a folder lacks, with so many processes."""
    # The longest first: the last one to end should be short.
    files = {module: folder / content.library_file(module, processor) for module in modules}
    wanted = sorted((module for module in files if not files[module].exists()), key=content.effort, reverse=True)

    def missing() -> list[str]:
        return [module for module in wanted if not files[module].exists()]

    def report(note: str = "") -> None:
        left = missing()
        if progress and left:
            progress(len(wanted) - len(left), len(wanted), left[0] + note)

    while left := missing():
        with ExitStack() as stack:
            workers = [
                stack.enter_context(_worker([files[module] for module in left], processor, folder))
                for _ in range(max(1, min(processes, len(left))))
            ]
            while any(worker.poll() is None for worker, _ in workers):
                report()
                time.sleep(0.2)
            for worker, errors in workers:
                if worker.returncode:
                    errors.seek(0)
                    raise BuildError(f"kernels cannot be compiled:\n{errors.read().strip()}")
        if left := missing():
            report(", which another process compiles")
            with _lock(files[left[0]], wait=True):
                continue
    if progress and wanted:
        progress(len(wanted), len(wanted), "")


@contextmanager
def _worker(paths: list[Path], processor: str, folder: Path) -> Iterator[tuple[subprocess.Popen[str], TextIO]]:
    """A process that builds those of these libraries that nobody else builds, and the file that it writes errors to."""
    path = os.pathsep.join(filter(None, (str(content.FOLDER.parent.parent), os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-m", "tektite.kernels.build", "--work", "--into", str(folder), *map(str, paths)]
    environment = os.environ | {"PYTHONPATH": path, "TEKTITE_BUILD_FOR": processor}
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, text=True
        ) as worker,
    ):
        try:
            yield worker, errors
        finally:
            worker.kill()


def _work(paths: Iterable[Path], folder: Path) -> None:
    """Build libraries until each is there or in the hands of another process."""
    from tektite.kernels.emit import prepare
    from tektite.kernels.toolchain import BUILD_FOR

    prepare()
    for path in paths:
        module = path.stem.rpartition("-")[0]
        if path != folder / content.library_file(module, BUILD_FOR):
            raise SystemExit(
                f"the kernels of {module} have changed since the process that needs them began: start it again"
            )
        with _lock(path, wait=False) as mine:
            if mine and not path.exists():
                _build_library(module, BUILD_FOR, path)


# ---------------------------------------------------------------------- the command


def print_progress(done: int, total: int, name: str) -> None:
    """The progress that a user sees: one line on standard error that is rewritten."""
    tty = sys.stderr.isatty()
    ended = not name
    if ended:
        text = f"tektite: {total} modules of kernels compiled and cached"
    else:
        text = f"tektite: compiling kernels, once for this machine: {done}/{total} {name}"
    if tty:
        sys.stderr.write("\r\x1b[K" + text + ("\n" if ended else ""))
    elif ended or [text] != _printed:
        sys.stderr.write(text + "\n")
    _printed[:] = [text]
    sys.stderr.flush()


_printed: list[str] = []


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tektite.kernels.build", description=__doc__.partition("\n")[0])
    parser.add_argument("--into", type=Path, help="the folder to build into; the cache, if missing")
    parser.add_argument("--copy-to", type=Path, help="a folder that gets a copy of all that is built")
    parser.add_argument(
        "--processor", action="append", help="what to build for; all that this machine may be, if missing"
    )
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("modules", nargs="*", help="the modules to build; all of them, if missing")
    given = parser.parse_args()
    if given.work:
        _work(map(Path, given.modules), given.into)
        return
    folder = given.into or folder_to_build_in()
    modules = given.modules or content.kernel_modules()
    processors = given.processor or content.PROCESSORS[content.HERE]
    machines = sorted({content.machine_of(processor) for processor in processors})
    for machine in machines:
        build_calls(folder, machine)
    for processor in processors:
        build_libraries(modules, processor, folder, given.processes, print_progress)
    if given.copy_to:
        files = [content.library_file(module, processor) for processor in processors for module in modules]
        for file in (*map(content.calls_file, machines), *files):
            (given.copy_to / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(folder / file, given.copy_to / file)


if __name__ == "__main__":
    main()
