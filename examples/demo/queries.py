"""The TPC-H queries that arrive and leave, and when."""

from __future__ import annotations

import random
from dataclasses import dataclass

from benchmarks.tpch import QUERIES

TITLES = {
    1: "pricing summary", 2: "minimum cost supplier", 3: "shipping priority", 4: "order priority checking",
    5: "local supplier volume", 6: "forecasting revenue change", 7: "volume shipping", 8: "national market share",
    9: "product type profit", 10: "returned items", 11: "important stock", 12: "shipping modes", 13: "customer distribution",
    14: "promotion effect", 15: "top supplier", 16: "parts and suppliers", 17: "small-quantity orders",
    18: "large-volume customers", 19: "discounted revenue", 20: "potential part promotion", 21: "suppliers who kept waiting",
    22: "global sales opportunity",
}  # fmt: skip


@dataclass(frozen=True)
class Query:
    """One query of the standard's, with the epochs at which it arrives and leaves."""

    number: int
    arrives: int
    leaves: int

    @property
    def name(self) -> str:
        """For people."""
        return f"Q{self.number} {TITLES[self.number]}"


def schedule(queries: int, epochs: int, seed: int) -> list[Query]:
    """Some of the 22 queries, each once, in random order: the last arrives after four fifths of the epochs, each stays for
    half of them.

    >>> [(query.arrives, query.leaves) for query in schedule(4, 20, 1)]
    [(0, 10), (4, 14), (8, 18), (12, 22)]
    """
    chosen = random.Random(seed).sample(QUERIES, min(queries, len(QUERIES)))
    arrivals = [place * epochs * 4 // (5 * len(chosen)) for place in range(len(chosen))]
    return [Query(number, at, at + epochs // 2) for number, at in zip(chosen, arrivals, strict=True)]
