"""Traces: the batches that make up a collection's history, merged as it grows.

batch  an immutable, sorted, consolidated set of updates
chunk  some updates on their way between operators
merge  a merge of two adjacent batches that is under way
spine  the batches of one shard's trace, merged as they come
times  times, their partial order, and frontiers
trace  the history of one arrangement, and a reader's hold on it
"""
