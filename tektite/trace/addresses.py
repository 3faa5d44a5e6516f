"""Addresses of rows in memory, as kernels take them.

`addresses(rows)` is an array of the addresses of some rows' heads. It keeps the rows in memory, so it may outlive every other
reference to them. It is C, because every step of a dataflow makes some.

>>> import numpy as np
>>> from tektite.trace.chunk import Chunk
>>> table = addresses([Chunk.of_array(np.array([[1, 2], [0, 0], [1, 1]]))])
>>> len(table)
1
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from tektite.kernels.ready import calls
from tektite.values.words import Words


class Located(Protocol):
    """Rows, or a merge of rows, whose head has an address in memory."""

    @property
    def at(self) -> int: ...


addresses: Callable[[Sequence[Located]], Words] = calls().addresses
