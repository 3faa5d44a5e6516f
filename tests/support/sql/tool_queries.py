"""The queries that tools of PostgreSQL send to find out what there is, with the answers that they get here.

`tests/sql/tool_queries/*.json` hold them: each with the tool, what it was asked, the text, and the rows. An oid of a relation
stands in them as {public.t}. `like_postgres` says whether PostgreSQL 15 gives the same rows for the same tables.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tektite as tk
from tektite import sql
from tektite.sql.catalog.contents import CatalogContents

FOLDER = Path(__file__).parents[2] / "sql" / "tool_queries"
TABLES = """
CREATE TABLE t (a BIGINT PRIMARY KEY, b TEXT NOT NULL DEFAULT 'x', c DOUBLE);
CREATE TABLE u (x BIGINT, y DATE);
CREATE INDEX u_x ON u (x);
CREATE VIEW v AS SELECT a, b FROM t;
CREATE MATERIALIZED VIEW mv AS SELECT b, count(*) AS n FROM t GROUP BY b;
CREATE SCHEMA s;
CREATE TABLE s.w (i BIGINT);
"""


@dataclass(frozen=True)
class ToolQuery:
    """One query of a tool. `rows` is None where the answer lists everything that there is."""

    tool: str
    asked: str
    text: str
    rows: list[list[Any]] | None
    like_postgres: bool


def tool_queries() -> list[ToolQuery]:
    """Every query that is recorded."""
    return [ToolQuery(**each) for path in sorted(FOLDER.glob("*.json")) for each in json.loads(path.read_text("utf-8"))]


def prepared_engine(engine: tk.Engine) -> dict[str, int]:
    """Make the tables that the queries were recorded with; the oids of relations by name."""
    engine.sql(TABLES)
    runner = sql.runner(engine)
    runner.settings.user = runner.settings.login = "tek"
    runner.settings.database = "postgres"
    return {f"{r.schema}.{r.name}": r.oid for r in CatalogContents(runner, runner.settings).relations}


def answer(engine: tk.Engine, query: ToolQuery, oids: dict[str, int]) -> list[list[Any]]:
    """The rows of a query, in no order, with names for oids."""
    names = {oid: f"{{{name}}}" for name, oid in oids.items()}
    text = re.sub(r"\{(\w+\.\w+)\}", lambda found: str(oids[found[1]]), query.text)
    rows = [[names.get(v, v) if type(v) is int else v for v in row] for row in engine.sql(text).rows()]
    return sorted(rows, key=repr)
