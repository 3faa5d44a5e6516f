"""Normal form: rules whose bodies are plain conjunctions.

In a normal rule the terms of body atoms are variables and constants, alternatives have become rules of their own,
and negated groups and aggregates over a body of their own have become predicates of their own, which no text can name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product

from tektite.datalog.rules.safety import bound_by, is_safe
from tektite.datalog.syntax import ir

ALTERNATIVES = 4096
"""Rules that the alternatives of one rule may come to."""


def normalise(rules: Iterable[ir.Rule], counted: bool = False) -> list[ir.Rule]:
    """The normal form of some rules. The same rules give the same names, in the same order. Where it matters how often the
    body holds, because the rules are `counted` or have an aggregate, what holds for two alternatives counts once.

    >>> from tektite.datalog.syntax.textbook import parse_program
    >>> print(*normalise(parse_program("p(x) :- (q(x + 1); r(x)), !(s(x, y), t(y)).").rules), sep="\\n")
    p not 1(x) :- s(x, y), t(y).
    p(x) :- q(term 1), term 1 = (x + 1), !p not 1(x).
    ...
    """
    work = Normaliser()
    for rule in rules:
        work.add(rule, counted)
    return work.rules


class Normaliser:
    """Collects normal rules and makes up names for what they need."""

    def __init__(self) -> None:
        self.rules: list[ir.Rule] = []
        self._numbers: dict[str, int] = {}

    def _number(self, of: str) -> int:
        self._numbers[of] = self._numbers.get(of, 0) + 1
        return self._numbers[of]

    def fresh(self, rule: ir.Rule) -> ir.Variable:
        return ir.Variable(f"term {self._number(f'{rule.predicate} terms')}")

    def add(self, rule: ir.Rule, counted: bool = False) -> None:
        """Take a rule in."""
        if counted or rule.aggregates:
            rule = replace(rule, body=self._once(rule.body, rule))
        for body in self.alternatives(rule.body, rule):
            self.rules.append(self._conjunctive(replace(rule, body=body)))

    def alternatives(self, body: Sequence[ir.Literal], rule: ir.Rule) -> list[tuple[ir.Literal, ...]]:
        """The conjunctions that a body with disjunctions comes to."""
        choices: list[list[tuple[ir.Literal, ...]]] = []
        count = 1
        for literal in body:
            if not isinstance(literal, ir.Disjunction):
                choices.append([(literal,)])
                continue
            found = []
            for branch in literal.branches:
                if literal.outer is not None:
                    branch = self._renamed(branch, literal.outer, rule)
                found += self.alternatives(branch, rule)
            choices.append(found)
            count *= len(found)
            if count > ALTERNATIVES:
                raise ir_error(
                    rule, f"its alternatives multiply to more than {ALTERNATIVES} rules; name some as predicates"
                )
        return [tuple(literal for part in parts for literal in part) for parts in product(*choices)]

    def _once(self, body: tuple[ir.Literal, ...], rule: ir.Rule) -> tuple[ir.Literal, ...]:
        """A body whose bindings count, in which alternatives are a predicate: what holds for two reasons counts once."""
        found = list(spliced(body))
        places = [at for at, literal in enumerate(found) if isinstance(literal, ir.Disjunction)]
        # Alternatives that bind what they show by themselves come first: others may need what they bind.
        for alone in (True, False):
            for at in places:
                literal = found[at]
                if not isinstance(literal, ir.Disjunction):
                    continue
                outer = tuple(other for other in found if other is not literal)
                shown = self._shown(literal, outer, rule)
                if alone and not all(is_safe(branch, shown) for branch in literal.branches):
                    continue
                terms: tuple[ir.Term, ...] = tuple(shown) or (ir.Constant(1),)
                name = f"{rule.predicate} or {self._number(f'{rule.predicate} or')}"
                for branch in literal.branches:
                    self.add(ir.Rule(name, terms, self._guarded(branch, shown, outer), literal.position))
                found[at] = ir.Atom(name, terms, literal.position)
        return tuple(found)

    def _shown(self, literal: ir.Disjunction, outer: tuple[ir.Literal, ...], rule: ir.Rule) -> list[ir.Variable]:
        """The variables of alternatives that the rest of a rule, or all of them, look at."""
        outside = {*ir.body_variables(outer), *(v for term in rule.terms for v in ir.variables(term))}
        seen = [set(ir.named(ir.body_variables(branch))) for branch in literal.branches]
        shown = [v for v in ir.named(ir.literal_variables(literal)) if v in outside or all(v in s for s in seen)]
        return shown if literal.outer is None else [v for v in shown if v in literal.outer]

    def _renamed(
        self, body: tuple[ir.Literal, ...], outer: tuple[ir.Variable, ...], rule: ir.Rule
    ) -> tuple[ir.Literal, ...]:
        """A body whose variables, but for the outer ones, are nobody else's."""
        hidden = [v for v in ir.named(ir.body_variables(body)) if v not in outer]
        names = {v: self.fresh(rule) for v in hidden}
        return tuple(substitute(literal, names) for literal in body)

    def _conjunctive(self, rule: ir.Rule) -> ir.Rule:
        body: list[ir.Literal] = []
        groups: list[ir.Conjunction | ir.Aggregation] = []
        for literal in rule.body:
            match literal:
                case ir.Atom():
                    body += self._flat(literal, rule)
                case ir.Negation():
                    *extra, atom = self._flat(literal.atom, rule)[::-1]
                    assert isinstance(atom, ir.Atom)
                    body += [*extra, ir.Negation(atom)]
                case ir.Conjunction() | ir.Aggregation():
                    groups.append(literal)
                case _:
                    body.append(literal)
        for group in groups:
            # What is negated gives no variable a value, so that two negations have nothing but names in common.
            rest = [other for other in rule.body if other is not group and not isinstance(other, ir.Conjunction)]
            outside = {*ir.body_variables(rest), *(v for term in rule.terms for v in ir.variables(term))}
            if isinstance(group, ir.Conjunction):
                body.append(self._negated(rule, group, outside, tuple(body)))
            else:
                body += self._aggregated(rule, group, outside, tuple(body))
        return replace(rule, body=tuple(body))

    def _flat(self, atom: ir.Atom, rule: ir.Rule) -> list[ir.Literal]:
        """An atom whose computed terms are variables, and what these are equal to."""
        terms: list[ir.Term] = []
        equations: list[ir.Literal] = []
        for term in atom.terms:
            if isinstance(term, ir.Compute):
                fresh = self.fresh(rule)
                equations.append(ir.Comparison("=", fresh, term, atom.position))
                term = fresh
            terms.append(term)
        return [replace(atom, terms=tuple(terms)), *equations]

    def _guarded(self, inner: tuple[ir.Literal, ...], needed: Iterable[ir.Variable], outer: tuple[ir.Literal, ...]
                 ) -> tuple[ir.Literal, ...]:  # fmt: skip
        """An inner body, with the outer one's positive part before it if it cannot bind what it uses by itself."""
        if is_safe(inner, needed):
            return inner
        positive = [
            literal for literal in outer if not isinstance(literal, ir.Negation | ir.Conjunction | ir.Disjunction)
        ]
        bound = bound_by(positive)
        kept = [literal for literal in positive
                if isinstance(literal, ir.Aggregation) or bound.issuperset(ir.literal_variables(literal))]  # fmt: skip
        return (*kept, *inner)

    def _negated(
        self, rule: ir.Rule, group: ir.Conjunction, outside: set[ir.Variable], outer: tuple[ir.Literal, ...]
    ) -> ir.Literal:
        """The negation of a group: of its one atom, or of a predicate that stands for it."""
        seen = [v for v in ir.named(ir.body_variables(group.body)) if v in outside]
        shared = seen if group.outer is None else [v for v in seen if v in group.outer]
        if len(group.body) == 1 and isinstance(group.body[0], ir.Atom):
            atom = group.body[0]
            if not any(isinstance(term, ir.Compute) for term in atom.terms):
                hidden = [v for v in ir.named(ir.body_variables(group.body)) if v not in shared]
                once = [v for v in hidden if sum(term == v for term in atom.terms) == 1]
                if once == hidden:
                    anonymous: dict[ir.Variable, ir.Variable] = {v: ir.Variable(f"_ {v.name}") for v in hidden}
                    found = substitute(atom, anonymous)
                    assert isinstance(found, ir.Atom)
                    return ir.Negation(found)
        name = f"{rule.predicate} not {self._number(f'{rule.predicate} not')}"
        body = self._guarded(group.body, shared, outer)
        terms: tuple[ir.Term, ...] = tuple(shared) or (ir.Constant(1),)
        self.add(ir.Rule(name, terms, body, group.position))
        return ir.Negation(ir.Atom(name, terms, group.position))

    def _aggregated(
        self, rule: ir.Rule, group: ir.Aggregation, outside: set[ir.Variable], outer: tuple[ir.Literal, ...]
    ) -> list[ir.Literal]:
        """A look-up in a predicate that holds the aggregate for each binding of the shared variables."""
        inner_variables = ir.named([*ir.body_variables(group.body), *ir.variables(group.of)])
        shared = tuple(v for v in inner_variables if v in outside)
        name = f"{rule.predicate} {group.kind} {self._number(f'{rule.predicate} {group.kind}')}"
        body = self._guarded(group.body, shared, outer)
        keys: tuple[ir.HeadTerm, ...] = shared or (ir.Constant(1),)
        self.add(ir.Rule(name, (*keys, ir.Aggregate(group.kind, group.of)), body, group.position))
        value = self.fresh(rule)
        terms: tuple[ir.Term, ...] = (*(shared or (ir.Constant(1),)), value)
        atom = ir.Atom(name, terms, group.position)
        found: ir.Literal = ir.Lookup(atom, ir.Constant(0)) if group.kind in ("count", "sum") else atom
        return [found, ir.Comparison("=", group.result, value, group.position)]


def spliced(body: Iterable[ir.Literal]) -> Iterable[ir.Literal]:
    """A body without groups of one branch: their literals stand for them."""
    for literal in body:
        if isinstance(literal, ir.Disjunction) and len(literal.branches) == 1 and literal.outer is None:
            yield from spliced(literal.branches[0])
        else:
            yield literal


def ir_error(rule: ir.Rule, problem: str) -> Exception:
    """An error about a rule."""
    from tektite.errors import IncorrectError

    return IncorrectError(f"{rule.where()}: {problem}")


def substitute(literal: ir.Literal, names: dict[ir.Variable, ir.Variable]) -> ir.Literal:
    """A literal with some variables named otherwise."""

    def term(of: ir.Term) -> ir.Term:
        if isinstance(of, ir.Variable):
            return names.get(of, of)
        if isinstance(of, ir.Compute):
            return ir.Compute(of.op, tuple(map(term, of.args)))
        return of

    def body(of: tuple[ir.Literal, ...]) -> tuple[ir.Literal, ...]:
        return tuple(substitute(inner, names) for inner in of)

    match literal:
        case ir.Atom():
            return replace(literal, terms=tuple(map(term, literal.terms)))
        case ir.Negation() | ir.Lookup():
            atom = substitute(literal.atom, names)
            assert isinstance(atom, ir.Atom)
            return replace(literal, atom=atom)
        case ir.Comparison():
            return replace(literal, left=term(literal.left), right=term(literal.right))
        case ir.Condition():
            test = term(literal.test)
            assert isinstance(test, ir.Compute)
            return replace(literal, test=test)
        case ir.Aggregation():
            result = names.get(literal.result, literal.result)
            of = None if literal.of is None else term(literal.of)
            return replace(literal, result=result, of=of, body=body(literal.body))
        case ir.Conjunction():
            outer = None if literal.outer is None else tuple(names.get(v, v) for v in literal.outer)
            return replace(literal, body=body(literal.body), outer=outer)
        case ir.Disjunction():
            return replace(literal, branches=tuple(map(body, literal.branches)))
