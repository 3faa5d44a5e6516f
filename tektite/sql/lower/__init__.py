"""Lowering: from logical plans to collections.

aggregates        aggregates of several kinds, computed in parts and joined by their group
joins             joins of two relations: inner ones as conjunctions, semi, anti and outer ones made of these
lower             turns a decorrelated logical plan into a collection
ordered_groups    ordered aggregates of a group: string_agg, quantiles, mode, first, earliest
row_order         the order of result rows, for ORDER BY
window_functions  window functions, for all changed partitions at once
"""
