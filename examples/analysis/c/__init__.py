"""Facts of C programs: clang compiles them to LLVM's representation, llvmlite reads that, and each function gives facts.

compiling   C sources to LLVM's text, by clang
extraction  facts of a module: assignments, dereferences, null, calls
questions   what can be asked of a C program
relations   the relations of facts, and their columns
"""
