"""Kernels: all loops over rows. Plain loops over words, compiled by Numba, that run without the GIL.

compile     compiles kernels in parallel, and caches them by content
expr/       the interpreter of expression programs
layout/     heads, columns, raw loads and stores
merge/      incremental merges of two sorted, consolidated rows objects
operators/  the inner loops of the dataflow operators and of inputs
ready       compiles or loads all kernels before the first call
seek/       finds keys in sorted rows; splits rows by shard and time
sort/       sorts and consolidates rows
text/       texts as bytes
warm        `python -m tektite.kernels.warm`: fills the kernel cache
"""
