"""docs/functions.md is true and complete: its examples give the results it shows, and it lists what the code's tables hold."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlglot
from sqlglot import exp

import tektite as tk
from tektite.expr import date_functions
from tektite.expr.namespaces import DateMethods, TextMethods
from tektite.sql.bind import clause, functions, ordered_aggregates, pair_aggregates, scalar, window_arguments
from tektite.sql.parse.parser import Dialect

PAGE = (Path(__file__).parents[2] / "docs" / "functions.md").read_text()
ROW = re.compile(r"^\| (.+) \|$")
CODE = re.compile(r"^`(.*)`$")
OVER = " FROM (VALUES (1, 'a'), (2, 'b'), (2, NULL), (5, 'c')) AS rows(n, t)"
SOURCES = {"Aggregates": OVER, "Window functions": f"{OVER} ORDER BY n, t"}


def section(part: str, title: str) -> str:
    """The text below a heading, up to the next one."""
    rest = PAGE.split(f"\n## {part}\n", 1)[1].split(f"\n### {title}\n", 1)[1]
    return re.split(r"\n##+ ", rest, maxsplit=1)[0]


def titles(part: str) -> list[str]:
    return re.findall(r"^### (.*)$", PAGE.split(f"\n## {part}\n", 1)[1].split("\n## ", 1)[0], re.MULTILINE)


def rows(text: str) -> Iterator[list[str]]:
    """The cells of tables, without heads."""
    for line in text.splitlines():
        found = ROW.match(line)
        if found and "`" in found[1]:
            yield [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", found[1])]


def examples(part: str, title: str) -> Iterator[tuple[str, str, list[str]]]:
    """Example, result and other names: what is not code has no result to compare."""
    for cells in rows(section(part, title)):
        example, result = cells[1:3] if len(cells) == 4 else cells
        if CODE.match(result):
            names = re.findall(r"`(\w+)`", cells[3]) if len(cells) == 4 else []
            yield example[1:-1], result[1:-1], names


def shown(value: Any) -> str:
    if value is None:
        return "NULL"
    return str(value).lower() if isinstance(value, bool) else str(value)


def tree(sql: str) -> exp.Expr:
    return sqlglot.parse_one(f"SELECT {sql}", dialect=Dialect)


@pytest.mark.parametrize("title", titles("SQL"))
def test_sql_examples_give_what_the_page_says(title: str) -> None:
    listed = list(examples("SQL", title))
    outputs = ", ".join(f"{example} AS x{number}" for number, (example, _, _) in enumerate(listed))
    table = tk.Engine(autocommit=False).sql(f"SELECT {outputs}{SOURCES.get(title, '')}").table
    assert table is not None
    found = [", ".join(map(shown, table[f"x{number}"].to_pylist())) for number in range(len(listed))]
    assert found == [result for _, result, _ in listed]


@pytest.mark.parametrize("title", titles("SQL"))
def test_other_names_mean_the_same(title: str) -> None:
    for example, _, names in examples("SQL", title):
        for name in names:
            assert tree(re.sub(r"^\w+", name, example)) == tree(example)


def test_every_sql_function_of_the_code_is_listed() -> None:
    trees = [tree(example) for title in titles("SQL") for example, _, _ in examples("SQL", title)]
    kinds = {type(node) for found in trees for node in found.walk()}
    names = {node.name.lower() for found in trees for node in found.find_all(exp.Anonymous)}
    tables: list[Any] = [
        functions.SIMPLE, functions.VARIADIC, functions.PARTS, functions.BITS, functions.SPECIAL,
        clause.AGGREGATES, clause.SPREADS, pair_aggregates.PAIRS, ordered_aggregates.ORDERED, window_arguments.RANKS,
        window_arguments.TOTALS, window_arguments.PICKED, scalar.COMPARISONS,
        [kind for kind in scalar.RULES if issubclass(kind, exp.Func | exp.Binary)],
    ]  # fmt: skip
    # Of these the page says in words what they give: it depends on the clock.
    clock = {exp.CurrentTimestamp, exp.CurrentDate, exp.CurrentTime, exp.Localtimestamp}
    assert {kind for table in tables for kind in table} - kinds - clock == set()
    assert {*functions.BY_NAME, *functions.ANONYMOUS_PARTS} - names == set()
    assert all(
        f"`{name}`" in PAGE for name in ("now()", "current_timestamp", "current_date", "current_time", "localtimestamp")
    )


def test_fields_units_and_formats_are_listed() -> None:
    def listed(start: str) -> list[str]:
        found = re.search(rf"^{start}(.*?)\.(?:\s|$)", PAGE, re.MULTILINE | re.DOTALL)
        assert found is not None
        return re.findall(r"`(%?[\w%]+)`", found[1])

    assert listed("Fields of `extract` and `date_part`: ") == [*date_functions.FIELDS, *date_functions.CLOCK]
    assert listed("`strftime` takes a constant format with ") == [f"%{letter}" for letter in date_functions.FORMATS]
    moment = "TIMESTAMP '2024-02-29 13:45:30'"
    units = ", ".join(f"date_trunc('{unit}', {moment}) AS {unit}" for unit in listed("Units of `date_trunc`: "))
    assert len(tk.Engine(autocommit=False).sql(f"SELECT {units}").rows()) == 1


NAMES = {name: getattr(tk, name) for name in tk.__all__} | {"tk": tk, "datetime": datetime}
IN_GROUPS = ("Aggregates in Python", "Window functions in Python")


def public_methods(found: type) -> set[str]:
    return {name for name in dir(found) if not name.startswith("_") and callable(getattr(found, name))}


def test_expressions_give_what_the_page_says() -> None:
    engine = tk.Engine(autocommit=False)
    source = engine.create_table(
        "rows", {"x": tk.Int, "y": tk.Float, "name": tk.String, "day": tk.Date, "at": tk.Timestamp, "none": tk.Int}
    )
    at = datetime.datetime(2024, 2, 29, 13, 45, 30)
    source.insert([{"x": 7, "y": -2.5, "name": "tektite", "day": at.date(), "at": at, "none": None}])
    engine.advance()
    chosen = [title for title in titles("Expressions") if title not in IN_GROUPS]
    listed = [found for title in chosen for found in examples("Expressions", title)]
    columns = {f"x{number}": eval(example, NAMES) for number, (example, _, _) in enumerate(listed)}
    (row,) = engine.install("all", source.select(**columns)).rows()
    assert list(map(shown, row)) == [result for _, result, _ in listed]
    text = " ".join(example for title in titles("Expressions") for example, _, _ in examples("Expressions", title))
    helpers = {"walk", "columns", "substitute", "replaced"}
    assert {name for name in public_methods(tk.Expr) - helpers if f".{name}(" not in text} == set()
    for space, methods in (("str", TextMethods), ("dt", DateMethods)):
        other_names = {name for name in public_methods(methods) if getattr(methods, name).__name__ != name}
        assert {name for name in public_methods(methods) - other_names if f".{space}.{name}(" not in text} == set()
    builders = {"coalesce", "col", "concat", "greatest", "hash64", "least", "lit", "truncdiv", "truncmod", "when"}
    assert {name for name in builders if not re.search(rf"\b{name}\(", text)} == set()


def test_python_aggregates_give_what_the_page_says() -> None:
    engine = tk.Engine(autocommit=False)
    source = engine.create_table("rows", {"x": tk.Int, "missing": tk.Int, "good": tk.Bool})
    source.insert([(1, None, True), (2, 10, True), (2, 20, False), (5, 30, True)])
    engine.advance()
    listed = list(examples("Expressions", "Aggregates in Python"))
    aggregates = {f"x{number}": eval(example, NAMES) for number, (example, _, _) in enumerate(listed)}
    (row,) = engine.install("all", source.group_by([]).agg(**aggregates)).rows()
    assert list(map(shown, row)) == [result for _, result, _ in listed]
    modules = ("tektite.query.aggregates", "tektite.query.windows")
    public = [name for name in tk.__all__ if getattr(getattr(tk, name), "__module__", "") in modules]
    assert [name for name in public if f"tk.{name}(" not in PAGE] == [] != public


def test_python_window_functions_give_what_the_page_says() -> None:
    engine = tk.Engine(autocommit=False)
    source = engine.create_table("rows", {"x": tk.Int, "missing": tk.Int, "good": tk.Bool})
    source.insert([(1, None, True), (2, 10, True), (2, 20, False), (5, 30, True)])
    engine.advance()
    listed = list(examples("Expressions", "Window functions in Python"))
    columns = {f"x{number}": eval(example, NAMES) for number, (example, _, _) in enumerate(listed)}
    found = engine.install("all", source.select("x", "missing", **columns)).rows()
    rows = sorted(found, key=lambda row: (row[0], row[1] or 0))
    assert [", ".join(map(shown, values)) for values in list(zip(*rows, strict=True))[2:]] == [r for _, r, _ in listed]
