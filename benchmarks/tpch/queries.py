"""The text of the schema and of the 22 queries, and which relations each query reads."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmarks.tpch.data import RELATIONS

FOLDER = Path(__file__).with_name("text")
QUERIES = tuple(range(1, 23))


@dataclass(frozen=True)
class Query:
    """A query: the statements that must run before it (a view, in Q15), and the SELECT itself."""

    number: int
    before: tuple[str, ...]
    select: str

    @property
    def name(self) -> str:
        """Such as q03."""
        return f"q{self.number:02d}"

    @property
    def relations(self) -> tuple[str, ...]:
        """The relations that it reads, each once."""
        words = set(re.findall(r"\w+", " ".join((*self.before, self.select))))
        return tuple(name for name in RELATIONS if name in words)

    @property
    def materialized(self) -> str:
        """The statement that maintains it under its name."""
        return f"CREATE MATERIALIZED VIEW {self.name} AS {self.select}"


@cache
def query(number: int, scale: float = 1.0) -> Query:
    """A query with its validation parameters, of which one, Q11's fraction, depends on the scale factor.

    >>> query(6).relations, query(15).before[0].split("(")[0], query(11, 0.01).select.count("0.0100000000")
    (('lineitem',), 'create view revenue0 ', 1)
    """
    text = (FOLDER / f"q{number:02d}.sql").read_text()
    text = text.replace("0.0001000000", f"{0.0001 / scale:.10f}")
    statements = [part.strip() for part in re.sub("--.*", "", text).split(";") if part.strip()]
    select = next(part for part in statements if part.startswith("select"))
    return Query(number, tuple(part for part in statements if part.startswith("create")), select)


def read_by(queries: Iterable[int]) -> tuple[str, ...]:
    """The relations that some queries read.

    >>> read_by([6, 22])
    ('customer', 'orders', 'lineitem')
    """
    found = {name for number in queries for name in query(number).relations}
    return tuple(name for name in RELATIONS if name in found)


def schema() -> str:
    """The statements that create the eight tables."""
    return (FOLDER / "schema.sql").read_text()
