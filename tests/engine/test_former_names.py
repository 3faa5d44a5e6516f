"""Former names work as docs/compatibility.md promises: with a warning, and with what they meant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import tektite as tk
from tektite.engine.core import core_of

COLUMNS = {"k": tk.Int, "v": tk.Int}

DECLARED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a bag": ({}, {}),
    "a bag with a key": ({"key": "k"}, {"order_by": "k"}),
    "a unique key": ({"key": ["k"], "unique": True, "checked": False}, {"primary_key": "k", "checked": False}),
    "a set": ({"semantics": "set", "required": ["v"]}, {"mode": "set", "required": "v"}),
    "an upsert": (
        {"semantics": "upsert", "key": ["k", "v"], "shard": "k"},
        {"mode": "upsert", "primary_key": ["k", "v"], "shard_by": "k"},
    ),
    "a stream": ({"stream": True}, {"mode": "stream"}),
    "append-only": ({"append": True}, {"mode": "append"}),
}


@pytest.mark.parametrize("case", DECLARED)
def test_input_declares_what_create_table_does(case: str) -> None:
    former, options = DECLARED[case]
    with tk.Engine() as engine, tk.Engine() as other:
        with pytest.warns(DeprecationWarning, match=r"called engine\.create_table"):
            found = engine.input("t", **COLUMNS, **former)
        with pytest.warns(DeprecationWarning):
            again = engine.input("u", COLUMNS, **former)
        expected = core_of(other.create_table("t", COLUMNS, **options)).describe()
        assert core_of(found).describe() == core_of(again).describe() == expected


REFUSED: dict[str, tuple[Mapping[str, Any], str]] = {
    "a column named like an option": (
        {"checked": tk.Bool},
        "a column has the name of an option; pass columns in a dict",
    ),
    "no columns": ({}, "needs columns"),
    "two modes": ({"x": tk.Int, "append": True, "semantics": "set"}, "is one of append, set, not several"),
    "an unknown mode": ({"x": tk.Int, "semantics": "list"}, "semantics is one of bag, set, upsert, not 'list'"),
    "unique without a key": ({"x": tk.Int, "unique": True}, "unique is said of a key"),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("case", REFUSED)
def test_former_options_that_make_no_sense_are_refused(case: str) -> None:
    options, message = REFUSED[case]
    with tk.Engine() as engine, pytest.raises(tk.IncorrectError, match=message):
        engine.input("t", **options)
