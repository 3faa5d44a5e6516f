"""Scopes: which variables in the body of an aggregate are the rule's, which are its own, and which the rule takes from it.

* **Outer** variables have their values from the rule around the aggregate: what stands beside it binds them (the results of other
  aggregates included, its own excluded). The aggregate is taken once for each combination of their values.
* **Witnesses** stand beside the aggregate as well, or in the head, but nothing there binds them: the body has to. Their values
  are those at which a least or greatest value is attained. No other aggregate is attained anywhere, so that none has witnesses.
* All others are the aggregate's **own**, whatever the rule or other aggregates use their names for. So is a variable of the term
  that is aggregated, if the body binds it: it shadows one of the rule.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from tektite.datalog.rules.safety import bound_by
from tektite.datalog.syntax import ir
from tektite.errors import IncorrectError

ATTAINED = ("min", "max")


def scoped(rule: ir.Rule) -> ir.Rule:
    """The rule, with the scope of every aggregate of its body decided. Those inside other bodies wait until these are rules.

    >>> from tektite.datalog.syntax.textbook import parse_program
    >>> (rule,) = parse_program("p(x, w, n) :- q(x, y), n = max y : { r(y, w, z), z < x }.").rules
    >>> aggregate = scoped(rule).body[1]
    >>> print(*aggregate.outer, "|", *aggregate.witnesses)
    x | w
    """
    bound = bound_by(rule.body)
    loose = {*(v for term in rule.terms for v in ir.variables(term)), *unbound(rule.body, bound)} - bound

    def decided(literal: ir.Literal) -> ir.Literal:
        if not isinstance(literal, ir.Aggregation) or literal.outer is not None:
            return literal
        outer = outer_variables(literal, bound_by([other for other in rule.body if other is not literal]))
        witnesses = tuple(v for v in inner_variables(literal) if v in loose)
        if witnesses and literal.kind not in ATTAINED:
            raise no_witness(rule, literal, witnesses[0])
        return replace(literal, outer=outer, witnesses=witnesses)

    return replace(rule, body=tuple(map(decided, rule.body)))


def inner_variables(group: ir.Aggregation) -> tuple[ir.RuleVariable, ...]:
    """The variables in an aggregate's body, and in the term that it is taken of."""
    return ir.named([*ir.body_variables(group.body), *ir.variables(group.of)])


def outer_variables(group: ir.Aggregation, bound: Collection[ir.RuleVariable]) -> tuple[ir.RuleVariable, ...]:
    """Those of an aggregate's variables that are the rule's, where `bound` are those that the rest of the rule binds."""
    target = set(ir.variables(group.of))
    shared = [v for v in inner_variables(group) if v in bound]
    own = bound_by(group.body, [v for v in shared if v not in target])
    return tuple(v for v in shared if v not in target or v not in own)


def unbound(body: Iterable[ir.Literal], bound: Collection[ir.RuleVariable]) -> Iterator[ir.RuleVariable]:
    """The variables that literals use outside of aggregates and nothing binds: not even a group for itself."""
    for literal in body:
        match literal:
            case ir.Aggregation():
                pass
            case ir.Conjunction():
                yield from unbound(literal.body, bound_by(literal.body, bound))
            case ir.Disjunction():
                for branch in literal.branches:
                    yield from unbound(branch, bound_by(branch, bound))
            case _:
                yield from (v for v in ir.literal_variables(literal) if v not in bound)


def no_witness(rule: ir.Rule, group: ir.Aggregation, variable: ir.RuleVariable) -> IncorrectError:
    """The error that names a variable outside of an aggregate that only the aggregate's body binds."""
    beside = [literal for literal in rule.body if literal is not group]
    where = next((str(x) for x in beside if variable in ir.plain_variables([x])), "the head")
    kind = "mean" if group.kind == "avg" else group.kind
    return IncorrectError(
        f"{rule.where()}: variable {variable.name!r} in {where} is not bound: it stands in the body of {kind} "
        f"({group.position}), and a {kind} is not attained at one of its values, as a min or max is. Put a predicate that "
        f"binds {variable.name!r} beside the aggregate, which is then taken for each of its values"
    )
