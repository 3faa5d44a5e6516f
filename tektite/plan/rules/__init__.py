"""The rewrites of a plan, in the order in which they are made, whatever language it comes from. Each keeps the plan's meaning.

What the catalog shares is not looked into: arrangements are found by what they hold, not by how it is computed, and are rewritten
when they are made.

drop_distinct      what holds each row once needs not be made distinct
filter_privately   a table that a conjunction needs a further index of, and few rows of, is filtered first and indexed apart
fold_constants     what constants decide is decided: a filter by FALSE is empty, and so is what is joined with nothing
guard_failures     conditions of a conjunction that may fail on a row are tested last
match_joins        a join of two is a conjunction of two, whose variables are called after the columns that they stand for
merge_projections  a projection of a projection becomes one, where nothing is computed twice by that
order_joins        in which order relations are joined whose author leaves that to us: along keys, the most selective first
prune_columns      columns that nothing reads are not carried along: not computed, not joined, not kept in state
push_predicates    predicates move towards the rows that they test, as far as no index and no state is made twice by that
range_filters      comparisons with a value that moves: when it moves, only the rows between its old and its new place are touched
share_subplans     parts of a plan that say the same, whatever their columns are called, become one part that is read twice
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tektite.plan.algebra import AtLeast, Match, Operator, Project
from tektite.plan.rules.drop_distinct import drop_distinct
from tektite.plan.rules.filter_privately import filter_privately
from tektite.plan.rules.fold_constants import fold_constants
from tektite.plan.rules.guard_failures import guard_failures
from tektite.plan.rules.match_joins import match_joins
from tektite.plan.rules.merge_projections import merge_projections
from tektite.plan.rules.order_joins import order_joins
from tektite.plan.rules.prune_columns import prune_columns
from tektite.plan.rules.push_predicates import push_predicates
from tektite.plan.rules.range_filters import range_filters
from tektite.plan.rules.share_subplans import WORTHWHILE, share_subplans
from tektite.plan.walk import walk

Rule = Callable[[Sequence[Operator]], list[Operator]]

RULES: tuple[Rule, ...] = (
    merge_projections,
    match_joins,
    push_predicates,
    fold_constants,
    drop_distinct,
    prune_columns,
    range_filters,
    guard_failures,
    filter_privately,
    order_joins,
    merge_projections,
    share_subplans,
)


def optimize(roots: Sequence[Operator]) -> list[Operator]:
    """Some plans after all rewrites. They share what they have in common."""
    found = list(roots)
    idle = without_effect(found)
    for rule in RULES:
        if rule not in idle:
            found = rule(found)
    return found


def without_effect(roots: Sequence[Operator]) -> set[Rule]:
    """Rules that change nothing in some plans, because what they look for is not there. Most plans are small: walking them for
    nothing would take more time than the rewrites.
    """
    sized = distinct = conditions = filters = False
    stateful = 0
    for operator in walk(roots):
        sized = sized or (isinstance(operator, Match) and operator.strategy == "sized")
        conditions = conditions or (isinstance(operator, Match) and bool(operator.where))
        filters = filters or (isinstance(operator, Project) and operator.predicate is not None)
        distinct = distinct or isinstance(operator, AtLeast)
        stateful += isinstance(operator, WORTHWHILE)
    found: set[Rule] = set()
    if not sized:
        found |= {range_filters, filter_privately, order_joins}
    if not distinct:
        found.add(drop_distinct)
    if not conditions and not filters:
        found.add(guard_failures)
    if stateful < 2:
        found.add(share_subplans)
    return found
