"""Plans: a small algebra over collections, and its rendering as a dataflow.

algebra        immutable descriptions of collections, as a tree with sharing
conjunctions/  how a conjunction is kept up to date: pure functions from `Match` to a strategy, an order, and what to render
constant       plans that read nothing which changes: their rows, computed without a dataflow
equal_columns  classes of columns, or variables, that are known to be equal
look_through   looking through operators that only rename, reorder or filter: what lies below may have an arrangement to read
render         from a plan to the nodes of a dataflow
stream         a collection on its way through a dataflow: chunks from some ports, with the linear steps that they run through
substitute     a plan with some of its sources exchanged: every `Read` that a function has something else for becomes that
unique         what a plan says about its own rows: columns that tell them apart
"""
