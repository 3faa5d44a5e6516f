"""Program analysis of real code, `python -m examples.analysis`: facts extracted from programs, analyses in Datalog, kept up to
date while the code changes.

c/         facts of C programs, by clang and llvmlite
fact_base  the facts of a program by unit, in the tables of an engine
grammar    context-free reachability: a grammar as Graspan takes it, compiled to Datalog
java/      facts of Java bytecode
watched    an analysis of files that change
"""
