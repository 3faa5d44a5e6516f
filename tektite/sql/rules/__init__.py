"""The rewrites of a logical plan, in the order in which they are made. Each keeps the plan's meaning."""

from __future__ import annotations

from collections.abc import Callable

from tektite.sql.logical import Names, Node
from tektite.sql.rules.bound_filters import bound_filters
from tektite.sql.rules.decorrelate import decorrelate
from tektite.sql.rules.factor_disjunctions import factor_disjunctions
from tektite.sql.rules.filter_privately import filter_privately
from tektite.sql.rules.flatten_joins import flatten_joins
from tektite.sql.rules.fold_constants import fold_constants
from tektite.sql.rules.join_unique import join_unique
from tektite.sql.rules.merge_projections import merge_projections
from tektite.sql.rules.order_joins import order_joins
from tektite.sql.rules.prune_columns import prune_columns
from tektite.sql.rules.push_predicates import push_predicates
from tektite.sql.rules.share_subplans import share_subplans

Rule = Callable[[Node, Names], Node]

RULES: tuple[Rule, ...] = (
    fold_constants,
    decorrelate,
    factor_disjunctions,
    push_predicates,
    join_unique,
    flatten_joins,
    prune_columns,
    filter_privately,
    bound_filters,
    merge_projections,
    order_joins,
    share_subplans,
)


def rewrite(plan: Node, names: Names) -> Node:
    """A plan after all rewrites."""
    for rule in RULES:
        plan = rule(plan, names)
    return plan
