"""-2**63 is the word of NULL: every door to an int column refuses it by name, and none makes a NULL of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import tektite as tk
from tests.support.executors import make_engine

pytestmark = pytest.mark.executors

LEAST = -(2**63)
ARROW = pa.table({"x": pa.array([LEAST], pa.int64())})
SAID = "reserved for NULL|does not fit|do not fit|overflow|out of range|does not say such a value|DEFAULT takes|word of NULL"

Door = Callable[[tk.Engine, Path], Any]


def datalog(text: str, **given: Any) -> Door:
    return lambda engine, _: engine.datalog(text, **given)["o"].rows()


def sql(text: str, **given: Any) -> Door:
    return lambda engine, _: engine.sql(text, **given).rows()


def from_csv(engine: tk.Engine, folder: Path) -> None:
    (folder / "x.csv").write_text(f"x\n{LEAST}\n")
    engine.sql(f"COPY t FROM '{folder}/x.csv' (FORMAT csv, HEADER)")


def from_parquet(engine: tk.Engine, folder: Path) -> None:
    parquet.write_table(ARROW, folder / "x.parquet")
    engine.sql(f"COPY t FROM '{folder}/x.parquet'")


DOORS: dict[str, Door] = {
    "rows": lambda engine, _: engine.table("t").insert([(LEAST,)]),
    "rows that are removed": lambda engine, _: engine.table("t").remove([(LEAST,)]),
    "Arrow": lambda engine, _: engine.table("t").insert(ARROW),
    "NumPy": lambda engine, _: engine.table("t").insert({"x": np.array([LEAST])}),
    "pandas": lambda engine, _: engine.table("t").insert(pd.DataFrame({"x": [LEAST]})),
    "a table of a frame": lambda engine, _: engine.create_table("frame", ARROW),
    "a list": lambda engine, _: engine.table("lists").insert([([LEAST],)]),
    "a literal": lambda engine, _: tk.lit(LEAST),
    "COPY of CSV": from_csv,
    "COPY of Parquet": from_parquet,
    "INSERT": sql(f"INSERT INTO t VALUES ({LEAST})"),
    "INSERT of a parameter": sql("INSERT INTO t VALUES ($x)", x=LEAST),
    "INSERT that is prepared": sql(f"PREPARE i AS INSERT INTO t VALUES ($1); EXECUTE i({LEAST})"),
    "UPDATE": sql("UPDATE t SET x = x - 1"),
    "DEFAULT": sql(f"CREATE TABLE d (x BIGINT DEFAULT {LEAST})"),
    "a cast of a decimal": sql(f"SELECT ({LEAST})::bigint"),
    "a cast of a text": sql(f"SELECT '{LEAST}'::bigint"),
    "a cast of a float": sql("SELECT (-9223372036854775808.0::double)::bigint"),
    "a cast of JSON": sql(f"SELECT ('[{LEAST}]'::json->>0)::bigint"),
    "a difference": sql("SELECT x - 1 FROM t"),
    "a product": sql("SELECT (x + 1) // 2 * 2 - 2 FROM t"),
    "a complement": sql("SELECT ~ (0 - x) FROM t"),
    "a shift": sql("SELECT 1::bigint << 63"),
    "bits": sql("SELECT x & -2 FROM t"),
    "a sum": sql("SELECT sum(y) FROM (SELECT x AS y FROM t UNION ALL SELECT -1) q"),
    "a sum over a window": sql("SELECT sum(y) OVER () FROM (SELECT x AS y FROM t UNION ALL SELECT -1) q"),
    "an expression in Python": lambda engine, _: engine.install(
        "v", engine.table("t").select(y=tk.col("x") - 1)
    ).rows(),
    "a fact of Datalog": datalog(f"o({LEAST})."),
    "arithmetic of Datalog": datalog("o(x - 1) :- t(x)."),
    "bits of Datalog": datalog("o(bnot 9223372036854775807)."),
    "a power of Datalog": datalog("o((-2) ^ 63)."),
    "a text of Datalog": datalog(f'o(to_number("{LEAST}")).'),
    "a float of Datalog": datalog("o(to_number(-9223372036854775808.0))."),
    "a sum of Datalog": datalog(".decl h(x: number)  h(-1).  h(x) :- t(x).  o(s) :- s = sum x : { h(x) }."),
    "a functor": datalog(".functor f(x: number): number  o(@f(1)).", functors={"f": lambda x: LEAST}),
    "an argument of a goal": lambda engine, _: engine.query("t($x)", x=LEAST).rows(),
    "an argument of an EDN query": lambda engine, _: engine.query("[:find ?x :in ?x]", x=LEAST).rows(),
}


@pytest.mark.executors(stages=["a sum", "arithmetic of Datalog"], spark=["a difference"])
@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS.keys())
def test_every_door_refuses_it_and_the_table_stays(door: Door, tmp_path: Path) -> None:
    with make_engine(autocommit=True) as engine:
        engine.create_table("t", {"x": tk.Int})
        engine.sql("CREATE TABLE lists (l BIGINT[])")
        engine.table("t").insert([(LEAST + 1,)])
        with pytest.raises(tk.TektiteError, match=SAID):
            door(engine, tmp_path)
            engine.advance()
        assert engine.sql("SELECT x FROM t").rows() == [(LEAST + 1,)]
        assert engine.sql("SELECT l FROM lists").rows() == []


def test_a_decimal_holds_it() -> None:
    with make_engine(autocommit=True) as engine:
        engine.sql("CREATE TABLE d (x DECIMAL(19, 0))")
        engine.sql(f"INSERT INTO d VALUES ({LEAST}), (NULL)")
        assert sorted(engine.sql("SELECT x IS NULL, x::varchar FROM d").rows(), key=str) == [
            (False, str(LEAST)),
            (True, None),
        ]


def test_try_cast_gives_null_as_of_every_number_that_does_not_fit() -> None:
    with make_engine(autocommit=True) as engine:
        assert engine.sql(f"SELECT TRY_CAST('{LEAST}' AS BIGINT), TRY_CAST({LEAST} AS BIGINT)").rows() == [(None, None)]
