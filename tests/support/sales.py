"""Two tables that change over several epochs, for queries that are compared with SQL's answer at every epoch."""

from __future__ import annotations

import datetime
import decimal
import math
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import tektite as tk
from tests.support.executors import make_engine

Query = Callable[[tk.Table, tk.Table], tk.Collection]
Row = tuple[Any, ...]
SHOPS = ["north", "south", "east", None]
ITEMS = ["cup", "Jug", "pan 7", "", None]


class World:
    """An engine with the tables `sales` and `shops`, and the rows that they hold."""

    def __init__(self) -> None:
        self.engine = make_engine()
        self.sales = self.engine.create_table(
            "sales",
            {
                "shop": tk.String, "item": tk.String, "amount": tk.Int, "price": tk.Float, "cost": tk.Decimal(8, 2),
                "day": tk.Date, "at": tk.Timestamp, "paid": tk.Bool,
            },
        )  # fmt: skip
        self.shops = self.engine.create_table("shops", {"shop": tk.String, "town": tk.String, "rent": tk.Int})
        self.chance = random.Random(20)
        self.rows: dict[str, list[Row]] = {"sales": [], "shops": []}

    def change(self) -> None:
        """Add some rows, remove others, and close the epoch."""
        for table, made in ((self.sales, self.sale), (self.shops, self.shop)):
            there = self.rows[table.name]
            new = [made() for _ in range(self.chance.choice([0, 2, 5]))]
            gone = self.chance.sample(there, min(len(there), self.chance.choice([0, 1, 3])))
            table.insert(new)
            table.remove(gone)
            for row in gone:
                there.remove(row)
            there += new
        self.engine.advance()

    def sale(self) -> Row:
        some = self.chance.choice
        at = datetime.datetime(2024, 2, 27) + datetime.timedelta(
            hours=self.chance.randrange(100), seconds=some([0, 59])
        )
        amount = some([-3, 0, 1, 1, 2, 5, None])
        price = some([-2.5, 0.25, 1.0, 9.75, None])
        cost = some([decimal.Decimal("1.25"), decimal.Decimal("-3.50"), None])
        return some(SHOPS), some(ITEMS), amount, price, cost, at.date(), at, some([True, False, None])

    def shop(self) -> Row:
        some = self.chance.choice
        return some([*SHOPS, "west"]), some(["York", "Bath"]), some([1, 2, 3, None])


def same(found: list[Row], wanted: list[Row]) -> bool:
    """Whether two answers are equal as bags, floats to within rounding."""
    return Counter(map(shown, found)) == Counter(map(shown, wanted))


def shown(row: Row) -> Row:
    found = (tuple(v) if isinstance(v, list) else v for v in row)
    return tuple(round(v, 9) + 0.0 if isinstance(v, float) and math.isfinite(v) else v for v in found)


def assert_equals_sql(query: Query, sql: str, epochs: int = 6) -> None:
    """A query gives at every epoch what SQL's query gives."""
    world = World()
    view = world.engine.install("found", query(world.sales, world.shops))
    expected = world.engine.sql(f"CREATE MATERIALIZED VIEW expected AS {sql}").view
    assert expected is not None
    for epoch in range(epochs):
        world.change()
        found, wanted = view.rows(), expected.rows()
        assert same(found, wanted), f"epoch {epoch}: {sorted(found, key=repr)} is not {sorted(wanted, key=repr)}"
    assert view.schema.types == expected.schema.types
