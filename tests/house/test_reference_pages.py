"""The generated reference is what the code says, and has every public name."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import re
from functools import cache
from pathlib import Path

import pytest

import tektite as tk

SCRIPT = Path(__file__).parents[2] / "docs" / "generate.py"
spec = importlib.util.spec_from_file_location("generate_reference", SCRIPT)
assert spec is not None and spec.loader is not None
generate = importlib.util.module_from_spec(spec)
spec.loader.exec_module(generate)


@cache
def pages() -> dict[Path, str]:
    """The reference as it is generated from the code."""
    found: dict[Path, str] = generate.pages()
    return found


def test_pages_are_what_the_code_says() -> None:
    stale = [path.name for path, text in pages().items() if not path.exists() or path.read_text() != text]
    assert stale == [], "run python docs/generate.py"
    assert {path.name for path in generate.FOLDER.iterdir()} == {path.name for path in pages()}


def test_every_public_name_is_on_a_page() -> None:
    listed = [name for _, names in generate.PAGES.values() for name in names]
    assert len(listed) == len({*listed})
    assert {*listed} - {*generate.UNNAMED} == {*tk.__all__}


def classes_of_clients() -> dict[str, type]:
    """The classes that the package of clients defines, by name."""
    import tektite.client

    found = {}
    for module in pkgutil.iter_modules(tektite.client.__path__, "tektite.client."):
        for name, kind in vars(importlib.import_module(module.name)).items():
            if inspect.isclass(kind) and kind.__module__ == module.name and name.startswith(("Remote", "Async")):
                found[name] = kind
    return found


def test_every_class_of_a_client_is_on_a_page() -> None:
    assert {*classes_of_clients()} == {*generate.UNNAMED} - {"ReadableCollection"}


@pytest.mark.parametrize("name", [*classes_of_clients()])
def test_a_class_of_a_client_shows_what_its_page_documents_and_its_example_uses(name: str) -> None:
    kind = classes_of_clients()[name]
    text = pages()[generate.FOLDER / "clients.md"]
    bases = [base.__name__ for base in kind.__mro__ if base.__name__ in generate.UNNAMED]
    documented = {member for base in bases for member in re.findall(rf"^### `{base}\.(\w+)", text, re.MULTILINE)}
    made = object.__new__(kind)
    assert {member for member in dir(made) if not member.startswith("_")} == documented
    example = text.split(f"## `{name}`\n")[1].split("\n#")[0]
    own = set(re.findall(rf"^### `{name}\.(\w+)", text, re.MULTILINE))
    assert {member for member in own if f".{member}" not in example} <= {"to_polars"}, (
        "the example of the class uses each"
    )


def test_a_page_shows_parameters_defaults_errors_and_examples() -> None:
    text = pages()[generate.FOLDER / "engine.md"]
    create_table = text.split("### `Engine.create_table")[1].split("\n### ")[0]
    assert "mode: Mode = 'bag'" in create_table and ">>> prices = engine.create_table" in create_table
    hold = text.split("### `Engine.hold")[1].split("\n### ")[0]
    assert "Raises `ConflictError`, `IncorrectError`." in hold


ELSEWHERE = {
    "Table.load": "needs Spark: docs/spark.md",
    "Table.follow": "needs Spark: docs/spark.md",
    "ReadableCollection.to_spark": "needs Spark: docs/spark.md",
    "View.write_changes": "needs Spark: docs/spark.md",
    "connect": "needs a server: docs/how-to/clients/python.md",
    "connect_async": "needs a server: docs/how-to/clients/python.md",
    "ReadableCollection.to_polars": "needs Polars, which no environment of ours has",
}


def test_every_entry_of_a_page_has_an_example() -> None:
    lacking = []
    for path, text in pages().items():
        if path.name == "system-relations.md":  # tables, and examples of them are in docs/how-to/look-inside.md
            continue
        for section in re.split(r"^##+ ", text, flags=re.MULTILINE)[1:]:
            name = re.match(r"`(?:tk\.)?([\w.]+)", section)
            is_a_type = re.search(r"^The type `", section, flags=re.MULTILINE) is not None
            of_client = (
                name is not None and name[1].split(".")[0] in classes_of_clients()
            )  # the class's example has them
            if name and ">>>" not in section and not is_a_type and name[1] not in ELSEWHERE and not of_client:
                lacking.append(name[1])
    assert lacking == []
