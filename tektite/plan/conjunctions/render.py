"""Rendering conjunctions: makes nodes of the chosen strategy, and text for `explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tektite.plan.algebra import Match
from tektite.plan.conjunctions.assemble import Assembly
from tektite.plan.conjunctions.binary import join_at_a_time
from tektite.plan.conjunctions.clauses import seen_through, with_constants
from tektite.plan.conjunctions.explain import explain_binary, explain_pipelines
from tektite.plan.conjunctions.order import clause_order
from tektite.plan.conjunctions.pipelines import pipelines_of, relations_of
from tektite.plan.conjunctions.strategy import choose
from tektite.plan.rules.merge_projections import merge_projections

if TYPE_CHECKING:
    from tektite.plan.render import Renderer
    from tektite.plan.stream import Stream


def render_match(renderer: Renderer, match: Match) -> Stream:
    """A conjunction's changes as a stream."""
    choice = choose(match)
    renderer.decisions.append(lambda: [f"match by strategy {choice.strategy} ({choice.reason})"])
    if choice.strategy == "binary":
        order = clause_order(match)
        renderer.decisions.append(lambda: explain_binary(match, order))
        lowered = join_at_a_time(match, order)
        if len(match.clauses) == 1:  # between joins there is one projection at most
            (lowered,) = merge_projections([lowered], lambda operator: operator in match.inputs)
        return renderer.stream(lowered)
    hector = choice.strategy == "hector"
    seen, constants = with_constants(seen_through(match)) if hector else (seen_through(match), {})
    relations = relations_of(seen)

    def has(relation: int, lead: tuple[int, ...], key: int) -> bool:
        return renderer.has_arrangement(relations[relation].operator, lead, key)

    pipelines = pipelines_of(seen, relations, has, hector)
    renderer.decisions.append(lambda: explain_pipelines(seen, relations, pipelines, hector))
    return Assembly(renderer, seen, relations, pipelines, constants).stream()
