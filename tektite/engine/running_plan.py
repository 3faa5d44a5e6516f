"""RunningPlan: what a dataflow was planned from, and for which sizes; and whether its answer may be computed a second time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tektite.dataflow.arrange import Arranged
from tektite.plan.algebra import Inspect, Operator, Read, Readable
from tektite.plan.explain import explain
from tektite.plan.walk import is_shared, walk


@dataclass
class RunningPlan:
    """A plan that depends on sizes."""

    roots: Sequence[Operator]
    """The plan as its author wrote it."""
    arranged: Sequence[Arranged]
    """The arrangements of its results. Their traces stay, whichever plan fills them."""
    sizes: Mapping[Readable, int]
    """The rows that its sources had, as far as the plan depends on that."""
    text: str
    """The plan after all rewrites."""
    replaced: int = 0
    """How many plans it has had before."""
    is_fixed: bool = False
    """Whether it stays, whatever becomes of the sizes."""


def plan_text(rewritten: Sequence[Operator]) -> str:
    """Plans after all rewrites as text. Plans with the same text do the same."""
    return "\n".join([line for root in rewritten for line in explain(root)])


def sizes_text(plan: RunningPlan) -> str:
    """The sizes that a plan was made for."""
    return ", ".join([f"{source.name}: {rows:,} rows" for source, rows in plan.sizes.items()])


def is_repeatable(rewritten: Sequence[Operator]) -> bool:
    """Whether another dataflow can find what one has found so far: not from tables without history, and not unnoticed by a Python
    function that sees changes pass.
    """
    return not any(
        isinstance(operator, Inspect) or (isinstance(operator, Read) and operator.readable.is_stream)
        for operator in walk(rewritten, is_shared)
    )
