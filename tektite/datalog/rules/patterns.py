"""Patterns that depend on the attributes that there are: `[?e :attribute]` and `[?e ?attribute ?value]`.

A pattern without a value asks whether there is one. A pattern whose attribute is a variable stands for one alternative for each
attribute that its value may be of; the variable is the attribute's name, as `:person/name`. Attributes that are declared
later are not among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from tektite.datalog.rules.expressions import fits
from tektite.datalog.syntax import ir
from tektite.errors import IncorrectError
from tektite.values.types import Type

TypesOf = Callable[[str], tuple[Type, ...] | None]
"""The types of the columns of a stored relation; None if nothing is stored under the name."""


class PatternResolver:
    """Replaces patterns by atoms."""

    def __init__(self, types: TypesOf, attributes: Iterable[str]) -> None:
        self.types = types
        self.attributes = list(attributes)
        self._made = 0

    def body(self, body: tuple[ir.Literal, ...]) -> tuple[ir.Literal, ...]:
        """A body without patterns."""
        return tuple(map(self.literal, body))

    def literal(self, literal: ir.Literal) -> ir.Literal:
        """A literal without patterns."""
        match literal:
            case ir.AttributePattern():
                return self._pattern(literal)
            case ir.Conjunction() | ir.Aggregation():
                return replace(literal, body=self.body(literal.body))
            case ir.Disjunction():
                return replace(literal, branches=tuple(map(self.body, literal.branches)))
        return literal

    def _anything(self) -> ir.RuleVariable:
        self._made += 1
        return ir.RuleVariable(f"_ pattern {self._made}")

    def _pattern(self, pattern: ir.AttributePattern) -> ir.Literal:
        if isinstance(pattern.attribute, str):
            types = self.types(pattern.attribute)
            value = (self._anything(),) if types is not None and len(types) == 2 else ()
            return ir.Atom(pattern.attribute, (pattern.entity, *value), pattern.position)
        chosen = self._chosen(pattern)
        branches = []
        for name, types in chosen.items():
            shown = pattern.value
            if shown is None or (isinstance(shown, ir.RuleVariable) and shown.anonymous):
                shown = self._anything()
            terms = (pattern.entity, shown) if len(types) == 2 else (pattern.entity,)
            named = ir.Comparison("=", pattern.attribute, ir.Constant(f":{name}"), pattern.position)
            branches.append((ir.Atom(name, terms, pattern.position), named))
        return ir.Disjunction(tuple(branches), None, pattern.position)

    def _chosen(self, pattern: ir.AttributePattern) -> Mapping[str, tuple[Type, ...]]:
        """The attributes that a pattern may be about."""
        found = {name: types for name in self.attributes if (types := self.types(name)) is not None}
        value = pattern.value
        if isinstance(value, ir.Constant):
            found = {name: types for name, types in found.items() if len(types) == 2 and fits(value.value, types[1])}
        elif isinstance(value, ir.RuleVariable) and not value.anonymous:
            found = {name: types for name, types in found.items() if len(types) == 2}
        if not found:
            raise IncorrectError(f"{pattern.position}: {pattern}: there is no attribute that it may be about")
        for column, what in ((0, "entities"), (1, "values")):
            looked_at = column == 0 or (isinstance(value, ir.RuleVariable) and not value.anonymous)
            kinds = {types[column]: name for name, types in found.items() if column < len(types)}
            if looked_at and len(kinds) > 1:
                (one, a), (other, b), *_ = kinds.items()
                raise IncorrectError(
                    f"{pattern.position}: {pattern}: {what} are of type {one} in :{a} and {other} in :{b}, and a variable has "
                    "one type; write the attributes out, in an or, or leave the value out"
                )
        return found
