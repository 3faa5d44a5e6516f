"""Walking plans: every operator, and rewriting from the sources up. Loops are copied, variables and all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

from tektite.plan.algebra import Arrange, Clause, Leave, Loop, Operator, Variable

Rewrite = Callable[[Operator, tuple[Operator, ...]], Operator]
"""Rewrites an operator, given its rewritten inputs."""
Test = Callable[[Operator], bool]
IN_LOOPS = (Variable, Leave)
"""Operators that lead to a loop. A tuple: Python would make a union anew for each test."""


def is_shared(operator: Operator) -> bool:
    """Whether a collection is a shared arrangement of the catalog, whose own plan is not part of the plans that read it."""
    return type(operator) is Arrange and operator.loop is None


def loop_bodies(loop: Loop) -> list[Operator]:
    """The operators of a loop: the first values of its variables, their next values, and its results."""
    initial = [variable.initial for variable in loop.variables if variable.initial is not None]
    return [*initial, *loop.definitions.values(), *(leave.inner for leave in loop.leaves)]


def walk(roots: Sequence[Operator], leaf: Test = is_shared) -> list[Operator]:
    """Every operator of some plans once, those of loops included; what lies below a leaf is not part of them."""
    found: dict[Operator, None] = {}
    loops: set[Loop] = set()
    waiting = list(reversed(roots))
    while waiting:
        operator = waiting.pop()
        if operator not in found:
            found[operator] = None
            if leaf(operator):
                continue
            waiting += reversed(operator.inputs)
            if isinstance(operator, IN_LOOPS) and operator.of not in loops:
                loops.add(operator.of)
                waiting += loop_bodies(operator.of)
    return list(found)


def readers_first(roots: Sequence[Operator], leaf: Test = is_shared) -> tuple[list[Operator], list[Operator]]:
    """Every operator of some plans after all that take it as an input; and the plans with the bodies of their loops."""
    found: dict[Operator, None] = {}
    loops: set[Loop] = set()
    bodies = list(roots)
    for body in bodies:  # the list grows during the loop
        waiting = [body]
        while waiting:
            operator = waiting[-1]
            left = [given for given in operator.inputs if given not in found] if operator.inputs else ()
            if left and operator not in found and not leaf(operator):
                waiting.extend(left)
                continue
            found[waiting.pop()] = None
            if isinstance(operator, IN_LOOPS) and operator.of not in loops:
                loops.add(operator.of)
                bodies += loop_bodies(operator.of)
    return list(found)[::-1], bodies


def with_inputs(operator: Operator, inputs: Sequence[Operator]) -> Operator:
    """The same operator over other inputs."""
    if tuple(inputs) == operator.inputs:  # operators are equal only to themselves
        return operator
    waiting = iter(inputs)
    changed: dict[str, Any] = {}
    for name, kind in _fields_of_inputs(type(operator)):
        if kind == "Operator":
            changed[name] = next(waiting)
        elif kind == "tuple[Operator, ...]":
            changed[name] = tuple(waiting)
        else:
            clauses = [(clause, next(waiting)) for clause in getattr(operator, name)]
            changed[name] = tuple([c if new is c.operator else Clause(new, c.terms) for c, new in clauses])
    return replace(operator, **changed)


_known: dict[type[Operator], list[tuple[str, str]]] = {}


def _fields_of_inputs(kind: type[Operator]) -> list[tuple[str, str]]:
    """The fields of an operator that hold its inputs, with their types as they are written."""
    found = _known.get(kind)
    if found is None:
        wanted = ("Operator", "tuple[Operator, ...]", "tuple[Clause, ...]")
        found = _known[kind] = [(field.name, str(field.type)) for field in fields(kind) if field.type in wanted]
    return found


def transform(roots: Sequence[Operator], rewrite: Rewrite, leaf: Test = is_shared) -> list[Operator]:
    """Plans with every operator rewritten after its inputs; one that is read twice is rewritten once. Leaves stay."""
    return _Copy(rewrite, leaf).all(roots)


class _Copy:
    """Rewrites operators, each once."""

    def __init__(self, rewrite: Rewrite, leaf: Test) -> None:
        self._rewrite = rewrite
        self._leaf = leaf
        self._made: dict[Operator, Operator] = {}
        self._loops: dict[Loop, Loop] = {}

    def all(self, roots: Sequence[Operator]) -> list[Operator]:
        return [self.of(root) for root in roots]

    def of(self, operator: Operator) -> Operator:
        made, leaf, rewrite = self._made, self._leaf, self._rewrite
        waiting = [operator]  # a stack instead of recursion, so that plans may be of any depth
        while waiting:
            found = waiting[-1]
            if found not in made:
                inputs = found.inputs
                if leaf(found):
                    made[found] = found
                elif inputs:
                    left = [given for given in inputs if given not in made]
                    if left:
                        waiting.extend(reversed(left))
                        continue
                    made[found] = rewrite(found, tuple([made[given] for given in inputs]))
                elif isinstance(found, IN_LOOPS):
                    self._loop(found.of)
                else:
                    made[found] = rewrite(found, ())
            waiting.pop()
        return made[operator]

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
            copy.variables.append(Variable(variable.schema, variable.name, copy, initial, variable.starts))
        pairs = list(zip(loop.variables, copy.variables, strict=True))
        self._made.update(pairs)
        for variable, made in pairs:
            if variable in loop.definitions:
                copy.definitions[made] = self.of(loop.definitions[variable])
        for leave in loop.leaves:
            left = Leave(leave.schema, self.of(leave.inner), copy, leave.title)
            self._made[leave] = left
            copy.leaves.append(left)
