"""The rewrites of a logical plan, in the order in which they are made. Each keeps the plan's meaning and its columns."""

from __future__ import annotations

from collections.abc import Callable

from tektite.sql.logical import Names, Node
from tektite.sql.rules.decorrelate import decorrelate
from tektite.sql.rules.flatten_joins import flatten_joins
from tektite.sql.rules.push_predicates import push_predicates

Rule = Callable[[Node, Names], Node]

RULES: tuple[Rule, ...] = (decorrelate, push_predicates, flatten_joins)


def rewrite(plan: Node, names: Names) -> Node:
    """A plan after all rewrites."""
    for rule in RULES:
        plan = rule(plan, names)
    return plan
