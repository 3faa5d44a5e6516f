"""Pattern queries: the MATCH of SQL/PGQ as collections.

syntax        what a pattern is made of
grammar       reads the text of a pattern
labels        which labels the nodes and edges of a pattern may have
quantified    edges with a quantifier, such as `->*`: loops
conjunction   a pattern whose labels are chosen, as a conjunction of clauses
graph_table   GRAPH_TABLE: from a text to a collection
"""
