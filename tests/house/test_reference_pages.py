"""The generated reference is what the code says, and has every public name."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import tektite as tk

SCRIPT = Path(__file__).parents[2] / "docs" / "generate.py"
spec = importlib.util.spec_from_file_location("generate_reference", SCRIPT)
assert spec is not None and spec.loader is not None
generate = importlib.util.module_from_spec(spec)
spec.loader.exec_module(generate)


def test_pages_are_what_the_code_says() -> None:
    stale = [path.name for path, text in generate.pages().items() if not path.exists() or path.read_text() != text]
    assert stale == [], "run python docs/generate.py"
    assert {path.name for path in generate.FOLDER.iterdir()} == {path.name for path in generate.pages()}


def test_every_public_name_is_on_a_page() -> None:
    listed = [name for _, names in generate.PAGES.values() for name in names]
    assert len(listed) == len({*listed})
    assert {*listed} - {"ReadableCollection"} == {*tk.__all__}


def test_a_page_shows_parameters_defaults_errors_and_examples() -> None:
    text = generate.pages()[generate.FOLDER / "engine.md"]
    create_table = text.split("### `Engine.create_table")[1].split("\n### ")[0]
    assert "mode: Mode = 'bag'" in create_table and ">>> prices = engine.create_table" in create_table
    hold = text.split("### `Engine.hold")[1].split("\n### ")[0]
    assert "Raises `ConflictError`, `IncorrectError`." in hold


ELSEWHERE = {
    "Table.load": "needs Spark: docs/spark.md",
    "Table.follow": "needs Spark: docs/spark.md",
    "View.to_spark": "needs Spark: docs/spark.md",
    "View.write_changes": "needs Spark: docs/spark.md",
    "connect": "needs a server: docs/how-to/clients/python.md",
    "connect_async": "needs a server: docs/how-to/clients/python.md",
    "ReadableCollection.to_polars": "needs Polars, which no environment of ours has",
}


def test_every_entry_of_a_page_has_an_example() -> None:
    lacking = []
    for path, text in generate.pages().items():
        if path.name == "system-relations.md":  # tables, and examples of them are in docs/how-to/look-inside.md
            continue
        for section in re.split(r"^##+ ", text, flags=re.MULTILINE)[1:]:
            name = re.match(r"`(?:tk\.)?([\w.]+)", section)
            is_a_type = re.search(r"^The type `", section, flags=re.MULTILINE) is not None
            if name and ">>>" not in section and not is_a_type and name[1] not in ELSEWHERE:
                lacking.append(name[1])
    assert lacking == []
