"""SQL: standing queries from text.

bind/        every name resolved, every type checked, from sqlglot trees to logical plans
estimates    how many rows a plan is likely to have: the tables' sizes as they are, and rules of thumb for what becomes of
             them
explain      a plan as lines of text, with estimates of how many rows each part has
logical      what a query means, as a tree of relational operators over columns with unique names
lower/       from logical plans to collections
parse/       parsing, tokens, places in a text, what is understood
rules/       the rewrites of a logical plan, in the order in which they are made
shell/       `tektite sql`: the shell, its prompt and its output
statements/  sessions, tables, changes, transactions, prepared statements
walking      every node, rewriting bottom up, and the columns that a plan takes from outside

`run` is what `Engine.sql` calls; `plan` gives a query as a collection, to be used in a program.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tektite.engine.core import core_of
from tektite.query.collection import Collection
from tektite.sql.statements.result import Result
from tektite.sql.statements.session import Session

if TYPE_CHECKING:
    from tektite.engine.engine import Engine

__all__ = ["Result", "Session", "plan", "run", "session"]


def session(engine: Engine) -> Session:
    """The SQL session of an engine; there is one, made when it is first asked for."""
    return core_of(engine).extension(Session, lambda: Session(engine))


def run(engine: Engine, text: str, parameters: Mapping[str, Any]) -> Result:
    """Run the statements of a text; the last one's result."""
    return session(engine).run(text, parameters)


def plan(engine: Engine, text: str, **parameters: Any) -> Collection:
    """A query as a collection, for programs that go on with it.

    >>> import tektite as tk
    >>> from tektite import sql
    >>> engine = tk.Engine()
    >>> edges = engine.input("edges", src=tk.Int, dst=tk.Int)
    >>> sql.plan(engine, "SELECT src, count(*) AS n FROM edges GROUP BY src")
    <Collection (src: int, n: int)>
    """
    return session(engine).plan(text, parameters)
