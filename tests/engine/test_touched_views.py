"""Of many views that filter one table, an epoch works on those alone whose rows it changes."""

from __future__ import annotations

import tektite as tk
from tektite.engine.core import core_of


def test_an_epoch_works_on_the_views_that_it_touches() -> None:
    engine = tk.Engine(autocommit=False)
    table = engine.create_table("t", {"k": tk.Int, "v": tk.Int})
    for c in range(200):
        engine.install(f"v{c}", table.filter((tk.col("k") == c) & (tk.col("v") > 0)))
    for c in range(200):
        engine.sql(f"CREATE MATERIALIZED VIEW r{c} AS SELECT v FROM t WHERE k BETWEEN {10 * c} AND {10 * c + 5}")
    engine.advance()
    journal = core_of(engine).coordinator.journal
    journal.sweeps.clear()
    table.insert([(7, 1), (11, 0), (1000, 1)])
    engine.advance()
    assert sorted({sweep.name for sweep in journal.sweeps}) == ["r1", "r100", "v11", "v7"]
    assert engine.view("v11").rows() == []
    assert engine.view("v7").rows() == [(7, 1)]
    assert engine.view("r100").rows() == [(1,)]
