"""Conjunctions: what they mean, with every strategy, while their collections change."""

from __future__ import annotations

import datetime
import random
from typing import Any

import pytest

import tektite as tk
from tektite.engine.core import core_of
from tests.support.executors import make_engine
from tests.support.nightly import few_of

pytestmark = pytest.mark.executors

STRATEGIES = ("binary", "delta", "hector")
each_strategy = pytest.mark.parametrize("strategy", STRATEGIES)


def graph(engine: tk.Engine, name: str = "edges") -> tk.Table:
    return engine.create_table(name, {"src": tk.Int, "dst": tk.Int})


def answer(engine: tk.Engine, collection: tk.Collection) -> list[tuple[Any, ...]]:
    return sorted(engine.install("answer", collection).rows())


@each_strategy
def test_triangles(strategy: str) -> None:
    engine = make_engine()
    edges = graph(engine)
    found = tk.match((edges, ("a", "b")), (edges, ("b", "c")), (edges, ("c", "a")), joins=strategy)
    view = engine.install("triangles", found)
    edges.insert([(1, 2), (2, 3), (3, 1), (3, 4)])
    engine.advance()
    assert sorted(view.rows()) == [(1, 2, 3), (2, 3, 1), (3, 1, 2)]
    edges.remove([(2, 3)])
    engine.advance()
    assert view.rows() == []


@pytest.mark.executors(stages=["binary"])
@each_strategy
def test_ignored_columns_add_up_and_multiplicities_multiply(strategy: str) -> None:
    engine = make_engine()
    edges, other = graph(engine), graph(engine, "other")
    edges.insert([(1, 2), (1, 2), (1, 3)])
    other.insert([(1, 7), (1, 8)])
    engine.advance()
    assert answer(engine, tk.match((edges, ("a", None)), (other, ("a", None)), joins=strategy)) == [(1,)] * 6


@each_strategy
def test_literals_and_repeated_variables_select_rows(strategy: str) -> None:
    engine = make_engine()
    edges = graph(engine)
    edges.insert([(1, 1), (1, 2), (2, 2), (2, 3), (3, 1)])
    engine.advance()
    found = tk.match((edges, ("a", "a")), (edges, ("a", tk.lit(2))), joins=strategy)
    assert answer(engine, found) == [(1,), (2,)]


@each_strategy
def test_literals_of_any_type(strategy: str) -> None:
    engine = make_engine()
    facts = engine.create_table(
        "facts", {"name": tk.String, "day": tk.Date, "price": tk.Decimal(10, 2), "ok": tk.Bool, "id": tk.Int}
    )
    day = datetime.date(2024, 5, 1)
    facts.insert(
        [("tea", day, 3, True, 1), ("tea", day, 4, True, 2), ("salt", day, 3, True, 3), ("tea", day, 3, False, 4)]
    )
    engine.advance()
    terms = (tk.lit("tea"), tk.lit(day), tk.lit(3), tk.lit(True), "id")
    assert answer(engine, tk.match((facts, terms), (facts, (None, None, None, None, "id")), joins=strategy)) == [(1,)]


@each_strategy
def test_clauses_that_share_nothing_are_multiplied(strategy: str) -> None:
    engine = make_engine()
    edges, other = graph(engine), graph(engine, "other")
    edges.insert([(1, 2), (3, 4)])
    other.insert([(5, 6)])
    engine.advance()
    found = tk.match((edges, ("a", "b")), (other, ("c", "d")), joins=strategy)
    assert answer(engine, found) == [(1, 2, 5, 6), (3, 4, 5, 6)]


@pytest.mark.executors(stages=["delta", "hector"], spark=["delta"])
@each_strategy
def test_null_matches_nothing_but_is_kept_where_nothing_is_compared(strategy: str) -> None:
    engine = make_engine()
    edges = graph(engine)
    edges.insert([(1, None), (None, 2), (1, 3), (3, None), (None, None)])
    engine.advance()
    hops = tk.match((edges, ("a", "b")), (edges, ("b", "c")), joins=strategy)
    assert answer(engine, hops) == [(1, 3, None)]
    engine.drop("answer")
    assert answer(engine, tk.match((edges, ("a", "a")), joins=strategy)) == []


@each_strategy
def test_without_keeps_what_has_no_match(strategy: str) -> None:
    engine = make_engine()
    edges, blocked = graph(engine), graph(engine, "blocked")
    hops = tk.match(
        (edges, ("a", "b")),
        (edges, ("b", "c")),
        without=[(blocked, ("a", "c")), (blocked, ("b", None))],
        joins=strategy,
    )
    view = engine.install("hops", hops)
    edges.insert([(1, 2), (2, 3), (2, 4), (4, 5)])
    blocked.insert([(1, 3), (1, 3)])
    engine.advance()
    assert sorted(view.rows()) == [(1, 2, 4), (2, 4, 5)]
    blocked.remove([(1, 3)])
    blocked.insert([(4, 9)])
    engine.advance()
    assert sorted(view.rows()) == [(1, 2, 4)]
    blocked.remove([(1, 3)])
    engine.advance()
    assert sorted(view.rows()) == [(1, 2, 3), (1, 2, 4)]


@each_strategy
def test_floats_are_compared_as_numbers_and_kept_as_first_written(strategy: str) -> None:
    engine = make_engine()
    left = engine.create_table("left", {"x": tk.Float, "n": tk.Int})
    right = engine.create_table("right", {"x": tk.Float, "y": tk.Float})
    left.insert([(-0.0, 1), (float("nan"), 2), (1.5, 3), (None, 4)])
    right.insert([(0.0, 0.0), (float("nan"), 1.0), (1.5, 1.5), (None, None)])
    engine.advance()
    for order in ([0, 1], [1, 0]):
        found = tk.match((left, ("x", "n")), (right, ("x", None)), joins=strategy, order=order)
        assert [str(row) for row in sorted(engine.install("answer", found).rows(), key=lambda row: row[1])] == [
            "(-0.0, 1)",
            "(nan, 2)",
            "(1.5, 3)",
        ]
        engine.drop("answer")
    assert answer(engine, tk.match((right, ("x", "x")), (left, ("x", "n")), joins=strategy)) == [(0.0, 1), (1.5, 3)]
    engine.drop("answer")
    assert answer(engine, tk.match((left, (tk.lit(0.0), "n")), joins=strategy)) == [(1,)]
    engine.drop("answer")
    found = tk.match((left, ("x", "n")), without=[(right, (None, "x"))], find=["n"], joins=strategy, order=["n", "x"])
    assert answer(engine, found) == [(2,), (4,)]


@each_strategy
def test_transitive_closure_by_a_conjunction_of_a_loop(strategy: str) -> None:
    engine = make_engine()
    edges = graph(engine)

    def step(reach: tk.Collection) -> tk.Collection:
        longer = tk.match((reach, ("a", "b")), (reach, ("b", "c")), find=["a", "c"], joins=strategy)
        return longer.concat(edges).distinct()

    view = engine.install("reach", edges.iterate(step))
    edges.insert([(i, i + 1) for i in range(9)])
    engine.advance()
    assert sorted(view.rows()) == [(i, j) for i in range(10) for j in range(i + 1, 10)]
    edges.remove([(4, 5)])
    engine.advance()
    assert sorted(view.rows()) == [(i, j) for i in range(10) for j in range(i + 1, 10) if (i < 5) == (j < 5)]


@pytest.mark.executors(stages=["delta"])
@each_strategy
def test_changes_of_several_clauses_in_one_epoch_are_counted_once(strategy: str) -> None:
    engine = make_engine()
    edges = graph(engine)
    found = tk.match((edges, ("a", "b")), (edges, ("b", "c")), (edges, ("a", "c")), joins=strategy)
    view = engine.install("triangles", found)
    edges.insert([(100, 300)])
    engine.advance()
    assert view.multiplicities() == {}
    edges.insert([(100, 200), (200, 300)])
    engine.advance()
    assert view.multiplicities() == {(100, 200, 300): 1}
    edges.remove([(100, 200), (200, 300), (100, 300)])
    engine.advance()
    assert view.multiplicities() == {}
    edges.insert([(1, 1), (1, 1)])
    engine.advance()
    assert view.multiplicities() == {(1, 1, 1): 8}


@pytest.mark.parametrize(
    ("strategy", "workers"),
    few_of(
        [(strategy, workers) for strategy in ("delta", "hector") for workers in (1, 2, 3)], ("delta", 1), ("hector", 2)
    ),
)
def test_conjunction_in_a_loop_within_a_loop(strategy: str, workers: int) -> None:
    """Nodes that lie on a cycle: what stays when edges are cut, again and again, that do not lead from reached to reached."""
    found = {}
    for chosen in ("binary", strategy):
        engine = make_engine(workers=workers)
        edges = graph(engine)

        def trim(left: tk.Collection, chosen: str = chosen, edges: tk.Collection = edges) -> tk.Collection:
            def reach(paths: tk.Collection) -> tk.Collection:
                longer = tk.match(
                    (paths, ("a", "b")), (left, ("b", "c")), (edges, ("b", "c")), find=["a", "c"], joins=chosen
                )
                return longer.concat(left).distinct()

            paths = left.iterate(reach)
            return tk.match((left, ("a", "b")), (paths, ("b", "a")), (edges, ("a", None)), joins=chosen).distinct()

        view = engine.install("cycles", edges.distinct().iterate(trim))
        rng, states = random.Random(5), []
        there: list[tuple[int, int]] = []
        for _ in range(8):
            for _ in range(4):
                if there and rng.random() < 0.4:
                    edges.remove([there.pop(rng.randrange(len(there)))])
                else:
                    there.append((rng.randrange(5), rng.randrange(5)))
                    edges.insert([there[-1]])
            engine.advance()
            states.append(view.multiplicities())
        found[chosen] = states
        engine.close()
    assert found[strategy] == found["binary"]
    assert any(found[strategy])


@pytest.mark.parametrize("strategy", ["delta", "hector"])
def test_pipelines_hold_no_intermediate_result(strategy: str) -> None:
    engine = make_engine()
    parts = [graph(engine, f"part{i}") for i in range(4)]
    for part in parts:
        part.insert([(i, i % 7) for i in range(200)])
    engine.advance()
    clauses = [(part, ("e", f"v{i}")) for i, part in enumerate(parts)]
    view = engine.install("star", tk.match(*clauses, joins=strategy), keep=False)
    # Every clause is looked up by its first column, which the inputs' own arrangements serve; the result is not kept.
    assert {info.name for info in engine.indexes()} == {"part0", "part1", "part2", "part3", "star"}
    assert sum(trace.rows for trace in core_of(view).flow.traces) == 0
    joined = engine.install("joined", tk.match(*clauses, joins="binary"), keep=False)
    engine.settle()
    assert sum(trace.rows for trace in core_of(joined).flow.traces) >= 400


@each_strategy
def test_reverse_bindings_agree_in_both_directions(strategy: str) -> None:
    engine = make_engine()
    knows, likes = graph(engine, "knows"), graph(engine, "likes")
    view = engine.install(
        "friends",
        tk.match(
            (knows, ("a", "b")), (knows, ("b", "a")), (likes, ("a", "b")), (likes, (tk.lit(1), "b")), joins=strategy
        ),
    )
    knows.insert([(1, 2), (2, 1), (2, 3), (4, 4)])
    likes.insert([(1, 2), (2, 1), (1, 4), (4, 4)])
    engine.advance()
    assert sorted(view.rows()) == [(1, 2), (4, 4)]
    likes.insert([(1, 1)])
    engine.advance()
    assert sorted(view.rows()) == [(1, 2), (2, 1), (4, 4)]


@pytest.mark.executors(stages=["hector"])
@pytest.mark.parametrize("strategy", ["delta", "hector"])
def test_multiplicities_that_do_not_fit_fail_the_view_and_nothing_else(strategy: str) -> None:
    engine = make_engine()
    edges = graph(engine)
    clauses = [(edges, ("a", "b")), (edges, ("b", "c")), (edges, ("a", "c"))]
    view = engine.install("triangles", tk.match(*clauses, joins=strategy))
    edges.update([(1, 1)], diffs=[2**40])
    engine.advance()
    with pytest.raises(tk.IncorrectError, match="'triangles'.*does not fit into 64 bits"):
        view.rows()
    assert engine.install("sources", edges.select("src").distinct()).rows() == [(1,)]


@pytest.mark.parametrize("strategy", ["delta", "hector"])
def test_dropping_and_explaining_leave_nothing_behind(strategy: str) -> None:
    engine = make_engine(workers=2)
    edges = graph(engine)
    edges.insert([(i, (7 * i) % 50) for i in range(50)])
    engine.advance()
    handles, holds = len(core_of(edges).trace.handles), len(core_of(edges).trace.holds)
    clauses = [(edges, ("a", "b")), (edges, ("b", "c")), (edges, ("a", "c"))]
    found = tk.match(*clauses, without=[(edges, ("c", "a"))], joins=strategy)
    found.explain()
    assert [info.name for info in engine.indexes()] == ["edges"]
    assert (len(core_of(edges).trace.handles), len(core_of(edges).trace.holds)) == (handles, holds)
    engine.install("triangles", found).drop()
    assert [info.name for info in engine.indexes()] == ["edges"]
    assert (len(core_of(edges).trace.handles), len(core_of(edges).trace.holds)) == (handles, holds)


def test_auto_joins_two_directly_follows_trees_by_delta_and_cycles_by_hector() -> None:
    engine = make_engine()
    edges = graph(engine)
    hop, next_hop, third = (edges, ("a", "b")), (edges, ("b", "c")), (edges, ("c", "d"))
    assert "strategy binary (two relations)" in tk.match(hop, next_hop).explain()
    assert "strategy delta (3 relations, acyclic)" in tk.match(hop, next_hop, third).explain()
    assert "strategy hector (cyclic)" in tk.match(hop, next_hop, (edges, ("c", "a"))).explain()
    assert "strategy delta (3 relations, acyclic)" in tk.match(hop, next_hop, without=[(edges, ("a", "c"))]).explain()


def test_explain_shows_pipelines_and_extenders() -> None:
    engine = make_engine()
    edges = graph(engine)
    triangle = tk.match(
        (edges, ("a", "b")),
        (edges, ("b", "c")),
        (edges, ("c", "a")),
        where=[tk.col("a") < tk.col("c")],
        joins="hector",
    )
    assert triangle.explain().splitlines() == [
        "plan",
        "  join of (a, b), (b, c), (c, a) to (a, b, c)  (about 1 rows)",
        "    where a < c",
        "    read edges  (about 1 rows)",
        "    read edges  (about 1 rows)",
        "    read edges  (about 1 rows)",
        "match by strategy hector (asked for)",
        "  changes of edges(a, b), variables in the order a, b, c",
        "    extend to c by the fewest candidates of edges(b, c) by (src) and edges(c, a) by (dst)",
        "    where a < c",
        "  changes of edges(b, c), variables in the order b, c, a",
        "    extend to a by the fewest candidates of edges(a, b) by (dst) and edges(c, a) by (src)",
        "    where a < c",
        "  changes of edges(c, a), variables in the order c, a, b",
        "    where a < c",
        "    extend to b by the fewest candidates of edges(a, b) by (src) and edges(b, c) by (dst)",
        "indexes",
        "  edges by (src, dst): shared, there already",
        "  edges by (dst, src): shared, made for this query",
    ]


@pytest.mark.parametrize("strategy", ["delta", "hector"])
def test_filter_over_an_arrangement_reads_it_as_it_is(strategy: str) -> None:
    engine = make_engine()
    edges, weights = graph(engine), engine.create_table("weights", {"node": tk.Int, "weight": tk.Int, "kind": tk.Int})
    heavy = weights.index_by("node").filter((tk.col("weight") > 5) & (tk.col("kind") == 1))
    found = tk.match((edges, ("a", "b")), (heavy, ("a", None, "k")), (heavy, ("b", "w", tk.lit(1))), joins=strategy)
    view = engine.install("view", found)
    edges.insert([(1, 2), (2, 3), (3, 1)])
    weights.insert([(1, 6, 1), (2, 7, 1), (2, 8, 1), (3, 5, 1), (1, 9, 2)])
    engine.advance()
    assert sorted(view.rows()) == [(1, 2, 1, 7), (1, 2, 1, 8)]
    assert {info.name for info in engine.indexes()} == {"edges", "weights", "view", "edges by (dst)"}
    weights.remove([(1, 6, 1)])
    engine.advance()
    assert view.rows() == []


def test_a_declared_key_is_followed_without_counting() -> None:
    engine = make_engine()
    edges = graph(engine)
    home = engine.create_table("home", {"id": tk.Int, "city": tk.Int}, mode="upsert", primary_key=["id"])
    text = tk.match((edges, ("a", "b")), (home, ("a", "c")), (home, ("b", "c")), joins="hector").explain()
    block = (
        text.split("changes of edges(a, b), variables in the order a, b, c")[1]
        .split("changes of")[0]
        .strip()
        .splitlines()
    )
    assert [line.strip() for line in block] == ["fetch home(a, c) by (id)", "fetch home(b, c) by (id, city)"]


@pytest.mark.parametrize(
    ("build", "error", "text"),
    [
        (lambda e, f: tk.match(), tk.IncorrectError, "at least one clause"),
        (
            lambda e, f: tk.match((e, ("a",))),
            tk.IncorrectError,
            "clause 0 has 1 terms, but edges has 2 columns: src, dst",
        ),
        (lambda e, f: tk.match(e), tk.IncorrectError, "must be a collection and its terms"),
        (lambda e, f: tk.match((e, "ab")), tk.IncorrectError, "a list of terms"),
        (
            lambda e, f: tk.match((e, ("a", "b")), (f, ("b", None))),
            tk.IncorrectError,
            r"variable 'b' is int in clause 0 \(edges.dst\) and string in clause 1 \(people.name\)",
        ),
        (
            lambda e, f: tk.match((e, ("a", tk.lit("x")))),
            tk.IncorrectError,
            "clause 0, column 'dst' is int, but the literal",
        ),
        (lambda e, f: tk.match((e, ("a", tk.col("x")))), tk.IncorrectError, "put conditions into where"),
        (lambda e, f: tk.match((e, ("a", "b")), find=["aa"]), tk.NotFoundError, "no variable 'aa'"),
        (lambda e, f: tk.match((e, ("a", "b")), find=["a", "a"]), tk.IncorrectError, "twice"),
        (lambda e, f: tk.match((e, ("a", "b")), where=[tk.col("z") > 1]), tk.NotFoundError, "no variable 'z'"),
        (lambda e, f: tk.match((e, ("a", "b")), where=[tk.col("a") + 1]), tk.IncorrectError, "where needs a bool"),
        (
            lambda e, f: tk.match((e, ("a", "b")), without=[(e, ("a", "c"))]),
            tk.IncorrectError,
            "variable 'c' of without",
        ),
        (lambda e, f: tk.match((e, ("a", "b")), joins="fast"), tk.IncorrectError, "joins is one of"),
        (lambda e, f: tk.match((e, ("a", "b")), order=[1]), tk.IncorrectError, "order lists every clause"),
    ],
)
def test_mistakes_are_named(build: Any, error: type[tk.TektiteError], text: str) -> None:
    engine = make_engine()
    edges, people = graph(engine), engine.create_table("people", {"name": tk.String, "age": tk.Int})
    with pytest.raises(error, match=text):
        build(edges, people)


def test_explain_names_strategy_order_and_arrangements() -> None:
    engine = make_engine()
    edges = graph(engine)
    hops = tk.match((edges, ("a", "b")), (edges, ("b", "c")), joins="binary")
    text = hops.explain()
    assert "strategy binary" in text
    assert "edges(a, b), edges(b, c)" in text
    assert "edges by (dst): shared, made for this query" in text
    assert len(engine.indexes()) == 1
    engine.install("hops", hops)
    assert "edges by (dst): shared, there already" in hops.explain()
    assert all(info.readers in ((), ("edges by (dst)", "hops"), ("hops",)) for info in engine.indexes())


@each_strategy
def test_a_variable_that_is_said_to_be_a_literal(strategy: str) -> None:
    engine = make_engine()
    edges = graph(engine)
    hops = [(edges, ("a", "b")), (edges, ("b", "c")), (edges, ("a", "c"))]
    one = engine.install("one", tk.match(*hops, where=[tk.col("b") == 2, tk.lit(3) > tk.col("b")], joins=strategy))
    none = engine.install("none", tk.match(*hops, where=[tk.col("b") == 2, tk.col("b") == 3], joins=strategy))
    ends = engine.install("ends", tk.match(*hops, find=["b"], where=tk.lit(2) == tk.col("b"), joins=strategy))
    barred = tk.match(*hops, where=tk.col("b") == 2, without=[(edges, ("b", "a"))], joins=strategy)
    without = engine.install("without", barred)
    edges.insert([(1, 2), (2, 3), (1, 3), (3, 4), (2, 4), (5, 2), (5, 3), (2, 5)])
    engine.advance()
    assert sorted(one.rows()) == [(1, 2, 3), (5, 2, 3)]
    assert none.rows() == []
    assert ends.rows() == [(2,), (2,)]
    assert without.rows() == [(1, 2, 3)]
    edges.remove([(1, 3)])
    engine.advance()
    assert one.rows() == [(5, 2, 3)]


def test_variables_that_are_equal_are_joined_as_one() -> None:
    engine = make_engine()
    edges = engine.create_table("pairs", {"src": tk.Int, "dst": tk.Int})
    clauses = [(edges, ("a", "b")), (edges, ("c", "d")), (edges, ("e", "f"))]
    equal = [tk.col("b") == tk.col("c"), tk.col("d") == tk.col("e"), tk.col("f") == tk.col("a")]
    cycle = tk.match(*clauses, where=equal, find=["a", "c", "e", "f"])
    assert cycle.schema.names == ("a", "c", "e", "f")
    assert "strategy hector (cyclic)" in cycle.explain()
    view = engine.install("cycle", cycle)
    by_name = engine.install("by name", tk.match(*clauses, where=equal, order=["f", "e", "d", "c", "b", "a"]))
    edges.insert([(1, 2), (2, 3), (3, 1), (3, 4)])
    engine.advance()
    assert sorted(view.rows()) == [(1, 2, 3, 1), (2, 3, 1, 2), (3, 1, 2, 3)]
    assert sorted(by_name.rows()) == [(1, 2, 2, 3, 3, 1), (2, 3, 3, 1, 1, 2), (3, 1, 1, 2, 2, 3)]


def test_equal_floats_keep_their_values() -> None:
    engine = make_engine()
    one, other = engine.create_table("one", {"x": tk.Float}), engine.create_table("other", {"y": tk.Float})
    view = engine.install("both", tk.match((one, ("x",)), (other, ("y",)), where=tk.col("x") == tk.col("y")))
    one.insert([(-0.0,)])
    other.insert([(0.0,)])
    engine.advance()
    assert [tuple(map(str, row)) for row in view.rows()] == [("-0.0", "0.0")]


NAMES = ("column 0", "column 1", "place 0", "place 1", "#0", "src of clause 1", "unit")


@each_strategy
@pytest.mark.parametrize("name", NAMES)
def test_variables_may_have_any_name(name: str, strategy: str) -> None:
    """What a plan calls its own columns never meets a variable that is called the same."""
    engine = make_engine()
    edges = graph(engine)
    labelled = engine.create_table("labelled", {"label": tk.Int, "number": tk.Int, "of": tk.Int})
    constant = tk.match(
        (edges, (name, "b")), (labelled, (tk.lit(2), None, name)), (edges, ("b", None)),
        where=tk.col(name) < 9, find=["b", name], joins=strategy,
    )  # fmt: skip
    few = edges.index_by("src").filter(tk.col("src") < 3)
    filtered = tk.match(
        (edges, (name, "b")), (few, (None, name)), (edges, ("b", None)), find=["b", name], joins=strategy
    )
    views = [engine.install("constant", constant), engine.install("filtered", filtered)]
    # Relations change one after the other, so that the changes of each go their own way.
    for table, row in (
        *((labelled, row) for row in ((2, 7, 0), (2, 8, 5), (1, 7, 2))),
        *((edges, row) for row in ((0, 2), (2, 0), (2, 5), (5, 2), (5, 1))),
    ):
        table.insert([row])
        engine.advance()
    assert sorted(views[0].rows()) == [(2, 0), (2, 0), (2, 5), (2, 5)]
    assert sorted(views[1].rows()) == [(0, 2), (2, 0), (2, 0), (2, 5), (2, 5), (5, 2), (5, 2)]
