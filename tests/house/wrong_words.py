"""Words that are options of nothing. mypy reads this file (`files` in pyproject.toml) and fails if it accepts one of them,
because then the comment that tells it to ignore the error is of no use. Nothing here runs.
"""

from __future__ import annotations

import tektite as tk
from tektite.client.session import RemoteSession


def wrong_words(engine: tk.Engine, table: tk.Table) -> None:
    """Each call has one wrong word."""
    tk.Engine(merging="sometimes")  # type: ignore[arg-type]
    engine.create_table("t", {"x": int}, mode="list")  # type: ignore[arg-type]
    engine.create_table("t", {"x": int}, if_exists="ignore")  # type: ignore[arg-type]
    engine.create_view("v", table, if_exists="ignore")  # type: ignore[arg-type]
    engine.datalog("p(1).", joins="fast")  # type: ignore[arg-type]
    engine.query("p(?)", strategy="fast")  # type: ignore[arg-type]
    engine.attribute("a", tk.Int, mode="raw")  # type: ignore[arg-type]
    engine.attribute("a", tk.Int, cardinality="two")  # type: ignore[arg-type]
    table.join(table, on="x", how="outr")  # type: ignore[arg-type]
    tk.match((table, ("x",)), joins="fast")  # type: ignore[arg-type]
    table.follow(None, bad_rows="drop")  # type: ignore[arg-type]
    table.join_asof(table, on="x", strategy="nearest")  # type: ignore[arg-type]
    table.join_asof(table, on="x", how="outer")  # type: ignore[arg-type]
    tk.sum("x").over(order_by="x", exclude="row")  # type: ignore[arg-type]


def wrong_words_over_a_wire(session: RemoteSession) -> None:
    """Each call has one wrong word."""
    session.create_table("t", {"x": int}, mode="list")  # type: ignore[arg-type]
    session.create_table("t", {"x": int}, if_exists="ignore")  # type: ignore[arg-type]
    session.create_view("v", "SELECT 1", if_exists="ignore")  # type: ignore[arg-type]
    session.attribute("a", tk.Int, mode="raw")  # type: ignore[arg-type]
    session.attribute("a", tk.Int, cardinality="two")  # type: ignore[arg-type]
