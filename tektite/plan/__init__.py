"""Plans: a small algebra over collections, and its rendering as a dataflow.

algebra        immutable descriptions of collections, as a tree with sharing
conjunctions/  strategies for conjunctions: pure functions from `Match` to a strategy, an order and what to render
constant       computes plans of constants without a dataflow
depth          refuses plans that are too deep
equal_columns  classes of equal columns or variables, and the types in which values are compared
estimates      how many rows a plan is likely to have
explain        prints a plan: one operator a line, its inputs indented below it
explanation    how a query is kept up to date, as text, as plain data, and as notebooks show it
graph_data     a plan as plain data, for pictures of it
look_through   finds the arrangement below operators that only rename, reorder or filter
names          unique names for columns and variables
projections    projections that only filter, select or rename
render         from a plan to the nodes of a dataflow
rules/         the rewrites of a plan, whatever language it comes from
stream         a collection in a dataflow: chunks from some ports, and the linear steps that they pass
substitute     replaces some sources of a plan by other operators
unique         finds unique columns of a plan
walk           every operator, and rewriting from the sources up
"""
