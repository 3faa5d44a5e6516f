"""Holds on history, pinned arrangements, and `ArrangementInfo`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tektite.dataflow.flow import Dataflow
from tektite.engine.lock import StepByStep, guarded_by_core
from tektite.trace.trace import Hold

if TYPE_CHECKING:
    from tektite.engine.engine_core import EngineCore


@dataclass(frozen=True)
class ArrangementInfo:
    """What `Engine.arrangements` says of one shared arrangement."""

    name: str
    columns: tuple[str, ...]
    rows: int
    batches: int
    bytes: int
    since: int
    upper: int
    readers: tuple[str, ...]


class PinnedArrangement:
    """An arrangement that stays though no view may read it, until `release`. Made by `Engine.keep`."""

    def __init__(self, core: EngineCore, reader: Dataflow) -> None:
        self._core = core
        self._reader = reader

    @guarded_by_core
    def release(self) -> None:
        """Let it go with the last view that reads it."""
        core, reader = self._core, self._reader
        core.lock.decide(StepByStep(lambda: core.catalog.release(reader)))


class Held:
    """A hold on history, released by `release` or at the end of a `with` block."""

    def __init__(self, hold: Hold, at: int) -> None:
        self._hold = hold
        self.at = at

    def release(self) -> None:
        """Let history be compacted again."""
        self._hold.drop()

    def __enter__(self) -> Held:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
