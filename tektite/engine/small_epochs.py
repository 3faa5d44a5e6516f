"""Closing an epoch of few rows by one call of C, which is what most epochs of a program that writes row by row are.

`small_epoch` prepares what `prepare_epoch` would, where that is simple: no storage, nothing scheduled, loaded or left for
later, and inputs that are bags with one shard. Elsewhere it returns None. What it returns is a `Decision` that changes the same
attributes of the same objects; see native/steps.c.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from tektite.kernels.ready import calls

if TYPE_CHECKING:
    from tektite.engine.engine_core import EngineCore
    from tektite.engine.input_core import InputCore
    from tektite.engine.write_set import WriteSet


class SmallEpoch(Protocol):
    """The effects of closing an epoch on each input, on the write set and on the engine's clock. A `Decision`."""

    @property
    def changed(self) -> list[InputCore]:
        """The inputs with updates."""

    @property
    def rows(self) -> int:
        """The number of changes of tables, system relations left out."""

    def apply(self) -> None:
        """Close the epochs. May be repeated."""

    def settle(self) -> None:
        """Do the merging that new batches pay for, after the decision."""


small_epoch: Callable[[EngineCore, Sequence[InputCore], int, WriteSet, Any], SmallEpoch | None] = calls().small_epoch
"""Everything about closing epochs that can fail, with the kernel `build_rows`. Nothing changes; the caller holds the lock until
it decides.
"""
