"""One word, one meaning: no two classes or type aliases of the package have the same name."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]

LANGUAGE_NODES = "a node of SQL's own tree, which lowering turns into the algebra's node of that name"

ALLOWED = {
    ("Aggregate", "tektite/sql/logical.py"): LANGUAGE_NODES,
    ("Join", "tektite/sql/logical.py"): LANGUAGE_NODES,
    ("Node", "tektite/sql/logical.py"): "what SQL's own tree is made of; executors' nodes never meet it",
    ("Project", "tektite/sql/logical.py"): LANGUAGE_NODES,
    ("Variable", "tektite/sql/logical.py"): LANGUAGE_NODES,
    ("Graph", "tektite/graph/graph.py"): "public: what everybody calls a graph; that of stages is never seen",
    ("Loop", "tektite/query/loops.py"): "public: a Python program opens it, and its plan is the algebra's Loop",
}
"""Classes that share their name with another one, by the file that may do so, and why."""


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a block, and those of the blocks inside them."""
    for statement in body:
        yield statement
        for name in ("body", "orelse", "finalbody"):
            yield from statements(getattr(statement, name, []))
        for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            yield from statements(part.body)


@cache
def classes(text: str) -> list[str]:
    """The names of the classes that a source text defines, however deep, and of its type aliases."""
    tree = ast.parse(text)
    found = [node.name for node in statements(tree.body) if isinstance(node, ast.ClassDef)]
    aliases = [node.targets[0] for node in tree.body if isinstance(node, ast.Assign) and is_alias(node)]
    return found + [alias.id for alias in aliases if isinstance(alias, ast.Name)]


def is_alias(node: ast.Assign) -> bool:
    """Whether an assignment names a type: a word of two letters or more that begins with a capital and is not all capitals."""
    target = node.targets[0]
    name = target.id if isinstance(target, ast.Name) else ""
    made = isinstance(node.value, ast.Call)  # a constant, or a type variable
    return name[:1].isupper() and not name.isupper() and not made


def shared(files: dict[str, str], allowed: set[tuple[str, str]]) -> dict[str, list[str]]:
    """The names that several classes have, each with its files, but for those classes that may share one."""
    found: dict[str, list[str]] = defaultdict(list)
    for file, text in files.items():
        for name in classes(text):
            if (name, file) not in allowed:
                found[name].append(file)
    return {name: where for name, where in found.items() if len(where) > 1}


def package() -> dict[str, str]:
    return {str(path.relative_to(ROOT)): path.read_text() for path in sorted((ROOT / "tektite").rglob("*.py"))}


def test_no_two_classes_or_aliases_share_a_name_and_every_exception_is_needed() -> None:
    assert shared(package(), set(ALLOWED)) == {}
    together = shared(package(), set())
    assert [(name, file) for name, file in ALLOWED if file not in together.get(name, ())] == []


def test_shared_names_are_found() -> None:
    files = {
        "a.py": "class A:\n    class B: ...",
        "b.py": "def f():\n    class B: ...",
        "c.py": "class A: ...\nCc = int",
    }
    files["d.py"] = "Cc = str | int\nD = 3"
    files["e.py"] = "try:\n    pass\nexcept E:\n    class D: ...\nmatch x:\n    case 1:\n        class D: ..."
    assert shared(files, {("A", "c.py")}) == {
        "B": ["a.py", "b.py"],
        "Cc": ["c.py", "d.py"],
        "D": ["e.py", "e.py"],
    }
