"""Makes all kernels ready to be called, with progress where they have to be compiled."""

from __future__ import annotations

import importlib
import os
import pkgutil

import tektite.kernels
from tektite.kernels.compile import compile_kernels, print_progress


def import_kernels() -> None:
    """Import every module of `tektite.kernels`: a kernel is known once its module is."""
    for module in pkgutil.walk_packages(tektite.kernels.__path__, prefix="tektite.kernels."):
        importlib.import_module(module.name)


def ensure_compiled() -> bool:
    """Compile what the cache lacks, showing progress, and load the rest. Whether anything had to be done."""
    import_kernels()
    return compile_kernels(print_progress, processes=os.cpu_count() or 1)
