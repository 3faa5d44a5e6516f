"""Subsumption in general: `p(a) <= p(b) :- test.` removes every fact a of `p` for which another one, b, passes the test.

The rules of `p` say candidates. A candidate stays if no other candidate subsumes it. If `p` is defined through itself, the
candidates of a round are what its rules say of the facts that stayed in the round before, and these facts. So a fact stays until
another subsumes it, whatever it was derived from, as in Soufflé.

Where one column alone is compared, `rules.monotone` has a better way.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from typing import Any

from tektite.datalog.rules.functors import mapped
from tektite.datalog.syntax import ir, statements
from tektite.errors import UnsupportedError


def with_subsumptions(text: statements.Text, stored: Container[str]) -> statements.Text:
    """A text with rules for its subsumptions. `stored` are the predicates that are inputs.

    >>> from tektite.datalog.syntax.textbook import parse_program
    >>> text = parse_program("p(x, y) :- q(x, y).  p(a, b) <= p(c, d) :- a <= c, b <= d.")
    >>> print(*with_subsumptions(text, ()).rules, sep="\\n")
    p given 0(x, y) :- q(x, y).
    p not 0(a, b) :- p given 0(a, b), p given 0(c, d), a <= c, b <= d, (a != c; b != d).
    p(column 0, column 1) :- p given 0(column 0, column 1), !p not 0(column 0, column 1).
    """
    if not text.subsumptions:
        return text
    inputs = {directive.predicate for directive in text.directives if directive.kind == "input"}
    rules = list(text.rules)
    declarations = list(text.declarations)
    for name in dict.fromkeys(found.worse.predicate for found in text.subsumptions):
        place = next(found.position for found in text.subsumptions if found.worse.predicate == name)
        if name in inputs or name in stored:
            raise UnsupportedError(
                f"{place}: {name!r} is an input: subsumption removes facts that rules derive; write a rule that reads {name!r}"
            )
        if any(i.predicate == name for i in text.improvements):
            raise UnsupportedError(f"{place}: {name!r} has a subsumption of one column, and others: write one of them")
        given, gone = candidates(name), subsumed(name)
        declared = [d for d in text.declarations if d.predicate == name]
        declarations += [replace(d, predicate=other) for d in declared for other in (given, gone)]
        rules = [replace(rule, predicate=given) if rule.predicate == name else rule for rule in rules]
        for found in text.subsumptions:
            if found.worse.predicate == name:
                rules.append(removal(found, given, gone))
        width = len(next(found.worse.terms for found in text.subsumptions if found.worse.predicate == name))
        columns = tuple(ir.RuleVariable(f"column {at}") for at in range(width))
        body = (ir.Atom(given, columns, place), ir.Negation(ir.Atom(gone, columns, place)))
        rules.append(ir.Rule(name, columns, body, place, str(text.subsumptions[0])))
    return replace(text, rules=tuple(rules), declarations=tuple(declarations))


def candidates(predicate: str) -> str:
    """The predicate that holds the candidates of one that has subsumptions."""
    return f"{predicate} given 0"


def subsumed(predicate: str) -> str:
    """The predicate that holds the candidates that do not stay."""
    return f"{predicate} not 0"


def removal(found: statements.Subsumption, given: str, gone: str) -> ir.Rule:
    """The rule that says which candidates go."""
    (worse, equal), (better, also) = (
        plain(atom, given, how) for atom, how in ((found.worse, "worse"), (found.better, "better"))
    )
    pairs = zip(worse.terms, better.terms, strict=True)
    differ = tuple((ir.Comparison("!=", a, b, found.position),) for a, b in pairs if a != b)
    other = (ir.Disjunction(differ, None, found.position),) if differ else ()
    # What the body says of the predicate itself it says of the candidates.
    body = mapped(found.body, lambda x: replace(x, predicate=given) if is_atom_of(x, found.worse.predicate) else x)
    return ir.Rule(gone, worse.terms, (worse, better, *equal, *also, *body, *other), found.position, str(found))


def plain(atom: ir.Atom, predicate: str, name: str) -> tuple[ir.Atom, list[ir.Literal]]:
    """An atom of another predicate whose terms are variables that have names, and what those are equal to."""
    terms: list[ir.Term] = []
    equations: list[ir.Literal] = []
    for at, term in enumerate(atom.terms):
        if isinstance(term, ir.RuleVariable) and not term.anonymous:
            terms.append(term)
            continue
        terms.append(ir.RuleVariable(f"{name} {at}"))
        if not isinstance(term, ir.RuleVariable):
            equations.append(ir.Comparison("=", terms[-1], term, atom.position))
    return ir.Atom(predicate, tuple(terms), atom.position), equations


def is_atom_of(part: Any, predicate: str) -> bool:
    """Whether a part of a rule is an atom of a predicate."""
    return isinstance(part, ir.Atom) and part.predicate == predicate
