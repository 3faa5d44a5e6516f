"""Languages, loads and executors use documented interfaces: the cores of engines, inputs and views, and `query.builders`."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "tektite"


def modules(*packages: str) -> list[Path]:
    return sorted(path for package in packages for path in (PACKAGE / package).rglob("*.py"))


def defined(source: str) -> set[str]:
    """The private names that a module defines: its functions, methods and fields."""
    nodes = list(ast.walk(ast.parse(source)))
    names = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    names |= {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
    return {name for name in names if name.startswith("_") and not name.endswith("__")}


def read(source: str) -> set[str]:
    """The names that a module reads of objects other than `self`, but for those that it defines."""
    return {
        node.attr
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute) and not (isinstance(node.value, ast.Name) and node.value.id == "self")
    } - defined(source)


PRIVATE = {name for path in modules("engine", "query") for name in defined(path.read_text())}


@pytest.mark.parametrize(
    "path", modules("sql", "datalog", "spark", "graph"), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_module_reads_no_private_name_of_the_engine(path: Path) -> None:
    assert not read(path.read_text()) & PRIVATE


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def f(engine):\n    return engine._core", {"_core"}),
        ("self.view.engine._core.inputs", {"_core"}),
        ("self._core", set()),
        ("class A:\n    def __init__(self):\n        self._core = 1\ndef f(a):\n    return a._core", set()),
    ],
)
def test_private_names_are_found(source: str, found: set[str]) -> None:
    assert read(source) & PRIVATE == found
