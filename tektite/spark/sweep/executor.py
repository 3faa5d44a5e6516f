"""Executor: large parts of sweeps as Spark jobs.

What is sent, and what becomes of it, is for `tektite.runtime.staged`. Here is what is Spark's: jobs, how functions reach its
workers, and from how many rows on a job pays.
"""

from __future__ import annotations

import pickle
import re

from pyspark import cloudpickle
from pyspark.sql import SparkSession

from tektite.runtime.executor import Executor
from tektite.runtime.staged import NEVER, Staged
from tektite.spark.failures import reason
from tektite.spark.sweep.job import Jobs
from tektite.storage.open_storage import OpenStorage
from tektite.values.dictionary import Dictionary


class SparkExecutor(Staged):
    """Runs large parts of an engine's sweeps as jobs of a Spark session."""

    jobs = "Spark jobs"
    pickler: type[pickle.Pickler] = cloudpickle.CloudPickler

    def __init__(
        self,
        here: Executor,
        spark: SparkSession,
        storage: OpenStorage,
        dictionary: Dictionary,
        shards: int,
        rows: int | None = None,
    ) -> None:
        """`rows` is how many have to wait for a part of a sweep to become a job; if None, as many as make one pay."""
        self._jobs = Jobs(spark)
        worth = worth_a_job(spark.sparkContext.master) if rows is None else rows
        super().__init__(here, self._jobs, storage, dictionary, shards, worth)

    def cancel(self, group: str) -> None:
        self._jobs.cancel(group)

    def reason(self, error: BaseException) -> str:
        return reason(error)


def worth_a_job(master: str | None) -> int:
    """Rows from which on a sweep is worth a job, where the user does not say. With a local master none are: its tasks
    run on the processors that the driver's own threads use without a shuffle.

    >>> worth_a_job("spark://host:7077"), worth_a_job("local-cluster[2,1,1024]"), worth_a_job("local[2,4]") > 10**18
    (100000, 100000, True)
    """
    return NEVER if re.fullmatch(r"local(\[.*\])?", master or "") else 100_000
