"""The coordinator that decides which dataflow runs next, and the executors that run a node on all shards."""
