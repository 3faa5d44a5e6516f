"""The engine, its inputs and views, and the catalog of shared arrangements.

altered_tables       puts a table with other columns, or another name, in place of one
argument_query       ArgumentQuery: one dataflow that answers any number of arguments
argument_tables      the tables of arguments that a query in any language reads
arrangement_sources  sources of shared arrangements that are no input and no view
backlog              what a subscription was told of and has not yielded
catalog              every arrangement that queries share, by collection and leading columns
change_feed          the changes of a view from one moment on, for one follower
changes              what the former name of `View.subscribe` returns
closing              the end of an engine: what feeds it stops, closed epochs become durable
collect              a query answered once, leaving nothing behind
constants            rows of constants as a collection
constraints          what the declaration of an input demands of its rows
core                 `core_of`: from what users hold to what the rest of Tektite works with
declarations         creates tables and views, and decides what an existing one of the same name means
discarded_indexes    which indexes queries made, and left to nobody, how often
engine               Engine as users hold it
engine_core          inputs, views, the catalog of what they share, and the clock that moves them
epoch_batches        from pending updates to the sorted, checked batches of an epoch
epoch_methods        the methods of Engine for epochs, transactions, sweeps and durability
epochs               the protocol by which epochs close: prepare everything that can fail, decide, apply
flame_graph          flame graphs as SVG
former_tables        former options of tables, and what they are called today
graph_cache          the graph of a dataflow that was dropped, for the next one of the same plan
holds                holds on history, indexes that stay, and `IndexInfo`
hooks                what a language has an engine call
index_methods        the methods of Engine for holds on history and shared indexes
input_core           an input's declaration, its trace, and its part in closing epochs
installation         installs views, and drops views and inputs
languages            the methods of Engine for SQL and Datalog
live_widget          a view in a notebook, as a table that follows it
lock                 the engine's lock, the decorator that takes it, and changes that happen whole or not at all
names                which names are free, and what an unknown one might have meant
notices              who is told when an epoch has closed: threads, tasks and callbacks
other_names          what other libraries call the methods of an engine
pending_updates      updates of an input that wait for their epoch to close
profile              what every operator did within a block
publication          a view's contents and changes as a stored arrangement, for other processes to read
read_set             what a transaction has read, and whether it would still be read
readable_collection  what tables and views have in common: rows, lookups, changes, representations
routing              the changes of one view, sent to those who follow one value of its first column
replanning           other plans for views whose sources have other sizes than when they were planned
row_encoding         rows that are written to an input, as words
row_slices           large data in slices
running_plan         what a dataflow was planned from, and for which sizes
serving              the method of Engine that serves the console
session              one user of an engine, and transactions: what is read and written as one
small_epochs         closing an epoch of few rows by one call of C
small_writes         writing a few rows to a bag by one call of C
stored_inputs        imports files that other processes wrote; adds columns to stored inputs
subscription         the changes of a view or a table epoch by epoch, for a thread, a task or a callback
system/              the engine's own life as relations: tables that say what it holds, does and costs
table                Table as users hold it
table_edits          removes and changes the rows of a table for which a condition is true
text_collector       removes texts that nobody uses, beside the epochs
ticker               closes an epoch from time to time, so that `now()` moves by itself
unique_keys          UNIQUE: columns beside the primary key that no two rows share
versions             the rows of a trace as of one epoch
view                 View as users hold it
view_core            a view's definition, its dataflow, its trace, and how that is read
write_set            what one session has written and not committed, by input
"""
