"""Batches as files, and the manifest that says which of them are live.

added_columns  adds columns to stored inputs; existing rows get NULL
batchfile      the format of batch files: rows and texts, with checksums
clean_up       deletes files and versions that nobody needs
command        the commands `tektite storage inspect`, `vacuum` and `repair`
compaction     chooses stored batches to merge, and merges them
description    how the manifest describes inputs and published views
files          maps batch files, through a bounded local cache for remote stores
known_texts    stored texts that a process has read
epoch_writer   makes closed epochs durable, in a thread of its own
leases         keeps the files of an older version for a reader
manifest       the versioned log of live sections and source positions
options        `tk.Storage`: where an engine keeps its data, and how
partition      moves stored rows to another number of shards
repair         finds damage in a storage, and repairs what it can
rows           converts between heads in memory and columns in files
text_sections  which stored texts some batch needs
open_storage   one engine's use of a storage
steady_clock   a clock that does not follow when somebody sets the system's
store          atomic, durable files on a file system or in an object store
"""
