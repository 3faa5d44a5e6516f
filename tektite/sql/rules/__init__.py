"""The rewrites of a logical plan, in the order in which they are made. Each keeps the plan's meaning.

decorrelate          turns subqueries into joins, however they are correlated
domains              removes outer columns from subqueries: pulls equalities up, or pushes a domain down
factor_disjunctions  (a AND b) OR (a AND c) becomes a AND (b OR c)
flatten_joins        makes blocks of adjacent inner joins, with the filters and projections between them
fold_constants       computes scalars without columns, and what constants decide
join_unique          a semi join with a unique relation becomes an inner join
prune_columns        drops columns that nothing reads
push_predicates      moves predicates towards the relations that they read
"""

from __future__ import annotations

from collections.abc import Callable

from tektite.sql.logical import Names, Node
from tektite.sql.rules.decorrelate import decorrelate
from tektite.sql.rules.factor_disjunctions import factor_disjunctions
from tektite.sql.rules.flatten_joins import flatten_joins
from tektite.sql.rules.fold_constants import fold_constants
from tektite.sql.rules.join_unique import join_unique
from tektite.sql.rules.prune_columns import prune_columns
from tektite.sql.rules.push_predicates import push_predicates

Rule = Callable[[Node, Names], Node]

RULES: tuple[Rule, ...] = (
    fold_constants,
    decorrelate,
    factor_disjunctions,
    push_predicates,
    join_unique,
    flatten_joins,
    prune_columns,
)


def rewrite(plan: Node, names: Names) -> Node:
    """A plan after all rewrites."""
    for rule in RULES:
        plan = rule(plan, names)
    return plan
