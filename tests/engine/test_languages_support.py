"""What languages need of the engine: rows that never change, views of one dataflow, arrangements that are kept, inputs that
begin with rows.
"""

from __future__ import annotations

import numpy as np
import pytest

import tektite as tk
from tektite.engine.core import core_of
from tektite.plan import algebra as plan
from tektite.query.collection import Collection
from tektite.values.schema import Schema
from tests.support.executors import make_engine

pytestmark = pytest.mark.executors


def fixed(engine: tk.Engine, rows: list[tuple[int, int]]) -> Collection:
    schema = Schema(a=tk.Int, b=tk.Int)
    words = np.ascontiguousarray(schema.encode(rows, core_of(engine).dictionary))
    return Collection(engine, plan.Rows(schema, words))


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_fixed_rows_are_there_at_once_and_stay(workers: int) -> None:
    with make_engine(workers) as engine:
        rows = [(i, i % 3) for i in range(10)]
        view = engine.install("fixed", fixed(engine, rows))
        assert sorted(view.rows()) == rows
        numbers = engine.create_table("numbers", {"b": tk.Int, "name": tk.String})
        joined = engine.install("joined", fixed(engine, rows).join(numbers, on="b"))
        numbers.insert([(1, "one"), (2, "two")])
        engine.advance()
        assert sorted(joined.rows()) == [(i, i % 3, ("", "one", "two")[i % 3]) for i in range(10) if i % 3]
        numbers.remove([(1, "one")])
        engine.advance()
        assert len(joined.rows()) == 3
        late = engine.install("late", fixed(engine, rows).join(numbers, on="b"))
        assert sorted(late.rows()) == sorted(joined.rows())


@pytest.mark.executors("stages", "spark")
def test_fixed_rows_go_with_their_last_reader() -> None:
    engine = make_engine()
    views = [
        engine.install(name, fixed(engine, [(1, 2)]).join(fixed(engine, [(2, 3)]), left_on="b", right_on="a"))
        for name in "ab"
    ]
    assert len(engine.indexes()) == 4
    for view in views:
        view.drop()
    assert engine.indexes() == []


def test_no_rows_are_rows_too() -> None:
    engine = make_engine()
    assert engine.install("none", fixed(engine, [])).rows() == []


def test_views_of_one_dataflow_come_and_go_one_by_one() -> None:
    engine = make_engine()
    edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
    hops = edges.join(edges, left_on="dst", right_on="src").select("src", dst="dst_right")
    found = core_of(engine).install_together({"hops": hops, "degrees": hops.count(by="src")}, {"hops": "dst"})
    assert core_of(found[0]).flow is core_of(found[1]).flow
    edges.insert([(1, 2), (2, 3), (2, 4)])
    engine.advance()
    assert sorted(found[0].rows()) == [(1, 3), (1, 4)]
    assert found[1].rows() == [(1, 2)]
    found[0].drop()
    edges.insert([(4, 5)])
    engine.advance()
    assert sorted(found[1].rows()) == [(1, 2), (2, 1)]
    found[1].drop()
    assert [a.name for a in engine.indexes()] == ["edges"]


def test_views_of_one_dataflow_are_installed_together_or_not_at_all() -> None:
    engine = make_engine()
    edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
    with pytest.raises(tk.ConflictError, match="named 'edges'"):
        core_of(engine).install_together({"all": edges, "edges": edges})
    assert engine.views == ()


def test_arrangement_is_kept_until_it_is_released() -> None:
    engine = make_engine()
    edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
    assert core_of(engine).is_arranged(edges, "src")
    assert not core_of(engine).is_arranged(edges, "dst")
    kept = edges.create_index("dst")
    assert core_of(engine).is_arranged(edges, "dst")
    edges.insert([(1, 2)])
    engine.advance()
    (reverse,) = [a for a in engine.indexes() if a.columns == ("dst", "src")]
    assert reverse.rows == 1
    kept.drop()
    assert not core_of(engine).is_arranged(edges, "dst")


def test_input_that_begins_with_rows_has_them_before_an_epoch_closes() -> None:
    engine = make_engine()
    other = engine.create_table("other", {"x": tk.Int})
    other.insert([(1,)])
    engine.advance()
    late = engine.create_table("late", {"x": tk.Int}, mode="set")
    core_of(late).begin_with([(1,), (2,)])
    view = engine.install("both", late.join(other, on="x"))
    assert view.rows() == [(1,)]
    late.remove([(1,)])
    engine.advance()
    assert view.rows() == []
    with pytest.raises(tk.ConflictError, match="has begun already"):
        core_of(late).begin_with([(3,)])


def test_before_the_first_epoch_the_rows_an_input_begins_with_wait_for_it() -> None:
    engine = make_engine()
    first = engine.create_table("first", {"x": tk.Int})
    core_of(first).begin_with([(1,)])
    view = engine.install("all", first)
    assert view.rows() == []
    engine.advance()
    assert view.rows() == [(1,)]


@pytest.mark.executors("stages")
def test_loops_that_are_shared_run_once_for_all_that_leave_them() -> None:
    engine = make_engine()
    edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int}, mode="set")
    with tk.Loop("parity", shared=True) as loop:
        even = loop.variable("even", node=tk.Int)
        odd = loop.variable("odd", node=tk.Int)
        even.set(
            odd.join(edges, left_on="node", right_on="src")
            .select(node="dst")
            .concat(edges.select(node="src"))
            .distinct()
        )
        odd.set(even.join(edges, left_on="node", right_on="src").select(node="dst").distinct())
        left = [loop.leave(even, "even").index_by("node"), loop.leave(odd, "odd").index_by("node")]
    views = [engine.install("even", left[0]), engine.install("odd", left[1])]
    owners = {
        id(entry.flow) for entry in core_of(engine).catalog.entries if entry.name in ("even by (node)", "odd by (node)")
    }
    assert len(owners) == 1
    edges.insert([(1, 2), (2, 3)])
    engine.advance()
    assert (sorted(views[0].rows()), sorted(views[1].rows())) == ([(1,), (2,), (3,)], [(2,), (3,)])
    views[0].drop()
    assert sorted(views[1].rows()) == [(2,), (3,)]
    views[1].drop()
    assert [a.name for a in engine.indexes()] == ["edges"]
