"""A join that a program asks for again is the same plan while somebody has it, and nobody keeps it for that."""

from __future__ import annotations

import gc
import weakref

import pytest

import tektite as tk
from tests.support.executors import make_engine

pytestmark = pytest.mark.executors("stages")


def tables(engine: tk.Engine) -> tuple[tk.Table, tk.Table]:
    return (
        engine.create_table("a", {"k": tk.Int, "v": tk.Int}),
        engine.create_table("b", {"k": tk.Int, "v": tk.Int, "w": tk.Int}),
    )


def test_the_same_call_gives_the_same_plan() -> None:
    a, b = tables(make_engine())
    first = a.join(b, on="k")
    assert a.join(b, on="k").operator is first.operator
    assert a.join(b, "k", "inner", suffix="_right").operator is first.operator


@pytest.mark.executors("spark")
def test_another_call_gives_another_plan() -> None:
    engine = make_engine()
    a, b = tables(engine)
    found = [
        a.join(b, on="k"),
        b.join(a, on="k"),
        a.join(b, on="v"),
        a.join(b, on="k", how="left"),
        a.join(b, on="k", how="anti"),
        a.join(b, left_on="k", right_on="w"),
        a.join(b, left_on="v", right_on="k"),
        a.join(b, on="k", suffix="_b"),
        a.join(b, how="cross"),
        a.join(b.filter(tk.col("w") == 1), on="k"),
    ]
    assert len({made.operator for made in found}) == len(found)
    a.insert([(1, 2), (2, 3)])
    b.insert([(1, 2, 1), (3, 3, 3)])
    engine.advance()
    rows = [sorted(engine.install(f"view {n}", made).rows(), key=repr) for n, made in enumerate(found)]
    assert rows[0] == [(1, 2, 2, 1)]
    assert rows[1] == [(1, 2, 1, 2)]
    assert rows[2] == [(1, 2, 1, 1), (2, 3, 3, 3)]
    assert rows[3] == [(1, 2, 2, 1), (2, 3, None, None)]
    assert rows[4] == [(2, 3)]
    assert rows[5] == [(1, 2, 1, 2)]
    assert rows[6] == [(2, 3, 3, 3)]
    assert rows[7] == rows[0] and found[7].schema.names == ("k", "v", "v_b", "w")
    assert len(rows[8]) == 4
    assert rows[9] == [(1, 2, 2, 1)]


def test_a_wrong_call_is_refused_each_time() -> None:
    a, b = tables(make_engine())
    a.join(b, on="k")
    for _ in range(2):
        with pytest.raises(tk.TektiteError, match="no column 'x'"):
            a.join(b, on="x")
        with pytest.raises(tk.IncorrectError, match="how is one of"):
            a.join(b, on="k", how="k")  # type: ignore[arg-type]


def test_tables_of_two_engines_are_refused_however_often_they_are_joined() -> None:
    a, _ = tables(make_engine())
    _, b = tables(make_engine())
    for _ in range(2):
        with pytest.raises(tk.IncorrectError, match="two engines"):
            a.join(b, on="k")


def test_a_plan_goes_when_nobody_has_it() -> None:
    a, b = tables(make_engine())
    gone = weakref.ref(a.join(b, on="k").operator)
    gc.collect()
    assert gone() is None
    assert a.join(b, on="k").schema.names == ("k", "v", "v_right", "w")
