"""The coordinator that decides which dataflow runs next, and the executors that run a node on all shards.

allocator    the C library's allocator: what it keeps for later, and for whom
coordinator  which dataflow runs next, and for how long
threads      the in-process executor: one thread per shard where there is enough to do, the calling thread where there is not
"""
