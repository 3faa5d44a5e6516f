"""Kernels: all loops over rows. Plain loops over words, that run without the GIL. Numba builds them to libraries, ahead of time.
The C that calls them is in the folder native: `call.c` calls kernels; `writes.c`, `steps.c`, `traces.c`, `spines.c`, `agenda.c`
and `nodes.c` are what every epoch of few rows passes through; `signals.c` lets signals wait; `processor.c` asks the processor;
`runtime.c` is linked to each library.

build       builds libraries of kernels, in parallel: `python -m tektite.kernels.build`
compile     the decorator that declares a kernel
content     names libraries by content, and says where they lie
emit        compiles kernels to object files, by Numba
expr/       the interpreter of expression programs
layout/     heads, columns, raw loads and stores
merge/      incremental merges of two sorted, consolidated rows objects
native/     the extension module, in C
operators/  the inner loops of the dataflow operators and of inputs
ready       loads libraries of kernels, and has missing ones built
seek/       finds keys in sorted rows; splits rows by shard and time
sort/       sorts and consolidates rows
text/       texts as bytes
toolchain   Numba and LLVM where kernels are built, nothing elsewhere
warm        `python -m tektite.kernels.warm`: builds what is missing
"""
