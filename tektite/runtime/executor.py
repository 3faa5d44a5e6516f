"""Executor: the contract of what runs the sweeps of an engine's dataflows.

=============================  =========================================================================================
`threads.Threads`              runs every sweep in this process, with one thread for each shard
`staged.Staged`                runs large parts of sweeps in stages, in processes that act as one shard for one stage, and small
                               parts on threads. `tektite.spark.sweep.executor` makes them tasks of Spark jobs
=============================  =========================================================================================

Before dataflows get their turns, `begin` decides which of them the executor sends to other processes. It gives each of these a
`SweepPart` (`Dataflow.run_elsewhere`). The others run in this process, by `map` and `spread`. When a part has ended,
`SweepPart.apply` brings its dataflow to the state of a sweep that ran in this process, or fails it.

`tektite.dataflow.node` has everything that an executor knows of operators. `tektite.runtime.shard` runs one shard of them,
whether that shard lives for one stage, as a task of a job does, or as long as the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tektite.dataflow.flow import Dataflow, Workers


class Executor(Workers, Protocol):
    """Runs sweeps on the shards of this process (`Workers`), or in parts in other processes."""

    @property
    def sends(self) -> bool:
        """Whether it may send parts of sweeps to other processes. If so, `begin` is called again after each turn, and graphs of
        dropped dataflows are not reused.
        """

    @property
    def why(self) -> str:
        """The reason that the journal gives for sweeps in this process."""

    def begin(self, flows: Sequence[Dataflow]) -> None:
        """Choose among the sweeps that these dataflows can begin or continue, and send parts of them to other processes. Sources
        come before readers.
        """

    def close(self) -> None:
        """Wait for everything that still runs, and drop its results."""
