"""Rows that enter a loop in rounds of their own: a row is there from its round on, and in no earlier one."""

from __future__ import annotations

import random

import pytest

import tektite as tk
from tests.support.executors import make_engine

pytestmark = pytest.mark.executors("stages")

LAST = 9
"""The last round that the loops below count."""


def first_rounds(rows: tk.Collection, clock: tk.Collection) -> tk.Collection:
    """For each row the first round in which it is there, by a variable that counts rounds."""
    with tk.Loop("rounds") as loop:
        now = loop.variable("now", initial=clock)
        seen = loop.variable("seen", x=tk.Int, n=tk.Int)
        now.set(now.select(n=tk.least(tk.col("n") + 1, LAST)))
        entered = loop.enter(rows, at="round").select("x")
        seen.set(seen.concat(entered.join(now, how="cross")).min("n", by="x"))
        return loop.leave(seen)


def test_a_row_is_there_from_its_round_on() -> None:
    with make_engine(autocommit=False) as engine:
        rows = engine.create_table("rows", {"x": tk.Int, "round": tk.Int})
        clock = engine.create_table("clock", {"n": tk.Int})
        clock.insert([(0,)])
        view = engine.install("first", first_rounds(rows, clock))
        rng = random.Random(1)
        there: dict[int, int] = {}
        for _ in range(8):
            for x in rng.sample(sorted(there), len(there) // 3):
                rows.remove([(x, there.pop(x))])
            more = {x: rng.randint(0, LAST) for x in rng.sample(range(100), 12) if x not in there}
            there |= more
            rows.insert(list(more.items()))
            engine.advance()
            assert dict(view.rows()) == there


@pytest.mark.executors("spark")
def test_rounds_below_zero_and_null_are_the_first() -> None:
    with make_engine(autocommit=True) as engine:
        rows = engine.values({"x": [1, 2, 3], "round": [-5, None, 2]})
        clock = engine.values({"n": [0]})
        assert sorted(engine.install("first", first_rounds(rows, clock)).rows()) == [(1, 0), (2, 0), (3, 2)]


def test_entries_of_an_inner_loop_begin_anew_in_each_outer_round() -> None:
    with make_engine(autocommit=True) as engine:
        rows = engine.create_table("rows", {"x": tk.Int, "round": tk.Int})
        clock = engine.values({"n": [0]})
        with tk.Loop("outer") as outer:
            kept = outer.variable("kept", initial=rows)
            # each outer round drops the rows that the inner loop saw last
            rounds = first_rounds(kept, clock)
            below = rounds.max("n").select(most="n")
            step = kept.join(below, how="cross").filter(tk.col("round") < tk.greatest(tk.col("most"), 3))
            kept.set(step.select("x", "round"))
            found = outer.leave(kept)
        view = engine.install("kept", found)
        rows.insert([(1, 0), (2, 2), (3, 5), (4, 7)])
        assert sorted(view.rows()) == [(1, 0), (2, 2)]
        rows.remove([(2, 2)])
        rows.insert([(5, 1), (6, 3)])
        assert sorted(view.rows()) == [(1, 0), (5, 1)]


def test_a_row_that_enters_after_the_last_round_fails_the_loop() -> None:
    with make_engine(autocommit=True) as engine:
        rows = engine.create_table("rows", {"x": tk.Int})
        with tk.Loop("short", max_rounds=10) as loop:
            found = loop.leave(loop.enter(rows, at="x").distinct())
        view = engine.install("found", found)
        rows.insert([(10,)])
        assert view.rows() == [(10,)]
        rows.insert([(11,)])
        with pytest.raises(tk.FaultError, match="loop 'short' still changes after 10 rounds"):
            view.rows()


def test_what_cannot_enter_is_refused() -> None:
    with make_engine(autocommit=True) as engine:
        rows = engine.values({"x": [1], "text": ["a"]})
        with tk.Loop("labels") as loop:
            variable = loop.variable("v", initial=rows)
            with pytest.raises(
                tk.IncorrectError, match="loop 'labels': a collection that changes with the loop's own rounds"
            ):
                loop.enter(variable, at="x")
            with pytest.raises(tk.TektiteError, match="text"):
                loop.enter(rows, at="text")
            with pytest.raises(tk.TektiteError, match="nonsense"):
                loop.enter(rows, at="nonsense")


def test_building_a_loop_looks_up_no_advice_about_names(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr("tektite.query.collection.advice", lambda name, *_: asked.append(name) or "")
    with make_engine(autocommit=True) as engine:
        edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
        with tk.Loop("reach") as loop:
            reach = loop.variable("reach", src=tk.Int, dst=tk.Int)
            further = reach.join(edges, left_on="dst", right_on="src").select("src", dst="dst_right")
            reach.set(edges.concat(further).distinct())
            engine.install("reach", loop.leave(reach))
    assert asked == []


def test_a_loop_that_reads_nothing_belongs_to_no_engine() -> None:
    with tk.Loop("empty") as loop:
        nothing = loop.variable("nothing", x=tk.Int)
        nothing.set(nothing)
        empty = loop.leave(nothing)
    for verb in (empty.explain, empty.collect):
        with pytest.raises(tk.IncorrectError, match="reads no table, so it belongs to no engine"):
            verb()
    with make_engine(autocommit=True) as engine:
        assert engine.install("empty", empty).rows() == []
