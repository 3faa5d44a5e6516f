"""Rules as they were parsed, written out in the EDN syntax: the way to ask both syntaxes the same random questions."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tektite.datalog.syntax import ir, statements

FUNCTIONS = {"/": "quot", "%": "rem"}
COMPARISONS = {"!=": "not="}


def program_in_edn(text: statements.Text, attributes: Collection[str]) -> str:
    """All rules; predicates in `attributes` are written as patterns, the others as rules."""
    return "\n".join(rule_in_edn(rule, attributes) for rule in text.rules)


def rule_in_edn(rule: ir.Rule, attributes: Collection[str]) -> str:
    head, computed = [], []
    for at, found in enumerate(rule.terms):
        if isinstance(found, ir.Compute):
            # A head takes no functions: a variable of its own stands for what one comes to.
            computed.append(f"[{term(found)} ?h{at}]")
            head.append(f"?h{at}")
        elif isinstance(found, ir.HeadAggregate):
            assert found.of is not None
            head.append(f"({found.kind} {term(found.of)})")
        else:
            head.append(term(found))
    body = [*(literal(found, attributes) for found in rule.body), *computed]
    return f"[({rule.predicate} {' '.join(head)}) {' '.join(body)}]"


def query_in_edn(shown: Sequence[ir.RuleVariable], body: Sequence[ir.Literal], attributes: Collection[str]) -> str:
    """A query for some variables of a body."""
    clauses = " ".join(literal(found, attributes) for found in body)
    return f"[:find {' '.join(map(term, shown))} :where {clauses}]"


def literal(found: ir.Literal, attributes: Collection[str]) -> str:
    match found:
        case ir.Atom() if found.predicate in attributes:
            entity, *value = map(term, found.terms)
            return f"[{' '.join([entity, ':' + found.predicate, *value])}]"
        case ir.Atom():
            return f"({' '.join([found.predicate, *map(term, found.terms)])})"
        case ir.Negation():
            return f"(not {literal(found.atom, attributes)})"
        case ir.Conjunction():
            return f"(not {' '.join(literal(part, attributes) for part in found.body)})"
        case ir.Disjunction():
            return f"(or {' '.join(branch(part, attributes) for part in found.branches)})"
        case ir.Comparison():
            for one, other in ((found.left, found.right), (found.right, found.left)):
                if found.op == "=" and isinstance(one, ir.RuleVariable) and isinstance(other, ir.Compute):
                    return f"[{term(other)} {term(one)}]"
            return f"[({COMPARISONS.get(found.op, found.op)} {term(found.left)} {term(found.right)})]"
    raise AssertionError(f"{found} has no form in EDN")


def branch(body: Sequence[ir.Literal], attributes: Collection[str]) -> str:
    parts = [literal(part, attributes) for part in body]
    return parts[0] if len(parts) == 1 else f"(and {' '.join(parts)})"


def term(found: ir.Term) -> str:
    match found:
        case ir.RuleVariable():
            return "_" if found.anonymous else f"?{found.name}"
        case ir.Compute():
            return f"({' '.join([FUNCTIONS.get(found.op, found.op), *map(term, found.args)])})"
    return str(found)
