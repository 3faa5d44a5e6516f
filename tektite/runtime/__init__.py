"""The coordinator decides which dataflow runs next. Executors run its sweeps, in this process or in others.

allocator     settings of the C library's allocator, and when it returns memory to the system
coordinator   decides which dataflow runs next, and for how long
executor      `Executor`: the contract of what runs sweeps
memory_limit  how much memory a process may use, and how users write an amount of it
messages      rows that shards send each other between stages, and their reports to the engine
open_files    batch files that a worker process keeps open
shard         one shard of some dataflows, in a process that may have no other
shard_texts   a shard's view of the engine's dictionary, and the texts that it adds
shipment      dataflows, packed for processes that each run one shard of them
stage_task    one shard in one stage, as a pure function: (shipment, stage, inbox) -> (batches, outbox)
staged        the executor that runs large parts of sweeps in stages, in other processes
staged_part   one part of a sweep that runs in stages: started, waited for, applied
stages        numbers the nodes and traces of dataflows, and finds the stage of each node
sweep_files   temporary files for batches that other processes read
threads       the executor of this process: one thread per shard, if there is enough work
wire          rows as bytes, to send them between processes
"""
