"""A program loads what it uses: `import tektite` next to nothing, an engine NumPy and Arrow, a language its parser."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tektite

ROOT = Path(__file__).parents[2]

# Packages, and parts of them, that take long to load.
HEAVY = (
    "numba", "llvmlite", "numpy", "pyarrow", "pyarrow.dataset", "pyarrow.fs", "pyarrow.parquet", "pandas", "sqlglot", "lark",
    "typer", "rich", "prompt_toolkit", "yaml", "uvloop", "asyncio", "pyspark", "py4j", "duckdb", "matplotlib", "networkx",
    "hypothesis", "psutil", "websockets", "h11", "prometheus_client",
)  # fmt: skip
ENGINE = "import tektite as tk; engine = tk.Engine(); t = engine.create_table('t', {'a': tk.Int});"
VIEW = "v = engine.install('v', t.group_by('a').agg(n=tk.count())); t.insert([(1,)]); v.to_arrow()"
TEXT = """
import numpy
v = engine.install('w', t.select(b=tk.when(tk.col('a') < 0).then(tk.lit('none')).otherwise(tk.lit('some'))))
t.insert(numpy.array([[1]]))
v.to_arrow()
"""
HELP = """
import sys
sys.argv = ['tektite', '--help']
from tektite.__main__ import main
try:
    main()
except SystemExit:
    pass
"""


def loaded(program: str) -> list[str]:
    """Which heavy packages a program loads."""
    show = f"import sys; print(*[name for name in {HEAVY} if name in sys.modules])"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    shown = subprocess.check_output([sys.executable, "-c", f"{program}\n{show}"], cwd=ROOT, env=environment, text=True)
    return shown.splitlines()[-1].split()


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("import tektite", []),
        ("import tektite as tk; tk.Int, tk.TektiteError", []),
        ("import tektite as tk; tk.col('a') + 1", ["numpy", "pyarrow"]),
        (ENGINE, ["numpy", "pyarrow"]),
        (
            ENGINE + VIEW,
            ["numpy", "pyarrow"],
        ),
        (ENGINE + TEXT, ["numpy", "pyarrow"]),
        ("import tektite.graph", ["numpy", "pyarrow"]),
        (ENGINE + "engine.sql('SELECT 1')", ["numpy", "pyarrow", "sqlglot"]),
        (HELP, ["typer"]),
    ],
    ids=["import", "names", "expressions", "engine", "views", "texts", "graph", "sql", "help"],
)
def test_program_loads_what_it_uses(program: str, expected: list[str]) -> None:
    assert loaded(program) == expected


def test_types_and_names_agree() -> None:
    """What type checkers see of the package is what it loads at the first use."""
    source = ast.parse((ROOT / "tektite" / "__init__.py").read_text())
    (block,) = (node for node in source.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    seen = {
        ((node.module or "").removeprefix("tektite."), alias.name)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == {(home, name) for home, names in tektite._HOMES.items() for name in names.split()}
    assert set(tektite.__all__) == {name for _, name in seen} - {"Changes"}
    assert set(tektite.__all__) <= set(dir(tektite))
