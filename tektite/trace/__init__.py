"""Traces: the batches that make up a collection's history, merged as it grows.

addresses     addresses of rows in memory, as kernels take them
batch         an immutable, sorted, consolidated set of updates
batch_memory  where the columns of large batches lie: in memory, or in mapped files
chunk         updates in transit between operators
key_ranges    cuts sorted rows into ranges of whole keys
merge         an incremental merge of two adjacent batches
records       what batches, spines, handles and traces inherit from C
result_trace  the trace of results that can be computed again
routes        which readers of a trace want a new batch
spine         the batches of one shard, merged as they arrive
times         times, their partial order, and frontiers
trace         the history of one arrangement, and its readers' handles
"""
