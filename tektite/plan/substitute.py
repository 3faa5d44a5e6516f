"""Replaces some sources of a plan by other operators.

A plan that reads none of them stays the same, and so does a loop, so that its arrangements are found again. Other loops are
copied with their variables. Python functions that inspect changes are not called for the copy.
"""

from __future__ import annotations

from collections.abc import Callable

from tektite.plan.algebra import Inspect, Leave, Operator, Read, Variable
from tektite.plan.walk import transform, walk, with_inputs

Other = Callable[[Read], Operator]


def substitute(root: Operator, other: Other) -> Operator:
    """The plan with `other(read)` in the place of each read."""
    if not _reads(root, other):
        return root

    def rewrite(operator: Operator, inputs: tuple[Operator, ...]) -> Operator:
        if isinstance(operator, Read):
            return other(operator)
        return inputs[0] if isinstance(operator, Inspect) else with_inputs(operator, inputs)

    def stays(operator: Operator) -> bool:
        outermost = isinstance(operator, Variable | Leave) and operator.of.parent is None
        return outermost and not _reads(operator, other)

    (found,) = transform([root], rewrite, stays)
    return found


def _reads(root: Operator, other: Other) -> bool:
    """Whether a plan reads something that is exchanged."""
    everything = walk([root], leaf=lambda operator: False)
    return any(other(found) is not found for found in everything if isinstance(found, Read))
