"""Rendering conjunctions: the strategy chosen becomes nodes, and what was decided becomes text for `explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tektite.plan.conjunctions.binary import join_at_a_time
from tektite.plan.conjunctions.order import clause_order
from tektite.plan.conjunctions.strategy import choose
from tektite.plan.operators import Match

if TYPE_CHECKING:
    from tektite.plan.render import Renderer
    from tektite.plan.stream import Stream


def render_match(renderer: Renderer, match: Match) -> Stream:
    """A conjunction's changes as a stream."""
    choice = choose(match)
    order = clause_order(match)
    renderer.decisions.append(f"match by strategy {choice.strategy} ({choice.reason})")
    clauses = [*(str(match.clauses[at]) for at in order), *(f"not {clause}" for clause in match.without)]
    renderer.decisions.append(f"  join in the order {', '.join(clauses)}")
    return renderer.render_instead(join_at_a_time(match, order), match.inputs)
