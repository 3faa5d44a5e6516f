"""SQL: standing queries from text.

access/      who may do what: roles, grants, owners, policies on rows
bind/        resolves names and checks types: from sqlglot trees to logical plans
catalog/     schemas, settings, and the system catalogs pg_catalog and information_schema
logical      the logical plan: a tree of relational operators over uniquely named columns
lower/       turns logical plans into collections
parse/       parses texts; tokens, places for errors, supported syntax
rules/       removes correlation from a logical plan
shell/       `tektite sql`: the shell, its prompt and its output
statements/  sessions, tables, changes, transactions, prepared statements
walking      walks logical plans; finds the outer columns that a plan reads

`run` is what `Engine.sql` calls; `plan` gives a query as a collection, to be used in a program.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tektite.engine.core import core_of
from tektite.query.collection import Collection
from tektite.sql.statements.result import Result
from tektite.sql.statements.runner import StatementRunner

if TYPE_CHECKING:
    from tektite.engine.engine import Engine

__all__ = ["Result", "StatementRunner", "plan", "run", "runner"]


def runner(engine: Engine) -> StatementRunner:
    """The StatementRunner of an engine. Each engine has one, made at its first use."""
    core = core_of(engine)
    found = core.extensions.get(StatementRunner)
    return core.extension(StatementRunner, lambda: StatementRunner(engine)) if found is None else found


def run(engine: Engine, text: str, parameters: Mapping[str, Any]) -> Result:
    """Run the statements of a text; the last one's result."""
    return runner(engine).run(text, parameters)


def plan(
    engine: Engine,
    text: str,
    parameters: Mapping[str, Any] | None = None,
    given: Mapping[str, Collection] | None = None,
) -> Collection:
    """A query as a collection, which a program can use further. It may read the collections that are given by name.

    >>> import tektite as tk
    >>> from tektite import sql
    >>> engine = tk.Engine()
    >>> edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
    >>> sql.plan(engine, "SELECT src, count(*) AS n FROM edges GROUP BY src")
    <Collection (src: int, n: int)>
    """
    return runner(engine).plan(text, parameters or {}, given)
