"""Normal form: rules whose bodies are plain conjunctions.

In a normal rule the terms of body atoms are variables and constants, alternatives have become rules of their own,
and negated groups and aggregates over a body of their own have become predicates of their own, which no text can name. A body
that uses what the rule around it binds reads that from a predicate, too: a set, so that it counts no binding twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product

from tektite.datalog.rules import safety
from tektite.datalog.rules.binding import binding
from tektite.datalog.rules.ranges import is_range, numbers
from tektite.datalog.rules.safety import bound_by
from tektite.datalog.rules.scopes import ATTAINED, inner_variables, scoped, unbound
from tektite.datalog.syntax import ir

ALTERNATIVES = 4096
"""The greatest number of rules that one rule may expand to."""


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
    """Collects normal rules, and names the helper predicates that they need."""

    def __init__(self) -> None:
        self.rules: list[ir.Rule] = []
        self._numbers: dict[str, int] = {}

    def _number(self, of: str) -> int:
        self._numbers[of] = self._numbers.get(of, 0) + 1
        return self._numbers[of]

    def fresh(self, rule: ir.Rule) -> ir.RuleVariable:
        """A variable that a rule does not have. Its body may have fresh variables of the rule around it."""
        taken = set(ir.body_variables(rule.body))
        while (made := ir.RuleVariable(f"term {self._number(f'{rule.predicate} terms')}")) in taken:
            pass
        return made

    def add(self, rule: ir.Rule, counted: bool = False) -> None:
        """Normalise one rule."""
        if counted or rule.aggregates:
            rule = scoped(replace(rule, body=self._flat(rule.body, rule)))
            rule = replace(rule, body=self._once(rule.body, rule))
        for body in self.alternatives(rule.body, rule):
            self.rules.append(self._conjunctive(scoped(replace(rule, body=self._flat(body, rule)))))

    def alternatives(self, body: Sequence[ir.Literal], rule: ir.Rule) -> list[tuple[ir.Literal, ...]]:
        """The conjunctions that a body with disjunctions expands to."""
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
        """Replace the alternatives of a body whose bindings are counted by predicates, so that each binding counts once."""
        found = list(body)
        left = [literal for literal in found if isinstance(literal, ir.Disjunction)]
        while left:
            # Alternatives may need what others bind: those that need no others come first.
            literal = next((choice for choice in left if self._stands(choice, found, rule)), left[0])
            outer = tuple(other for other in found if other is not literal)
            shown = self._shown(literal, outer, rule)
            terms: tuple[ir.Term, ...] = tuple(shown) or (ir.Constant(1),)
            name = self._name(rule, "or")
            for branch in literal.branches:
                if literal.outer is not None:
                    branch = self._renamed(branch, literal.outer, rule)
                branch = completed(self._guarded(branch, shown, outer, rule), shown, outer)
                self._define(name, terms, branch, rule, literal.position)
            left.remove(literal)
            found[found.index(literal)] = ir.Atom(name, terms, literal.position)
        return tuple(found)

    def _stands(self, choice: ir.Disjunction, body: Sequence[ir.Literal], rule: ir.Rule) -> bool:
        """Whether each branch, together with the literals beside the choice, binds all shown variables. What nothing else binds
        is a witness of an aggregate in the branch.
        """
        outer = tuple(other for other in body if other is not choice)
        shown = self._shown(choice, outer, rule)
        beside = [literal for literal in outer if not isinstance(literal, ir.Disjunction)]
        bound = bound_by(body)
        return all(
            all(v in here or (v not in bound and v in attained_in(branch)) for v in shown)
            for branch in choice.branches
            for here in [bound_by([*beside, *branch])]
        )

    def _shown(self, literal: ir.Disjunction, outer: tuple[ir.Literal, ...], rule: ir.Rule) -> list[ir.RuleVariable]:
        """The variables of alternatives that the rest of a rule, or all of them, look at. A variable that the alternatives have
        only within aggregates is one of these if the rest binds it, or if the rest has its values from nowhere else.
        """
        head = {v for term in rule.terms for v in ir.variables(term)}
        outside = {*seen_in(outer), *head}
        seen = [set(seen_in(branch)) for branch in literal.branches]
        bound = bound_by((*outer, literal))
        loose = {*head, *unbound((*outer, literal), bound)} - bound
        plain = set.union(bound_by(outer), loose, *seen)
        found = ir.named(ir.literal_variables(literal))
        shown = [v for v in found if (v in outside and v in plain) or all(v in s for s in seen)]
        if literal.outer is not None:
            shown = [v for v in shown if v in literal.outer]
        for variable in shown:
            if variable in outside and variable not in bound and variable not in loose:
                raise safety.unbound(rule, variable, str(literal))
        return shown

    def _renamed(
        self, body: tuple[ir.Literal, ...], outer: tuple[ir.RuleVariable, ...], rule: ir.Rule
    ) -> tuple[ir.Literal, ...]:
        """A body with fresh names for all but its outer variables."""
        hidden = [v for v in ir.named(ir.body_variables(body)) if v not in outer]
        names = {v: self.fresh(rule) for v in hidden}
        return tuple(substitute(literal, names) for literal in body)

    def _conjunctive(self, rule: ir.Rule) -> ir.Rule:
        negated = [literal for literal in rule.body if isinstance(literal, ir.Conjunction)]
        aggregates = [literal for literal in rule.body if isinstance(literal, ir.Aggregation)]
        groups = (*negated, *aggregates)
        body = [literal for literal in rule.body if literal not in groups]
        while aggregates:
            bound = bound_by(body)
            ready = next((group for group in aggregates if bound.issuperset(group.outer or ())), None)
            if ready is None:
                shown = " and ".join(f"{group.kind} ({group.position})" for group in aggregates)
                raise ir_error(
                    rule, f"the aggregates {shown} are computed from each other: none of them can be the first"
                )
            aggregates.remove(ready)
            body += self._aggregated(rule, ready, tuple(body))
        outside = {*seen_in(rule.body), *(v for term in rule.terms for v in ir.variables(term))}
        for group in negated:
            body.append(self._negated(rule, group, outside, tuple(body)))
        for at, literal in enumerate(body):
            if isinstance(literal, ir.Comparison) and is_range(literal):
                beside = tuple(other for other in body if other is not literal)
                made, body[at] = numbers(literal, rule, beside, lambda: self._name(rule, "range"))
                for each in made:
                    self.add(each)
        return replace(rule, body=tuple(body))

    def _flat(self, body: Iterable[ir.Literal], rule: ir.Rule) -> tuple[ir.Literal, ...]:
        """A body in which a choice of one is no choice, and the computed terms of atoms are variables, with what these are equal
        to beside them.
        """
        found: list[ir.Literal] = []
        for literal in body:
            match literal:
                case ir.Disjunction() if len(literal.branches) == 1 and literal.outer is None:
                    found += self._flat(literal.branches[0], rule)
                case ir.Atom():
                    atom, equations = self._plain(literal, rule)
                    found += [atom, *equations]
                case ir.Negation():
                    atom, equations = self._plain(literal.atom, rule)
                    found += [*equations, ir.Negation(atom)]
                case _:
                    found.append(literal)
        return tuple(found)

    def _plain(self, atom: ir.Atom, rule: ir.Rule) -> tuple[ir.Atom, list[ir.Literal]]:
        """An atom with variables in place of computed terms, and an equation for each."""
        terms: list[ir.Term] = []
        equations: list[ir.Literal] = []
        for term in atom.terms:
            if isinstance(term, ir.Compute):
                fresh = self.fresh(rule)
                equations.append(ir.Comparison("=", fresh, term, atom.position))
                term = fresh
            terms.append(term)
        return replace(atom, terms=tuple(terms)), equations

    def _name(self, rule: ir.Rule, kind: str) -> str:
        """The name of a new helper predicate."""
        return f"{rule.predicate} {kind} {self._number(f'{rule.predicate} {kind}')}"

    def _define(
        self,
        name: str,
        terms: tuple[ir.HeadTerm, ...],
        body: tuple[ir.Literal, ...],
        rule: ir.Rule,
        position: ir.TextPosition,
        counted: bool = False,
    ) -> None:
        """Add a rule of a helper predicate."""
        self.add(ir.Rule(name, terms, body, position, rule.written), counted)

    def _guarded(
        self,
        inner: tuple[ir.Literal, ...],
        needed: Sequence[ir.RuleVariable],
        outer: tuple[ir.Literal, ...],
        rule: ir.Rule,
    ) -> tuple[ir.Literal, ...]:
        """An inner body, with a predicate before it that holds the values the outer one gives to what is needed, if the inner one
        does not bind that by itself.
        """
        # The result of an aggregate inside does not count: the aggregate may use the outer variable of that name. Nor do choices,
        # each of which may need what another one binds.
        plain = [literal for literal in inner if not isinstance(literal, ir.Disjunction)]
        if bound_by(plain, results=False).issuperset(needed):
            return inner
        outer = tuple(literal for literal in outer if _can_stand(literal, outer))
        given = binding(outer, needed)
        # What the rule says itself is left out, if the rest binds as much, so that the inner body does not depend on it. More
        # values than there are do no harm: what is derived for them is not looked up.
        others = binding([x for x in given if not isinstance(x, ir.Atom) or x.predicate != rule.predicate], needed)
        given = others if bound_by(others).issuperset(bound_by(given).intersection(needed)) else given
        shown = tuple(v for v in needed if v in bound_by(given))
        if not shown:
            return inner
        name = self._name(rule, "given")
        self._define(name, shown, given, rule, rule.position)
        return (ir.Atom(name, shown, rule.position), *inner)

    def _negated(
        self, rule: ir.Rule, group: ir.Conjunction, outside: set[ir.RuleVariable], outer: tuple[ir.Literal, ...]
    ) -> ir.Literal:
        """The negation of a group: of its single atom, or of a helper predicate."""
        seen = [v for v in ir.named(ir.body_variables(group.body)) if v in outside]
        shared = seen if group.outer is None else [v for v in seen if v in group.outer]
        if len(group.body) == 1 and isinstance(group.body[0], ir.Atom):
            atom = group.body[0]
            if not any(isinstance(term, ir.Compute) for term in atom.terms):
                hidden = [v for v in ir.named(ir.body_variables(group.body)) if v not in shared]
                once = [v for v in hidden if sum(term == v for term in atom.terms) == 1]
                if once == hidden:
                    anonymous: dict[ir.RuleVariable, ir.RuleVariable] = {
                        v: ir.RuleVariable(f"_ {v.name}") for v in hidden
                    }
                    found = substitute(atom, anonymous)
                    assert isinstance(found, ir.Atom)
                    return ir.Negation(found)
        name = self._name(rule, "not")
        terms: tuple[ir.Term, ...] = tuple(shared) or (ir.Constant(1),)
        self._define(name, terms, self._guarded(group.body, shared, outer, rule), rule, group.position)
        return ir.Negation(ir.Atom(name, terms, group.position))

    def _aggregated(self, rule: ir.Rule, group: ir.Aggregation, outer: tuple[ir.Literal, ...]) -> list[ir.Literal]:
        """A look-up in a predicate that holds the aggregate for each binding of the outer variables. Its witnesses come from one
        that holds what is aggregated beside them.
        """
        assert group.outer is not None
        body = self._guarded(group.body, group.outer, outer, rule)
        keys: tuple[ir.Term, ...] = group.outer or (ir.Constant(1),)
        value = self.fresh(rule)
        of, found = group.of, []
        if group.witnesses:
            assert of is not None
            each = self._name(rule, "at")
            # Alternatives in the body bind what each of them does, with witnesses as without.
            self._define(each, (*keys, *group.witnesses, of), body, rule, group.position, counted=True)
            hidden = [ir.RuleVariable(f"_ {v.name}") for v in group.witnesses]
            of, body = value, (ir.Atom(each, (*keys, *hidden, value), group.position),)
            found.append(ir.Atom(each, (*keys, *group.witnesses, value), group.position))
        name = self._name(rule, group.kind)
        self._define(name, (*keys, ir.HeadAggregate(group.kind, of)), body, rule, group.position)
        atom = ir.Atom(name, (*keys, value), group.position)
        looked_up: ir.Literal = ir.Lookup(atom, ir.Constant(0)) if group.kind in ("count", "sum") else atom
        return [looked_up, *found, ir.Comparison("=", group.result, value, group.position)]


def attained_in(body: Iterable[ir.Literal]) -> set[ir.RuleVariable]:
    """The variables inside the aggregates of a body that may have witnesses."""
    groups = [literal for literal in body if isinstance(literal, ir.Aggregation) and literal.kind in ATTAINED]
    return {v for group in groups for v in inner_variables(group)}


def seen_in(body: Iterable[ir.Literal]) -> Iterable[ir.RuleVariable]:
    """The variables of a body that its groups may share: not those that stand in negated groups alone, which are theirs."""
    return ir.plain_variables(literal for literal in body if not isinstance(literal, ir.Conjunction))


def completed(
    branch: tuple[ir.Literal, ...], shown: Sequence[ir.RuleVariable], outer: Iterable[ir.Literal]
) -> tuple[ir.Literal, ...]:
    """An alternative, with the literals beside the alternatives that compute from its variables what it does not bind itself.

    An aggregate is none of them: it is taken for the values that all alternatives give, not for those of one.
    """
    bound = bound_by(branch)
    missing = [v for v in shown if v not in bound]
    if not missing:
        return branch
    beside = [x for x in outer if not isinstance(x, ir.Disjunction | ir.Aggregation)]
    return (*branch, *binding(beside, missing, bound))


def _can_stand(literal: ir.Literal, body: Sequence[ir.Literal]) -> bool:
    """Whether other literals of a body bind what a literal takes from them, if it is an aggregate."""
    outer = literal.outer if isinstance(literal, ir.Aggregation) else None
    return not outer or bound_by([other for other in body if other is not literal]).issuperset(outer)


def ir_error(rule: ir.Rule, problem: str) -> Exception:
    """An error about a rule."""
    from tektite.errors import IncorrectError

    return IncorrectError(f"{rule.where()}: {problem}")


def substitute(literal: ir.Literal, names: dict[ir.RuleVariable, ir.RuleVariable]) -> ir.Literal:
    """A literal with some variables renamed."""

    def term(of: ir.Term) -> ir.Term:
        if isinstance(of, ir.RuleVariable):
            return names.get(of, of)
        if isinstance(of, ir.Compute):
            return replace(of, args=tuple(map(term, of.args)))
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
        case ir.AttributePattern():
            raise AssertionError(f"{literal} is resolved before")
