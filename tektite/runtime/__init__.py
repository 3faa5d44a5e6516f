"""The coordinator that decides which dataflow runs next, and the executors that run its sweeps, here or in other processes.

allocator    the C library's allocator: what it keeps for later, and for whom
coordinator  which dataflow runs next, and for how long
executor     the contract of everything that runs sweeps
messages     what shards send each other between two stages, and what they report to the engine
open_files   the batch files that a worker, a process that runs shards, has open
shard        one shard of some dataflows, in a process that need not have any other
shard_texts  what a shard looks up of the engine's dictionary, and what it has to add to it
shipment     dataflows on their way to the processes that run them as single shards
stage_task   a shard that lives for one stage: (a shipment, a stage, an inbox) -> (new batches, an outbox)
staged       the executor that runs large parts of sweeps in stages
staged_part  some moments of a scope of each of some dataflows, on their way through stages and back
stages       the nodes and traces of some dataflows by number, and the stage that each node runs in
sweep_files  batches of memory as files of the storage's folder of sweeps, for as long as they live
threads      the executor of this process: one thread per shard where there is enough to do
wire         rows as bytes that travel between processes
"""
