"""Every wrong call is refused with an error that names what is wrong, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tektite as tk
from tests.support.executors import make_engine

pytestmark = pytest.mark.executors


@pytest.fixture
def engine() -> tk.Engine:
    engine = make_engine()
    edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
    engine.create_table("prices", {"item": tk.String, "price": tk.Decimal(6, 2)}, mode="upsert", primary_key=["item"])
    engine.install("degrees", edges.count(by="src"))
    edges.insert([(1, 2)])
    engine.advance()
    return engine


def contents(engine: tk.Engine) -> tuple[object, ...]:
    inputs = [engine.table(name) for name in ("edges", "prices")]
    rows = [sorted(engine.view(name).rows()) for name in engine.views]
    return (rows, engine.next_epoch, engine.views, [(i.pending, i.next_epoch) for i in inputs], len(engine.indexes()))


Call = Callable[[tk.Engine], object]

CASES: dict[str, tuple[Call, type[tk.TektiteError], str]] = {
    "wrong arity": (lambda e: e.table("edges").insert([(1, 2, 3)]), tk.IncorrectError, "2 columns.*src, dst.*3"),
    "wrong type": (lambda e: e.table("edges").insert([(1, "x")]), tk.IncorrectError, "'dst'.*int"),
    "unknown column in data": (
        lambda e: e.table("edges").insert([{"src": 1, "dts": 2}]),
        tk.TektiteError,
        "dts|dst",
    ),
    "unknown column": (lambda e: e.table("edges").select("sorc"), tk.NotFoundError, "'sorc'.*src, dst"),
    "unknown column in an expression": (
        lambda e: e.table("edges").filter(tk.col("sorc") > 1),
        tk.TektiteError,
        "sorc",
    ),
    "integer that does not fit": (lambda e: e.table("edges").insert([(1, 2**63)]), tk.IncorrectError, "'dst'"),
    "decimal that does not fit": (
        lambda e: e.table("prices").insert([("tea", 123456.78)]),
        tk.IncorrectError,
        "'price'",
    ),
    "NULL in a key": (lambda e: e.table("prices").insert([(None, None)]), tk.IncorrectError, "'item'.*NULL"),
    "time before the frontier": (
        lambda e: e.table("edges").insert([(1, 2)], time=0),
        tk.IncorrectError,
        "'edges'.*time 0 is before the open epoch 1",
    ),
    "times before the frontier": (
        lambda e: e.table("edges").update([(1, 2), (1, 3)], times=[5, 0]),
        tk.IncorrectError,
        "time 0 is before the open epoch 1",
    ),
    "diff that is not an integer": (
        lambda e: e.table("edges").update([(1, 2)], diffs=[0.5]),
        tk.IncorrectError,
        "diffs must be integers",
    ),
    "diffs of another length": (
        lambda e: e.table("edges").update([(1, 2)], diffs=[1, 1]),
        tk.IncorrectError,
        "1 rows, but diffs",
    ),
    "diffs for an upsert input": (
        lambda e: e.table("prices").update([("tea", 1)], diffs=[1]),
        tk.IncorrectError,
        "upsert",
    ),
    "two views of one name": (
        lambda e: e.install("degrees", e.table("edges")),
        tk.ConflictError,
        "'degrees'",
    ),
    "a view named like an input": (lambda e: e.install("edges", e.table("edges")), tk.ConflictError, "'edges'"),
    "unknown view": (lambda e: e.view("degree"), tk.NotFoundError, "'degree'.*'degrees'"),
    "unknown semantics": (lambda e: e.create_table("x", {"a": tk.Int}, mode="list"), tk.IncorrectError, "'list'"),
    "upsert without a key": (lambda e: e.create_table("x", {"a": tk.Int}, mode="upsert"), tk.IncorrectError, "key"),
    "input without columns": (lambda e: e.create_table("x", {}), tk.IncorrectError, "needs columns"),
    "join of other types": (
        lambda e: e.table("edges").join(e.table("prices"), left_on="src", right_on="item"),
        tk.IncorrectError,
        "'src' is int and 'item' is string",
    ),
    "sum of text": (
        lambda e: e.table("prices").group_by("price").agg(x=tk.sum("item")),
        tk.IncorrectError,
        "item.*string",
    ),
    "filter that is no bool": (lambda e: e.table("edges").filter(tk.col("src") + 1), tk.IncorrectError, "bool"),
    "concat of other types": (
        lambda e: e.table("edges").concat(e.table("prices")),
        tk.IncorrectError,
        "same column types",
    ),
    "a snapshot of the past": (lambda e: e.view("degrees").snapshot(at=7), tk.IncorrectError, "not at 7"),
    "an epoch that is no integer": (lambda e: e.advance(2.5), tk.IncorrectError, "2.5"),
    "a huge diff": (lambda e: e.table("edges").update([(1, 2)], diffs=[2**62]), tk.IncorrectError, "diff is at most"),
    "going back": (lambda e: e.advance(0), tk.IncorrectError, "cannot advance to 0"),
}


@pytest.mark.executors(stages=["NULL in a key"], spark=["NULL in a key"])
@pytest.mark.parametrize("case", CASES)
def test_is_refused_and_changes_nothing(engine: tk.Engine, case: str) -> None:
    call, error, message = CASES[case]
    before = contents(engine)
    with pytest.raises(error, match=message):
        call(engine)
    assert contents(engine) == before


def test_removing_a_row_that_is_not_there_is_refused_when_the_epoch_closes(engine: tk.Engine) -> None:
    edges = engine.table("edges")
    edges.remove([(9, 9)])
    edges.insert([(3, 4)])
    before = contents(engine)
    with pytest.raises(tk.IncorrectError, match=r"'edges': at time 1 row \(9, 9\)"):
        engine.advance()
    assert contents(engine) == before
    edges.insert([(9, 9)])
    engine.advance()
    assert sorted(engine.view("degrees").rows()) == [(1, 1), (3, 1)]


@pytest.mark.executors("stages")
def test_one_bad_input_keeps_all_epochs_open(engine: tk.Engine) -> None:
    other = engine.create_table("other", {"x": tk.Int})
    view = engine.install("others", other)
    other.insert([(1,)])
    engine.table("edges").remove([(9, 9)])
    with pytest.raises(tk.IncorrectError):
        engine.advance()
    assert view.rows() == [] and other.pending == 1
    engine.table("edges").rollback()
    engine.advance()
    assert view.rows() == [(1,)]


def test_a_closed_input_takes_nothing_more(engine: tk.Engine) -> None:
    edges = engine.table("edges")
    edges.finish()
    for call in (edges.finish, edges.advance, lambda: edges.insert([(1, 2)])):
        with pytest.raises(tk.ConflictError, match="'edges' is closed"):
            call()
    assert engine.view("degrees").rows() == [(1, 1)]


def test_a_dropped_view_says_so(engine: tk.Engine) -> None:
    view = engine.view("degrees")
    view.drop()
    for call in (view.snapshot, view.drop, view.subscribe):
        with pytest.raises(tk.ConflictError, match="'degrees' was dropped"):
            call()


def test_a_view_that_others_read_is_not_dropped(engine: tk.Engine) -> None:
    degrees = engine.view("degrees")
    engine.install("most", degrees.max("count"))
    with pytest.raises(tk.ConflictError, match="'degrees'.*'most'"):
        degrees.drop()
    engine.view("most").drop()
    degrees.drop()


def test_a_loop_variable_that_is_never_set_is_named(engine: tk.Engine) -> None:
    with tk.Loop("grow") as loop:
        loop.variable("x", src=tk.Int, dst=tk.Int)
        y = loop.variable("y", initial=engine.table("edges"))
        y.set(y)
        result = loop.leave(y)
    before = contents(engine)
    with pytest.raises(tk.IncorrectError, match="'grow'.*'x' was never set"):
        engine.install("grown", result)
    assert contents(engine) == before


def test_a_variable_cannot_begin_with_what_its_own_loop_makes(engine: tk.Engine) -> None:
    with tk.Loop("own") as loop:
        first = loop.variable("first", initial=engine.table("edges"))
        with pytest.raises(tk.IncorrectError, match="'own'.*'second' begins with"):
            loop.variable("second", initial=first.distinct())


def test_a_loop_variable_is_set_once(engine: tk.Engine) -> None:
    with tk.Loop("twice") as loop:
        x = loop.variable("x", initial=engine.table("edges"))
        x.set(x)
        with pytest.raises(tk.ConflictError, match="'x' is set already"):
            x.set(x)


@pytest.mark.executors("stages")
def test_a_loop_that_does_not_converge_fails_alone(engine: tk.Engine) -> None:
    edges = engine.table("edges")
    growing = edges.iterate(lambda x: x.with_columns(dst=tk.col("dst") + 1).concat(x).distinct(), max_rounds=50)
    view = engine.install("growing", growing)
    with pytest.raises(tk.FaultError, match="'growing'.*'iterate' still changes after 50 rounds.*max_rounds="):
        view.snapshot()
    edges.insert([(1, 3)])
    engine.advance()
    assert engine.view("degrees").rows() == [(1, 2)]


@pytest.mark.executors("stages")
def test_a_function_that_raises_fails_its_view_alone(engine: tk.Engine) -> None:
    edges = engine.table("edges")

    def explode(table: object) -> object:
        raise RuntimeError("boom")

    mapped = engine.install("mapped", edges.map_batches(explode, x=tk.Int))
    reader = engine.install("reader", mapped.count())
    with pytest.raises(tk.FaultError, match="'mapped'.*explode.*boom"):
        mapped.snapshot()
    with pytest.raises(tk.FaultError, match="'reader'.*'mapped', which it reads.*boom"):
        reader.snapshot()
    edges.insert([(1, 3)])
    engine.advance()
    assert engine.view("degrees").rows() == [(1, 2)]
    reader.drop()
    mapped.drop()


def test_overflow_of_a_sum_fails_its_view_alone(engine: tk.Engine) -> None:
    numbers = engine.create_table("numbers", {"x": tk.Int})
    total = engine.install("total", numbers.group_by().agg(total=tk.sum("x")))
    numbers.insert(np.array([2**62, 2**62, 2**62]))
    engine.advance()
    with pytest.raises(tk.TektiteError, match="64 bits"):
        total.snapshot()
    assert engine.view("degrees").rows() == [(1, 1)]


def test_times_that_are_no_epochs_are_refused() -> None:
    with make_engine() as engine:
        table = engine.create_table("t", {"x": tk.Int})
        view = engine.install("v", table)
        for wrong in (2**63, -1, "a", True):
            with pytest.raises(tk.IncorrectError, match="a time"):
                table.insert([(1,)], time=wrong)  # type: ignore[arg-type]
            with pytest.raises(tk.IncorrectError, match="a time"):
                engine.advance(wrong)  # type: ignore[arg-type]
            with pytest.raises(tk.IncorrectError, match="a time"):
                engine.hold(table, at=wrong)  # type: ignore[arg-type]
        with pytest.raises(tk.IncorrectError, match="a time lies between"):
            table.update([(1,)], times=[2**62 + 1])
        engine.advance()
        with pytest.raises(tk.IncorrectError, match="view 'v': a time is an integer, not 'a'"):
            view.rows(at="a")  # type: ignore[arg-type]
        with pytest.raises(tk.IncorrectError, match="a table or a view, not 'zz'"):
            engine.hold("zz")  # type: ignore[arg-type]
        assert engine.next_epoch == 1 and table.pending == 0


def test_closed_engine_takes_nothing_more() -> None:
    engine = make_engine()
    table = engine.create_table("t", {"x": tk.Int})
    engine.close()
    engine.close()
    for refused in (
        lambda: table.insert([(1,)]),
        engine.advance,
        lambda: engine.install("v", table),
        lambda: engine.create_table("u", {"x": tk.Int}),
        lambda: engine.query("t(?)"),
    ):
        with pytest.raises(tk.ConflictError, match="closed"):
            refused()


def test_a_snapshot_of_a_negative_multiplicity_names_the_row() -> None:
    with make_engine() as engine:
        table = engine.create_table("t", {"x": tk.Int, "s": tk.String})
        view = engine.install("v", table.negate())
        table.insert([(1, "a")])
        engine.advance()
        with pytest.raises(
            tk.IncorrectError, match=r"view 'v': row \(1, 'a'\) has multiplicity -1; .*multiplicities\(\)"
        ):
            view.rows()
        assert view.multiplicities() == {(1, "a"): -1}


def test_zeros_of_both_signs_are_one_key_of_the_multiplicities() -> None:
    with make_engine() as engine:
        table = engine.create_table("t", {"x": tk.Float})
        view = engine.install("v", table)
        table.insert([(0.0,), (-0.0,), (1.5,)])
        engine.advance()
        assert view.multiplicities() == {(0.0,): 2, (1.5,): 1}
