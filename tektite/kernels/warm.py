"""`python -m tektite.kernels.warm` compiles every kernel that the cache lacks, and says how far it is.

Promise: when it ends, no later process on this machine compiles a kernel of these sources. Tests that run in
several processes call it first, because each of them would compile for itself otherwise.
"""

from __future__ import annotations

import importlib
import pkgutil

import tektite.kernels
from tektite.kernels.compile import compile_kernels, print_progress


def import_kernels() -> None:
    """Import every module of `tektite.kernels`: a kernel is known once its module is."""
    for module in pkgutil.iter_modules(tektite.kernels.__path__, prefix="tektite.kernels."):
        importlib.import_module(module.name)


def ensure_compiled() -> bool:
    """Make all kernels ready, showing progress where they have to be compiled. Whether anything had to be done."""
    import_kernels()
    return compile_kernels(print_progress)


if __name__ == "__main__":
    ensure_compiled()
