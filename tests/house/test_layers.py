"""Each layer knows only those below it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "tektite"

# From bottom to top. A name is a package or a module of tektite; it may import the names in rows before its own. What is inside
# a package belongs to the package's row, unless it has a row of its own.
LAYERS = (
    ("errors",),
    ("blocks",),
    ("unknown_names",),
    ("unknown_options", "refused_operators", "former_names"),
    ("values.types",),
    ("values.words",),
    ("trace.times",),
    ("kernels",),
    ("values",),
    ("client_protocol",),
    ("wire",),
    ("expr",),
    ("trace",),
    ("storage",),
    ("dataflow",),
    ("runtime",),
    ("plan",),
    ("query",),
    ("engine",),
    ("sql.parse",),
    ("sql",),
    ("datalog.syntax",),
    ("datalog.rules",),
    ("datalog.evaluate",),
    ("datalog",),
    ("pipeline",),
    ("spark",),
    ("client",),
    ("connecting",),
    ("server",),
    ("other_names",),
    ("__init__",),
    ("graph",),
    ("__main__",),
)

# Layers that know even less than what lies below them.
ONLY = {
    "errors": set(),
    "blocks": {"errors"},
    "trace.times": set(),
    "kernels": {"values.words"},
    "graph": {"__init__"},  # the public interface: it shows what any program can do
}

# Executors know operators by what every node says of itself, and none of them by name.
EXECUTORS = ("runtime", "spark/sweep")
CONTRACT = {"away", "failures", "flow", "graph", "interrupts", "journal", "node"}

# What users hold has methods for SQL, Datalog, Spark and the server, which lie above it: these files may import them inside
# functions and for type checking, so that nothing is loaded before it is used. docs/decisions.md says why.
FACADES = {
    "engine/languages.py", "engine/engine.py", "engine/readable_collection.py", "engine/serving.py", "engine/session.py",
    "engine/table.py", "engine/view.py",
}  # fmt: skip
LANGUAGES = {"sql", "datalog", "datalog.evaluate", "spark", "server"}

RANK = {name: rank for rank, row in enumerate(LAYERS) for name in row}


def layer_of(parts: tuple[str, ...]) -> str:
    """The name in the table that a module belongs to: the longest one that it begins with, or its first part."""
    names = [".".join(parts[:length]) for length in range(len(parts), 0, -1)]
    return next((name for name in names if name in RANK), parts[0])


def imported_layers(tree: ast.AST, path: Path) -> set[str]:
    """The names in the table that a source text imports, wherever in the file and for whatever purpose."""
    package = ("tektite", *path.relative_to(PACKAGE).parent.parts)
    modules: set[tuple[str, ...]] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {tuple(alias.name.split(".")) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            base += tuple(node.module.split(".")) if node.module else ()
            modules |= {(*base, alias.name) for alias in node.names}
    ours = {module[1:] for module in modules if module[0] == "tektite"}
    return {layer_of(module) if module and is_module(module[0]) else "__init__" for module in ours}


class Eager(ast.NodeTransformer):
    """A module without what does not run when it is imported: the bodies of functions, and `if TYPE_CHECKING:`."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        return None

    def visit_If(self, node: ast.If) -> ast.If | None:
        return None if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING" else node


def is_module(name: str) -> bool:
    return name in RANK or (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").exists()


def faults(source: str, path: Path) -> list[str]:
    """What a source text imports against the table, as sentences."""
    here = layer_of(path.relative_to(PACKAGE).with_suffix("").parts)
    found = []
    tree = ast.parse(source)
    imported = imported_layers(tree, path)
    if str(path.relative_to(PACKAGE)) in FACADES:
        imported -= LANGUAGES - imported_layers(Eager().visit(tree), path)
    for name in sorted({here} | imported):
        if name not in RANK:
            found.append(f"tektite/{name} is in no layer: add it to LAYERS in tests/house/test_layers.py")
        elif name == here or here not in RANK:
            continue
        elif RANK[name] > RANK[here]:
            found.append(f"{path.name} ({here}) imports {name}, which lies above it")
        elif here in ONLY and name not in ONLY[here]:
            found.append(f"{path.name} ({here}) imports {name}, but may import only {sorted(ONLY[here]) or 'itself'}")
    return found


@pytest.mark.parametrize(
    "name", sorted(path.name for path in PACKAGE.iterdir() if path.suffix == ".py" or is_module(path.name))
)
def test_modules_import_only_layers_below_them(name: str) -> None:
    paths = sorted((PACKAGE / name).rglob("*.py")) if (PACKAGE / name).is_dir() else [PACKAGE / name]
    assert not [fault for path in paths for fault in faults(path.read_text(), path)]


@pytest.mark.parametrize(
    ("file", "source", "fault"),
    [
        ("kernels/merge.py", "from tektite.engine import Engine", "which lies above it"),
        ("kernels/merge.py", "def f():\n    from .. import engine", "which lies above it"),
        ("kernels/merge.py", "from tektite.values import types", "may import only ['values.words']"),
        ("trace/times.py", "import tektite.values.words", "may import only itself"),
        ("trace/spine.py", "from ..dataflow import graph", "which lies above it"),
        ("trace/spine.py", "from tektite import Engine", "imports __init__, which lies above it"),
        ("novelty.py", "", "add it to LAYERS"),
        ("engine/engine.py", "from tektite.sql import Result", "imports sql, which lies above it"),
        ("engine/engine.py", "if x:\n    from tektite.spark import load", "imports spark, which lies above it"),
        ("engine/engine.py", "def f():\n    from tektite.__main__ import app", "imports __main__, which lies above it"),
        ("graph/paths.py", "from tektite.engine.core import core_of", "may import only ['__init__']"),
        ("graph/paths.py", "def f():\n    import tektite.query.loops", "may import only ['__init__']"),
        ("engine/view.py", "def f():\n    from tektite.graph import Graph", "imports graph, which lies above it"),
        ("engine/engine_core.py", "def f():\n    from tektite.sql import Result", "imports sql, which lies above it"),
    ],
)
def test_fault_is_found(file: str, source: str, fault: str) -> None:
    (found,) = faults(source, PACKAGE / file)
    assert fault in found


@pytest.mark.parametrize(
    ("file", "source"),
    [
        (
            "kernels/merge.py",
            "import numpy\nfrom tektite.kernels.layout.rows import count\nfrom tektite.values.words import NULL",
        ),
        ("trace/spine.py", "from tektite.trace import times\nfrom . import batch\nfrom ..kernels import merge"),
        (
            "engine/engine.py",
            "from tektite.engine.view import View\nfrom tektite.runtime.coordinator import Coordinator",
        ),
        ("__init__.py", "from .engine import Engine"),
        ("graph/paths.py", "import tektite as tk\nfrom tektite.graph.graph import Graph"),
        ("engine/view.py", "def f():\n    from tektite.spark.view_frames import to_spark"),
        ("engine/view.py", "if TYPE_CHECKING:\n    from tektite.spark.view_frames import to_spark"),
        ("engine/view.py", "class View:\n    def f(self):\n        from tektite.spark.view_frames import to_spark"),
    ],
)
def test_lawful_import_is_left_alone(file: str, source: str) -> None:
    assert not faults(source, PACKAGE / file)


def test_executors_know_no_operator_by_name() -> None:
    known = {
        (path.name, name)
        for folder in EXECUTORS
        for path in (PACKAGE / folder).glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tektite.dataflow")
        for name in [(node.module or "").removeprefix("tektite.dataflow").lstrip(".")]
    }
    assert known
    assert not [found for found in known if found[1] not in CONTRACT]
