"""Views over texts that come and go, and engines that collect after every commit."""

from __future__ import annotations

from collections import Counter
from typing import Any

import tektite as tk
from tektite.engine.core import core_of

VIEWS = {
    "joined": "SELECT a.k, a.s, b.t FROM a JOIN b ON a.s = b.s",
    "grouped": "SELECT s, count(*) AS n, min(t) AS least, max(t) AS most FROM b GROUP BY s",
    "made": "SELECT k, upper(s) || '-' || k::text AS u FROM a WHERE s <> 'never'",
    "remade": "SELECT left(u, 3) AS p, max(u) AS u, string_agg(u, ',' ORDER BY u) AS us FROM made GROUP BY left(u, 3)",
    "constant": "SELECT k, CASE WHEN k > 3 THEN 'large' || '!' ELSE 'small' END AS size FROM a",
    "listed": "SELECT k FROM a WHERE s IN ('0.0', '1.0', '2.5') OR s LIKE '%9'",
    "casted": "SELECT k, t::int AS n FROM b",
    "windowed": "SELECT s, t, lag(t, 1, 'none') OVER (PARTITION BY s ORDER BY t, k) AS before FROM b",
}
RULES = """
.type Pair = [left: symbol, right: symbol]
.decl pair(p: Pair)
pair([x, y]) :- a(_, x), b(_, x, y).
.decl chain(x: symbol, y: symbol)
chain(x, y) :- b(_, x, y).
chain(x, z) :- chain(x, y), b(_, y, z).
.decl firsts(x: symbol)
firsts(cat(x, "!")) :- pair([x, _]).
"""


def texts(engine: tk.Engine) -> int:
    """The texts in an engine's dictionary."""
    return core_of(engine).dictionary.texts


def eager(engine: tk.Engine) -> tk.Engine:
    """An engine that collects texts after every commit."""
    core_of(engine).texts.be_eager()
    return engine


def collected(engine: tk.Engine) -> int:
    """The texts that are left when nothing more can be merged or collected."""
    while engine.idle():
        pass
    return texts(engine)


def declare(engine: tk.Engine) -> tuple[tk.Table, tk.Table]:
    """Two inputs, and views of them in SQL and Datalog."""
    a = engine.create_table("a", {"k": tk.Int, "s": tk.String})
    b = engine.create_table("b", {"k": tk.Int, "s": tk.String, "t": tk.String})
    for name, query in VIEWS.items():
        engine.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    engine.datalog(RULES)
    return a, b


def answers(engine: tk.Engine) -> dict[str, Any]:
    """What every view says: its rows, or the error that stands in their way."""
    found: dict[str, Any] = {}
    for name in [*VIEWS, "pair", "chain", "firsts"]:
        try:
            found[name] = Counter(engine.view(name).rows())
        except tk.TektiteError as error:
            found[name] = str(error)
    return found


def answers_anew(rows_a: list[tuple[int, str]], rows_b: list[tuple[int, str, str]]) -> dict[str, Any]:
    """What every view says in an engine that never saw anything else."""
    with tk.Engine(autocommit=False) as engine:
        a, b = declare(engine)
        a.insert(rows_a)
        b.insert(rows_b)
        engine.advance()
        return answers(engine)
