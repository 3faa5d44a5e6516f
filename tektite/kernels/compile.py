"""How kernels are compiled: once for each machine and version of the sources, into a cache, with visible progress.

Every kernel declares the one signature it is ever called with, so nothing is compiled twice and a type that
does not fit is an error instead of another specialisation. Numba does not notice that a function which a cached kernel
calls lives in another file that changed, so the cache folder of a module is named after a hash of its source and those
of all kernel modules it imports. The hash also covers what Numba itself looks a cached kernel up by (path and modification
time of its source, interpreter, processor), so that a kernel which the folder is said to hold is found there.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite.binding
import numba
from numba.core import sigutils

_FOLDER = Path(__file__).parent


_IMPORT = re.compile(r"^from tektite\.kernels\.(\w+) import", re.MULTILINE)


@cache
def _imports(module: str) -> frozenset[str]:
    """A kernel module and all kernel modules that it imports, directly or not."""
    found = {module}
    for name in _IMPORT.findall((_FOLDER / f"{module}.py").read_text()):
        found |= _imports(name)
    return frozenset(found)


@cache
def cache_folder(module: str) -> Path:
    """Where the compiled kernels of a module are kept."""
    host = (
        numba.__version__,
        sys.implementation.cache_tag,
        llvmlite.binding.get_host_cpu_name(),
        str(_FOLDER.resolve()),
    )
    digest = hashlib.sha256(repr(host).encode())
    for path in sorted(_FOLDER / f"{name}.py" for name in _imports(module)):
        digest.update(f"{path.name} {path.stat().st_mtime_ns}".encode())
        digest.update(path.read_bytes())
    return _cache_root() / f"{module}-{digest.hexdigest()[:16]}"


def _cache_root() -> Path:
    base = os.environ.get("TEKTITE_CACHE_DIR") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "tektite"
    )
    return Path(base) / "kernels"


@dataclass
class Kernel:
    """A kernel that some module declared; `ready` once a call finds it compiled."""

    module: str
    dispatcher: Any
    signature: str
    ready: bool = False

    @property
    def name(self) -> str:
        """How progress calls it."""
        return f"{self.module}.{self.dispatcher.__name__}"

    @property
    def marker(self) -> Path:
        """The file that says that the cache holds it."""
        return cache_folder(self.module) / f"{self.dispatcher.__name__}.done"


_KERNELS: list[Kernel] = []


def kernel(signature: str) -> Callable[[Callable[..., Any]], Any]:
    """Mark a function as a kernel: compiled for `signature` alone, cached, run without the GIL."""

    def wrap(function: Callable[..., Any]) -> Any:
        module = function.__module__.rpartition(".")[2]
        numba.config.CACHE_DIR = str(cache_folder(module))  # type: ignore[attr-defined]
        dispatcher = numba.njit(cache=True, nogil=True, error_model="numpy", boundscheck=False)(function)
        _KERNELS.append(Kernel(module, dispatcher, signature))
        return dispatcher

    return wrap


def inner(function: Callable[..., Any]) -> Any:
    """Mark a function that only kernels call: compiled into each of them."""
    return numba.njit(nogil=True, error_model="numpy", boundscheck=False)(function)


def _compile(name: str, dispatcher: Any, signature: str) -> None:
    """Compile one kernel and check that it returns what it declares."""
    arguments, declared = sigutils.normalize_signature(signature)
    # By argument types alone, as a call does: Numba would keep what is compiled for a text where no call finds it.
    dispatcher.compile(arguments)
    returned = dispatcher.overloads[arguments].signature.return_type
    if returned != declared:
        raise TypeError(f"kernel {name} declares that it returns {declared}, but it returns {returned}")


def compile_kernels(progress: Callable[[int, int, str], None] | None = None) -> bool:
    """Make every kernel of the modules imported so far ready to be called: compile what the cache lacks, load the rest.

    Loading takes some milliseconds a kernel, which would otherwise stall whatever happens to call it first. Returns
    whether there was anything to do.
    """
    waiting = [kernel for kernel in _KERNELS if not kernel.ready]
    missing = [kernel for kernel in waiting if not kernel.marker.exists()]
    for done, kernel in enumerate(missing):
        if progress:
            progress(done, len(missing), kernel.name)
        _compile(kernel.name, kernel.dispatcher, kernel.signature)
        kernel.marker.touch()
        kernel.ready = True
    if progress and missing:
        progress(len(missing), len(missing), "")
    for kernel in waiting:
        if not kernel.ready:
            _compile(kernel.name, kernel.dispatcher, kernel.signature)
            _forget_source(kernel.dispatcher)
            kernel.ready = True
    return bool(waiting)


def _forget_source(dispatcher: Any) -> None:
    """Free what Numba loads beside the machine code, so that others could be compiled against it: nobody calls a kernel but
    Python, and 38 MiB of a process are that.
    """
    for loaded in dispatcher.overloads.values():
        library = loaded.library
        if library._shared_module is not None:
            library._shared_module.close()
            library._shared_module = None


def print_progress(done: int, total: int, name: str) -> None:
    """The progress that a user sees on the first start: one line on standard error that is rewritten."""
    tty = sys.stderr.isatty()
    if done == total:
        text = f"tektite: {total} kernels compiled and cached"
    else:
        text = f"tektite: compiling kernels, once for this machine: {done}/{total} {name}"
    if tty:
        sys.stderr.write("\r\x1b[K" + text + ("\n" if done == total else ""))
    elif done in (0, total) or done % 8 == 0:
        sys.stderr.write(text + "\n")
    sys.stderr.flush()
