"""Large sweeps as Spark jobs: dataflows shipped to tasks that each act as one shard, one shuffle for each level of exchange.

graph     the nodes and traces of some dataflows by number, and the stage that each node runs in
parcel    what a task needs to rebuild them: the graph, and references to the batch files of its shard
machine   one shard: (its traces, a stage, an inbox) -> (new batches, an outbox)
rows      what tasks send each other
job       the chain of stages as one Spark job, and the check of what its tasks report
files     batch files that a Python worker has open
texts     what a task looks up of the engine's dictionary, and what it has to add to it
executor  which sweeps become jobs, and what the driver does with their results
"""
