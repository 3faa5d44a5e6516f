"""The head of each package maps its files: a newcomer finds the right one there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "tektite"
PACKAGES = sorted(path.parent for path in PACKAGE.rglob("__init__.py") if path.parent != PACKAGE)


@pytest.mark.parametrize("folder", PACKAGES, ids=lambda folder: str(folder.relative_to(PACKAGE)))
def test_package_lists_its_files(folder: Path) -> None:
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
    listed = set(re.findall(r"^(\w+/?)  ", text, re.MULTILINE))
    modules = {path.stem for path in folder.glob("*.py") if not path.stem.startswith("__")}
    packages = {f"{path.parent.name}/" for path in folder.glob("*/__init__.py")}
    assert listed == modules | packages
