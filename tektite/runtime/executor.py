"""Executor: what runs the sweeps of an engine's dataflows. One contract for all of them.

=============================  =========================================================================================
`threads.Threads`              every sweep in this process, a thread for each shard
`staged.Staged`                large parts of sweeps in stages, by processes that act as one shard each for one stage; what is
                               small, on threads. Spark's jobs are its processes in `tektite.spark.sweep.executor`
=============================  =========================================================================================

An executor is asked, before dataflows get their turns, which of them it sends away (`begin`): it leaves a `Part` with those
(`Dataflow.leave`), and what has no part runs here, by its `map` and `spread`. A part that has ended brings the dataflow to where
it would be had it run here (`Part.apply`), or fails it. Everything an executor needs to know of operators is in
`tektite.dataflow.node`, and everything it needs to run one shard of them in `tektite.runtime.shard`: whether that shard lives for
one stage, as a task of a job does, or for as long as the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tektite.dataflow.flow import Dataflow, Workers


class Executor(Workers, Protocol):
    """Runs sweeps: here, on the shards of this process (`Workers`), or elsewhere, in parts."""

    @property
    def sends(self) -> bool:
        """Whether it may send parts of sweeps to other processes: it is then asked again after each turn, and graphs of
        dataflows are not used a second time.
        """

    @property
    def why(self) -> str:
        """Why a sweep that it has not sent away runs here, for the journal."""

    def begin(self, flows: Sequence[Dataflow]) -> None:
        """Send away what is not for this process of the sweeps that these dataflows, sources before readers, can begin or go
        on with.
        """

    def close(self) -> None:
        """Wait for what still runs, here and elsewhere, and forget it."""
