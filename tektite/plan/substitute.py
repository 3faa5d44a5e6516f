"""A plan with some of its sources exchanged: every `Read` that a function has something else for becomes that.

A plan that reads none of them stays as it is, and so does a loop: what is kept of it already is found again. Other loops are
copied, variables and all. A Python function that watches changes pass sees nothing of the copy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from tektite.plan.algebra import Clause, Inspect, Leave, Loop, Operator, Read, Variable, count_uses

Other = Callable[[Read], Operator]


def substitute(root: Operator, other: Other) -> Operator:
    """The plan with `other(read)` in the place of each read."""
    return _Copy(other).of(root) if _reads(root, other) else root


def _reads(root: Operator, other: Other) -> bool:
    """Whether a plan reads something that is exchanged."""
    return any(other(found) is not found for found in count_uses(root) if isinstance(found, Read))


class _Copy:
    """Copies operators; one that is used twice is copied once."""

    def __init__(self, other: Other) -> None:
        self._other = other
        self._made: dict[Operator, Operator] = {}
        self._loops: dict[Loop, Loop] = {}

    def of(self, operator: Operator) -> Operator:
        if operator not in self._made:
            self._made[operator] = self._copied(operator)
        return self._made[operator]

    def _copied(self, operator: Operator) -> Operator:
        match operator:
            case Read():
                return self._other(operator)
            case Inspect():
                return self.of(operator.input)
            case Variable() | Leave():
                if operator.of.parent is None and operator.of not in self._loops and not _reads(operator, self._other):
                    return operator
                self._loop(operator.of)
                return self._made[operator]
        changed: dict[str, Any] = {}
        for field in fields(operator):
            value = getattr(operator, field.name)
            if isinstance(value, Operator):
                changed[field.name] = self.of(value)
            elif isinstance(value, tuple) and any(isinstance(part, Operator | Clause) for part in value):
                changed[field.name] = tuple(self._part(part) for part in value)
        return replace(operator, **changed) if changed else operator

    def _part(self, part: Operator | Clause) -> Operator | Clause:
        return replace(part, operator=self.of(part.operator)) if isinstance(part, Clause) else self.of(part)

    def _loop(self, loop: Loop) -> None:
        """Copy a loop with its variables, their definitions and what leaves it."""
        if loop in self._loops:
            return
        if loop.parent is not None:
            self._loop(loop.parent)
        parent = None if loop.parent is None else self._loops[loop.parent]
        copy = self._loops[loop] = Loop(loop.name, loop.limit, parent, loop.shared, loop.advice)
        for variable in loop.variables:
            initial = None if variable.initial is None else self.of(variable.initial)
            copy.variables.append(Variable(variable.schema, variable.name, copy, initial))
        pairs = list(zip(loop.variables, copy.variables, strict=True))
        self._made.update(pairs)
        for variable, made in pairs:
            copy.definitions[made] = self.of(loop.definitions[variable])
        for leave in loop.leaves:
            left = Leave(leave.schema, self.of(leave.inner), copy, leave.title)
            self._made[leave] = left
            copy.leaves.append(left)
