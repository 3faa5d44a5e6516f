"""Local rules: rewrites of one operator at a time, after its inputs. Several of them can share one pass over a plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tektite.plan.algebra import Inspect, Operator, count_uses
from tektite.plan.estimates import Estimates, Sizes
from tektite.plan.walk import Test, is_shared, transform, walk, with_inputs
from tektite.values.computed_once import computed_once


class PassContext:
    """Facts about the plans that rules rewrite. Each is computed when a rule first needs it."""

    def __init__(self, roots: Sequence[Operator], leaf: Test, sizes: Sizes | None) -> None:
        self.leaf = leaf
        self._sizes = sizes
        self._roots = roots
        self._instead: dict[Operator, Operator] = {}

    def shared(self, operator: Operator) -> bool:
        """Whether more than one operator reads this one. An operator that is not in a plan yet has one reader."""
        while operator in self._instead:
            operator = self._instead[operator]
        return self._readers.get(operator, 1) > 1

    def replaced(self, old: Operator, new: Operator) -> None:
        """Note that an operator stands for another one, with the same readers."""
        self._instead[new] = old

    @computed_once
    def _readers(self) -> dict[Operator, int]:
        return count_uses(*self._roots)

    @computed_once
    def estimates(self) -> Estimates:
        """Estimates of the rows of the parts of the plans."""
        return Estimates(self._sizes)

    @computed_once
    def watched(self) -> bool:
        """Whether a Python function sees changes pass."""
        return any(isinstance(operator, Inspect) for operator in walk(self._roots))


Become = Callable[[Any, PassContext], Operator]
"""Rewrites one operator, whose inputs are already rewritten."""


class LocalRule:
    """A rule for operators of some kinds, or for those of them that a test applies to. Called with plans, it rewrites these."""

    def __init__(self, kinds: tuple[type[Operator], ...], become: Become, when: Callable[[Any], bool] | None) -> None:
        self.kinds = frozenset(kinds)
        self.become = become
        self.when = when
        self.__doc__ = become.__doc__
        self.__name__ = become.__name__

    def __call__(self, roots: Sequence[Operator], leaf: Test = is_shared) -> list[Operator]:
        when, kinds = self.when, self.kinds
        if when is not None and not any([type(found) in kinds and when(found) for found in walk(roots, leaf)]):
            return list(roots)  # looking at all operators costs less than a pass
        return OnePass(self)(roots, leaf)


def rule_for(*kinds: type[Operator], when: Callable[[Any], bool] | None = None) -> Callable[[Become], LocalRule]:
    """Make a function of one operator a rule. Plans with no operator that it applies to stay as they are."""
    return lambda become: LocalRule(kinds, become, when)


class OnePass:
    """Several local rules in one pass: each operator goes through all of them in turn, after its inputs did."""

    def __init__(self, *rules: LocalRule) -> None:
        self._rules = [(rule.kinds, rule.become) for rule in rules]

    def __call__(self, roots: Sequence[Operator], leaf: Test = is_shared, sizes: Sizes | None = None) -> list[Operator]:
        context, rules = PassContext(roots, leaf, sizes), self._rules

        def rewrite(operator: Operator, inputs: tuple[Operator, ...]) -> Operator:
            found = operator if inputs == operator.inputs else with_inputs(operator, inputs)
            for kinds, become in rules:
                if type(found) in kinds:
                    found = become(found, context)
            if found is not operator:
                context.replaced(operator, found)
            return found

        return transform(roots, rewrite, leaf)
