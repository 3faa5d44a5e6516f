"""Compiles kernels once for each processor and content of the sources, into a cache, in parallel, with visible progress.

Every kernel declares the one signature it is ever called with, so nothing is compiled twice and a type that does not fit is an
error instead of another specialisation. The cache folder of a module is named after a hash of what its machine code depends on:
the text of the module and of all kernel modules that it imports, Numba, the interpreter and the processor. Paths and
modification times are not part of it, so that copies and fresh clones find what another checkout compiled.

Any number of processes may compile at the same time: a process locks a kernel before it compiles it, and the others take another
kernel or wait. A lock ends with its process. Where the cache cannot be written, kernels are compiled for this process alone.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite.binding
import numba
from numba.core import sigutils
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator

_FOLDER = Path(__file__).parent
_IMPORT = re.compile(r"^from tektite\.kernels\.([\w.]+) import", re.MULTILINE)


@cache
def _imports(module: str) -> frozenset[str]:
    """A kernel module and all kernel modules that it imports, directly or not."""
    found = {module}
    for name in _IMPORT.findall(_source(module).read_text()):
        found |= _imports(name)
    return frozenset(found)


def _source(module: str) -> Path:
    """The file of a kernel module, which is named relative to `tektite.kernels`."""
    return _FOLDER.joinpath(*module.split(".")).with_suffix(".py")


@cache
def cache_folder(module: str) -> Path:
    """Where the compiled kernels of a module are kept."""
    host = (
        numba.__version__,
        sys.implementation.cache_tag,
        llvmlite.binding.get_host_cpu_name(),
        llvmlite.binding.get_host_cpu_features().flatten(),
    )
    digest = hashlib.sha256(repr(host).encode())
    for name in sorted(_imports(module)):
        digest.update(name.encode())
        digest.update(_source(name).read_bytes())
    return _cache_root() / f"{module}-{digest.hexdigest()[:16]}"


def _cache_root() -> Path:
    base = os.environ.get("TEKTITE_CACHE_DIR") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "tektite"
    )
    return Path(base) / "kernels"


class _ContentLocator(_CacheLocator):
    """Tells Numba to keep a kernel in its module's folder. The folder is named by content, so sources need no stamp."""

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        self._py_file = file  # the name that Numba's warnings read
        self._folder = cache_folder(_module_of(function))

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> _ContentLocator:
        return cls(function, file)

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return ""

    def get_disambiguator(self) -> str:
        return ""


class _KernelCacheImpl(CompileResultCacheImpl):
    _locator_classes = [_ContentLocator]


class _KernelCache(FunctionCache):
    """Numba's cache of one kernel, in a folder that is named by content and need not be writable."""

    _impl_class = _KernelCacheImpl

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except OSError:
            return None  # the folder cannot be read

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            os.makedirs(self.cache_path, exist_ok=True)
            super().save_overload(sig, data)
        except OSError:
            self.disable()  # nothing can be kept here: the compiled kernel serves this process


def _module_of(function: Callable[..., Any]) -> str:
    return function.__module__.removeprefix("tektite.kernels.")


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

    @property
    def missing(self) -> bool:
        """Whether the cache lacks it."""
        return not self.marker.exists()

    @contextmanager
    def locked(self, wait: bool) -> Iterator[bool]:
        """Hold the lock on compiling this kernel; whether this process has it. Without a writable cache there is no lock."""
        try:
            self.marker.parent.mkdir(parents=True, exist_ok=True)
            lock = open(self.marker.with_suffix(".lock"), "a")  # noqa: SIM115
        except OSError:
            yield True
            return
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except OSError:
                yield False
                return
            yield True

    def compile(self) -> None:
        """Compile it, or load it where the cache holds it, and mark it as held."""
        _compile(self.name, self.dispatcher, self.signature)
        self.ready = True
        try:
            self.marker.touch()
        except OSError:
            return  # the cache cannot be written


_KERNELS: list[Kernel] = []


def kernel(signature: str) -> Callable[[Callable[..., Any]], Any]:
    """Mark a function as a kernel: compiled for `signature` alone, cached, run without the GIL."""

    def wrap(function: Callable[..., Any]) -> Any:
        dispatcher: Any = numba.njit(nogil=True, error_model="numpy", boundscheck=False)(function)
        dispatcher._cache = _KernelCache(function)
        _KERNELS.append(Kernel(_module_of(function), dispatcher, signature))
        return dispatcher

    return wrap


def inner(function: Callable[..., Any]) -> Any:
    """Mark a function that only kernels call: compiled into each of them."""
    return numba.njit(nogil=True, error_model="numpy", boundscheck=False)(function)


def inlined(function: Callable[..., Any]) -> Any:
    """As `inner`, for a part of a kernel that is called for each row or key and takes many arguments: the compiler always makes
    it part of its caller.
    """
    return numba.njit(nogil=True, error_model="numpy", boundscheck=False, forceinline=True)(function)


def _compile(name: str, dispatcher: Any, signature: str) -> None:
    """Compile one kernel and check that it returns what it declares."""
    arguments, declared = sigutils.normalize_signature(signature)
    # By argument types alone, as a call does: Numba would keep what is compiled for a text where no call finds it.
    dispatcher.compile(arguments)
    returned = dispatcher.overloads[arguments].signature.return_type
    if returned != declared:
        raise TypeError(f"kernel {name} declares that it returns {declared}, but it returns {returned}")


def compile_kernels(progress: Callable[[int, int, str], None] | None = None, processes: int = 1) -> bool:
    """Make every kernel of the modules imported so far ready to be called: compile what the cache lacks, load the rest.

    Up to `processes` processes compile. Loading takes some milliseconds a kernel, which would otherwise stall whatever happens to
    call it first. Returns whether there was anything to do.
    """
    waiting = [kernel for kernel in _KERNELS if not kernel.ready]
    # The longest first: the last one to end should be short.
    missing = sorted((kernel for kernel in waiting if kernel.missing), key=_effort, reverse=True)
    helpers = _start_helpers(min(processes, len(missing)) - 1)

    def report(name: str) -> None:
        if progress:
            progress(sum(not kernel.missing for kernel in missing), len(missing), name)

    try:
        for wait in (False, True):  # first what nobody compiles, then what others have begun
            for kernel in missing:
                if kernel.ready or (not kernel.missing and not wait):
                    continue
                if kernel.missing:
                    report(f"{kernel.name}, which another process compiles" if wait else kernel.name)
                with kernel.locked(wait) as mine:
                    if mine:
                        kernel.compile()
    finally:
        for helper in helpers:
            helper.wait()
    if progress and missing:
        progress(len(missing), len(missing), "")
    for kernel in waiting:
        if not kernel.ready:
            kernel.compile()
            _forget_source(kernel.dispatcher)
    return bool(waiting)


def compile_what_nobody_compiles() -> None:
    """Compile kernels that the cache lacks until each is there or in the hands of another process."""
    for kernel in sorted(_KERNELS, key=_effort, reverse=True):
        if kernel.missing:
            with kernel.locked(wait=False) as mine:
                if mine and kernel.missing:
                    kernel.compile()


def _effort(kernel: Kernel) -> int:
    """About how long a kernel takes to compile: it grows with the text of what it imports."""
    return sum(_source(name).stat().st_size for name in _imports(kernel.module))


def _start_helpers(number: int) -> list[subprocess.Popen[bytes]]:
    """Processes that compile what is missing, beside this one. There are none where the cache cannot be written, because nobody
    would find what they compile, or where no process can be started.
    """
    path = os.pathsep.join(filter(None, (str(_FOLDER.parent.parent), os.environ.get("PYTHONPATH"))))
    helpers: list[subprocess.Popen[bytes]] = []
    with suppress(OSError):
        _cache_root().mkdir(parents=True, exist_ok=True)
        while len(helpers) < number and os.access(_cache_root(), os.W_OK):
            helpers.append(
                subprocess.Popen(
                    [sys.executable, "-m", "tektite.kernels.warm", "--help-out"],
                    env=os.environ | {"PYTHONPATH": path},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            )
    return helpers


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
    ended = not name
    if ended:
        text = f"tektite: {total} kernels compiled and cached"
    else:
        text = f"tektite: compiling kernels, once for this machine: {done}/{total} {name}"
    if tty:
        sys.stderr.write("\r\x1b[K" + text + ("\n" if ended else ""))
    elif ended or done % 8 == 0:
        sys.stderr.write(text + "\n")
    sys.stderr.flush()
