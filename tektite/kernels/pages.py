"""Large scratch memory on huge pages.

A radix sort scatters into hundreds of places at once and a fresh buffer faults once a page, so 4 KiB pages cost large
builds up to a third of their time. NumPy asks the kernel for huge pages; arrays made inside kernels have to ask
themselves. The advice is only that: where it does not exist nothing is asked.
"""

from __future__ import annotations

import sys

import numpy as np
from numba import types

from tektite.kernels.compile import inner

_HUGE = 1 << 21
_ADVISABLE = sys.platform.startswith("linux")
_MADV_HUGEPAGE = 14

_madvise = types.ExternalFunction("madvise", types.int32(types.intp, types.uintp, types.int32))


@inner
def empty_words(words):
    """An uninitialised int64 array, on huge pages if it is large."""
    array = np.empty(words, np.int64)
    if _ADVISABLE and 8 * words >= 2 * _HUGE:
        at = array.ctypes.data
        start = (at + _HUGE - 1) // _HUGE * _HUGE
        stop = (at + 8 * words) // _HUGE * _HUGE
        _madvise(start, stop - start, np.int32(_MADV_HUGEPAGE))
    return array
