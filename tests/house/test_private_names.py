"""Languages, loads, executors, servers and clients use documented interfaces: the cores of engines, inputs and views, and
`query.builders`. No package reads a private name of another one.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "tektite"


def modules(*packages: str) -> list[Path]:
    return sorted(path for package in packages for path in (PACKAGE / package).rglob("*.py"))


def defined(source: str) -> set[str]:
    """The private names that a module defines: its functions, methods and fields, those of classes included."""
    nodes = list(ast.walk(ast.parse(source)))
    names = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    names |= {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
    fields = [statement for node in nodes if isinstance(node, ast.ClassDef) for statement in node.body]
    targets = [
        target
        for statement in fields
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for target in (statement.targets if isinstance(statement, ast.Assign) else [statement.target])
    ]
    names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return {name for name in names if name.startswith("_") and not name.endswith("__")}


def read(source: str) -> set[str]:
    """The names that a module reads of objects other than `self`, but for those that it defines."""
    return {
        node.attr
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute) and not (isinstance(node.value, ast.Name) and node.value.id == "self")
    } - defined(source)


PACKAGES = sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists())
DEFINED = {package: {name for path in modules(package) for name in defined(path.read_text())} for package in PACKAGES}
PRIVATE = DEFINED["engine"] | DEFINED["query"]
FOREIGN = {
    "_replace",
    "_fields",
    "_is_owned",
    "_recursion_count",
    "_release_save",
    "_acquire_restore",
    "_exit",
    "_meta",
}
"""Names of Python's own library and of sqlglot."""


ABOVE = ("sql", "datalog", "spark", "graph", "server", "client", "wire")
"""The packages that use an engine."""


@pytest.mark.parametrize("path", modules(*ABOVE), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_module_reads_no_private_name_of_the_engine(path: Path) -> None:
    assert not read(path.read_text()) & PRIVATE - FOREIGN


@pytest.mark.parametrize("package", PACKAGES)
def test_package_reads_no_private_name_that_only_others_have(package: str) -> None:
    others = set().union(*DEFINED.values()) - DEFINED[package] - FOREIGN
    found = {str(path.relative_to(PACKAGE)): read(path.read_text()) & others for path in modules(package)}
    assert not {path: names for path, names in found.items() if names}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def f(engine):\n    return engine._core", {"_core"}),
        ("self.view.engine._core.inputs", {"_core"}),
        ("self._core", set()),
        ("relation._kind", {"_kind"}),
        ("class A:\n    _kind = 1\ndef f(a):\n    return a._kind", set()),
        ("class A:\n    def __init__(self):\n        self._core = 1\ndef f(a):\n    return a._core", set()),
    ],
)
def test_private_names_are_found(source: str, found: set[str]) -> None:
    assert read(source) & PRIVATE == found
