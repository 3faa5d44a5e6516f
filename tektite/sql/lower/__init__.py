"""Lowering: from logical plans to collections.

aggregates        parts that each have exactly one row for each group, joined by the groups' keys
blocks            an inner join of any number of relations as one match of clauses
joins             which columns two relations are joined by, and what is left to be tested on the pairs
lower             from a logical plan, after its rewrites, to a collection of the engine
ordered_groups    aggregates of the values of a group in an order: string_agg, quantile_cont, quantile_disc, mode, first and
                  earliest
row_order         the order of a table's rows, as ORDER BY asks for it: text by its bytes, NaN above every number, NULL where
                  it says
window_functions  for all partitions that changed at once, over arrays of words
"""
