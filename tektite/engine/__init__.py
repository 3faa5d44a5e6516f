"""What a program holds: the engine, its inputs and views, and the catalog of what they share.

catalog          every arrangement that queries share, by collection and leading columns
constants        rows of constants as a collection
constraints      how an input is declared, and what that demands of its rows
core             `core_of`: from what users hold to what the rest of Tektite works with
engine           Engine as users hold it
engine_core      inputs, views, the catalog of what they share, and the clock that moves them
epoch_batches    from pending updates to the sorted, checked batches of an epoch
epochs           the protocol by which epochs close: prepare everything that can fail, decide, apply
graph_cache      the graph of a dataflow that was dropped, for the next one of the same plan
holds            holds on history, pinned arrangements, and `ArrangementInfo`
hooks            what a language has an engine call
input            Input as users hold it
input_core       an input's declaration, its trace, and its part in closing epochs
lock             the engine's lock, the decorator that takes it, and changes that happen whole or not at all
pending_updates  updates of an input that wait for their epoch to close
publication      a view's contents and changes as a stored arrangement, for other processes to read
session          one user of an engine, and transactions: what is read and written as one
stored_inputs    imports files that other processes wrote; adds columns to stored inputs
text_collector   removes texts that nobody uses, beside the epochs
view             View and its changes as users hold them
view_core        a view's definition, its dataflow, its trace, and how that is read
write_set        what one session has written and not committed, by input
"""
