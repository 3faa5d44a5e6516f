"""Groups that are limited to what a conjunction asks for have the answers of DuckDB, whatever the tables hold and however the
conditions are drawn. The rule takes every table with conditions for one that leaves few rows here.
"""

from __future__ import annotations

import importlib
import random

import pytest

from tests.support.nightly import SEED, by_day_or_night
from tests.support.sql_oracle import Twins, bag

pytestmark = pytest.mark.executors

SCHEMA = """
    CREATE TABLE part (id int PRIMARY KEY, kind int, size int);
    CREATE TABLE town (id int PRIMARY KEY, land int);
    CREATE TABLE offer (part int, town int, price int, amount int);
    CREATE TABLE stock (part int, town int, held int, PRIMARY KEY (part, town))
"""


class RandomQuery:
    """A query that compares or shows rows with an aggregate of their group, with tables that limit the groups."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def condition(self, table: str) -> str:
        pick = self.chance
        column = pick.choice({"p": ["kind", "size"], "t": ["land", "id"], "s": ["held"]}[table])
        shape = pick.choice(
            [f"= {pick.randrange(4)}", f"> {pick.randrange(4)}", "IS NOT NULL", f"IN ({pick.randrange(3)}, 3)"]
        )
        return f"{table}.{column} {shape}"

    def text(self) -> str:
        pick = self.chance
        value = pick.choice(["price", "amount", "price + amount", "coalesce(price, 0)"])
        aggregate = pick.choice(["sum", "count", "min", "max", "avg"])
        compare = pick.choice(["<", "<=", ">", ">=", "=", "<>"])
        inner, bound = pick.choice(
            [
                ("offer i", "i.part = p.id"),
                ("offer i", f"i.part = p.id AND i.amount {pick.choice(['>', '<'])} {pick.randrange(4)}"),
                ("offer i, town u", "i.part = p.id AND u.id = i.town"),
                ("offer i, town u", f"i.part = p.id AND u.id = i.town AND u.land = {pick.randrange(3)}"),
                ("offer i, part q", "i.part = p.id AND q.id = i.part AND q.kind = q.size"),
                ("offer i, offer j", "i.part = p.id AND j.town = i.town AND j.part = i.part"),
                ("stock i", "i.part = p.id"),
            ]
        )
        value = "held" if inner == "stock i" else value.replace("price", "i.price").replace("amount", "i.amount")
        subquery = f"(SELECT {aggregate}({value}) FROM {inner} WHERE {bound})"
        own = f"{self.condition('p')} AND {self.condition('p')}"
        match pick.randrange(5):
            case 0:
                offers = f"SELECT o.part, o.price FROM offer o, part p WHERE o.part = p.id AND {own}"
                return f"{offers} AND o.price {compare} {subquery}"
            case 1:
                more = f"t.id = o.town AND {self.condition('t')}"
                return (
                    f"SELECT p.kind, t.land, count(*) FROM offer o, town t, part p WHERE o.part = p.id AND {own} AND {more} "
                    f"AND o.amount {compare} {subquery} GROUP BY p.kind, t.land"
                )
            case 2:
                grouped = f"(SELECT i.part AS k, {aggregate}({value}) AS v FROM {inner.replace(', part q', '')} "
                grouped += "WHERE i.part IS NOT NULL " + ("AND u.id = i.town " if "town u" in inner else "")
                grouped += "AND j.part = i.part " if "offer j" in inner else ""
                return f"SELECT p.id, g.v FROM part p, {grouped} GROUP BY i.part) g WHERE g.k = p.id AND {own}"
            case 3:
                both = "i.part = s.part AND i.town = s.town"
                return (
                    f"SELECT s.part, s.town, (SELECT {aggregate}(i.price) FROM offer i WHERE {both}) AS v "
                    f"FROM stock s, part p WHERE s.part = p.id AND {self.condition('s')} AND {own}"
                )
        return (
            f"SELECT p.id FROM part p WHERE {own} AND p.size {compare} {subquery} AND p.id IN (SELECT part FROM stock)"
        )


def row(chance: random.Random, table: str) -> tuple[int | None, ...]:
    def maybe(value: int) -> int | None:
        return None if chance.random() < 0.1 else value

    if table in ("part", "town"):
        return (chance.randrange(8), *(maybe(chance.randrange(4)) for _ in range(2 if table == "part" else 1)))
    if table == "stock":
        return chance.randrange(8), chance.randrange(4), maybe(chance.randrange(5))
    return (
        maybe(chance.randrange(8)),
        maybe(chance.randrange(4)),
        maybe(chance.randrange(6)),
        maybe(chance.randrange(4)),
    )


@pytest.mark.parametrize("seed", range(SEED, SEED + by_day_or_night(12, 300)))
def test_views_and_queries_agree_with_duckdb(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("tektite.plan.rules.limit_groups"), "FEW", 2.0)
    chance = random.Random(seed)
    twins = Twins(SCHEMA)
    held: dict[str, list[tuple[int | None, ...]]] = {name: [] for name in ("part", "town", "offer", "stock")}
    keys = {"part": 1, "town": 1, "stock": 2}
    queries = [RandomQuery(chance).text() for _ in range(6)]
    for at, text in enumerate(queries[:4]):
        twins.engine.sql(f"CREATE MATERIALIZED VIEW v{at} AS {text}")
    for _ in range(5):
        for table, rows in held.items():
            gone = [rows.pop(chance.randrange(len(rows))) for _ in range(min(len(rows), chance.randrange(4)))]
            twins.remove(table, gone)
            new = [row(chance, table) for _ in range(chance.randrange(8 if table == "offer" else 5))]
            if table in keys:
                many = keys[table]
                fresh = {one[:many]: one for one in new if one[:many] not in {other[:many] for other in rows}}
                new = list(fresh.values())
            twins.insert(table, new)
            rows += new
        twins.advance()
        for at, text in enumerate(queries[:4]):
            assert bag(twins.engine.view(f"v{at}").rows()) == twins.expected(text), text
        for text in queries:
            twins.check(text)


@pytest.mark.executors("stages", "spark")
def test_groups_come_and_go_with_the_rows_that_ask_for_them() -> None:
    twins = Twins(SCHEMA)
    text = (
        "SELECT o.part, o.price FROM offer o, part p WHERE o.part = p.id AND p.kind = 1 AND p.size = 2 "
        "AND o.price > (SELECT avg(i.price) FROM offer i WHERE i.part = p.id)"
    )
    twins.engine.sql(f"CREATE MATERIALIZED VIEW above AS {text}")
    twins.insert("offer", [(part, 0, price, 0) for part in range(3) for price in range(4)])
    twins.advance()
    for statement in (
        "INSERT INTO part VALUES (0, 1, 2), (1, 1, 1)",
        "UPDATE part SET size = 2 WHERE id = 1",
        "DELETE FROM offer WHERE part = 1 AND price = 3",
        "DELETE FROM part WHERE id = 0",
    ):
        twins.run(statement)
        found = bag(twins.engine.view("above").rows())
        assert found and found == twins.expected(text)


OFFERS = "offer o, part p, (SELECT i.part AS k, i.town AS l, sum(i.price) AS v FROM offer i GROUP BY i.part, i.town) g"
JOINED = "o.part = p.id AND g.k = p.id AND p.kind = 1 AND p.size = 2"
OTHER_ROWS = {
    "the groups of all towns of a part": f"SELECT o.price, g.l, g.v FROM {OFFERS} WHERE {JOINED}",
    "of which one is compared": f"SELECT o.town FROM {OFFERS} WHERE {JOINED} AND o.amount < g.v AND g.l <> 9",
    "of which all are counted": f"SELECT count(*), g.l, sum(g.v) FROM {OFFERS} WHERE {JOINED} GROUP BY g.l",
    "rows that only the groups join": (
        "SELECT o.amount FROM offer o, town t, part p, "
        "(SELECT i.part AS k, sum(i.amount) AS v FROM offer i, town u WHERE u.id = i.town GROUP BY i.part) g "
        f"WHERE {JOINED} AND o.amount <= g.v"
    ),
}


@pytest.mark.parametrize("text", OTHER_ROWS.values(), ids=list(OTHER_ROWS))
def test_groups_of_other_rows_than_those_beside_them_are_joined_apart(text: str) -> None:
    twins = Twins(SCHEMA)
    twins.insert("part", [(1, 1, 2), (2, 1, 2), (3, 0, 0)])
    twins.insert("town", [(4, 1), (5, 1)])
    twins.insert("offer", [(1, 4, 8, 1), (1, 5, 7, 1), (1, 6, 7, 2), (2, 4, 3, 1), (2, None, 9, 5), (3, 4, 1, 1)])
    twins.advance()
    assert twins.expected(text)
    twins.check(text)
