"""The standing queries of the demonstration: the 22 of TPC-H with other constants each time, as dashboards have them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from benchmarks.tpch import QUERIES
from benchmarks.tpch.parameters import PARAMETERS, drawn, with_values
from benchmarks.tpch.queries import Query

TITLES = {
    1: "pricing summary", 2: "minimum cost supplier", 3: "shipping priority", 4: "order priority checking",
    5: "local supplier volume", 6: "forecasting revenue change", 7: "volume shipping", 8: "national market share",
    9: "product type profit", 10: "returned items", 11: "important stock", 12: "shipping modes", 13: "customer distribution",
    14: "promotion effect", 15: "top supplier", 16: "parts and suppliers", 17: "small-quantity orders",
    18: "large-volume customers", 19: "discounted revenue", 20: "potential part promotion", 21: "suppliers who kept waiting",
    22: "global sales opportunity",
}  # fmt: skip
PREPARED = frozenset({3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 17, 19, 21, 22})
"""Queries that dashboards ask as prepared statements: one dataflow answers all their constants. The others are views."""


@dataclass(frozen=True)
class Panel:
    """A query of a dashboard: one of the 22, and the seed that its constants are drawn with."""

    number: int
    seed: int
    scale: float

    @property
    def key(self) -> str:
        """What it is called in SQL."""
        return f"q{self.number:02d}_{self.seed}"

    @property
    def name(self) -> str:
        """For people."""
        return f"Q{self.number} {TITLES[self.number]}"

    @property
    def is_prepared(self) -> bool:
        """Whether dashboards ask it as a prepared statement."""
        return self.number in PREPARED

    @cached_property
    def values(self) -> tuple[str, ...]:
        """Its constants."""
        return drawn(self.number, self.scale, self.seed)

    @cached_property
    def query(self) -> Query:
        """Its text. The view that Q15 needs has a name of its own."""
        found = with_values(self.number, self.scale, self.values)
        own = f"revenue_{self.seed}"
        before = tuple(text.replace("revenue0", own) for text in found.before)
        return replace(found, before=before, select=found.select.replace("revenue0", own))

    @property
    def statement(self) -> str:
        """What prepares it, with parameters in place of its constants."""
        labels = tuple(f"${at}" for at in range(1, len(PARAMETERS[self.number]) + 1))
        return f"PREPARE q{self.number:02d} AS {with_values(self.number, self.scale, labels).select}"

    @property
    def execution(self) -> str:
        """What asks the prepared statement for these constants."""
        return f"EXECUTE q{self.number:02d}({', '.join(self.values)})"


def arrivals(scale: float, seed: int) -> Iterator[Panel]:
    """Queries without end: each of the 22 once, in random order, then all of them again with other constants.

    >>> from itertools import islice
    >>> panels = list(islice(arrivals(1.0, 1), 44))
    >>> sorted(panel.number for panel in panels[:22]) == list(QUERIES), len({panel.key for panel in panels})
    (True, 44)
    """
    chance, asked = random.Random(seed), 0
    while True:
        for number in chance.sample(QUERIES, len(QUERIES)):
            yield Panel(number, asked, scale)
        asked += 1


def steps(queries: int) -> list[int]:
    """How many queries there are at each step, up to the number that is asked for.

    >>> steps(110), steps(6), steps(1)
    ([1, 5, 22, 55, 110], [1, 5, 6], [1])
    """
    return [*[step for step in (1, 5, 22, 55, 110) if step < queries], queries]
