"""Removing correlation: the rewrite of a logical plan before it is lowered. All others are rules of `tektite.plan.rules`.

decorrelate  turns subqueries into joins, however they are correlated
domains      removes outer columns from subqueries: pulls equalities up, or pushes a domain down
"""
