"""Equivalence relations: what rules say of a predicate declared `eqrel` is closed under symmetry and transitivity.

What the rules of `eq` say becomes a predicate of its own, and `eq` follows steps of it in either direction. So the work for a
class grows with its pairs and with what the rules say of each member, not with the pairs of pairs. If the facts of `eq` are
stored as well, as those of an input are, `eq` follows its own pairs.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

from tektite.datalog.syntax import ir, statements

X, Y, Z = map(ir.RuleVariable, "xyz")


def with_closures(text: statements.Text, stored: Container[str]) -> statements.Text:
    """A text with the rules that make its equivalence relations what they are. `stored` are the predicates that are inputs.

    >>> from tektite.datalog.syntax.textbook import parse_program
    >>> text = parse_program(".decl eq(x: number, y: number) eqrel  eq(1, 2).")
    >>> print(*with_closures(text, ()).rules, sep="\\n")
    eq given 0(1, 2).
    eq(x, y) :- eq given 0(x, y).
    eq(x, y) :- eq given 0(y, x).
    eq(x, z) :- eq(x, y), eq given 0(y, z).
    eq(x, z) :- eq(x, y), eq given 0(z, y).
    """
    inputs = {directive.predicate for directive in text.directives if directive.kind == "input"}
    ruled = {rule.predicate for rule in text.rules}
    for declaration in text.declarations:
        name = declaration.predicate
        if not declaration.equivalence:
            continue
        place, shown = declaration.position, f".decl {name}(...) eqrel"
        if name in inputs or name in stored or name not in ruled:
            steps, rules = name, text.rules
        else:
            steps = f"{name} given 0"
            rules = tuple(replace(rule, predicate=steps) if rule.predicate == name else rule for rule in text.rules)
            said = replace(declaration, predicate=steps, equivalence=False)
            text = replace(text, declarations=(*text.declarations, said))
        pairs = [(X, Y), (Y, X)] if steps != name else [(Y, X)]
        closure = [ir.Rule(name, (X, Y), (ir.Atom(steps, pair, place),), place, shown) for pair in pairs]
        for pair in [(Y, Z), (Z, Y)] if steps != name else [(Y, Z)]:
            body = (ir.Atom(name, (X, Y), place), ir.Atom(steps, pair, place))
            closure.append(ir.Rule(name, (X, Z), body, place, shown))
        text = replace(text, rules=(*rules, *closure))
    return text
