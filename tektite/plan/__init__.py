"""Plans: a small algebra over collections, and its rendering as a dataflow.

algebra        immutable descriptions of collections, as a tree with sharing
conjunctions/  how a conjunction is kept up to date: pure functions from `Match` to a strategy, an order, and what to render
constant       plans that read nothing which changes: their rows, computed without a dataflow
equal_columns  classes of columns, or variables, that are known to be equal, and what values are compared by
estimates      how many rows a plan is likely to have
explain        a plan as lines of text: an operator a line, what it is made of below it and further in
look_through   looking through operators that only rename, reorder or filter: what lies below may have an arrangement to read
names          names for columns and variables that no other one has
projections    projections that only filter, select or rename, and what they look like from above
render         from a plan to the nodes of a dataflow
rules/         the rewrites of a plan, whatever language it comes from
stream         a collection on its way through a dataflow: chunks from some ports, with the linear steps that they run through
substitute     a plan with some of its sources exchanged: every `Read` that a function has something else for becomes that
unique         what a plan says about its own rows: columns that tell them apart
walk           every operator, and rewriting from the sources up
"""
