"""Former names work as docs/compatibility.md promises: with a warning, and with what they meant."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
        with pytest.warns(DeprecationWarning, match=r"input is a former name: use engine\.create_table"):
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


def test_former_names_of_options_and_methods_work_and_warn() -> None:
    with tk.Engine(workers=1) as engine:
        table = engine.create_table("t", COLUMNS)
        view = engine.install("v", table)
        table.insert([(1, 2)])
        calls: dict[str, Callable[[], Any]] = {
            "shards": lambda: tk.Engine(shards=2).close(),  # type: ignore[call-arg]
            "strategy": lambda: tk.match((table, ("a", "b")), strategy="binary"),  # type: ignore[call-arg]
            "limit": lambda: table.iterate(lambda x: x, limit=3),  # type: ignore[call-arg]
            "rounds": lambda: engine.datalog("p(x) :- t(x, _).", rounds=7),  # type: ignore[call-arg]
            "key": lambda: engine.install("w", table, key="v").lookup(2),  # type: ignore[call-arg]
            "semantics": lambda: engine.attribute("a", tk.Int, semantics="raw").mode,  # type: ignore[call-arg]
            "keep": lambda: engine.keep(table, "v").drop(),
            "arrangements": lambda: [info.name for info in engine.arrangements()],
            "arrange": lambda: table.arrange("v"),
            "epoch": lambda: (engine.epoch, table.epoch),
            "low": lambda: (view.low, engine.progress[-1].low),
            "high": lambda: engine.progress[-1].high,
            "since": lambda: [info.since for info in engine.indexes(view)],
            "upper": lambda: [info.upper for info in engine.indexes(view)],
            "changes": lambda: [tuple(change) for change in view.changes()],
        }
        found = {}
        for name, call in calls.items():
            with pytest.warns(DeprecationWarning, match=f"{name}=? is a former name"):
                found[name] = call()
        assert found["key"] == [(1, 2)] and found["semantics"] == "bag" and found["epoch"] == (1, 1)
        assert found["low"] == (1, 0) and found["changes"] == [((1, 2), 0, 1)] and "t" in found["arrangements"]
        assert (found["high"], found["since"], found["upper"]) == (1, [0], [1])
        with pytest.raises(tk.IncorrectError, match="strategy= is the former name of joins=: give one of them"):
            tk.match((table, ("a", "b")), strategy="binary", joins="delta")  # type: ignore[call-arg]


def test_former_names_are_not_listed() -> None:
    with tk.Engine() as engine:
        table = engine.create_table("t", COLUMNS)
        view = engine.install("v", table.count())
        table.insert([(1, 2)])
        listed = {*dir(engine), *dir(table), *dir(view), *dir(engine.progress[-1]), *dir(engine.indexes()[0])}
    assert {"create_table", "create_index", "subscribe", "persist", "first", "time"} <= listed
    former = {"input", "keep", "arrange", "epoch", "visible", "low", "high", "since", "upper", "changes", "on_change"}
    assert not (former | {"publish", "top"}) & listed
