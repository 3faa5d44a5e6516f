"""Whether two rules mean the same, whatever their variables are called and however their clauses are ordered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from hashlib import blake2b
from typing import Any

from tektite.datalog.syntax.ir import Constant, Literal, Rule, RuleVariable, body_variables, named, variables


def canonical(rule: Rule) -> str:
    """A rule's meaning as text: neither what its variables are called nor how the clauses of a body are ordered counts. Equal
    texts mean the same; rules whose variables play parts that are told apart by their names alone may have different ones.

    >>> from tektite.datalog.syntax.textbook import parse_program
    >>> one, other = parse_program("p(x) :- q(x, y), r(y).  p(a) :- r(b), q(a, b).").rules
    >>> canonical(one) == canonical(other)
    True
    """
    found = named([*(v for term in rule.terms for v in variables(term)), *body_variables(rule.body)])
    parts = dict.fromkeys(found, "")
    # What a variable does in the rule, by what those beside it do: three steps tell apart what lies three clauses away.
    for _ in range(3):
        each = {}
        for variable in found:
            seen = {**parts, variable: "this"}
            each[variable] = digest(rendered(rule, seen.__getitem__, seen.__getitem__))
        parts = each
    names: dict[RuleVariable, str] = {}
    return rendered(rule, lambda variable: names.setdefault(variable, f"v{len(names)}"), parts.__getitem__)


def digest(text: str) -> str:
    """A short text that stands for a long one."""
    return blake2b(text.encode(), digest_size=12).hexdigest()


def rendered(value: Any, name: Callable[[RuleVariable], str], part: Callable[[RuleVariable], str]) -> str:
    """A rule or a piece of it as text, with `name` for its variables; bodies are ordered by how they read with `part`."""
    if isinstance(value, RuleVariable):
        return "_" if value.anonymous else name(value)
    if isinstance(value, Constant):
        return f"{type(value.value).__name__} {value.value!r}"
    if isinstance(value, tuple):
        if any(isinstance(item, Literal | tuple) for item in value):
            value = sorted(value, key=lambda item: rendered(item, part, part))
        return "(" + ",".join(rendered(item, name, part) for item in value) + ")"
    if is_dataclass(value):
        shown = (rendered(getattr(value, f.name), name, part) for f in fields(value) if f.compare)
        return type(value).__name__ + "(" + ",".join(shown) + ")"
    return repr(value)
