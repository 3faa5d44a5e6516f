"""There is one algebra: SQL's own tree lives from binding to lowering, and decorrelation is all that rewrites it."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "tektite"
TREE = "tektite.sql.logical"
REWRITES = {"with_inputs", "with_expressions"}


def imports(path: Path) -> set[str]:
    """The modules that a file imports from, wherever it does."""
    text = path.read_text()
    tree = ast.parse(text if TREE.rpartition(".")[2] in text else "")
    found = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    return found | {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}


def rewrites(path: Path) -> set[str]:
    """The methods that make another tree of one which a file calls."""
    text = path.read_text()
    tree = ast.parse(text if any(name in text for name in REWRITES) else "")
    called = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return {call.attr for call in called if isinstance(call, ast.Attribute)} & REWRITES


def test_only_sql_knows_its_tree() -> None:
    known = {path.relative_to(PACKAGE).parts[0] for path in PACKAGE.rglob("*.py") if TREE in imports(path)}
    assert known == {"sql"}


def test_only_decorrelation_rewrites_it() -> None:
    found = {str(path.relative_to(PACKAGE)) for path in (PACKAGE / "sql").rglob("*.py") if rewrites(path)}
    assert found == {"sql/rules/decorrelate.py", "sql/rules/domains.py"}


def test_decorrelation_is_the_only_rule_of_sql() -> None:
    assert {path.stem for path in (PACKAGE / "sql" / "rules").glob("*.py")} == {"__init__", "decorrelate", "domains"}
