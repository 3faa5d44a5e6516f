"""The head of each package maps its files and folders: a newcomer finds the right one there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "tektite"
UNLISTED = ("__pycache__", "built")
"""What programs make."""
PACKAGES = sorted(path.parent for path in PACKAGE.rglob("__init__.py") if path.parent != PACKAGE)


@pytest.mark.parametrize("folder", PACKAGES, ids=lambda folder: str(folder.relative_to(PACKAGE)))
def test_package_lists_its_files(folder: Path) -> None:
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
    listed = set(re.findall(r"^(\w+/?)  ", text, re.MULTILINE))
    modules = {path.stem for path in folder.glob("*.py") if not path.stem.startswith("__")}
    folders = {f"{path.name}/" for path in folder.iterdir() if path.is_dir() and path.name not in UNLISTED}
    assert listed == modules | folders
