"""Batches as files, and the manifest that says which of them are live: what survives a process, and how it is found again."""
