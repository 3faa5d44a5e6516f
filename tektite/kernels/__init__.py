"""Kernels: the only place with loops over rows. Plain loops over words, compiled by Numba, run without the GIL.

compile     compiles kernels once for each processor and content of the sources, into a cache, in parallel, with visible
            progress
expr/       the interpreter of expression programs
layout/     heads, columns, raw loads and stores
merge/      merging two sorted, consolidated rows objects, a little at a time
operators/  the inner loops of the dataflow operators and of inputs
ready       makes all kernels ready to be called, with progress where they have to be compiled
seek/       finding keys in sorted rows, and taking rows apart by shard and time
sort/       sorting and consolidating rows
text/       texts as bytes
warm        `python -m tektite.kernels.warm` compiles every kernel that the cache lacks, and says how far it is
"""
