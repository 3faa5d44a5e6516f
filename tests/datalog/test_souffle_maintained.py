"""Records, choices, equivalences, ranges and components are what they would be if they were computed anew, at every epoch."""

from __future__ import annotations

import random
from typing import Any

import pytest

import tektite as tk
from tests.support.executors import examples, make_engine

pytestmark = pytest.mark.executors("stages")

PROGRAMS = {
    "lists": """
        .type L = [x: number, rest: L]
        .decl o(l: L)
        o([x, nil]) :- n(x).   o([y, l]) :- o(l), l = [x, _], e(x, y), y > x.
    """,
    "tagged values": """
        .type T = Leaf { x: number } | Node { a: T, b: T }
        .decl t(t: T, depth: number)   .decl o(x: number, y: number)
        t($Leaf(x), 0) :- n(x).   t($Node($Leaf(x), u), d + 1) :- t(u, d), n(x), d < 2, e(x, _).
        o(x, count()) :- t($Node($Leaf(x), _), _).
    """,
    "an equivalence relation": """
        .decl o(x: number, y: number) eqrel
        o(x, y) :- e(x, y).   o(x, y) :- o(x, z), n(z), e(y, z), n(y).
    """,
    "a spanning forest": """
        .decl o(x: number, y: number) choice-domain y
        o(x, x) :- n(x).   o(x, y) :- o(_, x), e(x, y).
    """,
    "a matching": """
        .decl o(x: number, y: number) choice-domain x, y
        o(x, y) :- e(x, y).   o(x, y) :- e(y, x), n(x).
    """,
    "a choice that feeds another": """
        .decl first(x: number, y: number) choice-domain x
        first(x, y) :- e(x, y).
        .decl o(x: number, y: number) choice-domain y
        o(x, z) :- first(x, y), first(y, z).   o(y, x) :- o(x, z), e(z, y).
    """,
    "ranges": "o(x, y) :- e(x, z), y = range(x, z).   o(x, y + 10) :- n(x), y = range(0, count : { e(x, _) }).",
    "subsumption": "o(x, y) :- e(x, y).   o(a, b) <= o(c, d) :- a <= c, b <= d.   o(a, b) <= o(c, d) :- n(a), a = d, b = c.",
    "subsumption in recursion": """
        o(x, y, 1, y) :- e(x, y).   o(x, z, k + 1, c + z) :- o(x, y, k, c), e(y, z).
        o(x, y, j, b) <= o(x, y, k, c) :- k <= j, c <= b.
    """,
    "a predicate without columns": "some() :- n(x), e(x, x).   o(x) :- n(x), !some().   o(x) :- e(x, _), some().",
    "components": """
        .comp Reach { .decl step(x: number, y: number)  .decl from(x: number)  .decl at(x: number)
                      at(x) :- from(x).   at(y) :- at(x), step(x, y). }
        .init forward = Reach   .init back = Reach
        forward.step(x, y), back.step(y, x) :- e(x, y).   forward.from(x), back.from(x) :- n(x), x < 2.
        o(x) :- forward.at(x), back.at(x).
    """,
}  # fmt: skip


def computed(text: str, facts: dict[str, set[tuple[int, ...]]]) -> list[tuple[Any, ...]]:
    """The answer of a program over some facts, computed at once."""
    with make_engine() as engine:
        tables = inputs(engine)
        for name, rows in facts.items():
            tables[name].insert(sorted(rows))
        engine.advance()
        return sorted(engine.datalog(text)["o"].rows())


def inputs(engine: tk.Engine) -> dict[str, tk.Table]:
    return {
        "e": engine.create_table("e", {"x": tk.Int, "y": tk.Int}, mode="set"),
        "n": engine.create_table("n", {"x": tk.Int}, mode="set"),
    }


@pytest.mark.executors(spark=["a spanning forest"])
@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_answer_is_what_it_would_be_if_it_were_computed_anew(text: str) -> None:
    rng = random.Random(len(text))
    with make_engine(workers=2) as engine:
        tables = inputs(engine)
        view = engine.datalog(text)["o"]
        facts: dict[str, set[tuple[int, ...]]] = {"e": set(), "n": set()}
        for _ in range(examples(12)):
            for name, width in (("e", 2), ("n", 1)):
                for _ in range(rng.randint(0, 5)):
                    row = tuple(rng.randrange(6) for _ in range(width))
                    (tables[name].remove if row in facts[name] else tables[name].insert)([row])
                    facts[name] ^= {row}
            engine.advance()
            assert sorted(view.rows()) == computed(text, facts), facts
