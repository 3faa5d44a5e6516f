"""How updates lie in memory: heads, columns, raw loads and stores.

codes        a word less the least of its column, in as many bits as the column's range needs
input_heads  heads over updates as they arrive at an input: the columns stay where they are
memory       raw loads and stores, and the bit casts between words and floats, for use inside kernels
pages        huge pages, and fetching ahead
records      small row-major lists of records that a kernel collects for one key, sorts and writes out
rows         the one physical layout of updates: a *head* that describes columns of words, and whatever memory they lie in
"""
