"""The layout of updates in memory: heads, columns, raw loads and stores.

codes        words of a column as short codes, for sorting
columns      stored columns: how narrow they may be, and writing words to them
equal        compares adjacent rows of a column with a word at once
input_heads  heads over updates as they arrive at an input, without copies
memory       raw loads and stores, and bit casts between words and floats
pages        huge pages and prefetching
records      small row-major lists of records, as scratch memory of kernels
rows         the physical layout of updates: a *head* that describes columns of words
scratch      scratch memory of a kernel, cut into parts
"""
