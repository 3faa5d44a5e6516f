"""What the tests of SQL that fails begin with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import tektite as tk
from tests.support.executors import make_engine


@pytest.fixture
def engine() -> Iterator[tk.Engine]:
    """An engine with a small table of people."""
    with make_engine() as made:
        made.sql("CREATE TABLE people (id INTEGER PRIMARY KEY, name VARCHAR, pay BIGINT)")
        made.sql("INSERT INTO people VALUES (1, 'Ada', 900), (2, 'Bob', 500)")
        yield made
