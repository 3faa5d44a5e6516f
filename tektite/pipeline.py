"""Reads and checks the description of a pipeline: sources, views, sinks, storage, and the Spark to run on.

A description is YAML, or a Python program makes it. An unknown or missing word, or a wrong value, is an error that says where
it is, before Spark is started.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from traceback import extract_tb
from typing import Any, Final

import yaml

from tektite.engine.declarations import table_description
from tektite.engine.former_tables import TABLE_OPTIONS, table_options
from tektite.errors import IncorrectError, NotFoundError, TektiteError
from tektite.sql.parse.parser import parse
from tektite.values import columns
from tektite.values.schema import Schema


@dataclass(frozen=True)
class SparkSource:
    """Rows that Spark reads: a format with options, or a table, and how to use their columns."""

    format: str | None = None
    path: str | None = None
    table: str | None = None
    schema: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    select: tuple[str, ...] = ()
    where: str | None = None
    diff: str | None = None
    operation: str | None = None
    order: str | None = None
    position: str | None = None
    upto: Any = None
    extra: str = "error"
    trigger: Mapping[str, Any] | None = None
    bad_rows: str = "stop"
    max_bad_rows: int = 1000


@dataclass(frozen=True)
class TablePlan:
    """A table, what to load into it, and what it follows afterwards."""

    schema: Schema
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of `Engine.create_table` beside the columns."""
    load: SparkSource | None = None
    follow: SparkSource | None = None


@dataclass(frozen=True)
class ViewPlan:
    """A view: an SQL query, or a function from the engine to a collection."""

    sql: str | None = None
    python: str | None = None
    order_by: tuple[str, ...] = ()
    persist: bool = True

    def statement(self, name: str) -> str:
        """The statement that creates the view, if it is an SQL query."""
        quoted = '"' + name.replace('"', '""') + '"'
        return f"CREATE MATERIALIZED VIEW {quoted} AS {self.sql}"


@dataclass(frozen=True)
class Sink:
    """A sink, to which Spark writes a view's changes."""

    view: str
    format: str = "parquet"
    path: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PipelinePlan:
    """Everything that `tektite run` needs."""

    name: str
    folder: Path
    storage: str | None = None
    workers: int = 1
    master: str | None = None
    memory: str = "1g"
    config: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, TablePlan] = field(default_factory=dict)
    views: Mapping[str, ViewPlan] = field(default_factory=dict)
    sinks: tuple[Sink, ...] = ()
    file: Path = Path("pipeline")
    """The name in messages."""
    build: Callable[[Any, Any], None] | None = None
    """A function of a Python pipeline; it gets the engine and the Spark session."""


def read_pipeline(path: str | Path) -> PipelinePlan:
    """The pipeline that a YAML file describes, or that a Python file defines."""
    path = Path(path)
    if not path.is_file():
        raise NotFoundError(f"there is no pipeline {path}")
    if path.suffix == ".py":
        return _from_program(path)
    try:
        plain = yaml.safe_load(path.read_text())
    except yaml.YAMLError as error:
        raise IncorrectError(f"{path} is not YAML: {error}") from None
    return from_plain(plain, path)


def from_plain(plain: Any, path: Path) -> PipelinePlan:
    """The pipeline that plain values describe. Paths are relative to the folder of `path`."""
    reader = PlainReader(path)
    # `server` says how `tektite serve` offers the same pipeline to others; it is checked there.
    known = ("name", "spark", "storage", "workers", "tables", "views", "sinks", "server", *FORMER_WORDS)
    top = reader.renamed(reader.mapping(plain, "", known), "", FORMER_WORDS)
    spark = reader.mapping(top.get("spark") or {}, "spark", ("master", "memory", "config"))
    tables = reader.named(top.get("tables"), "tables", reader.table)
    views = reader.named(top.get("views"), "views", reader.view)
    listed = top.get("sinks") or []
    if not isinstance(listed, list):
        raise reader.wrong("sinks", f"expected a list of sinks, - {{view: ..., path: ...}}, found {listed!r}")
    sinks = tuple(reader.sink(one, f"sinks[{n}]") for n, one in enumerate(listed))
    for number, sink in enumerate(sinks):
        if sink.view not in views:
            raise reader.wrong(
                f"sinks[{number}]", f"there is no view {sink.view!r}: {columns.hint(sink.view, views, 'views')}"
            )
    for name in views:
        if name in tables:
            raise reader.wrong(f"views.{name}", "there is a table of this name already")
    storage = reader.text(top.get("storage"), "storage")
    if sinks and storage is None:
        raise reader.wrong("sinks", "a sink needs a storage, which the changes are read from: add storage: <path>")
    return PipelinePlan(
        str(top.get("name") or path.stem), path.parent, None if storage is None else reader.path(storage),
        reader.positive(top.get("workers", 1), "workers"), reader.text(spark.get("master"), "spark.master"),
        str(spark.get("memory", "1g")), reader.any_mapping(spark.get("config"), "spark.config"), tables, views, sinks, path,
    )  # fmt: skip


def _from_program(path: Path) -> PipelinePlan:
    """A Python file that defines `build(engine, spark)` and optionally PIPELINE, a dict with the content of a YAML file."""
    spec = importlib.util.spec_from_file_location(f"tektite_pipeline_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise IncorrectError(f"{path}, line {error.lineno}: {error.msg}") from None
    except Exception as error:
        line = next((f.lineno for f in reversed(extract_tb(error.__traceback__)) if f.filename == str(path)), None)
        raise IncorrectError(f"{path}, line {line}: {type(error).__name__}: {error}") from error
    build = getattr(module, "build", None)
    plain = getattr(module, "PIPELINE", {})
    if build is None and not plain:
        raise IncorrectError(
            f"{path} defines neither build(engine, spark) nor PIPELINE: a pipeline is one of them or both"
        )
    found = from_plain(plain, path)
    return PipelinePlan(**{**vars(found), "build": build})


FILES: Final = ("parquet", "csv", "json", "orc", "text", "delta")
"""Formats of sinks that write into a folder."""


def option_text(value: Any) -> str:
    """A YAML value as text for Spark's options.

    >>> option_text(True), option_text(3)
    ('true', '3')
    """
    return str(value).lower() if isinstance(value, bool) else str(value)


FORMER_WORDS: Final = {"inputs": "tables", "shards": "workers"}
FORMER_VIEW_WORDS: Final = {"publish": "persist", "key": "order_by"}
"""Former words, and those of today."""
DEFAULTS: Final[dict[str, Any]] = {
    "mode": "bag", "primary_key": (), "order_by": (), "required": (), "shard_by": (), "checked": True,
}  # fmt: skip
"""The options of a table, as `Engine.create_table` has them."""
OPTIONS: Final = tuple(DEFAULTS)


def _shown(value: object) -> str:
    """A value for an error: a long one, such as a whole file that is not YAML, is cut."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:60]}..."


class PlainReader:
    """Reads plain values, as YAML has them, and knows their places."""

    def __init__(self, path: Path) -> None:
        self.file = path

    def wrong(self, where: str, what: str) -> IncorrectError:
        return IncorrectError(f"{self.file}{f', {where}' if where else ''}: {what}")

    def mapping(self, plain: Any, where: str, known: tuple[str, ...]) -> dict[str, Any]:
        if not isinstance(plain, dict):
            raise self.wrong(where, f"expected names and values, found {_shown(plain)}")
        for name in plain:
            if name not in known:
                raise self.wrong(where, f"unknown word {name!r}: {columns.hint(name, known, 'words')}")
        return plain

    def renamed(self, plain: dict[str, Any], where: str, former_words: Mapping[str, str]) -> dict[str, Any]:
        """The same with today's words for former ones."""
        for former, word in former_words.items():
            if former in plain and word in plain:
                raise self.wrong(where, f"{former!r} is the former word for {word!r}: give one")
        return {former_words.get(name, name): value for name, value in plain.items()}

    def named(self, plain: Any, where: str, read: Callable[[Any, str], Any]) -> dict[str, Any]:
        if plain is None:
            return {}
        if not isinstance(plain, dict):
            raise self.wrong(where, f"expected names and what they stand for, found {plain!r}")
        return {str(name): read(value, f"{where}.{name}") for name, value in plain.items()}

    def path(self, text: Any) -> str:
        plain = str(text)
        if "://" in plain or Path(plain).is_absolute():
            return plain
        return str((self.file.parent / plain).absolute())

    def positive(self, value: Any, where: str) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise self.wrong(where, f"expected a positive number, found {value!r}")
        return value

    def text(self, value: Any, where: str) -> str | None:
        if value is not None and (not isinstance(value, str) or not value):
            raise self.wrong(where, f"expected a text, found {value!r}")
        return value

    def flag(self, value: Any, where: str) -> bool:
        if not isinstance(value, bool):
            raise self.wrong(where, f"expected true or false, found {value!r}")
        return value

    def any_mapping(self, value: Any, where: str) -> dict[str, Any]:
        if value is not None and not isinstance(value, dict):
            raise self.wrong(where, f"expected names and values, found {_shown(value)}")
        return {str(name): one for name, one in (value or {}).items()}

    def options(self, value: Any, where: str) -> dict[str, str]:
        return {name: option_text(one) for name, one in self.any_mapping(value, where).items()}

    def names(self, value: Any, where: str) -> tuple[str, ...]:
        listed = [value] if isinstance(value, str) else value if isinstance(value, list) else None
        if listed is None or not all(isinstance(name, str) for name in listed):
            raise self.wrong(where, f"expected a name or a list of names, found {value!r}")
        return tuple(listed)

    def table(self, plain: Any, where: str) -> TablePlan:
        found = self.mapping(plain, where, ("columns", *OPTIONS, "load", "follow", *TABLE_OPTIONS))
        types = found.get("columns")
        if not isinstance(types, dict) or not types:
            raise self.wrong(where, "a table has columns, such as columns: {id: int, name: string}")
        try:
            schema = Schema({str(name): text for name, text in types.items()})
        except TektiteError as error:
            raise self.wrong(f"{where}.columns", str(error)) from None
        for option in ("primary_key", "order_by", "shard_by", "required", "key", "shard"):
            self.names(found.get(option, []), f"{where}.{option}")
        for option in ("checked", "stream", "unique", "append"):
            self.flag(found.get(option, False), f"{where}.{option}")
        name = where.rpartition(".")[2]
        try:
            options = table_options(name, {one: found[one] for one in (*OPTIONS, *TABLE_OPTIONS) if one in found})
            declared = table_description(name, schema, **(DEFAULTS | options))
        except TektiteError as error:
            raise self.wrong(where, str(error)) from None
        plan = TablePlan(
            schema, options,
            None if found.get("load") is None else self.source(found["load"], f"{where}.load", False),
            None if found.get("follow") is None else self.source(found["follow"], f"{where}.follow", True),
        )  # fmt: skip
        for what, source in (("load", plan.load), ("follow", plan.follow)):
            if source is not None and source.diff is not None and declared.semantics != "bag":
                raise self.wrong(
                    f"{where}.{what}",
                    f"diffs are for bags, and this is of mode {declared.semantics}: name an operation",
                )
        return plan

    def source(self, plain: Any, where: str, stream: bool) -> SparkSource:
        known = ["format", "path", "table", "schema", "options", "select", "where", "diff", "operation", "order"]
        known += ["position", "extra", *(["trigger", "bad_rows", "max_bad_rows"] if stream else ["upto"])]
        found = dict(self.mapping(plain, where, tuple(known)))
        if (found.get("format") is None) == (found.get("table") is None):
            raise self.wrong(where, "rows come from a format (with a path) or from a table: name one of them")
        for name in ("format", "table", "path", "schema", "where", "diff", "operation", "order", "position"):
            self.text(found.get(name), f"{where}.{name}")
        if found.get("diff") is not None and found.get("operation") is not None:
            raise self.wrong(where, "rows have a diff or an operation, not both")
        if found.get("upto") is not None and found.get("position") is None:
            raise self.wrong(where, "upto is a position: say in which column it is, position: <column>")
        if found.get("extra", "error") not in ("error", "ignore"):
            raise self.wrong(f"{where}.extra", f"expected error or ignore, found {found['extra']!r}")
        if found.get("bad_rows", "stop") not in ("stop", "keep"):
            raise self.wrong(f"{where}.bad_rows", f"expected stop or keep, found {found['bad_rows']!r}")
        self.positive(found.get("max_bad_rows", 1), f"{where}.max_bad_rows")
        if found.get("path") is not None:
            found["path"] = self.path(found["path"])
        if found.get("trigger") is not None:
            found["trigger"] = self.any_mapping(found["trigger"], f"{where}.trigger")
        found["select"] = self.names(found.get("select", []), f"{where}.select")
        found["options"] = self.options(found.get("options"), f"{where}.options")
        return SparkSource(**found)

    def view(self, plain: Any, where: str) -> ViewPlan:
        known = ("sql", "python", "order_by", "persist", *FORMER_VIEW_WORDS)
        found = self.renamed(self.mapping(plain, where, known), where, FORMER_VIEW_WORDS)
        if (found.get("sql") is None) == (found.get("python") is None):
            raise self.wrong(where, "a view is a query, sql: SELECT ..., or a function, python: module:function")
        for name in ("sql", "python"):
            self.text(found.get(name), f"{where}.{name}")
        if found.get("python") is not None and not all(found["python"].partition(":")):
            raise self.wrong(f"{where}.python", f"expected module:function, found {found['python']!r}")
        self.flag(found.get("persist", True), f"{where}.persist")
        found["order_by"] = self.names(found.get("order_by", []), f"{where}.order_by")
        plan = ViewPlan(**found)
        if plan.sql is not None:
            try:
                list(parse(plan.statement("v")))
            except TektiteError as error:
                raise self.wrong(f"{where}.sql", str(error)) from None
        return plan

    def sink(self, plain: Any, where: str) -> Sink:
        found = dict(self.mapping(plain, where, ("view", "format", "path", "options")))
        if not isinstance(found.get("view"), str):
            raise self.wrong(where, "a sink names the view whose changes it gets, view: <name>")
        for name in ("format", "path"):
            self.text(found.get(name), f"{where}.{name}")
        if found.get("path") is not None:
            found["path"] = self.path(found["path"])
        elif found.get("format", "parquet") in FILES:
            raise self.wrong(where, "a sink of files needs a folder to write to, path: <folder>")
        found["options"] = self.options(found.get("options"), f"{where}.options")
        return Sink(**found)
