"""What is public on engines, tables and views is what the reference documents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import tektite as tk

REFERENCE = Path(__file__).parents[2] / "docs" / "reference.md"
CALL_COLUMN = re.compile(r"^\| (.*?) \| .* \|$", re.MULTILINE)
NAME = re.compile(r"`(engine|table|view|c)\.(\w+)")


def documented(*prefixes: str) -> set[str]:
    """The names that the tables of the reference list behind some prefixes, such as `engine.`."""
    calls = "\n".join(CALL_COLUMN.findall(REFERENCE.read_text()))
    return {name for prefix, name in NAME.findall(calls) if prefix in prefixes}


def public(found: object) -> set[str]:
    return {name for name in dir(found) if not name.startswith("_")}


@pytest.fixture
def engine() -> Iterator[tk.Engine]:
    with tk.Engine(autocommit=False) as made:
        made.install("view", made.create_table("table", {"column": tk.Int}))
        yield made


def test_engine(engine: tk.Engine) -> None:
    assert public(engine) == documented("engine")


def test_table(engine: tk.Engine) -> None:
    assert public(engine.table("table")) == documented("table", "c")


def test_view(engine: tk.Engine) -> None:
    assert public(engine.view("view")) == documented("view", "c")
