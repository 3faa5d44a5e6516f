"""How conjunctions are planned: cycles, orders, keys, extenders, and which arrangements are asked for."""

from __future__ import annotations

from typing import Any

import pytest

import tektite as tk
from tektite.dataflow import pipeline_actions
from tektite.plan.conjunctions.order import clause_order
from tektite.plan.conjunctions.strategy import is_cyclic
from tektite.plan.unique import unique_columns
from tests.support.executors import make_engine

col, lit = tk.col, tk.lit


class World:
    """Some inputs to match."""

    def __init__(self) -> None:
        self.engine = make_engine()
        self.e = self.engine.create_table("e", {"src": tk.Int, "dst": tk.Int})
        self.w = self.engine.create_table("w", {"x": tk.Int, "y": tk.Int, "z": tk.Int})
        self.u = self.engine.create_table("u", {"x": tk.Int})
        self.one = self.engine.create_table("one", {"id": tk.Int, "value": tk.Int}, mode="upsert", primary_key=["id"])


@pytest.mark.parametrize(
    ("clauses", "cyclic"),
    [
        (["ab"], False),
        (["ab", "ba"], False),
        (["ab", "bc", "cd", "de"], False),
        (["ab", "ac", "ad"], False),
        (["abc", "bcd", "cde"], False),
        (["ab", "bc", "ca"], True),
        (["ab", "bc", "ca", "abc"], False),
        (["ab", "bc", "cd", "da"], True),
        (["ab", "bc", "ca", "cd", "de"], True),
        (["abc", "cde", "efa"], True),
        (["", "ab"], False),
    ],
)
def test_cycles_are_found(clauses: list[str], cyclic: bool) -> None:
    assert is_cyclic(clauses) == cyclic


@pytest.mark.parametrize(
    ("clauses", "options", "order"),
    [
        ("e:ab e:bc e:cd", {}, [0, 1, 2]),
        ("e:ab e:cd e:bc", {}, [0, 2, 1]),
        ("e:ab e:bc one:bv", {}, [0, 2, 1]),
        ("e:ab e:bc e:a7", {}, [2, 0, 1]),
        ("e:ab e:bc e:bd", {"where": [col("d") > 3]}, [0, 2, 1]),
        ("e:ab e:bc e:ca", {"order": [2, 0, 1]}, [2, 0, 1]),
        ("e:ab e:bc e:cd", {"order": ["d", "c", "b", "a"]}, [2, 1, 0]),
        ("e:ab u:c e:bd", {}, [0, 2, 1]),
    ],
)
def test_clauses_are_joined_in_a_connected_order(clauses: str, options: dict[str, Any], order: list[int]) -> None:
    world = World()
    assert clause_order(tk.match(*parsed(world, clauses), **options).operator) == order  # type: ignore[arg-type]


def parsed(world: World, text: str) -> list[Any]:
    """Clauses written as `input:terms`; a digit is a literal, a dash a column that does not matter."""
    found = []
    for part in text.split():
        name, terms = part.split(":")
        found.append((getattr(world, name), [lit(int(t)) if t.isdigit() else None if t == "-" else t for t in terms]))
    return found


@pytest.mark.parametrize(
    ("strategy", "clauses", "options", "steps"),
    [
        ("delta", "e:ab e:bc e:cd", {}, ["fetch e(b, c) by (src)", "fetch e(c, d) by (src)"]),
        ("delta", "e:ab e:ba", {}, ["fetch e(b, a) by (src, dst)"]),
        ("delta", "e:ab e:bb", {}, ["fetch e(b, b) by (src, dst)"]),
        ("delta", "e:ab e:b7", {}, ["fetch e(b, 7) by (src, dst)"]),
        ("delta", "e:ab w:b-7", {}, ["fetch w(b, _, 7) by (x)"]),
        ("delta", "e:ab e:7b", {}, ["fetch e(7, b) by (src, dst)"]),
        ("delta", "e:ab one:bv e:vc", {}, ["fetch one(b, v) by (id)", "fetch e(v, c) by (src)"]),
        ("delta", "e:ab u:c", {}, ["fetch u(c) by ()"]),
        ("hector", "e:ab e:bc e:cd", {}, [
            "extend to c by the fewest candidates of e(b, c) by (src) and all of e(c, d)",
            "fetch e(c, d) by (src)",
        ]),
        ("hector", "e:ab e:bc e:ac u:c", {}, [
            "extend to c by the fewest candidates of e(b, c) by (src), e(a, c) by (src) and all of u(c)",
        ]),
        ("hector", "e:ab w:bcd e:cd", {}, [
            "extend to c by the fewest candidates of w(b, c, d) by (x) and all of e(c, d)",
            "extend to d by the fewest candidates of w(b, c, d) by (x, y) and e(c, d) by (src)",
        ]),
        ("hector", "e:ab w:bcd w:acd", {}, [
            "extend to c by the fewest candidates of w(b, c, d) by (x) and w(a, c, d) by (x)",
            "extend to d by the fewest candidates of w(b, c, d) by (x, y) and w(a, c, d) by (x, y)",
        ]),
        ("hector", "e:ab w:bcd w:acd", {"order": ["a", "b", "d", "c"]}, [
            "extend to d by the fewest candidates of w(b, c, d) by (x) and w(a, c, d) by (x)",
            "extend to c by the fewest candidates of w(b, c, d) by (x, z) and w(a, c, d) by (x, z)",
        ]),
        ("hector", "e:ab w:bc7 w:ac7", {}, [
            "extend to c by the fewest candidates of w(b, c, 7) by (x, z) and w(a, c, 7) by (x, z)",
        ]),
        ("hector", "e:ab e:bc e:cd e:ad", {"where": [col("c") == 7]}, [
            "fetch e(b, 7) by (src, dst)",
            "extend to d by the fewest candidates of e(7, d) by (src) and e(a, d) by (src)",
        ]),
        ("hector", "e:ab w:bcc w:acc", {}, [
            "extend to c by the fewest candidates of w(b, c, c) by (x) and w(a, c, c) by (x)",
        ]),
        ("hector", "e:ab one:av one:bv", {}, ["fetch one(a, v) by (id)", "fetch one(b, v) by (id, value)"]),
    ],
)  # fmt: skip
def test_pipeline_of_the_first_clause(strategy: str, clauses: str, options: dict[str, Any], steps: list[str]) -> None:
    text = tk.match(*parsed(World(), clauses), joins=strategy, **options).explain()
    block = text.split("changes of ")[1].splitlines()[1:]
    assert [line.strip() for line in block if line.strip() and not line.startswith("indexes")][: len(steps)] == steps
    assert len([line for line in block if line.startswith("    ")]) == len(steps)


def test_predicates_and_negation_apply_as_soon_as_their_variables_are_bound() -> None:
    world = World()
    text = tk.match(
        *parsed(world, "e:ab e:bc e:cd"),
        where=[col("d") > col("a"), col("b") > 1, col("c") > 2],
        without=parsed(world, "u:b e:ac"),
        joins="delta",
    ).explain()
    block = text.split("changes of e(a, b)")[1].split("changes of")[0].strip().splitlines()
    assert [line.strip() for line in block] == [
        "where b > 1",
        "without atleast(project(u))(b) by (b)",
        "fetch e(b, c) by (src)",
        "where c > 2",
        "without atleast(project(e))(a, c) by (a, c)",
        "fetch e(c, d) by (src)",
        "where d > a",
    ]


def test_an_arrangement_in_another_order_of_columns_serves() -> None:
    world = World()
    world.engine.install("by z y", world.w.index_by(["z", "y"]).count(by="z"))
    text = tk.match(*parsed(world, "e:ab w:cab u:c"), joins="delta").explain()
    assert "fetch w(c, a, b) by (z, y)" in text
    assert "w by (z, y): shared, there already" in text


@pytest.mark.parametrize(
    ("build", "unique"),
    [
        (lambda w: w.e, None),
        (lambda w: w.one, (0,)),
        (lambda w: w.e.distinct(), (0, 1)),
        (lambda w: w.one.distinct(), (0,)),
        (lambda w: w.one.select("value", key="id"), (1,)),
        (lambda w: w.one.select("value"), None),
        (lambda w: w.one.filter(col("value") > 1), (0,)),
        (lambda w: w.e.count(by="src"), (0,)),
        (lambda w: w.e.count(), ()),
        (lambda w: w.e.min("dst", by="src"), (0,)),
        (lambda w: w.e.bottom_k(2, "dst", per="src"), None),
        (lambda w: w.engine.install("view", w.e.distinct()), (0, 1)),
        (lambda w: w.one.join(w.one, how="cross").select("id", "id_right"), (0, 1)),
        (lambda w: w.one.join(w.one, on="value").select("id", "id_right"), (0, 1)),
        (lambda w: w.one.join(w.one, on="value").select("id", "value"), None),
        (lambda w: w.one.join(w.e, left_on="id", right_on="src"), None),
        (lambda w: tk.match((w.one, ("a", "v")), (w.one, ("b", "v")), find=["b", "v", "a"]), (0, 2)),
        (lambda w: tk.match((w.one, ("a", "v")), (w.one, ("b", "v")), find=["a", "v"]), None),
        (lambda w: tk.match((w.one, ("a", "b")), (w.one, ("b", "c")), find=["c", "a"]), (1,)),
    ],
)
def test_columns_that_tell_rows_apart(build: Any, unique: tuple[int, ...] | None) -> None:
    assert unique_columns(build(World()).operator) == unique


@pytest.mark.parametrize("workers", [1, 2])
def test_hector_does_not_go_through_all_pairs_of_a_hub_s_neighbours(
    workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everybody is connected to node 0, in both directions: n * n paths through it, but few triangles."""
    made: dict[str, int] = {}

    def counting(work: Any, strategy: str) -> Any:
        def count(self: Any, node: Any, item: Any) -> Any:
            chunk, done = work(self, node, item)
            made[strategy] = made.get(strategy, 0) + chunk.n
            return chunk, done

        return count

    n = 300
    for strategy in ("delta", "hector"):
        with monkeypatch.context() as patch:
            for action in (pipeline_actions.FetchAction, pipeline_actions.IntersectAction):
                patch.setattr(action, "work", counting(action.work, strategy))
            with make_engine(workers=workers) as engine:
                edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
                clauses = [(edges, ("a", "b")), (edges, ("b", "c")), (edges, ("c", "a"))]
                view = engine.install("triangles", tk.match(*clauses, joins=strategy))
                edges.insert([(0, i) for i in range(1, n)] + [(i, 0) for i in range(1, n)] + [(1, 2)])
                engine.advance()
                assert sorted(view.rows()) == [(0, 1, 2), (1, 2, 0), (2, 0, 1)]
    assert made["delta"] > n * n / 2
    assert made["hector"] < 10 * n


@pytest.mark.executors("stages")
def test_negated_clause_over_a_set_is_read_where_it_lies() -> None:
    """However many queries negate it; one that leaves columns out needs the set of the others."""
    with make_engine() as engine:
        table = {name: engine.create_table(name, {"x": tk.Int, "y": tk.Int}, mode="set") for name in "kb"}
        rows = [(i, i + 1) for i in range(5_000)]
        table["k"].insert(rows)
        table["b"].insert([(x, x + 2) for x, _ in rows])
        engine.advance()
        engine.query("[:find ?a ?c :where [?a :k ?x] [?x :k ?c] [?a :b 7]]")
        before = engine.bytes
        for joins in ("delta", "hector", "binary"):
            asked = engine.query("[:find ?a ?c :where [?a :k ?x] [?x :k ?c] (not [?a :b ?c])]", joins=joins)
            assert asked.rows() == []
            if joins != "binary":
                assert engine.bytes == before
                assert "atleast" not in asked.explain(joins=True)
            asked.drop()
