"""The first rows of groups, by numbers and by texts that begin alike: NULLs, repeated rows, few and many epochs at once."""

from __future__ import annotations

import random
from collections import Counter

import pytest

import tektite as tk
from tektite.query.limits import first_rows, order_parts
from tests.support.executors import make_engine
from tests.support.row_changes import row_changes

pytestmark = pytest.mark.executors

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


@pytest.mark.executors(stages=["1-order0-seven", "2-order4-seven", "100-order5-all at once"], spark=["2-order4-seven"])
@pytest.mark.parametrize("together", [1, 7, 35], ids=["an epoch at a time", "seven", "all at once"])
@pytest.mark.parametrize(
    ("k", "order"),
    [
        (1, [("name", False)]),
        (1, [("name", True)]),
        (3, [("name", False), ("n", True)]),
        (3, [("n", True), ("name", False)]),
        (2, [("n", False)]),
        (100, [("name", True), ("n", False)]),
    ],
)
def test_the_first_rows_are_those_of_a_sorted_group_at_every_epoch(
    k: int, order: list[tuple[str, bool]], together: int
) -> None:
    chance = random.Random(repr((k, order)))
    by = [({"name": 1, "n": 2}[name], down) for name, down in order]
    columns = [0, *(column for column, _ in by)]
    with make_engine() as engine:
        table = engine.create_table("t", {"g": tk.Int, "name": tk.String, "n": tk.Int})
        names, downs = zip(*order, strict=True)
        view = engine.install("first", first_rows(table, order_parts(table, list(names), list(downs), "top"), ["g"], k))
        changes = row_changes(view)
        rows: Counter[Row] = Counter()
        wanted, there = {}, {}
        found: Counter[Row] = Counter()
        for epoch in range(35):
            for _ in range(chance.choice([0, 1, 2, 5])):
                row = (chance.randrange(2), chance.choice(TEXTS), chance.randrange(3))
                diff = -1 if rows[row] and chance.random() < 0.6 else 1
                rows[row] += diff
                table.update([row], times=[epoch], diffs=[diff])
            wanted[epoch], there[epoch] = shown(expected(rows, k, by), columns), rows.copy()
            if (epoch + 1) % together:
                continue
            engine.advance(to=epoch + 1)
            happened = list(changes)
            for at in range(epoch + 1 - together, epoch + 1):
                for row, time, diff in happened:
                    if time == at:
                        found[row] += diff
                assert all(0 <= many <= there[at][row] for row, many in found.items())
                assert shown(found, columns) == wanted[at]


def shown(rows: Counter[Row], columns: list[int]) -> Counter[tuple[object, ...]]:
    """How often each combination of some columns is there."""
    total: Counter[tuple[object, ...]] = Counter()
    for row, many in rows.items():
        total[tuple(row[column] for column in columns)] += many
    return +total


@pytest.mark.executors("stages")
def test_the_least_text_of_a_large_group_follows_changes_at_its_end() -> None:
    with make_engine() as engine:
        table = engine.create_table("t", {"name": tk.String})
        least, greatest = engine.install("least", table.min("name")), engine.install("greatest", table.max("name"))
        table.insert([(f"{ALIKE}{i:04d}",) for i in range(2000)])
        engine.advance()
        assert (least.rows(), greatest.rows()) == ([(ALIKE + "0000",)], [(ALIKE + "1999",)])
        table.remove([(ALIKE + "0000",), (ALIKE + "1999",)])
        table.insert([(ALIKE + "1998\0",)])
        engine.advance()
        assert (least.rows(), greatest.rows()) == ([(ALIKE + "0001",)], [(ALIKE + "1998\0",)])
