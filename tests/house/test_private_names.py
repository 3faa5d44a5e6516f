"""Languages, loads, executors, servers and clients use documented interfaces: the cores of engines, inputs and views, and
`query.builders`. No package reads a private name of another one.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "tektite"


def modules(*packages: str) -> list[Path]:
    return sorted(path for package in packages for path in (PACKAGE / package).rglob("*.py"))


def defined_and_read(source: str) -> tuple[set[str], set[str]]:
    """The private names that a module defines (its functions, methods and fields, those of classes included), and the names
    that it reads of objects other than `self`, but for those that it defines.
    """
    defined, read = set[str](), set[str]()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            if isinstance(node.ctx, ast.Store):
                defined.add(node.attr)
            if not (isinstance(node.value, ast.Name) and node.value.id == "self"):
                read.add(node.attr)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            defined.add(node.name)
        elif isinstance(node, ast.ClassDef):
            assigned = [field for field in node.body if isinstance(field, ast.Assign | ast.AnnAssign)]
            targets = [target for field in assigned for target in getattr(field, "targets", None) or [field.target]]  # type: ignore[union-attr]
            defined |= {target.id for target in targets if isinstance(target, ast.Name)}
    defined = {name for name in defined if name.startswith("_") and not name.endswith("__")}
    return defined, read - defined


PACKAGES = sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists())


@cache
def names(package: str) -> tuple[set[str], dict[str, set[str]]]:
    """The private names that the modules of a package define, and the names that each of them reads."""
    found = {str(path.relative_to(PACKAGE)): defined_and_read(path.read_text()) for path in modules(package)}
    return set().union(*(defined for defined, _ in found.values())), {path: read for path, (_, read) in found.items()}


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


def private() -> set[str]:
    """The private names of what an engine and its collections are made of."""
    return names("engine")[0] | names("query")[0]


def test_no_module_reads_a_private_name_of_the_engine_or_of_packages_that_alone_have_it() -> None:
    everything = set().union(*(names(package)[0] for package in PACKAGES))
    for package in PACKAGES:
        own, files = names(package)
        others = everything - own | (private() if package in ABOVE else set())
        assert files and not {path: found for path, used in files.items() if (found := used & others - FOREIGN)}


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
    assert defined_and_read(source)[1] & {"_core", "_kind"} == found
