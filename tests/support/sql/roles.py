"""Users and tables for tests of rights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import tektite as tk

SETUP = """
CREATE TABLE docs (id int PRIMARY KEY, owner varchar, body varchar);
CREATE TABLE shares (doc int, who varchar);
INSERT INTO docs VALUES (1, 'ann', 'a1'), (2, 'bob', 'b1'), (3, 'ann', 'a2');
CREATE ROLE staff; CREATE USER ann; CREATE USER bob; CREATE USER cid;
"""


def users(engine: tk.Engine, *names: str) -> list[Callable[..., Any]]:
    """For each of some users, a function that runs a statement as that user."""
    found = []
    for name in names:
        session = engine.session()
        session.sql(f"SET ROLE {name}")
        found.append(session.sql)
    return found


def accumulated(subscription: Any, held: Counter[Any]) -> Counter[Any]:
    for change in subscription.changes():
        held[change.row] += change.diff
    return Counter({row: count for row, count in held.items() if count})
