"""Names what is built of kernels by content, and says where it lies.

Promise: a name has in it a hash of everything that the machine code depends on: the text of the module, of all kernel modules
that it imports, and of the recipe that builds it. Paths and modification times are no part of it. So copies, clones and installed
packages find what was built of the same text, and nobody finds anything else.

Libraries lie in two places: in the package, where a wheel brings them, and in the user's cache, where a checkout builds them.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

FOLDER = Path(__file__).parent
PACKAGED = FOLDER / "built"
"""Where a wheel has its libraries."""

NUMBA = "0.68.1"
"""The version of Numba that builds kernels. Other versions give other code, and the recipe uses what Numba keeps to itself."""

PROCESSORS = {"x86_64": ("x86-64-v3", "x86-64-v2"), "aarch64": ("aarch64",), "arm64": ("aarch64",)}
"""What kernels are built for on each kind of machine. The first one that the processor can run is used."""

HERE = platform.machine()
"""The kind of this machine."""

_RECIPE = ("emit.py", "toolchain.py", "native/runtime.c", "native/runtime.h")
_NOT_IN_KERNELS = ("toolchain", "content")
"""Modules that kernels import and that are no part of their code: of the recipe, or of what names it."""
_PREFIX = "tektite.kernels."
_IMPORT = re.compile(r"^from tektite\.kernels\.([\w.]+) import", re.MULTILINE)
_DECLARES = re.compile(r"^@kernel\(", re.MULTILINE)


def module_name(full: str) -> str:
    """How a kernel module is called here: relative to `tektite.kernels`, if it is in there."""
    return full.removeprefix(_PREFIX)


def full_name(module: str) -> str:
    """The name to import a kernel module by."""
    return _PREFIX + module if source(module).is_relative_to(FOLDER) else module


@cache
def source(module: str) -> Path:
    """The file of a kernel module. Those outside of this package are kernels of tests."""
    inside = FOLDER.joinpath(*module.split(".")).with_suffix(".py")
    if inside.exists():
        return inside
    spec = find_spec(module)
    assert spec is not None and spec.origin is not None, module
    return Path(spec.origin)


@cache
def kernel_modules() -> tuple[str, ...]:
    """The modules of this package that declare kernels, in the order of their names."""
    found = (path for path in FOLDER.rglob("*.py") if _DECLARES.search(path.read_text()))
    names = (".".join(path.relative_to(FOLDER).with_suffix("").parts) for path in found)
    return tuple(sorted(names))


@cache
def imports(module: str) -> frozenset[str]:
    """A kernel module and all kernel modules that it imports, directly or not."""
    found = {module}
    for name in _IMPORT.findall(source(module).read_text()):
        if name not in _NOT_IN_KERNELS:
            found |= imports(name)
    return frozenset(found)


def effort(module: str) -> int:
    """About how long a module takes to compile: it grows with the text of what it imports."""
    return sum(source(name).stat().st_size for name in imports(module))


@cache
def _digest(path: Path) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()


@cache
def library_file(module: str, processor: str) -> str:
    """The name of the library of a kernel module, in a folder of libraries."""
    digest = hashlib.sha256(NUMBA.encode())
    for name in _RECIPE:
        digest.update(_digest(FOLDER / name))
    for name in sorted(imports(module)):
        digest.update(name.encode())
        digest.update(_digest(source(name)))
    return f"{processor}/{module}-{digest.hexdigest()[:16]}.so"


def calls_sources() -> list[Path]:
    """The C files of the extension module that calls kernels."""
    return [path for path in sorted((FOLDER / "native").glob("*.c")) if path.name != "runtime.c"]


def machine_of(processor: str) -> str:
    """The kind of machine that has a processor: this one, if it is among several."""
    return next((machine for machine in (HERE, *PROCESSORS) if processor in PROCESSORS.get(machine, ())), HERE)


@cache
def calls_file(machine: str = HERE) -> str:
    """The name of the extension module that calls kernels, for a kind of machine. It serves every CPython from 3.11 on."""
    digest = hashlib.sha256(f"{sys.platform} {machine}".encode())
    for path in sorted((FOLDER / "native").glob("*.[ch]")):
        digest.update(_digest(path))
    return f"call-{digest.hexdigest()[:16]}.abi3.so"


def cache_folder() -> Path:
    """Where a checkout builds its libraries."""
    base = os.environ.get("TEKTITE_CACHE_DIR")
    if not base:
        base = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "tektite")
    return Path(base) / "kernels"


def built(file: str) -> Path | None:
    """The path of a library or of the extension module, if it was built."""
    return next((folder / file for folder in (PACKAGED, cache_folder()) if (folder / file).exists()), None)
