"""Lowering: from logical plans to collections.

lower      turns a decorrelated logical plan into a collection
row_order  the order of result rows, for ORDER BY
"""
