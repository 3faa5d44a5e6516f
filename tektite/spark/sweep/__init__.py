"""Large parts of sweeps as Spark jobs: stages of `tektite.runtime.staged` as tasks, one shuffle for each level of exchange.

executor  from how many rows on a part of a sweep is a job, and how functions reach Spark's workers
job       the chain of stages as one Spark job, and the check of what its tasks report
rows      messages between shards as rows of a shuffle
"""
