"""Queries with arguments: one dataflow answers whoever asks, for as long as they ask, in Python as in SQL and Datalog."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import networkx as nx
import pytest

import tektite as tk
from tektite import graph
from tests.support.executors import examples, make_engine

pytestmark = pytest.mark.executors

Bag = dict[tuple[Any, ...], int]
NODE, PAIR = {"node": tk.Int}, {"src": tk.Int, "dst": tk.Int}


def one_hop(twin: Any, asked: set[Any]) -> Bag:
    return dict(Counter((u, v) for (u,) in asked if u in twin for v in twin[u]))


def two_hops(twin: Any, asked: set[Any]) -> Bag:
    return dict(Counter((u, w) for (u,) in asked if u in twin for v in twin[u] for w in twin[v]))


def within(most: int) -> Callable[[Any, set[Any]], Bag]:
    def oracle(twin: Any, asked: set[Any]) -> Bag:
        found = {}
        for u, v in asked:
            if u == v:
                found[u, v, 0] = 1
            elif u in twin and v in twin and nx.has_path(twin, u, v):
                length = nx.shortest_path_length(twin, u, v)
                if length <= most:
                    found[u, v, length] = 1
        return found

    return oracle


QUERIES: dict[str, tuple[dict[str, Any], Callable[..., tk.Collection], Callable[[Any, set[Any]], Bag]]] = {
    "look-up": (NODE, lambda g, asked: graph.look_up(g.edges.select("src", "dst"), asked, "src"), one_hop),
    "1-hop": (NODE, lambda g, asked: graph.walks(g, asked, 1), one_hop),
    "2-hop": (NODE, lambda g, asked: graph.walks(g, asked, 2), two_hops),
    "4-path": (PAIR, lambda g, asked: graph.short_paths(g, asked), within(4)),
    "6-path": (PAIR, lambda g, asked: graph.short_paths(g, asked, 6), within(6)),
    "3-path": (PAIR, lambda g, asked: graph.short_paths(g, asked, 3), within(3)),
    "1-path": (PAIR, lambda g, asked: graph.short_paths(g, asked, 1), within(1)),
}


@pytest.mark.executors(stages=["2-hop", "4-path"], spark=["1-hop"])
@pytest.mark.parametrize("name", QUERIES)
def test_answers_follow_arguments_and_edges(name: str) -> None:
    columns, build, oracle = QUERIES[name]
    for seed in range(examples(6)):
        rng = random.Random(seed)
        directed = name == "look-up" or seed % 2 == 0
        with make_engine(workers=seed % 3 + 1, autocommit=True) as engine:
            web = graph.Graph.create(engine, "web", directed=directed, weight=tk.Int if seed == 1 else None)
            query = graph.ArgumentQuery(engine, "query", columns, lambda asked, web=web: build(web, asked))
            twin = nx.DiGraph() if directed else nx.Graph()
            asked: Counter[tuple[int, ...]] = Counter()
            for _ in range(5):
                with engine.transaction():
                    for _ in range(rng.randint(2, 6)):
                        u, v = rng.sample(range(8), 2)
                        if twin.has_edge(u, v):
                            twin.remove_edge(u, v)
                            web.remove_edges([(u, v)])
                        else:
                            twin.add_edge(u, v)
                            web.add_edges([(u, v, 1) if web.weighted else (u, v)])
                    gone = rng.choice(sorted(asked)) if asked and rng.random() < 0.5 else None
                    if gone is not None:
                        asked[gone] -= 1
                        query.remove([gone])
                    fresh = tuple(rng.randrange(8) for _ in columns)
                    asked[fresh] += 1
                    query.insert([fresh])
                    asked = +asked
                assert query.view.multiplicities() == oracle(twin, set(asked))
                for row in asked:
                    assert Counter(query.answer(*row)) == oracle(twin, {row})
                assert Counter(query.once(*fresh)) == oracle(twin, {fresh})
            query.drop()
            assert engine.views == () and engine.tables == ("web",)


def test_an_argument_stands_until_the_last_client_removes_it() -> None:
    with make_engine(autocommit=True) as engine:
        web = graph.Graph.create(engine, "web")
        web.add_edges([(1, 2)])
        query = graph.ArgumentQuery(engine, "hops", NODE, lambda asked: graph.walks(web, asked, 1))
        with query.asked(1) as first:
            with query.asked(1) as second:
                assert first() == second() == [(1, 2)]
            assert first() == [(1, 2)]
        assert query.view.rows() == []
        with pytest.raises(tk.TektiteError):
            query.remove([(1,)])


@pytest.mark.executors("stages")
def test_three_languages_ask_one_dataflow_each_over_the_same_indexes() -> None:
    with make_engine(2, autocommit=True) as engine:
        web = graph.Graph.create(engine, "web")
        web.add_edges([(n, (n * 7 + k) % 20) for n in range(20) for k in (1, 3) if n != (n * 7 + k) % 20])
        query = graph.ArgumentQuery(engine, "hops", NODE, lambda asked: graph.walks(web, asked, 2))
        engine.sql("PREPARE hops AS SELECT b.dst FROM web a JOIN web b ON a.dst = b.src WHERE a.src = $1")
        engine.datalog("hop(x, z) :- web(x, y), web(y, z).")
        goal = engine.query("hop($x, ?)", x=0)
        engine.sql("EXECUTE hops(0)")
        query.insert([(0,)])
        installed = engine.views, len(engine.indexes())
        for node in range(1, 20):
            by_sql = [row[0] for row in engine.sql(f"EXECUTE hops({node})")]
            goal.insert(x=node)
            query.insert([(node,)])
            by_python = [row[1] for row in query.answer(node)]
            assert sorted(by_sql) == sorted(by_python)
            assert {z for x, z in goal.rows() if x == node} == set(by_python)
        assert (engine.views, len(engine.indexes())) == installed
        readers = next(found.readers for found in engine.indexes() if found.name == "web")
        assert {"hops", "__prepared_hops"} <= set(readers)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda e, g: graph.ArgumentQuery(e, "q", {}, lambda a: a), r"q: a query with arguments has at least one"),
        (lambda e, g: graph.ArgumentQuery(e, "q", NODE, lambda a: 3), r"q: the query returned 3, not a collection"),
        (
            lambda e, g: graph.ArgumentQuery(e, "q", {"node": tk.String}, lambda a: g.edges),
            r"q: the answer must begin with its arguments .*string.*, but its columns are .*src",
        ),
        (lambda e, g: graph.ArgumentQuery(e, "q", NODE, lambda a: graph.short_paths(g, a)), r"pairs of int, not"),
        (lambda e, g: graph.ArgumentQuery(e, "q", PAIR, lambda a: graph.short_paths(g, a, 0)), r"from 1 on, not 0"),
        (lambda e, g: graph.ArgumentQuery(e, "q", NODE, lambda a: graph.walks(g, a, 0)), r"from 1 on, not 0"),
        (
            lambda e, g: graph.ArgumentQuery(e, "q", NODE, lambda a: graph.look_up(g.edges, a, ["src", "dst"])),
            r"2 columns",
        ),
    ],
)
def test_wrong_queries_leave_nothing(ask: Callable[..., Any], message: str) -> None:
    with make_engine(autocommit=True) as engine:
        web = graph.Graph.create(engine, "web")
        with pytest.raises(tk.IncorrectError, match=message):
            ask(engine, web)
        assert (engine.tables, engine.views) == (("web",), ())
