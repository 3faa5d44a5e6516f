"""Prints the decisions for a conjunction."""

from __future__ import annotations

from collections.abc import Sequence

from tektite.plan.algebra import Clause, Match
from tektite.plan.conjunctions.pipelines import Access, Extend, Fetch, Pipeline, PipelineStep, Subtract


def explain_binary(match: Match, order: Sequence[int]) -> list[str]:
    """The order of joins."""
    clauses = [*(str(match.clauses[at]) for at in order), *(f"not {clause}" for clause in match.without)]
    return [f"  join {', '.join(clauses)}", *_where(match.where)]


def explain_pipelines(
    match: Match, relations: Sequence[Clause], pipelines: Sequence[Pipeline], hector: bool
) -> list[str]:
    """A block for each pipeline, a line for each step; the order in which variables are bound where that was decided."""
    lines = []
    for pipeline in pipelines:
        negated = "not " if pipeline.source < len(match.without) else ""
        order = f", variables in the order {', '.join(_variables(pipeline, relations))}" if hector else ""
        lines.append(f"  changes of {negated}{relations[pipeline.source]}{order}")
        lines += _where(pipeline.where, "    ")
        for step in pipeline.steps:
            lines += _step(step, relations)
    return lines


def _variables(pipeline: Pipeline, relations: Sequence[Clause]) -> list[str]:
    """The variables of a conjunction as a pipeline binds them."""
    found = dict.fromkeys(relations[pipeline.source].variables)
    for step in pipeline.steps:
        match step.action:
            case Fetch(access):
                found |= dict.fromkeys(relations[access.relation].variables)
            case Extend(variable):
                found[variable] = None
    return list(found)


def _step(step: PipelineStep, relations: Sequence[Clause]) -> list[str]:
    match step.action:
        case Fetch(access):
            lines = [f"    fetch {_by(access, relations)}"]
        case Subtract(access):
            lines = [f"    without {_by(access, relations)}"]
        case Extend(variable, extenders, _, counted):
            by = [
                _by(access, relations) if access.key else f"all of {relations[access.relation]}" for access in extenders
            ]
            what = f"count {variable}" if counted else f"extend to {variable}"
            lines = [f"    {what} by the fewest candidates of {', '.join(by[:-1])} and {by[-1]}"]
    return [*lines, *_where(step.where, "    ")]


def _by(access: Access, relations: Sequence[Clause]) -> str:
    clause = relations[access.relation]
    names = ", ".join(clause.operator.schema.names[column] for column in access.columns[: access.key])
    return f"{clause} by ({names})"


def _where(predicates: Sequence[object], indent: str = "  ") -> list[str]:
    return [f"{indent}where {predicate}" for predicate in predicates]
