"""Traces: the batches that make up a collection's history, merged as it grows."""
