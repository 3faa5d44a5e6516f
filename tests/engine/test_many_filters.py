"""Many views that filter one table: each has what its filter says, while rows and views come and go."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import tektite as tk
from tests.support.executors import examples, make_engine

pytestmark = pytest.mark.executors("stages")

Row = tuple[Any, ...]
Test = Callable[[Row], "bool | None | str"]
FAILS = "fails"
SCHEMA = {"k": tk.Int, "s": tk.String, "x": tk.Float, "v": tk.String}
k, s, x, v = (tk.col(name) for name in SCHEMA)
"""Row values: k and s may be NULL, x may be -0.0, v may be no number."""


def number(row: Row) -> Any:
    return None if row[3] is None else int(row[3]) if row[3].isdigit() else FAILS


def both(one: Any, other: Any) -> Any:
    """AND: false decides, whatever the other side is."""
    if one is False or other is False:
        return False
    return FAILS if FAILS in (one, other) else None if None in (one, other) else True


def known(value: Any, test: Callable[[Any], bool]) -> Any:
    return value if value is None or value == FAILS else test(value)


def random_filter(rng: random.Random) -> tuple[tk.Expr, Test]:
    c, d = rng.randrange(12), rng.randrange(12)
    text = rng.choice("abc")
    kinds: list[tuple[tk.Expr, Test]] = [
        (k == c, lambda row: known(row[0], lambda a: a == c)),
        (k == c, lambda row: known(row[0], lambda a: a == c)),
        (k.isin([c, d]), lambda row: known(row[0], lambda a: a in (c, d))),
        ((k >= c) & (k < d), lambda row: known(row[0], lambda a: c <= a < d)),
        (k.is_null(), lambda row: row[0] is None),
        (s == text, lambda row: known(row[1], lambda a: a == text)),
        (x == 0.0, lambda row: row[2] == 0),
        ((k == c) & (s == text), lambda row: both(known(row[0], lambda a: a == c), known(row[1], lambda a: a == text))),
        ((k == c) & (v.cast(tk.Int) > 1),
         lambda row: both(known(row[0], lambda a: a == c), known(number(row), lambda a: a > 1))),
        ((k == c) | (s == text), lambda row: row[0] == c or row[1] == text),
    ]  # fmt: skip
    return rng.choice(kinds)


def random_row(rng: random.Random) -> Row:
    """Python takes -0.0 and 0.0 for the same, a bag does not: so v tells them apart."""
    v = rng.choice(["1", "2", "3", "bad"] if rng.random() < 0.2 else ["1", "2", "3"])
    zero = -0.0 if v == "3" else 0.0
    return rng.choice([None, *range(12)]), rng.choice([None, "a", "b", "c"]), rng.choice([zero, 1.5]), v


def compare(view: tk.View, rows: Counter[Row], test: Test) -> None:
    found = {row: test(row) for row in rows}
    if any(result == FAILS for result in found.values()):
        with pytest.raises(tk.IncorrectError, match="found 'bad'"):
            view.rows()
    else:
        assert Counter(view.rows()) == Counter({row: many for row, many in rows.items() if found[row] is True}), (
            view.name
        )


@pytest.mark.parametrize("workers", [1, 2])
def test_views_that_come_and_go_over_changing_rows(workers: int) -> None:
    for seed in range(examples(20)):
        rng = random.Random(seed)
        engine = make_engine(workers, autocommit=False)
        table = engine.create_table("t", SCHEMA)
        rows: Counter[Row] = Counter()
        views: dict[tk.View, Test] = {}
        for epoch in range(8):
            for number in range(rng.choice([0, 3, 25])):
                predicate, test = random_filter(rng)
                views[engine.install(f"v{epoch}.{number}", table.filter(predicate))] = test
            for view in rng.sample(list(views), rng.randrange(len(views) // 2 + 1)):
                engine.drop(view.name)
                del views[view]
            added = [random_row(rng) for _ in range(rng.choice([0, 1, 5, 200]))]
            gone = rng.sample(list(rows.elements()), rng.randrange(rows.total() // 2 + 1))
            table.insert(added)
            table.remove(gone)
            engine.advance()
            rows += Counter(added)
            rows -= Counter(gone)
            for view, test in views.items():
                compare(view, rows, test)
        engine.close()


def test_joins_and_groups_behind_filters() -> None:
    rng = random.Random(4)
    engine = make_engine(autocommit=False)
    orders = engine.create_table("orders", {"id": tk.Int, "customer": tk.Int})
    items = engine.create_table("items", {"order": tk.Int, "price": tk.Int})
    joined = orders.join(items, left_on="id", right_on="order")
    pairs = [
        engine.install(f"pairs {c}", joined.filter(tk.col("customer") == c).select("id", "price")) for c in range(8)
    ]
    keyed = [engine.install(f"keyed {c}", joined.filter(tk.col("id") == c).select("id", "price")) for c in range(8)]
    prices = [
        engine.install(f"prices {c}", items.filter(tk.col("price") == c).group_by("order").agg(n=tk.count()))
        for c in range(8)
    ]
    told: Counter[Row] = Counter()
    bought: Counter[Row] = Counter()
    for _ in range(6):
        for table, rows in ((orders, told), (items, bought)):
            added = [(rng.randrange(8), rng.randrange(8)) for _ in range(rng.randrange(8))]
            gone = rng.sample(list(rows.elements()), rng.randrange(rows.total() // 2 + 1))
            table.insert(added)
            table.remove(gone)
            rows.update(added)
            rows.subtract(gone)
        engine.advance()
        together = [(i, c, p) for i, c in told.elements() for o, p in bought.elements() if o == i]
        for c in range(8):
            assert Counter(pairs[c].rows()) == Counter((i, p) for i, customer, p in together if customer == c)
            assert Counter(keyed[c].rows()) == Counter((i, p) for i, _, p in together if i == c)
            counts = Counter(o for o, p in bought.elements() if p == c)
            assert Counter(prices[c].rows()) == Counter(counts.items())


def test_conjunctions_behind_filters() -> None:
    """A view for each colour of triangles: the filter is a condition of one relation, whose changes and look-ups it narrows."""
    rng = random.Random(9)
    engine = make_engine(autocommit=False)
    edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
    colours = engine.create_table("colours", {"node": tk.Int, "colour": tk.Int})
    for colour in range(4):
        engine.datalog(
            f"tri{colour}(a, b, c) :- edges(a, b), edges(b, c), edges(a, c), colours(a, {colour}), b != c, a > 1."
        )
    some: set[Row] = set()
    marks: set[Row] = set()
    for _ in range(8):
        for table, rows, width in ((edges, some, 6), (colours, marks, 4)):
            drawn = {(rng.randrange(6), rng.randrange(width)) for _ in range(rng.randrange(12))}
            table.insert(sorted(drawn - rows))
            table.remove(sorted(drawn & rows))
            rows ^= drawn
        engine.advance()
        for colour in range(4):
            expected = {
                (a, b, c)
                for a, b in some
                for b2, c in some
                if b2 == b and (a, c) in some and (a, colour) in marks and b != c and a > 1
            }
            assert set(engine.view(f"tri{colour}").rows()) == expected


def test_restarted_graphs_keep_their_filters() -> None:
    """A dataflow that begins with the graph of an earlier one reads what that one read."""
    engine = make_engine(autocommit=False)
    table = engine.create_table("t", {"k": tk.Int})
    query = table.filter(tk.col("k") == 3)
    for turn in range(3):
        view = engine.install("three", query)
        table.insert([(3,), (4,)])
        engine.advance()
        assert view.rows() == [(3,)] * (turn + 1)
        engine.drop(view.name)
