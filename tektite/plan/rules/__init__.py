"""The rewrites of a plan, in the order in which they are made, whatever language it comes from. Each keeps the plan's meaning.

What the catalog shares is not looked into: arrangements are found by what they hold, not by how it is computed, and are rewritten
when they are made.

drop_distinct        drops DISTINCT, and the check of scalar subqueries, where rows are unique already
factor_disjunctions  what every branch of an OR demands is demanded by itself
filter_privately     a table that a conjunction needs a further index of, and few rows of, is filtered first and indexed apart
flatten_joins        conjunctions in conjunctions become one, so that one order and one strategy serve all their relations
fold_constants       what constants decide is decided: a filter by FALSE is empty, and so is what is joined with nothing
guard_failures       conditions of a conjunction that may fail on a row are tested last
local                rules for one operator at a time, and several of them in one pass
match_joins          a join of two is a conjunction of two, whose variables are called after the columns that they stand for
merge_projections    a projection of a projection becomes one, where nothing is computed twice by that
order_joins          chooses the order of joins where the author leaves it open: along keys, the most selective relation first
prune_columns        drops columns that nothing reads: they are not computed, not joined, not kept in state
push_predicates      predicates move towards the rows that they test, as far as no index and no state is made twice by that
range_filters        comparisons with a value that moves: when it moves, only the rows between its old and its new place change
share_subplans       parts of a plan that say the same, whatever their columns are called, become one part that is read twice
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tektite.plan.algebra import Operator
from tektite.plan.rules.drop_distinct import drop_distinct
from tektite.plan.rules.factor_disjunctions import factor_disjunctions
from tektite.plan.rules.filter_privately import filter_privately
from tektite.plan.rules.flatten_joins import flatten_joins
from tektite.plan.rules.fold_constants import fold_constants
from tektite.plan.rules.guard_failures import guard_failures
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
    prune_columns,
    range_filters,
    guard_failures,
    OnePass(filter_privately, order_joins, merge_projections),
    share_subplans,
)
"""What shares a pass needs nothing of the whole plan that an earlier rule of the same pass changes."""


def optimize(roots: Sequence[Operator]) -> list[Operator]:
    """Some plans after all rewrites. They share what they have in common."""
    found = list(roots)
    for rule in RULES:
        found = rule(found)
    return found
