"""Finds the machine code of kernels, and has it built where it is missing.

Promise: a kernel can be called as soon as its module is imported. Its library is loaded at its first call, or by
`ensure_compiled`, which loads all of them, so that no call waits later. What neither the package nor the cache has is built into
the cache, or where that cannot be written, into a folder that goes with the process.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from typing import Any

from tektite.kernels import content

_loaded: set[str] = set()


@cache
def processor() -> str:
    """What this machine runs kernels for. TEKTITE_PROCESSOR chooses another one that it can run."""
    found = os.environ.get("TEKTITE_PROCESSOR") or calls().processor()
    if not found:
        raise ImportError(
            "Tektite needs a 64-bit x86 processor with SSE 4.2 and POPCNT (x86-64-v2), or a 64-bit ARM one"
        )
    return str(found)


@cache
def calls() -> Any:
    """The extension module that calls kernels."""
    if "t" in getattr(sys, "abiflags", ""):  # objects have another layout there: loading it would be a crash
        raise ImportError(
            "Tektite needs a CPython with a global lock (GIL), and this one was built without it: use "
            f"python{sys.version_info.major}.{sys.version_info.minor} instead of this free-threaded one"
        )
    path = content.built(content.calls_file())
    if path is None:
        from tektite.kernels.build import build_calls, folder_to_build_in

        path = build_calls(folder_to_build_in())
    loader = ExtensionFileLoader("tektite.kernels.call", str(path))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def define(module: str, name: str, arguments: str, results: str, several: bool) -> Any:
    """The function that calls a kernel. Its machine code is looked up when it is first called."""
    return calls().define(f"{module}.{name}", arguments, results, several, _resolve)


def _resolve(name: str) -> None:
    """A kernel is called that has no machine code yet."""
    _load([name.rpartition(".")[0]])


def _load(modules: list[str]) -> None:
    """Load the libraries of these modules, and build those that are missing."""
    from tektite.kernels.compile import KERNELS

    files = {module: content.library_file(module, processor()) for module in modules}
    paths = {module: content.built(file) for module, file in files.items()}
    if missing := [module for module in modules if paths[module] is None]:
        from tektite.kernels.build import build_libraries, folder_to_build_in, print_progress

        build_libraries(missing, processor(), folder_to_build_in(), os.cpu_count() or 1, print_progress)
        paths |= {module: folder_to_build_in() / files[module] for module in missing}
    for module in modules:
        library = calls().load(str(paths[module]))
        for kernel in KERNELS:
            if kernel.module == module:
                calls().bind(kernel.function, library, kernel.symbol)
        _loaded.add(module)


def ensure_compiled() -> None:
    """Load all kernels, and build those that are missing, with progress."""
    _load([module for module in content.kernel_modules() if module not in _loaded])


def missing_modules() -> list[str]:
    """The kernel modules that would have to be built before they can be called."""
    return [name for name in content.kernel_modules() if content.built(content.library_file(name, processor())) is None]
