"""Types that tables have and Soufflé has not: declared, said by texts, in recursion, aggregates and negation, at every epoch."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import tektite as tk
from tests.support.datalog_folders import ProgramFolder, run
from tests.support.executors import examples, make_engine

pytestmark = pytest.mark.executors

# For each type: how SQL calls it, some values in ascending order, and how a text says each.
TYPES: dict[str, tuple[str, list[str]]] = {
    "bool": ("BOOLEAN", ["false", "true"]),
    "date": ("DATE", ["1999-12-31", "2024-01-01", "2024-02-29"]),
    "time": ("TIME", ["00:00:00", "10:20:30.5", "23:59:59"]),
    "timestamp": ("TIMESTAMP", ["1969-12-31 23:59:59", "2024-01-01 00:00:00", "2024-01-01 00:00:00.000001"]),
    "timestamptz": ("TIMESTAMPTZ", ["2024-01-01 00:00:00+02", "2024-01-01 00:00:00+00", "2024-01-01 00:00:00-05"]),
    "decimal(10, 2)": ("DECIMAL(10, 2)", ["-1.25", "0", "7.5"]),
    "decimal(30, 4)": ("DECIMAL(30, 4)", ["-12345678901234567890.5", "0.0001", "12345678901234567890.5"]),
    "interval": ("INTERVAL", ["1 hour", "2 days", "3 months"]),
    "uuid": ("UUID", [f"00000000-0000-0000-0000-00000000000{n}" for n in range(3)]),
    "json": ("JSON", ['{"a":1}', '{"a":2}', '{"b":[]}']),
    "blob": ("BLOB", ["a", "ab", "b"]),
    "int[]": ("BIGINT[]", ["[1]", "[1, 2]", "[2]"]),
    "date[]": ("DATE[]", ["[1999-12-31]", "[2024-01-01]", "[2024-01-01, 2024-02-29]"]),
}

RULES = """
.type T = {name}
.decl e(x: T, y: T)
.decl p(x: T, y: T)
p(x, y) :- e(x, y).
p(x, z) :- p(x, y), e(y, z).
.decl least(x: T, y: T)
least(x, y) :- e(x, _), y = min z : {{ p(x, z) }}.
.decl most(y: T)
most(y) :- y = max z : {{ e(_, z) }}.
.decl size(x: T, n: number)
size(x, n) :- e(x, _), n = count : {{ p(x, _) }}.
.decl end(y: T)
end(y) :- e(_, y), !e(y, _).
.decl first(x: T)
first(x) :- p(x, {said}).
.decl above(x: T)
above(x) :- e(x, _), x > {said}.
.decl fact(x: T)
fact({said}).
"""
NO_ORDER = {"json"}


def expected(edges: set[tuple[int, int]]) -> dict[str, set[tuple[Any, ...]]]:
    """What the rules derive of edges between the places of values, and of the value at place 1."""
    paths = set(edges)
    while more := {(x, z) for x, y in paths for u, z in edges if y == u} - paths:
        paths |= more
    return {
        "p": paths,
        "least": {(x, min(z for u, z in paths if u == x)) for x, _ in edges},
        "most": {(max(z for _, z in edges),)} if edges else set(),
        "size": {(x, sum(u == x for u, _ in paths)) for x, _ in edges},
        "end": {(y,) for _, y in edges if all(u != y for u, _ in edges)},
        "first": {(x,) for x, y in paths if y == 1},
        "above": {(x,) for x, _ in edges if x > 1},
        "fact": {(1,)},
    }


@pytest.mark.executors(stages=["timestamptz", "date[]"])
@pytest.mark.parametrize("name", TYPES)
def test_rules_over_a_type_equal_their_definition_at_every_epoch(name: str) -> None:
    rng = random.Random(name)
    sql, texts = TYPES[name]
    said = texts[1] if name.startswith("decimal") else '"' + texts[1].replace('"', '\\"') + '"'
    program = RULES.format(name=name, said=said)
    if name in NO_ORDER:
        program = "\n".join(
            line for line in program.splitlines() if not any(n in line for n in ("least", "most", "above"))
        )
    with make_engine(workers=2) as engine:
        engine.sql(f"CREATE TABLE e (x {sql}, y {sql}) WITH (mode = 'set')")
        values = [engine.sql(f"SELECT CAST('{text}' AS {sql})").rows()[0][0] for text in texts]
        registered = engine.datalog(program)
        names = [n for n in expected(set()) if f".decl {n}(" in program]
        views = dict(zip(names, registered.views(*names), strict=True))
        goal = engine.query("p($x, ?)", x=[values[0]])
        edges: set[tuple[int, int]] = set()
        for _ in range(examples(6)):
            for _ in range(rng.randint(1, 4)):
                edge = (rng.randrange(len(values)), rng.randrange(len(values)))
                row = (values[edge[0]], values[edge[1]])
                (engine.table("e").remove if edge in edges else engine.table("e").insert)([row])
                edges ^= {edge}
            engine.advance()
            wanted = expected(edges)
            for n in names:
                found = sorted(
                    tuple(placed(v, values, n == "size" and at == 1) for at, v in enumerate(row))
                    for row in views[n].rows()
                )
                assert found == sorted(wanted[n]), (n, edges)
            assert sorted(values.index(y) for _, y in goal.rows()) == sorted(y for x, y in wanted["p"] if x == 0)


def placed(value: Any, values: list[Any], counts: bool) -> Any:
    return value if counts else values.index(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('.decl q(x: date)  q("soon").', "column 1 of 'q' is string here, and date in its declaration"),
        ("o(x) :- e(x), x > 3.", "x is date, and 3 is int"),
        ('o(x) :- e(x), x = "soon".', 'x is date, and "soon" is string'),
        (".type R = [d: date]  .decl q(x: R)", "date is a type of columns; fields and functors have number"),
        (".functor f(x: date): number", "date is a type of columns; fields and functors have number"),
        (".decl q(x: decimal(50, 2))", r"there is no type 'decimal\(50, 2\)'"),
        (".decl q(x: node[])", r"there is no type 'node\[\]'"),
        (".type U = date | number  .decl q(x: U)", "type U is a union of numbers and texts"),
    ],
)
def test_what_a_type_does_not_hold_is_refused(text: str, message: str) -> None:
    with make_engine() as engine:
        engine.sql("CREATE TABLE e (x DATE)")
        with pytest.raises(tk.TektiteError, match=message):
            program = engine.datalog(text)
            program.views(*{rule.predicate for rule in program.text.rules})


def test_type_of_the_program_comes_before_the_type_of_tables() -> None:
    with make_engine() as engine:
        program = engine.datalog(
            ".type date = [y: number, m: number]  .decl q(d: date)  q([2024, 1]).  o(y) :- q([y, _])."
        )
        assert program["o"].rows() == [(2024,)]


@pytest.mark.parametrize("name", [n for n in TYPES if n not in ("interval", "blob") and not n.endswith("[]")])
def test_facts_of_a_type_are_read_and_written(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "typed"
    (folder / "facts").mkdir(parents=True)
    texts = TYPES[name][1]
    (folder / "facts" / "e.facts").write_text("\n".join(texts) + "\n")
    (folder / "typed.dl").write_text(f".decl e(x: {name})\n.input e\n.output e\n")
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    run(ProgramFolder(folder), first)
    written = (first / "e.csv").read_text()
    assert len(written.splitlines()) == len(texts)
    (folder / "facts" / "e.facts").write_text(written)
    run(ProgramFolder(folder), second)
    assert (second / "e.csv").read_text() == written


WIDE = """
.decl p(k: number, x: decimal(38, 2))
p(1, 99999999999999999999.01). p(1, 99999999999999999999.02). p(2, -1.25).
.decl more(k: number, x: decimal(38, 2))
.input more
.decl all(k: number, x: decimal(38, 2))
all(k, x) :- (p(k, x); more(k, x)).
.decl totals(k: number, s: decimal(38, 2), c: number)
totals(k, sum(x), count()) :- all(k, x).
.decl total(s: decimal(38, 2))
total(s) :- s = sum x : { all(_, x) }.
.decl above(x: decimal(38, 2))
above(x) :- p(_, x), x > 99999999999999999999.01.
"""


def test_decimals_are_read_as_they_are_written_and_added_up_with_all_digits() -> None:
    with make_engine() as engine:
        program = engine.datalog(WIDE)
        totals, total, above = program.views("totals", "total", "above")
        more = engine.table("more")
        engine.advance()
        first = Decimal("199999999999999999998.03")
        assert (sorted(totals.rows()), total.rows()) == (
            [(1, first, 2), (2, Decimal("-1.25"), 1)],
            [(first - Decimal("1.25"),)],
        )
        assert above.rows() == [(Decimal("99999999999999999999.02"),)]
        more.insert([(1, Decimal("0.01"))])
        engine.advance()
        assert sorted(totals.rows())[0] == (1, first + Decimal("0.01"), 3)
        more.remove([(1, Decimal("0.01"))])
        engine.advance()
        assert sorted(totals.rows())[0] == (1, first, 2)
        assert engine.query("p(?, 99999999999999999999.02)").rows() == [(1, Decimal("99999999999999999999.02"))]


def test_decimals_of_attributes_are_read_as_they_are_written() -> None:
    with make_engine() as engine:
        engine.attribute("price", tk.Decimal(18, 2), cardinality="one")
        engine.transact("[1 :price 1234567890123456.01] [2 :price 2.5]")
        engine.advance()
        assert sorted(engine.query("[:find ?e ?p :where [?e :price ?p]]").rows()) == [
            (1, Decimal("1234567890123456.01")),
            (2, Decimal("2.50")),
        ]
        assert engine.query("[:find ?e . :where [?e :price 1234567890123456.01]]").answer() == 1
        engine.transact("[:retract 1 :price 1234567890123456.01]")
        engine.advance()
        assert engine.query("[:find ?e :where [?e :price ?p] [(> ?p 3.0)]]").rows() == []
