"""Explanations: what a predicate's answer is computed from, in which order, and what of it others share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tektite.datalog.evaluate.kept_rows import improvements
from tektite.datalog.rules import strata
from tektite.plan import algebra as plan
from tektite.query.builders import derived

if TYPE_CHECKING:
    from tektite.datalog.evaluate.rule_store import RuleStore


def explain_predicate(store: RuleStore, predicate: str, joins: bool = False) -> str:
    """The strata of a predicate, each with its rules and what the policy says of it; with `joins`, how its own rules are
    joined: strategies, orders of variables, and the arrangements they read.

    >>> import tektite as tk
    >>> engine = tk.Engine()
    >>> program = engine.datalog("edge(1, 2).  reach(x, y) :- edge(x, y).  reach(x, z) :- reach(x, y), edge(y, z).")
    >>> print(program.explain("reach"))
    edge: derived anew by each reader, because it needs no state
      edge(1, 2).
    reach: recursive, in a loop; kept once and shared, because it is recursive
      reach(x, y) :- edge(x, y).
      reach(x, z) :- reach(x, y), edge(y, z).
    """
    (found,) = store.collections([predicate], "explain")
    rules = store.state.definitions.rules
    lines: list[str] = []
    for component in strata.components(rules, [predicate]):
        recursive = component[0] in rules and strata.is_recursive(rules, component)
        improved = improvements(store.state.definitions, component)
        for name in component:
            lines.append(f"{name}: {', '.join(describe(store, name, component, recursive, improved))}")
            lines += [f"  {rule}" for rule in rules.get(name, ())]
    if joins:
        operator = found.operator
        while isinstance(operator, plan.Project | plan.Arrange):
            operator = operator.input
        lines += ["joins", *(f"  {line}" for line in store.engine.explain(derived(operator, found)).splitlines())]
    return "\n".join(lines)


def describe(
    store: RuleStore, name: str, component: tuple[str, ...], recursive: bool, improved: dict[str, tuple[int, str]]
) -> list[str]:
    """The explanation of one predicate."""
    if name not in store.state.definitions.rules:
        return [store.describe(name)]
    found = []
    if recursive:
        others = [other for other in component if other != name]
        found.append("recursive" + (f" with {', '.join(others)}" if others else ""))
        found.append("in a loop; " + store.describe(name))
    else:
        found.append(store.describe(name))
    declared = store.state.definitions.declarations.get(name)
    for domain in declared.choices if declared is not None else ():
        found.append(f"one fact for each {', '.join(domain)} is chosen")
    if name in improved:
        found.append(f"the {improved[name][1]} of column {improved[name][0] + 1} alone stays")
    return found
