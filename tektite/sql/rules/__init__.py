"""The rewrites of a logical plan, in the order in which they are made. Each keeps the plan's meaning.

decorrelate          subqueries become joins, whatever columns they take from the queries around them
domains              how a correlated subquery is freed of its outer columns: by pulling equalities up, or by pushing a domain
                     down
factor_disjunctions  what every branch of an OR demands is demanded by itself: (a AND b) OR (a AND c) is a AND (b OR c)
flatten_joins        inner joins that follow each other, with the filters and projections between them, become blocks
fold_constants       scalars without columns become constants, and what constants decide is decided: TRUE AND x is x, a filter
                     by FALSE is empty
join_unique          a semi join with a relation in which each key is there at most once is an inner join, which can be
                     ordered with the others
prune_columns        columns that nothing reads are not carried along: not computed, not joined, not kept in state
push_predicates      predicates move towards the relations that they read, so that rows which will not pass are dropped early
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
