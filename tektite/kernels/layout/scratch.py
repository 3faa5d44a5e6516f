"""Scratch memory of a kernel: one allocation, cut into parts that are used by address.

Promise: the parts lie one behind the other in the order of their sizes, and hold whatever was there before. They are valid until
the array that owns them is freed. Numba frees an array after its last use, and a use of an address is none: a kernel says
`keep(array)` behind the last access by address.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tektite.kernels.compile import inner
from tektite.kernels.layout.pages import address_of
from tektite.kernels.toolchain import cgutils, intrinsic, types


@intrinsic
def _places(typing_context: Any, start: Any, sizes: Any) -> Any:
    """The addresses of parts of so many words, the first at `start`, and the address behind the last one."""
    many = len(sizes)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = args[0]
        places = [place]
        for size, kind in zip(cgutils.unpack_tuple(builder, args[1]), sizes, strict=True):
            words = context.cast(builder, size, kind, types.int64)
            place = builder.add(place, builder.mul(words, words.type(8)))
            places.append(place)
        return context.make_tuple(builder, signature.return_type, places)

    return types.UniTuple(types.int64, many + 1)(types.int64, sizes), generate


@inner
def scratch(sizes):
    """Memory for parts of so many words: the array that owns it, and a tuple of the addresses of the parts."""
    array = np.empty(_places(0, sizes)[-1] >> 3, np.int64)
    return array, _places(address_of(array), sizes)[:-1]


@inner
def keep(array):
    """Keep an array alive up to here: what was made of its address may be used before this call, not after."""
