"""Memory larger than the caches: huge pages and prefetching.

A radix sort scatters to hundreds of places at once, and a fresh buffer faults once a page, so 4 KiB pages cost large builds
up to a third of their time. NumPy requests huge pages from the operating system; arrays made inside kernels must do so
themselves. The request is only advice; where it does not exist, nothing is requested. `prefetch` never changes a result
either: it brings the cache line of a word that is needed soon into the cache.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from tektite.kernels.compile import inner
from tektite.kernels.toolchain import external, intrinsic, ir, types

_HUGE = 1 << 21
_ADVISABLE = sys.platform.startswith("linux")
_MADV_HUGEPAGE = 14

_madvise = external("madvise", "int32(intp, uintp, int32)")


@inner
def address_of(array):
    """The address of an array, as a signed integer: in Numba, the sum of a signed and an unsigned integer is a float."""
    return np.int64(array.ctypes.data)


@inner
def empty_words(words):
    """An uninitialised int64 array, on huge pages if it is large."""
    array = np.empty(words, np.int64)
    if _ADVISABLE and 8 * words >= 2 * _HUGE:
        at = address_of(array)
        start = (at + _HUGE - 1) // _HUGE * _HUGE
        stop = (at + 8 * words) // _HUGE * _HUGE
        _madvise(start, stop - start, np.int32(_MADV_HUGEPAGE))
    return array


@intrinsic
def prefetch(typing_context: Any, address: Any) -> Any:
    """Ask for the cache line at an address that will be read soon. The address need not be valid."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        constants = [ir.Constant(number, n) for n in (0, 3, 1)]  # to read, keep in all levels, data
        builder.call(function, [builder.inttoptr(args[0], byte), *constants])
        return context.get_dummy_value()

    return types.void(types.int64), generate
