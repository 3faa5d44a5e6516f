"""Classic programs, maintained while their inputs change, against naive evaluation or an algorithm of their own."""

from __future__ import annotations

import heapq
import random

import pytest

import tektite as tk
from tektite.datalog.syntax.textbook import parse_program
from tests.support.datalog_twin import Facts, evaluate
from tests.support.executors import make_engine

pytestmark = pytest.mark.executors

PROGRAMS = {
    "reachability": ("start(x), edge(x, y)", "reach(x) :- start(x). reach(y) :- reach(x), edge(x, y)."),
    "transitive closure": ("edge(x, y)", "tc(x, y) :- edge(x, y). tc(x, z) :- tc(x, y), edge(y, z)."),
    "transitive closure, not linear": ("edge(x, y)", "tc(x, y) :- edge(x, y). tc(x, z) :- tc(x, y), tc(y, z)."),
    "same generation": (
        "edge(x, y)",
        "sg(x, y) :- edge(p, x), edge(p, y), x != y. sg(x, y) :- edge(a, x), sg(a, b), edge(b, y).",
    ),
    "points-to": (
        "new(v, o), assign(v, w), load(v, b), store(b, v)",
        """
        points(v, o) :- new(v, o).
        points(v, o) :- assign(v, w), points(w, o).
        heap(a, o) :- store(b, v), points(b, a), points(v, o).
        points(v, o) :- load(v, b), points(b, a), heap(a, o).
        """,
    ),
    "Andersen": (
        "address(y, x), assign(y, x), load(y, x), store(y, x)",
        """
        pointsto(y, x) :- address(y, x).
        pointsto(y, x) :- assign(y, z), pointsto(z, x).
        pointsto(y, w) :- load(y, x), pointsto(x, z), pointsto(z, w).
        pointsto(z, w) :- store(y, x), pointsto(y, z), pointsto(x, w).
        """,
    ),
    "CSPA": (
        "assign(x, y), dereference(x, y)",
        """
        flow(y, x) :- assign(y, x).
        flow(x, y) :- assign(x, z), memory(z, y).
        flow(x, y) :- flow(x, z), flow(z, y).
        memory(x, w) :- dereference(y, x), value(y, z), dereference(z, w).
        value(x, y) :- flow(z, x), flow(z, y).
        value(x, y) :- flow(z, x), memory(z, w), flow(w, y).
        flow(x, x) :- assign(x, y).
        flow(x, x) :- assign(y, x).
        memory(x, x) :- assign(y, x).
        memory(x, x) :- assign(x, y).
        """,
    ),
    "win-move in strata": (
        "move(x, y)",
        """
        stuck(x) :- move(_, x), !move(x, _).
        wins(x) :- move(x, y), stuck(y).
        loses(x) :- move(x, _), !wins(x), n = count : { move(x, y), wins(y) }, m = count : { move(x, _) }, n = m.
        """,
    ),
    "degrees and averages": (
        "edge(x, y)",
        """
        out(x, count(y), min(y), max(y), sum(y), avg(y)) :- edge(x, y).
        total(count()) :- edge(_, _).
        busiest(x) :- out(x, n, _, _, _, _), m = max k : { out(_, k, _, _, _, _) }, n = m.
        """,
    ),
}


def columns_of(inputs: str) -> dict[str, int]:
    found = {}
    for part in inputs.split("), "):
        name, terms = part.rstrip(")").split("(")
        found[name] = len(terms.split(", "))
    return found


@pytest.mark.executors(stages=["same generation-2", "Andersen-2", "win-move in strata-2", "degrees and averages-2"])
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(("inputs", "rules"), PROGRAMS.values(), ids=PROGRAMS.keys())
def test_program_agrees_with_naive_evaluation_at_every_epoch(inputs: str, rules: str, workers: int) -> None:
    rng = random.Random(rules)
    text = parse_program(rules)
    widths = columns_of(inputs)
    with make_engine(workers) as engine:
        tables = {
            name: engine.create_table(name, {f"c{i}": tk.Int for i in range(width)}, mode="set")
            for name, width in widths.items()
        }
        program = engine.datalog(rules)
        views = dict(zip(program.predicates, program.views(*program.predicates), strict=True))
        facts: Facts = {name: set() for name in widths}
        for _ in range(6):
            for name, table in tables.items():
                for _ in range(rng.randint(1, 4)):
                    row = tuple(rng.randrange(6) for _ in range(widths[name]))
                    (table.remove if row in facts[name] else table.insert)([row])
                    facts[name] ^= {row}
            engine.advance()
            expected = evaluate(text, facts)
            for name, view in views.items():
                assert sorted(view.rows()) == sorted(expected[name]), name


MINIMUM = "path(x, x, 0) :- edge(x, _, _).  path(x, z, min(d + w)) :- path(x, y, d), edge(y, z, w)."
SUBSUMPTION = """
path(x, x, 0) :- edge(x, _, _).
path(x, z, d + w) :- path(x, y, d), edge(y, z, w).
path(x, y, worse) <= path(x, y, better) :- better <= worse.
"""


@pytest.mark.executors("stages", spark=["subsumption"])
@pytest.mark.parametrize("rules", [MINIMUM, SUBSUMPTION], ids=["min in the head", "subsumption"])
def test_shortest_paths_by_minimum(rules: str) -> None:
    rng = random.Random(5)
    with make_engine() as engine:
        edge = engine.create_table("edge", {"x": tk.Int, "y": tk.Int, "w": tk.Int}, mode="set")
        path = engine.datalog(rules)["path"]
        facts: set[tuple[int, int, int]] = set()
        for _ in range(8):
            for _ in range(5):
                row = (rng.randrange(6), rng.randrange(6), rng.randrange(1, 9))
                (edge.remove if row in facts else edge.insert)([row])
                facts ^= {row}
            engine.advance()
            expected = sorted((x, y, d) for x in {x for x, _, _ in facts} for y, d in distances(facts, x).items())
            assert sorted(path.rows()) == expected


def distances(edges: set[tuple[int, int, int]], start: int) -> dict[int, int]:
    """Dijkstra's algorithm."""
    found: dict[int, int] = {}
    front = [(0, start)]
    while front:
        distance, node = heapq.heappop(front)
        if node not in found:
            found[node] = distance
            for x, y, w in edges:
                if x == node:
                    heapq.heappush(front, (distance + w, y))
    return found


@pytest.mark.executors("stages")
def test_bill_of_materials_counts_parts_of_parts() -> None:
    rules = """
    .decl part(whole: symbol, part: symbol, n: number)
    .decl price(part: symbol, cents: number)
    uses(w, p) :- part(w, p, _).
    uses(w, p) :- uses(w, q), part(q, p, _).
    basic(p) :- price(p, _), !part(p, _, _).
    missing(w, p) :- uses(w, p), !part(p, _, _), !price(p, _).
    direct(w, sum(n * c)) :- part(w, p, n), price(p, c).
    kinds(w, count(p)) :- uses(w, p).
    """
    with make_engine() as engine:
        program = engine.datalog(rules)
        kinds, missing, direct = program.views("kinds", "missing", "direct")
        part, price = engine.table("part"), engine.table("price")
        part.insert([("bike", "wheel", 2), ("bike", "frame", 1), ("wheel", "spoke", 36), ("wheel", "rim", 1)])
        price.insert([("spoke", 20), ("rim", 900)])
        engine.advance()
        assert sorted(kinds.rows()) == [("bike", 4), ("wheel", 2)]
        assert sorted(missing.rows()) == [("bike", "frame")]
        assert direct.rows() == [("wheel", 36 * 20 + 900)]
        part.remove([("bike", "frame", 1)])
        price.insert([("wheel", 5000)])
        engine.advance()
        assert sorted(kinds.rows()) == [("bike", 3), ("wheel", 2)]
        assert missing.rows() == []
        assert sorted(direct.rows()) == [("bike", 10000), ("wheel", 1620)]
