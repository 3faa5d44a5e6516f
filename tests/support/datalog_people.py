"""Four people as facts of attributes, for tests of EDN queries."""

from __future__ import annotations

import tektite as tk
from tests.support.executors import make_engine

PEOPLE = """
[1 :name "ann"] [2 :name "bob"] [3 :name "cid"] [4 :name "dee"]
[1 :knows 2] [2 :knows 1] [2 :knows 3] [3 :knows 4]
[1 :age 30] [2 :age 30] [3 :age 41] [4 :age 9]
[1 :city "oslo"] [2 :city "oslo"] [3 :city "bern"]
[4 :bot?]
"""


def declared() -> tk.Engine:
    """An engine with the attributes of people, and without facts."""
    engine = make_engine()
    engine.attribute("name", tk.String, cardinality="one")
    engine.attribute("knows", tk.Int, cardinality="many")
    engine.attribute("age", tk.Int, cardinality="one")
    engine.attribute("city", tk.String, cardinality="one")
    engine.attribute("bot?")
    return engine
