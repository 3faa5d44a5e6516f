"""The pages say what is so: their examples run, their programs parse, their links lead somewhere."""

from __future__ import annotations

import ast
import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^[ \t]*```.*$", re.MULTILINE)
PYTHON_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)")

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.parent.name != "api"], ids=lambda page: str(page.relative_to(ROOT))
)
def test_examples_print_what_the_page_says(page: Path) -> None:
    """The examples of generated pages are those of docstrings, which run with their modules."""
    # A closing fence would be read as expected output; an empty line in its place keeps the line numbers right.
    text = FENCE.sub("", page.read_text())
    example = doctest.DocTestParser().get_doctest(text, {"__name__": "__main__"}, page.name, str(page), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    report: list[str] = []
    runner.run(example, out=report.append)
    assert not runner.summarize(verbose=False).failed, "".join(report)


@each_page
def test_programs_parse(page: Path) -> None:
    for block in PYTHON_BLOCK.findall(page.read_text()):
        if ">>>" not in block:
            ast.parse(block)


@each_page
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text()
    relative = [link for link in LINK.findall(text) if not link.startswith(("http://", "https://", "mailto:"))]
    assert [link for link in relative if not (page.parent / link).exists()] == []
