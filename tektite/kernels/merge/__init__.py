"""Incremental merges of two sorted, consolidated rows objects.

merge  merges two rows objects step by step, and compacts times
order  the order in which a merge takes rows from its inputs
state  the state of an open merge, an int64 array
write  writes rows of the result, and sums those that became equal
"""
