"""Lowering: from logical plans to collections.

lower  turns a decorrelated logical plan into a collection
"""
