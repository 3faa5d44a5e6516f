"""Predicates that keep some of their derived facts: least or greatest values, and choices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tektite.datalog.rules import strata
from tektite.datalog.syntax import ir, statements
from tektite.errors import IncorrectError
from tektite.expr import col
from tektite.query.collection import Collection
from tektite.query.limits import limited
from tektite.query.window_calls import Ordering

NEWNESS = "newness"
"""A column of choices: 0 for facts chosen in an earlier round, 1 for candidates."""


@dataclass
class Definitions:
    """Normal rules, declarations and improvements by predicate."""

    rules: dict[str, list[ir.Rule]] = field(default_factory=dict)
    declarations: dict[str, statements.Declaration] = field(default_factory=dict)
    improvements: dict[str, tuple[int, str]] = field(default_factory=dict)


def improve(every: Collection, columns: Sequence[str], kind: str) -> Collection:
    """The least or greatest value of the last column for each combination of the others."""
    *by, value = columns
    return every.min(value, by=by) if kind == "min" else every.max(value, by=by)


def choose(every: Collection, domains: Sequence[Sequence[str]]) -> Collection:
    """One row for each value of each domain: a row that was chosen in an earlier round, else the least candidate.

    With several domains, a candidate that loses to one that another domain leaves out has its turn in the next round. So rounds
    go on until no candidate is left that agrees with no chosen row.
    """
    if len(domains) == 1:
        return least_of(every, domains[0])
    before, new = every.filter(col(NEWNESS) == 0), every.filter(col(NEWNESS) == 1)
    for domain in domains:
        new = new.join(before.select(*domain), on=list(domain), how="anti")
    for domain in domains:
        new = least_of(new, domain)
    return before.concat(new)


def least_of(rows: Collection, domain: Sequence[str]) -> Collection:
    """The least row for each value of a domain, those that were chosen before first."""
    order = [NEWNESS, *(name for name in rows.schema.names if name not in (NEWNESS, *domain))]
    return limited(rows, [Ordering(name) for name in order], list(domain), 1, 0)


def improvements(definitions: Definitions, component: tuple[str, ...]) -> dict[str, tuple[int, str]]:
    """The predicates of a component of which only the least or greatest values stay: those declared so, and those that a
    rule with min or max in its head defines through the component. A min or max of what lies below is an aggregate like
    any other, whatever the other rules of its predicate say.
    """
    found = {p: definitions.improvements[p] for p in component if p in definitions.improvements}
    rules = definitions.rules
    if strata.is_recursive(rules, component):
        for predicate in component:
            for rule in rules.get(predicate, ()):
                if not any(other in component for other, _ in strata.dependencies(rule)):
                    continue
                for at in rule.aggregates:
                    term = rule.terms[at]
                    assert isinstance(term, ir.HeadAggregate)
                    if term.kind not in ("min", "max") or len(rule.aggregates) > 1:
                        continue
                    if found.setdefault(predicate, (at, term.kind)) != (at, term.kind):
                        raise IncorrectError(
                            f"{rule.where()}: {term} in recursion, where another rule of {predicate!r} keeps "
                            f"{found[predicate][1]} of column {found[predicate][0] + 1}: one predicate keeps one of them"
                        )
    return found


def columns_in_order(lead: Sequence[int], width: int, improvement: tuple[int, str] | None) -> tuple[int, ...]:
    """The order of columns in an arrangement: look-up columns first, the improved column last."""
    last = () if improvement is None else (improvement[0],)
    order = dict.fromkeys((*lead, *range(width)))
    return (*(at for at in order if at not in last), *last)
