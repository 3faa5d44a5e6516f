"""A query whose names and types are known."""

from __future__ import annotations

from dataclasses import dataclass

from tektite.expr import col
from tektite.query.window_calls import Ordering
from tektite.sql.logical import Node, Project, Union, Values


@dataclass
class Bound:
    """A bound query: its plan, the unique and the visible names of its columns, and the order asked for."""

    plan: Node
    names: list[str]
    titles: list[str]
    order: tuple[Ordering, ...] = ()

    def visible(self) -> Node:
        """The plan without the columns that only its order needs."""
        if list(self.plan.columns) == self.names:
            return self.plan
        return Project(self.plan, tuple((name, col(name)) for name in self.names))


def nothing(part: Node, at: int) -> bool:
    """Whether a column is a bare NULL, which fits any type."""
    if isinstance(part, Union):
        return all(nothing(given, at) for given in part.parts)
    if not isinstance(part, Project):
        return isinstance(part, Values) and all(row[at] is None for row in part.rows)
    expression = part.outputs[at][1]
    return expression.op == "lit" and expression.params[1] is None
