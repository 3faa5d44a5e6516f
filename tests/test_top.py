"""The first rows of groups that are ordered by text: texts that begin alike, NULLs, repeated rows, at every epoch."""

from __future__ import annotations

import random
from collections import Counter

import pytest

import tektite as tk

pytestmark = pytest.mark.usefixtures("executor")

Row = tuple[int, str | None, int]
ALIKE = "the same forty-two bytes, and a few more ones "
TEXTS = ["", "a", "ab", "ab\0", "b", "\u00e4", "\U0001f600", None, *(ALIKE + end for end in ("", "0", "1", "10", "\0"))]


def expected(rows: Counter[Row], k: int, order: list[tuple[int, bool]]) -> Counter[Row]:
    """What is to be seen of each group's rows, up to the choice among rows that are equal in the order."""
    found: Counter[Row] = Counter()
    for group in {row[0] for row in rows}:
        chosen = [row for row in rows.elements() if row[0] == group]
        for column, down in reversed(order):
            value = (lambda row: (row[1] or "").encode()) if column == 1 else (lambda row: row[2])
            chosen.sort(key=value, reverse=down)
            chosen.sort(key=lambda row: row[column] is None)
        found.update(chosen[:k])
    return found


@pytest.mark.parametrize(
    ("k", "order"),
    [
        (1, [("name", False)]),
        (1, [("name", True)]),
        (3, [("name", False), ("n", True)]),
        (3, [("n", True), ("name", False)]),
        (100, [("name", True), ("n", False)]),
    ],
)
def test_the_first_rows_by_text_are_those_of_a_sorted_group(k: int, order: list[tuple[str, bool]]) -> None:
    chance = random.Random(repr((k, order)))
    with tk.Engine() as engine:
        table = engine.input("t", g=tk.Int, name=tk.String, n=tk.Int)
        names, downs = zip(*order, strict=True)
        view = engine.install("first", table.top(k, list(names), by="g", descending=list(downs)))
        rows: Counter[Row] = Counter()
        by = [({"name": 1, "n": 2}[name], down) for name, down in order]
        for _ in range(30):
            for _ in range(chance.choice([1, 2, 20])):
                row = (chance.randrange(2), chance.choice(TEXTS), chance.randrange(3))
                if rows[row] and chance.random() < 0.6:
                    table.remove([row])
                    rows[row] -= 1
                else:
                    table.insert([row])
                    rows[row] += 1
            engine.advance()
            columns = [0, *(column for column, _ in by)]
            wanted = expected(rows, k, by)
            found: Counter[Row] = Counter(view.multiplicities())
            assert not any(many > rows[row] for row, many in found.items())
            assert shown(found, columns) == shown(wanted, columns)


def shown(rows: Counter[Row], columns: list[int]) -> Counter[tuple[object, ...]]:
    """How often each combination of some columns is there."""
    total: Counter[tuple[object, ...]] = Counter()
    for row, many in rows.items():
        total[tuple(row[column] for column in columns)] += many
    return total


def test_the_least_text_of_a_large_group_follows_changes_at_its_end() -> None:
    with tk.Engine() as engine:
        table = engine.input("t", name=tk.String)
        least, greatest = engine.install("least", table.min("name")), engine.install("greatest", table.max("name"))
        table.insert([(f"{ALIKE}{i:04d}",) for i in range(2000)])
        engine.advance()
        assert (least.rows(), greatest.rows()) == ([(ALIKE + "0000",)], [(ALIKE + "1999",)])
        table.remove([(ALIKE + "0000",), (ALIKE + "1999",)])
        table.insert([(ALIKE + "1998\0",)])
        engine.advance()
        assert (least.rows(), greatest.rows()) == ([(ALIKE + "0001",)], [(ALIKE + "1998\0",)])
