"""Lowering: from logical plans to collections.

aggregates        aggregates of several kinds, computed in parts and joined by their group
blocks            an inner join of any number of relations as one `match`
joins             splits join conditions into equal columns and remaining predicates
lower             turns a rewritten logical plan into a collection
ordered_groups    ordered aggregates of a group: string_agg, quantiles, mode, first, earliest
row_order         the order of result rows, for ORDER BY
window_functions  window functions, for all changed partitions at once
"""
