"""The facts of a program by unit (a class, a function), in the tables of an engine. Replacing a unit changes what differs, and
nothing else.

A fact that several units give is there for as long as one of them gives it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import tektite as tk

Row = tuple[str | int, ...]
Facts = Mapping[str, Iterable[Row]]


class FactBase:
    """The units of a program, and their facts.

    >>> with tk.Engine() as engine:
    ...     rules = "path(x, y) :- edge(x, y).  path(x, z) :- path(x, y), edge(y, z)."
    ...     _ = engine.datalog(".decl edge(x: symbol, y: symbol)" + rules)
    ...     base = FactBase(engine)
    ...     base.load({"f": {"edge": [("a", "b")]}, "g": {"edge": [("b", "c")]}})
    ...     base.replace({"g": {"edge": [("b", "d")]}})
    ...     sorted(engine.view("path").rows())
    2
    2
    [('a', 'b'), ('a', 'd'), ('b', 'd')]
    """

    def __init__(self, engine: tk.Engine) -> None:
        self.engine = engine
        self.units: dict[str, dict[str, frozenset[Row]]] = {}
        self.counts: dict[str, Counter[Row]] = {}

    def load(self, units: Mapping[str, Facts]) -> int:
        """Add units, or replace those that there are. Gives the number of facts that changed."""
        return self.replace(units)

    def replace(self, units: Mapping[str, Facts | None]) -> int:
        """Replace units in one transaction; None removes one. Gives the number of facts that changed."""
        changes: dict[str, Counter[Row]] = {}
        for unit, facts in units.items():
            before = self.units.pop(unit, {})
            after = {relation: frozenset(rows) for relation, rows in (facts or {}).items()}
            for relation in {*before, *after}:
                old, new = before.get(relation, frozenset()), after.get(relation, frozenset())
                change = changes.setdefault(relation, Counter())
                change.update(new - old)
                change.subtract(old - new)
            if facts is not None:
                self.units[unit] = after
        return self.write(changes)

    def write(self, changes: Mapping[str, Counter[Row]]) -> int:
        written = 0
        with self.engine.transaction():
            for relation, change in changes.items():
                counts = self.counts.setdefault(relation, Counter())
                coming = [row for row, count in change.items() if count > 0 and not counts[row]]
                going = [row for row, count in change.items() if count < 0 and counts[row] + count == 0]
                counts.update(change)
                table = self.engine.table(relation)
                if coming:
                    table.insert(coming)
                if going:
                    table.remove(going)
                written += len(coming) + len(going)
        return written

    def rows(self) -> dict[str, list[Row]]:
        """All facts, by relation."""
        return {relation: [row for row, count in counts.items() if count] for relation, counts in self.counts.items()}
