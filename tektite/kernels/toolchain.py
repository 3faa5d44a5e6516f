"""Numba and LLVM, for kernel modules: the real ones in a process that builds kernels, nothing in all others.

Promise: a process that runs queries imports neither. A process builds kernels if TEKTITE_BUILD_FOR names the processor that it
builds them for; `tektite.kernels.build` starts such processes. There, `inner`, `inlined` and `intrinsic` give Numba what it
compiles. Elsewhere they leave a function as it is, which nobody calls: its code is part of the kernels that were built.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

BUILD_FOR = os.environ.get("TEKTITE_BUILD_FOR", "")
"""The processor that this process builds kernels for; empty in a process that runs them."""

# What intrinsics generate code with.
cgutils: Any = None
ir: Any = None
types: Any = None

if BUILD_FOR:
    # Numba reads these when it is imported: kernels are compiled for a processor, not for the one that happens to be here.
    os.environ["NUMBA_CPU_NAME"] = "generic" if BUILD_FOR == "aarch64" else BUILD_FOR
    os.environ["NUMBA_CPU_FEATURES"] = ""
    import llvmlite.ir
    import numba
    import numba.core.cgutils
    import numba.extending

    cgutils, ir, types = numba.core.cgutils, llvmlite.ir, numba.types


def compiled(function: Callable[..., Any], forceinline: bool = False) -> Any:
    """A function for Numba to compile. Python never calls it, so the wrappers that Numba makes for that are left out."""
    how: dict[str, Any] = {"nogil": True, "error_model": "numpy", "boundscheck": False, "forceinline": forceinline}
    how |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return numba.njit(**how)(function)


def inner(function: Callable[..., Any]) -> Any:
    """Mark a function that only kernels call: compiled into each of them."""
    return compiled(function) if BUILD_FOR else function


def inlined(function: Callable[..., Any]) -> Any:
    """As `inner`, for a part of a kernel that is called for each row or key and takes many arguments: the compiler always makes
    it part of its caller.
    """
    return compiled(function, forceinline=True) if BUILD_FOR else function


def intrinsic(function: Callable[..., Any]) -> Any:
    """Mark a function that generates code itself, with `ir`, `types` and `cgutils`."""
    return numba.extending.intrinsic(function) if BUILD_FOR else function


def external(name: str, signature: str) -> Any:
    """A function of the C library, for kernels to call."""
    if not BUILD_FOR:
        return None
    arguments, returned = numba.core.sigutils.normalize_signature(signature)
    return types.ExternalFunction(name, returned(*arguments))
