"""Traces: the batches that make up a collection's history, merged as it grows.

addresses  addresses of rows in memory, as kernels take them
batch      an immutable, sorted, consolidated set of updates
chunk      updates in transit between operators
merge      an incremental merge of two adjacent batches
spine      the batches of one shard, merged as they arrive
times      times, their partial order, and frontiers
trace      the history of one arrangement, and its readers' handles
"""
