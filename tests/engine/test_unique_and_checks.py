"""UNIQUE and CHECK hold whoever writes: programs, statements, transactions, loads; and they come back with the storage."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import tektite as tk
from tests.support.executors import make_engine

pytestmark = pytest.mark.executors("stages")

Row = tuple[int, int | None, str | None]
COLUMNS = {"id": tk.Int, "a": tk.Int, "s": tk.String}


def allowed(rows: list[Row]) -> bool:
    """What the table below allows, by looking at all rows."""
    pairs = [(a, s) for _, a, s in rows if a is not None and s is not None]
    texts = [s for _, _, s in rows if s is not None]
    ids = [number for number, _, _ in rows]
    return (
        len(set(pairs)) == len(pairs)
        and len(set(texts)) == len(texts)
        and len(set(ids)) == len(ids)
        and all(a is None or a < 4 for _, a, _ in rows)
    )


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_random_changes_are_taken_exactly_if_all_rows_keep_the_constraints(seed: int, workers: int) -> None:
    rng = random.Random(seed)
    with make_engine(workers=workers, autocommit=True) as engine:
        table = engine.create_table(
            "t", COLUMNS, primary_key="id", unique=["s", ("a", "s")], checks={"small": tk.col("a") < 4}
        )
        view = engine.install("v", table.select("s", "id"))
        held: list[Row] = []
        taken = refused = 0
        for _ in range(40):
            new = [
                (rng.randrange(30), rng.choice((None, 1, 2, 3, 5) if rng.random() < 0.3 else (1, 2, 3)),
                 rng.choice((None, *"abcdefgh")))
                for _ in range(rng.randint(0, 3))
            ]  # fmt: skip
            old = rng.sample(held, min(len(held), rng.randint(0, 2)))
            after = [row for row in held if row not in old] + new
            try:
                with engine.transaction():
                    table.remove(old)
                    table.insert(new)
            except (tk.ConflictError, tk.IncorrectError):
                assert not allowed(after), f"{old} -> {new} in {held}"
                refused += 1
            else:
                assert allowed(after), f"{old} -> {new} in {held}"
                held = after
                taken += 1
            assert sorted(table.rows(), key=repr) == sorted(held, key=repr)
            assert sorted(view.rows(), key=repr) == sorted(((s, number) for number, _, s in held), key=repr)
        assert taken and refused


def test_what_breaks_a_constraint_is_named_with_its_values() -> None:
    with make_engine(autocommit=True) as engine:
        table = engine.create_table("t", COLUMNS, unique="s", checks=tk.col("a") + 1 > 0)
        with pytest.raises(
            tk.ConflictError, match=r"'t': a row with a = -1 breaks CHECK \(a \+ 1 > 0\) \(constraint 't_check1'\)"
        ):
            table.insert([(1, 1, "x"), (2, -1, "y")])
        with pytest.raises(
            tk.ConflictError,
            match=r"two rows with s = 'x' at time 0, which UNIQUE \(s\) forbids \(constraint 't_s_key'\)",
        ):
            table.insert([(1, 1, "x"), (2, 1, "x")])
        with pytest.raises(tk.ConflictError, match="overflow of int"):
            table.insert([(1, 2**63 - 1, "x")])
        assert table.rows() == []
        table.insert([(1, None, None), (2, None, None)])


@pytest.mark.parametrize("mode", ["set", "upsert", "append"])
def test_other_modes_keep_constraints(mode: str) -> None:
    with make_engine(autocommit=True) as engine:
        key = {"primary_key": "id"} if mode == "upsert" else {}
        table = engine.create_table("t", COLUMNS, mode=mode, unique="s", **key)
        table.insert([(1, 1, "x"), (2, 1, "y")])
        with pytest.raises(tk.ConflictError, match="UNIQUE"):
            table.insert([(3, 1, "x")])
        if mode == "upsert":
            table.insert([(1, 1, "y"), (2, 1, "x")])  # both change at once
            assert sorted(table.rows()) == [(1, 1, "y"), (2, 1, "x")]


def test_a_stream_takes_checks_and_no_unique_key() -> None:
    with make_engine(autocommit=True) as engine:
        with pytest.raises(tk.IncorrectError, match="is a stream: it keeps no rows that UNIQUE could compare with"):
            engine.create_table("t", COLUMNS, mode="stream", unique="s")
        table = engine.create_table("t", COLUMNS, mode="stream", checks=tk.col("a") > 0)
        with pytest.raises(tk.ConflictError, match="breaks CHECK"):
            table.insert([(1, 0, "x")])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unique": "zz"}, "unique= names 'zz'"),
        ({"unique": [("a", "a")]}, "each once"),
        ({"checks": tk.col("a") + 1}, "takes conditions, and a \\+ 1 is int"),
        ({"checks": tk.col("zz") > 1}, "names 'zz'"),
        ({"checks": "a > 1"}, "takes conditions such as"),
    ],
)
def test_what_is_no_constraint_is_refused(options: dict[str, object], message: str) -> None:
    with make_engine(autocommit=True) as engine, pytest.raises(tk.IncorrectError, match=message):
        engine.create_table("t", COLUMNS, **options)  # type: ignore[arg-type]


@pytest.mark.executors("spark")
def test_a_table_with_unique_columns_can_be_dropped_unless_a_view_reads_it() -> None:
    with make_engine(autocommit=True) as engine:
        table = engine.create_table("t", COLUMNS, unique="s")
        table.insert([(1, 1, "x")])
        view = engine.install("v", table.select("s"))
        with pytest.raises(tk.ConflictError, match="'v'"):
            engine.drop("t")
        with pytest.raises(tk.ConflictError, match="UNIQUE"):
            table.insert([(2, 1, "x")])
        view.drop()
        engine.drop("t")
        assert not [name for name in engine.indexes() if "t" in name.name]


def test_constraints_come_back_with_the_storage(tmp_path: Path) -> None:
    options = {"unique": ["s"], "checks": {"small": (tk.col("a") < 4) & (tk.col("s") != "no")}}
    with make_engine(storage=tmp_path, autocommit=True) as engine:
        engine.create_table("t", COLUMNS, **options).insert([(1, 1, "x")])  # type: ignore[arg-type]
    with make_engine(storage=tmp_path, autocommit=True) as engine:
        table = engine.table("t")
        for row in ((2, 1, "x"), (2, 4, "y"), (2, 1, "no")):
            with pytest.raises(tk.ConflictError, match="Nothing was written"):
                table.insert([row])
        table.insert([(2, 3, "y")])
    with make_engine(storage=tmp_path, autocommit=True) as engine:
        with pytest.raises(tk.ConflictError, match="is stored .* as .*CHECK .*UNIQUE"):
            engine.create_table("t", COLUMNS)
        assert sorted(engine.create_table("t", COLUMNS, **options).rows()) == [(1, 1, "x"), (2, 3, "y")]  # type: ignore[arg-type]
