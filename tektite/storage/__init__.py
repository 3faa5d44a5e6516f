"""Batches as files, and the manifest that says which of them are live: what survives a process, and how it is found again.

added_columns  a stored input that gains columns: its rows have NULL in them
batchfile      sorted, consolidated rows on disk exactly as heads describe them, and the texts of new ids beside them
clean_up       clean-up: deleting what no version needs any longer
command        `tektite storage`: look into a storage, delete what it no longer needs, mend what is damaged
compaction     which stored batches to merge, and merging them: the number of live batches stays logarithmic in the rows
description    what a manifest says of an input, so that a program that declares it again finds it and one that declares
               another is told; and of a published view, so that others can read it
epoch_writer   makes closed epochs durable, beside the engine that closes them
files          the batch files of a store, mapped into this process, through a bounded cache on the local disk where that is
               needed
leases         how a reader of an older version keeps the files of that version from being deleted
manifest       a numbered log that says which sections of which files are live, and up to where sources have been read
open_storage   one engine's use of a storage
options        where an engine keeps what must survive it, and how
partition      changing the number of shards of a stored engine: every row moves to the shard that owns it by the new count
repair         what is wrong with a storage, and what can be done about it
rows           between heads and the columns of a file: what a batch's rows look like to a process that did not make them
store          a folder of files that any process can reach, on a file system or in an object store
"""
