"""SQL: standing queries from text.

`run` is what `Engine.sql` calls; `plan` gives a query as a collection, to be used in a program.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tektite.collection import Collection
from tektite.sql.result import Result
from tektite.sql.session import Session

if TYPE_CHECKING:
    from tektite.engine import Engine

__all__ = ["Result", "Session", "plan", "run", "session"]


def session(engine: Engine) -> Session:
    """The SQL session of an engine; there is one, made when it is first asked for."""
    found = getattr(engine, "_sql", None)
    if found is None:
        found = Session(engine)
        engine._sql = found  # type: ignore[attr-defined]
    assert isinstance(found, Session)
    return found


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
