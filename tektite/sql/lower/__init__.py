"""Lowering: from logical plans to collections.

lower          turns a decorrelated logical plan into a collection
number_series  the numbers between two bounds, for each row
"""
