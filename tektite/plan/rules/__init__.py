"""Rewrites of plans of all languages, in the order in which they are applied. Each keeps the meaning of the plan.

Rules do not look below shared arrangements. The catalog finds these by the plan that they hold, and rewrites that plan when it
makes them.

drop_distinct        drops DISTINCT, and the check of scalar subqueries, where rows are unique already
factor_disjunctions  takes conditions that all branches of an OR share out of the OR
filter_privately     filters a table before indexing it, if a conjunction needs few of its rows and a new index
flatten_joins        merges nested conjunctions, so that all their relations get one order and one strategy
fold_constants       computes constant expressions, and removes parts that are always empty
guard_failures       tests conditions that may fail on a row last
limit_groups         groups only rows that a conjunction can use, if it can use few
local                rules for single operators; several of them share a pass
match_joins          turns joins of two into conjunctions, with variables named after columns
merge_projections    merges projections of projections, unless something would be computed twice
order_joins          chooses the order of joins: along keys, the most selective relation first
prune_columns        drops columns that nothing reads: they are not computed, not joined, not kept in state
push_predicates      moves predicates towards their rows, unless that duplicates an index or state
range_filters        compares rows with a changing bound, so that a change reads only the rows between old and new bound
share_subplans       computes equal parts of a plan once, whatever their columns are called
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tektite.plan.algebra import Operator
from tektite.plan.estimates import Sizes
from tektite.plan.rules.drop_distinct import drop_distinct
from tektite.plan.rules.factor_disjunctions import factor_disjunctions
from tektite.plan.rules.filter_privately import filter_privately
from tektite.plan.rules.flatten_joins import flatten_joins
from tektite.plan.rules.fold_constants import fold_constants
from tektite.plan.rules.guard_failures import guard_failures
from tektite.plan.rules.limit_groups import limit_groups
from tektite.plan.rules.local import OnePass
from tektite.plan.rules.match_joins import match_joins
from tektite.plan.rules.merge_projections import merge_projections
from tektite.plan.rules.order_joins import order_joins
from tektite.plan.rules.prune_columns import prune_columns
from tektite.plan.rules.push_predicates import push_predicates
from tektite.plan.rules.range_filters import range_filters
from tektite.plan.rules.share_subplans import share_subplans

PlanRule = Callable[[Sequence[Operator]], list[Operator]]

RULES: tuple[PlanRule, ...] = (
    OnePass(merge_projections, match_joins, factor_disjunctions, push_predicates),
    OnePass(fold_constants, drop_distinct),
    flatten_joins,
    limit_groups,
    prune_columns,
    range_filters,
    guard_failures,
    OnePass(filter_privately, order_joins, merge_projections),
    share_subplans,
)
"""Rules of one pass use no fact about the whole plan that an earlier rule of that pass changes."""


def optimize(roots: Sequence[Operator], sizes: Sizes | None = None) -> list[Operator]:
    """Some plans after all rewrites. They share their common parts. `sizes` gives the sizes of sources, and notes those that were
    asked for.
    """
    found = list(roots)
    for rule in RULES:
        found = rule(found, sizes=sizes) if isinstance(rule, OnePass) else rule(found)
    return found
