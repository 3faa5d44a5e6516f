"""Random queries over tables with a column of every type: views equal DuckDB's answer, and a new computation, at every epoch.

TEKTITE_TYPE_QUERIES sets how many queries a seed has, TEKTITE_SEED where the seeds start.
"""

from __future__ import annotations

import random

import duckdb
import pytest

import tektite as tk
from tests.support.executors import examples, make_engine
from tests.support.nightly import SEED, by_day_or_night, size
from tests.support.sql.oracle import difference, rows_of

pytestmark = pytest.mark.executors("stages")

QUERIES = size("TEKTITE_TYPE_QUERIES", 12)
EPOCHS = 3
TYPES: dict[str, tuple[str, list[str]]] = {
    "n": ("BIGINT", ["-1", "0", "7", "9223372036854775807"]),
    "f": ("DOUBLE", ["0.0::double", "'-0.0'::double", "1.5::double", "'nan'::double", "'-inf'::double"]),
    "c": ("VARCHAR", ["''", "'a'", "'ä b'", "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaz'"]),
    "d": ("DATE", ["DATE '2024-02-29'", "DATE '1969-12-31'"]),
    "t": ("TIME", ["TIME '00:00:00'", "TIME '10:30:00.5'"]),
    "z": ("TIMESTAMPTZ", ["TIMESTAMPTZ '2024-03-31 00:30:00+00'", "TIMESTAMPTZ '1950-07-01 12:00:00+00'"]),
    "i": ("INTERVAL", ["INTERVAL '1 month'", "INTERVAL '30 days'", "INTERVAL '29 days 24:00:00'", "INTERVAL '-1 day'"]),
    "w": ("DECIMAL(30, 2)", ["99999999999999999999.99", "-12345678901234567890.50", "0.01", "0.00"]),
    "u": ("UUID", ["'550e8400-e29b-41d4-a716-446655440000'::uuid", "'050e8400-e29b-41d4-a716-446655440000'::uuid"]),
    "b": ("BLOB", ["'\\x00\\xFF'::BLOB", "'abc'::BLOB", "''::BLOB"]),
    "l": ("BIGINT[]", ["[]::BIGINT[]", "[1]::BIGINT[]", "[1, 2]::BIGINT[]", "[NULL, 1]::BIGINT[]"]),
    "m": ("INTERVAL[]", ["[INTERVAL '1 month']", "[INTERVAL '30 days']", "[INTERVAL '30 days', NULL]", "[]::INTERVAL[]"]),
    "r": ("STRUCT(x BIGINT, y VARCHAR)", ["{'x': 1, 'y': 'a'}", "{'x': 1, 'y': NULL}", "{'x': NULL, 'y': 'b'}"]),
    "q": ("STRUCT(i INTERVAL, l DOUBLE[])",
          ["{'i': INTERVAL '1 month', 'l': [0.0::double]}", "{'i': INTERVAL '30 days', 'l': ['-0.0'::double]}",
           "{'i': NULL, 'l': [1.0::double, NULL]}"]),
}  # fmt: skip
CREATE = f"CREATE TABLE v (k BIGINT, g BIGINT, {', '.join(f'{name} {kind}' for name, (kind, _) in TYPES.items())})"


class Queries:
    """Draws queries over v. Every order ends with the key, so that answers are determined."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def column(self) -> str:
        return self.chance.choice(list(TYPES))

    def value(self, of: str = "") -> str:
        """A column, or a list or struct of columns."""
        name = of + self.column()
        return self.chance.choice([name, name, name, f"[{name}]", f"{{'a': {name}, 'b': {of}g}}"])

    def condition(self, of: str = "") -> str:
        name = self.column()
        literals = TYPES[name][1]
        one, other = self.chance.choice(literals), self.chance.choice(literals)
        test = self.chance.choice(
            [
                f"{of}{name} {self.chance.choice(['=', '<>', '<', '<=', '>', '>='])} {one}",
                f"{of}{name} IS NOT NULL",
                f"{of}{name} IN ({one}, {other})",
                f"{of}{name} IS NOT DISTINCT FROM {one}",
                f"[{of}{name}] = [{one}]",
            ]
        )
        return test if self.chance.random() < 0.7 else f"({test} OR {of}g = 1)"

    def order(self, of: str = "") -> str:
        direction = self.chance.choice(["", " DESC", " NULLS FIRST", " DESC NULLS LAST"])
        return f"{self.value(of)}{direction}, {of}k"

    def query(self) -> str:
        draw = self.chance.choice(
            [self.filtered, self.grouped, self.distinct, self.joined, self.ordered, self.windowed, self.set_operation,
             self.subquery]
        )  # fmt: skip
        return draw()

    def filtered(self) -> str:
        return f"SELECT k, {self.value()} FROM v WHERE {self.condition()} AND {self.condition()}"

    def grouped(self) -> str:
        # of the values of a group that are equal, any may stand for it: the oracle compares them as equal
        least = self.chance.choice(["min", "max"])
        return (
            f"SELECT {self.value()} AS x, count(*), {least}({self.column()}), count(DISTINCT {self.value()}), sum(n % 10), "
            f"list(k ORDER BY {self.order()}) FROM v WHERE {self.condition()} GROUP BY x"
        )

    def distinct(self) -> str:
        return f"SELECT DISTINCT {self.value()}, {self.value()} FROM v WHERE {self.condition()}"

    def joined(self) -> str:
        kind = self.chance.choice(["JOIN", "LEFT JOIN", "FULL JOIN"])
        name = self.column()
        side = self.chance.choice(
            [f"a.{name} = b.{name}", f"[a.{name}] = [b.{name}]", f"a.{name} = b.{name} AND a.g = b.g"]
        )
        return f"SELECT a.k, b.k, {self.value('a.')} FROM v a {kind} v b ON {side}"

    def ordered(self) -> str:
        return f"SELECT k, {self.value()} FROM v ORDER BY {self.order()} LIMIT {self.chance.randint(1, 4)}"

    def windowed(self) -> str:
        name = self.column()
        calls = [
            f"rank() OVER (PARTITION BY {self.value()} ORDER BY {self.value()})",
            f"count(*) OVER (PARTITION BY {self.value()})",
            f"first_value({name}) OVER (PARTITION BY g ORDER BY {self.order()})",
            f"lag({name}) OVER (ORDER BY {self.order()})",
            "sum(w) OVER (PARTITION BY g ORDER BY k ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
            f"max({name}) OVER (PARTITION BY g ORDER BY k)",
        ]
        return f"SELECT k, {', '.join(self.chance.sample(calls, 2))} FROM v"

    def set_operation(self) -> str:
        value = self.value()
        word = self.chance.choice(["UNION", "UNION ALL", "INTERSECT", "EXCEPT", "EXCEPT ALL"])
        return f"SELECT {value} FROM v WHERE {self.condition()} {word} SELECT {value} FROM v WHERE {self.condition()}"

    def subquery(self) -> str:
        value = self.value()
        return self.chance.choice(
            [
                f"SELECT k FROM v WHERE {value} IN (SELECT {value} FROM v WHERE {self.condition()})",
                f"SELECT a.k FROM v a WHERE EXISTS (SELECT 1 FROM v b WHERE b.i = a.i AND {self.condition('b.')})",
                f"SELECT k, (SELECT max(b.k) FROM v b WHERE b.i = v.i) FROM v WHERE {self.condition()}",
            ]
        )


def row(chance: random.Random, key: int) -> str:
    cells = ["NULL" if chance.random() < 0.15 else chance.choice(literals) for _, literals in TYPES.values()]
    return f"({key}, {chance.randrange(3)}, {', '.join(cells)})"


@pytest.mark.executors(spark=[SEED])
@pytest.mark.parametrize("seed", range(SEED, SEED + by_day_or_night(2, 20)))
def test_random_queries_over_all_types_are_kept_up_to_date(seed: int) -> None:
    chance = random.Random(seed)
    draw = Queries(chance)
    oracle = duckdb.connect()
    oracle.execute("SET TimeZone = 'UTC'")
    oracle.execute("SET threads = 1")
    oracle.execute(CREATE)
    engine = make_engine()
    engine.sql(CREATE)
    queries: dict[str, str] = {}
    wrong: list[str] = []
    for number in range(examples(QUERIES)):
        query = draw.query()
        try:
            engine.sql(f"CREATE MATERIALIZED VIEW q{number} AS {query}")
            queries[f"q{number}"] = query
        except tk.TektiteError as error:
            wrong.append(f"refused: {query}: {error}")
    rows: dict[int, str] = {}
    for epoch in range(EPOCHS):
        statements = []
        for _ in range(chance.randint(3, 6)):
            key = max(rows, default=0) + 1
            rows[key] = row(chance, key)
            statements.append(f"INSERT INTO v VALUES {rows[key]}")
        if epoch:
            gone = chance.sample(list(rows), 2)
            statements.append(f"DELETE FROM v WHERE k IN ({gone[0]}, {gone[1]})")
            for key in gone:
                del rows[key]
            name = draw.column()
            statements.append(f"UPDATE v SET {name} = {chance.choice(TYPES[name][1])} WHERE k % 3 = {epoch % 3}")
        with engine.transaction():
            for statement in statements:
                engine.sql(statement)
        for statement in statements:
            oracle.execute(statement)
        for name, query in queries.items():
            found = engine.view(name).rows()
            try:
                expected = rows_of(oracle.execute(query))
            except duckdb.Error:  # DuckDB does not know it: a new computation says what it is
                expected = engine.sql(query).rows()
            differs = difference(found, expected)
            if differs is not None:
                wrong.append(f"epoch {epoch}: {query}: {differs}")
    assert not wrong, "\n".join(wrong[:10])
