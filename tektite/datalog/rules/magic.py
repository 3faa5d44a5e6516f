"""Goal-directed evaluation: rules rewritten so that they derive only what some arguments ask for (magic sets).

`tc^bf` holds the facts of `tc` whose first column was asked for; `ask tc^bf` holds what was asked, by the query itself
or by a rule on the way to its answers. A rule passes values on from atom to atom: first what it is asked for and
constants, then whatever these lead to. The rewritten rules are ordinary rules, and are evaluated like any others.

Two shapes of recursion get a better form. If a rule passes the arguments on unchanged (`tc(x, z) :- tc(x, y), edge(y, z)`
asked for x), it need not check them again. If it passes everything else on unchanged (the same rule asked for z), the answers
of later goals are also answers of the first one: only the goals are followed, each with the argument that it came from.

A negated or aggregated predicate is asked for its arguments like any other, except where that would make it depend on
itself; then it is evaluated in full.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field

from tektite.datalog.rules import strata
from tektite.datalog.rules.safety import bound_by
from tektite.datalog.rules.strata import RulesByName, Unstratified
from tektite.datalog.syntax import ir
from tektite.datalog.syntax.meaning import canonical

Goal = tuple[str, str]
"""A predicate and its adornment: for each column, b if its value is asked for and f if it is free."""


@dataclass
class Rewriting:
    """The rules of a goal-directed program, the goals it asks, and what it reads in full."""

    rules: dict[str, list[ir.Rule]] = field(default_factory=dict)
    goals: list[Goal] = field(default_factory=list)
    full: list[str] = field(default_factory=list)
    followed: list[Goal] = field(default_factory=list)

    def spreading(self) -> list[Goal]:
        """The goals that ask for more of themselves, whatever is answered: how much they ask is known before the answers."""
        answers = {adorned(goal) for goal in self.goals}
        found = []
        for goal in self.goals:
            name = asked(goal)
            needs = {other for component in strata.components(self.rules, [name]) for other in component}
            if name in strata.predicates_of(self.rules, name) and not needs & answers:
                found.append(goal)
        return found


def adorned(goal: Goal) -> str:
    """The name of the predicate that holds the answers of a goal."""
    return f"{goal[0]}^{goal[1]}"


def asked(goal: Goal) -> str:
    """The name of the predicate that holds the arguments of a goal."""
    return f"ask {adorned(goal)}"


def origin(name: str) -> str:
    """The predicate of whose rules those for a goal's answers or arguments were made."""
    return name.removeprefix("ask ").removeprefix("from ").partition("^")[0]


def rewrite(
    root: Sequence[ir.Rule],
    rules: RulesByName,
    in_full: Callable[[str], bool],
    fixed: Mapping[str, set[int]],
    improved: Container[str],
    given: frozenset[str] = frozenset(),
) -> Rewriting:
    """The root rules and all that their constants, and the predicates `given` as arguments, ask for.

    `in_full` says of a predicate that it is to be read as a whole; `fixed` are columns that cannot be asked for, because the
    rules choose their values among others (a least value, for example); `improved` are the predicates of which nothing but
    least or greatest values stays, so that they may come to be defined through what they are asked for.
    """
    whole: set[str] = set()
    while True:
        work = Rewriter(rules, lambda name: in_full(name) or name in whole, fixed, given)
        work.root(root)
        try:
            for component in strata.components(work.result.rules, list(work.result.rules)):
                kept = {name: (0, "") for name in component if origin(name) in improved}
                strata.check(work.result.rules, component, kept)
        except Unstratified as error:
            name = error.predicate.split("^")[0].removeprefix("ask ")
            if name in whole:
                raise
            whole.add(name)
            continue
        return work.result


class Rewriter:
    """Rewrites rules for goals as they turn up."""

    def __init__(
        self, rules: RulesByName, in_full: Callable[[str], bool], fixed: Mapping[str, set[int]], given: frozenset[str]
    ) -> None:
        self.rules = rules
        self.given = given
        self.in_full = in_full
        self.fixed = fixed
        self.result = Rewriting()
        self._waiting: list[Goal] = []
        self._components = {name: set(c) for c in strata.components(rules, list(rules)) for name in c}

    def root(self, rules: Sequence[ir.Rule]) -> None:
        """Rewrite the query's own rules, and then every goal they lead to."""
        for rule in rules:
            self._add(self._rewritten(rule, set(), None))
        while self._waiting:
            goal = self._waiting.pop(0)
            if not self._follow(goal):
                for rule in self.rules[goal[0]]:
                    self._add(self._answering(goal, rule))
        for rule in rules:
            found = self.result.rules[rule.predicate]
            found[:] = dict.fromkeys(map(self._unguarded, found))

    def _add(self, rule: ir.Rule) -> None:
        found = self.result.rules.setdefault(rule.predicate, [])
        if rule not in found:
            found.append(rule)

    # ------------------------------------------------------------------ one rule for one goal

    def _answering(self, goal: Goal, rule: ir.Rule) -> ir.Rule:
        """A rule for the answers of a goal."""
        head = ir.Rule(adorned(goal), rule.terms, rule.body, rule.position)
        guard, equations = guarded(goal, rule)
        bound = {v for term in guard.terms for v in ir.variables(term)}
        return self._rewritten(
            ir.Rule(head.predicate, head.terms, (*equations, *head.body), rule.position), bound, guard
        )

    def _rewritten(self, rule: ir.Rule, bound: set[ir.RuleVariable], guard: ir.Atom | None) -> ir.Rule:
        done: list[ir.Literal] = [] if guard is None else [guard]
        atoms = [literal for literal in rule.body if isinstance(literal, ir.Atom)]
        tests = [literal for literal in rule.body if isinstance(literal, ir.Comparison | ir.Condition)]
        strict = [literal for literal in rule.body if isinstance(literal, ir.Negation | ir.Lookup)]
        while True:
            tests = bind(tests, bound, done)
            if not atoms:
                break
            weights = [sum(is_bound(term, bound) for term in atom.terms) for atom in atoms]
            weights = [len(a.terms) if a.predicate in self.given else w for a, w in zip(atoms, weights, strict=True)]
            at = max(range(len(atoms)), key=lambda i: (weights[i] > 0 and not self._is_rule(atoms[i]), weights[i], -i))
            atom = atoms.pop(at)
            done.append(self._asking(atom, bound, done))
            if weights[at]:  # what nothing leads to asks for nothing either
                bound |= {v for v in ir.literal_variables(atom) if not v.anonymous}
        for literal in strict:
            if isinstance(literal, ir.Negation):
                done.append(ir.Negation(self._asking(literal.atom, bound, done)))
            else:
                done.append(ir.Lookup(self._asking(literal.atom, bound, done, skip=True), literal.default))
                bound |= set(ir.variables(literal.atom.terms[-1]))
                tests = bind(tests, bound, done)
        done += tests
        if guard is not None and any(implies(literal, rule, guard) for literal in done):
            done.remove(guard)
        return ir.Rule(rule.predicate, rule.terms, tuple(done), rule.position)

    def _unguarded(self, rule: ir.Rule) -> ir.Rule:
        """A rule of the query without the arguments that the answers to a goal imply: those that are all that was asked."""
        answers = [literal for literal in rule.body if isinstance(literal, ir.Atom)]
        implied = []
        for argument in answers:
            for goal in self.result.goals if argument.predicate in self.given else ():
                asking = ir.Rule(asked(goal), argument.terms, (argument,))
                if self.result.rules.get(asking.predicate) != [asking]:
                    continue
                read = [a for a in answers if a.predicate == adorned(goal) and bound_terms(a, goal) == argument.terms]
                if read:
                    implied.append(argument)
                    break
        return ir.Rule(rule.predicate, rule.terms, tuple(x for x in rule.body if x not in implied), rule.position)

    def _is_rule(self, atom: ir.Atom) -> bool:
        return atom.predicate in self.rules and not self.in_full(atom.predicate)

    def _asking(
        self, atom: ir.Atom, bound: set[ir.RuleVariable], done: list[ir.Literal], skip: bool = False
    ) -> ir.Atom:
        """The atom that reads a predicate's answers for what is bound; adds the rule that asks for them."""
        name = atom.predicate
        if not self._is_rule(atom):
            if name in self.rules and name not in self.result.full:
                self.result.full.append(name)
            return atom
        fixed = self.fixed.get(name, set()) | ({len(atom.terms) - 1} if skip else set())
        marks = ["b" if is_bound(term, bound) and at not in fixed else "f" for at, term in enumerate(atom.terms)]
        if "b" not in marks:
            if name not in self.result.full:
                self.result.full.append(name)
            return atom
        goal = (name, "".join(marks))
        if goal not in self.result.goals:
            self.result.goals.append(goal)
            self._waiting.append(goal)
        arguments = bound_terms(atom, goal)
        positive = tuple(literal for literal in done if not isinstance(literal, ir.Negation))
        own = [literal for literal in positive if isinstance(literal, ir.Atom) and literal.predicate == asked(goal)]
        if not any(literal.terms == arguments for literal in own):
            self._add(ir.Rule(asked(goal), arguments, relevant(positive, arguments), atom.position))
        return ir.Atom(adorned(goal), atom.terms, atom.position)

    # ------------------------------------------------------------------ following goals

    def _follow(self, goal: Goal) -> bool:
        """Answer a goal by following its goals alone, if every recursive rule passes the free columns on unchanged."""
        name, marks = goal
        rules = self.rules[name]
        if self._components[name] != {name} or name in self.fixed or any(rule.aggregates for rule in rules):
            return False
        steps = [rule for rule in rules if any(other == name for other, _ in strata.dependencies(rule))]
        if not steps or not all(passes_on(rule, goal) for rule in steps):
            return False
        self.result.followed.append(goal)
        if self._closed(goal, steps):
            return True
        count = marks.count("b")
        start = tuple(ir.RuleVariable(f"start {i}") for i in range(count))
        way = f"from {adorned(goal)}"
        self._add(ir.Rule(way, (*start, *start), (ir.Atom(asked(goal), start),)))
        for rule in rules:
            guard, equations = guarded(goal, rule)
            seen = ir.Atom(way, (*start, *guard.terms), rule.position)
            bound = {v for term in seen.terms for v in ir.variables(term)}
            if rule in steps:
                (atom,) = (a for a in rule.body if isinstance(a, ir.Atom) and a.predicate == name)
                rest = tuple(literal for literal in rule.body if literal is not atom)
                further = bound_terms(atom, goal)
                step = ir.Rule(way, (*start, *further), (*equations, *rest), rule.position)
                self._add(self._rewritten(step, bound, seen))
            else:
                free = iter(start)
                terms = tuple(next(free) if mark == "b" else term for term, mark in zip(rule.terms, marks, strict=True))
                answer = ir.Rule(adorned(goal), terms, (*equations, *rule.body), rule.position)
                self._add(self._rewritten(answer, bound, seen))
        return True

    def _closed(self, goal: Goal, steps: Sequence[ir.Rule]) -> bool:
        """Answer a goal that is followed by steps that are like its last one, as in `tc(x, y) :- edge(x, y)` and `tc(x, z) :-
        tc(x, y), edge(y, z)` asked for z: then whatever a step leads to is an answer.
        """
        name, marks = goal
        others = [rule for rule in self.rules[name] if rule not in steps]
        if len(steps) != 1 or len(others) != 1 or 2 * marks.count("b") != len(marks):
            return False
        (step,), (last,) = steps, others
        (atom,) = (a for a in step.body if isinstance(a, ir.Atom) and a.predicate == name)
        rest = tuple(literal for literal in step.body if literal is not atom)
        given = tuple(term for term, mark in zip(step.terms, marks, strict=True) if mark == "b")
        further = bound_terms(atom, goal)
        found = [tuple(t for t, m in zip(last.terms, marks, strict=True) if m == mark) for mark in "bf"]
        like = (ir.Rule("", (*given, *further), rest), ir.Rule("", (*found[0], *found[1]), last.body))
        if canonical(like[0]) != canonical(like[1]) or not all(isinstance(t, ir.RuleVariable) for t in given):
            return False
        start = tuple(ir.RuleVariable(f"start {i}") for i in range(len(given)))
        reached = tuple(ir.RuleVariable(f"reached {i}") for i in range(len(given)))
        way = f"from {adorned(goal)}"
        guard, _ = guarded(goal, step)
        first = ir.Rule(way, (*guard.terms, *further), rest, last.position)
        self._add(self._rewritten(first, set(ir.body_variables([guard])), guard))
        seen = ir.Atom(way, (*start, *guard.terms), step.position)
        again = ir.Rule(way, (*start, *further), rest, step.position)
        self._add(self._rewritten(again, set(ir.body_variables([seen])), seen))
        shown = [iter(start), iter(reached)]
        terms = tuple(next(shown[mark == "f"]) for mark in marks)
        self._add(ir.Rule(adorned(goal), terms, (ir.Atom(way, (*start, *reached), last.position),), last.position))
        return True


def guarded(goal: Goal, rule: ir.Rule) -> tuple[ir.Atom, tuple[ir.Literal, ...]]:
    """The atom that says what was asked, for a rule's head, and equations for what the head computes."""
    terms: list[ir.Term] = []
    equations: list[ir.Literal] = []
    for at, (term, mark) in enumerate(zip(rule.terms, goal[1], strict=True)):
        if mark == "f":
            continue
        assert not isinstance(term, ir.HeadAggregate)
        if isinstance(term, ir.Compute):
            fresh = ir.RuleVariable(f"asked {at}")
            equations.append(ir.Comparison("=", fresh, term, rule.position))
            term = fresh
        terms.append(term)
    return ir.Atom(asked(goal), tuple(terms), rule.position), tuple(equations)


def bound_terms(atom: ir.Atom, goal: Goal) -> tuple[ir.Term, ...]:
    """The arguments that an atom passes to a goal."""
    return tuple(term for term, mark in zip(atom.terms, goal[1], strict=True) if mark == "b")


def is_bound(term: ir.Term, bound: set[ir.RuleVariable]) -> bool:
    """Whether a term has a value already."""
    return isinstance(term, ir.Constant) or (isinstance(term, ir.RuleVariable) and term in bound)


def bind(
    tests: list[ir.Comparison | ir.Condition], bound: set[ir.RuleVariable], done: list[ir.Literal]
) -> list[ir.Comparison | ir.Condition]:
    """Do the tests whose variables are bound, and bind what equations compute; those that have to wait."""
    again = True
    while again:
        again = False
        for test in list(tests):
            free = [v for v in ir.literal_variables(test) if v not in bound]
            solved = isinstance(test, ir.Comparison) and test.op == "=" and any(
                isinstance(one, ir.RuleVariable) and all(v in bound for v in ir.variables(other))
                for one, other in ((test.left, test.right), (test.right, test.left))
            )  # fmt: skip
            if not free or solved:
                bound |= set(free)
                done.append(test)
                tests = [other for other in tests if other is not test]
                again = True
    return tests


def relevant(body: tuple[ir.Literal, ...], arguments: tuple[ir.Term, ...]) -> tuple[ir.Literal, ...]:
    """The part of a body that variables connect with the arguments, or, for constants alone, none of it: the constants are
    asked for whatever the rest says.
    """
    wanted = {v for term in arguments for v in ir.variables(term)}
    kept: set[int] = set()
    size = -1
    while size < len(kept):
        size = len(kept)
        for at, literal in enumerate(body):
            found = set(ir.literal_variables(literal))
            if at not in kept and found & wanted:
                kept.add(at)
                wanted |= {v for v in found if not v.anonymous}
    return tuple(literal for at, literal in enumerate(body) if at in kept)


def implies(literal: ir.Literal, rule: ir.Rule, guard: ir.Atom) -> bool:
    """Whether a literal says by itself that the guard holds: the goal's own answers for the same arguments."""
    if not isinstance(literal, ir.Atom) or literal.predicate != rule.predicate or "^" not in rule.predicate:
        return False
    if guard.predicate != f"ask {rule.predicate}":
        return False
    marks = rule.predicate.rsplit("^", 1)[1]
    return tuple(t for t, mark in zip(literal.terms, marks, strict=True) if mark == "b") == guard.terms


def passes_on(rule: ir.Rule, goal: Goal) -> bool:
    """Whether a recursive rule uses its predicate once, and hands all columns that are not asked for on as they are."""
    name, marks = goal
    found = [literal for literal in rule.body if isinstance(literal, ir.Atom) and literal.predicate == name]
    others = [literal for literal in rule.body if literal not in found]
    if len(found) != 1 or any(other == name for literal in others for other in named_in(literal)):
        return False
    (atom,) = found
    elsewhere = list(ir.body_variables(others))
    asked_for = [v for term, mark in zip(rule.terms, marks, strict=True) if mark == "b" for v in ir.variables(term)]
    further = [term for term, mark in zip(atom.terms, marks, strict=True) if mark == "b"]
    for head, term, mark in zip(rule.terms, atom.terms, marks, strict=True):
        if mark == "f":
            if (
                not isinstance(head, ir.RuleVariable)
                or head != term
                or head in elsewhere
                or head in asked_for
                or head in further
            ):
                return False
            if sum(t == head for t in rule.terms) > 1:
                return False
    # A head that computes its column does not say which value it was computed from.
    given = [t for t, mark in zip(rule.terms, marks, strict=True) if mark == "b" and isinstance(t, ir.RuleVariable)]
    return all(is_bound(term, bound_by(others, given)) for term in further)


def named_in(literal: ir.Literal) -> list[str]:
    """The predicates that a normal literal names."""
    if isinstance(literal, ir.Negation | ir.Lookup):
        return [literal.atom.predicate]
    return [literal.predicate] if isinstance(literal, ir.Atom) else []
