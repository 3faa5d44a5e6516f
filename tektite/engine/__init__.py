"""What a program holds: the engine, its inputs and views, and the catalog of what they share.

catalog          every arrangement that queries share, by collection and leading columns
constraints      how an input is declared, and what that demands of its rows
engine           inputs, views, the catalog of what they share, and the clock that moves them
front            engine, Input and View as users hold them: those below, and what other systems and languages add to them,
                 each loaded at its first use
graph_cache      the graph of a dataflow that was dropped, for the next one of the same plan
holds            history that stays readable, arrangements that stay; and what is said of arrangements
input            a collection that changes from outside, and the epochs in which it does
lock             one lock for all that threads share: streams write to an engine from threads of their own while others read
pending_updates  updates of an input that wait for their epoch to close
publication      a view's contents and changes as a stored arrangement, for other processes to read
stored_inputs    what an engine takes over as it lies in its storage: files that other processes wrote, and inputs that gain
                 columns
view             a named, maintained result, and the ways to read it
"""
