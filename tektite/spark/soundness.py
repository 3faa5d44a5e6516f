"""Looks for what would stop a pipeline later: views that do not fit the inputs, columns that a source lacks, missing paths.

Nothing of Spark is started and no storage is opened: the views are installed on an engine without data, and schemas are read as
texts. What only Spark can know, such as the columns of a Parquet file, is not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from glob import has_magic, iglob
from pathlib import Path
from typing import Any

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from tektite.errors import IncorrectError, TektiteError
from tektite.pipeline import PipelinePlan, SparkSource, TablePlan
from tektite.spark.run import declare, install
from tektite.values.columns import hint

_FILES = ("parquet", "csv", "json", "orc", "text", "xml", "avro", "delta")
_FORMATS = (
    *_FILES, "kafka", "rate", "rate-micro-batch", "socket", "jdbc", "console", "memory", "noop", "iceberg", "hudi", "tektite",
)  # fmt: skip
"""Formats that are well known. Spark finds others by the name of a class or of a package."""
_INTERVAL = re.compile(
    r"(interval\s+)?(\d+(\.\d+)?\s*(microsecond|millisecond|second|minute|hour|day|week|month|year)s?\s*)+",
    re.IGNORECASE,
)
_TRIGGERS: dict[str, type] = {
    "availableNow": bool, "once": bool, "processingTime": str, "continuous": str, "realTime": str
}  # fmt: skip


def check_pipeline(pipeline: PipelinePlan, make_engine: Callable[..., Any]) -> None:
    """Raise an error that says where the first mistake is, if one is found."""
    for name, plan in pipeline.tables.items():
        for what, source in (("load", plan.load), ("follow", plan.follow)):
            if source is not None:
                try:
                    check_source(plan, source)
                except IncorrectError as error:
                    raise IncorrectError(f"{pipeline.file}, tables.{name}.{what}: {error}") from None
    for number, sink in enumerate(pipeline.sinks):
        try:
            _check_format(sink.format)
        except IncorrectError as error:
            raise IncorrectError(f"{pipeline.file}, sinks[{number}]: {error}") from None
    with make_engine(workers=pipeline.workers) as engine:
        for name, plan in pipeline.tables.items():
            declare(engine, name, plan)
        for name, view in pipeline.views.items():
            try:
                install(pipeline, engine, name, view)
            except TektiteError as error:
                raise IncorrectError(f"{pipeline.file}, views.{name}: {error}") from error
            except Exception as error:
                raise IncorrectError(
                    f"{pipeline.file}, views.{name}: {view.python} raised {type(error).__name__}: {error}"
                ) from error


def check_source(plan: TablePlan, source: SparkSource) -> None:
    """Refuse a source that the input cannot be read from."""
    if source.trigger is not None:
        _check_trigger(source.trigger)
    if source.format is not None:
        _check_format(source.format)
    if (source.format or "").lower() in _FILES and not _there(source.path):
        raise IncorrectError(f"there is nothing at the path {source.path}")
    has = None if source.schema is None else _columns_of(source.schema)
    if has is not None and source.where is not None:
        _check_known(source.where, has, "where")
    if source.select:
        has = _selected(source.select, has)
    if has is not None:
        _check_columns(plan, source, has)


def _there(path: str | None) -> bool:
    """Whether a path leads to something, as far as this process can see."""
    if path is None or "://" in path:
        return True
    return any(iglob(path)) if has_magic(path) else Path(path).exists()


def _check_format(name: str) -> None:
    """Refuse the name of a format that is nearly that of a known one."""
    near = [] if name.lower() in _FORMATS else get_close_matches(name.lower(), _FORMATS, 1, 0.7)
    if near:
        raise IncorrectError(f"unknown format {name!r}: did you mean {near[0]!r}?")


def _check_trigger(trigger: Any) -> None:
    if len(trigger) != 1:
        raise IncorrectError(
            f"trigger is one of {', '.join(_TRIGGERS)}, as in trigger: {{availableNow: true}}; found {trigger}"
        )
    ((name, value),) = trigger.items()
    if name not in _TRIGGERS:
        raise IncorrectError(f"unknown trigger {name!r}: {hint(name, list(_TRIGGERS), 'triggers')}")
    if not isinstance(value, _TRIGGERS[name]):
        wanted = "true" if _TRIGGERS[name] is bool else "a text such as '5 seconds'"
        raise IncorrectError(f"trigger {name} is {wanted}, not {value!r}")
    if isinstance(value, str) and not _INTERVAL.fullmatch(value.strip()):
        raise IncorrectError(f"trigger {name} is an interval, such as '5 seconds', not {value!r}")


def _columns_of(schema: str) -> list[str]:
    """The names in a schema as Spark writes it, such as `id int, name string`."""
    try:
        found = parse_one(f"CREATE TABLE t ({schema})", dialect="spark")
    except SqlglotError as error:
        raise IncorrectError(
            f"schema: {schema!r} is none that Spark reads, such as 'id int, name string' ({error})"
        ) from None
    columns = found.this.expressions if isinstance(found.this, exp.Schema) else []
    if not columns or not all(isinstance(column, exp.ColumnDef) and column.kind for column in columns):
        raise IncorrectError(
            f"schema: {schema!r} is none that Spark reads: each column has a name and a type, as in 'id int'"
        )
    return [column.name for column in columns]


def _selected(select: Sequence[str], has: list[str] | None) -> list[str] | None:
    """The names of the columns that expressions give; None if they are not known."""
    names: list[str] = []
    for text in select:
        found = _check_known(text, has, "select")
        if isinstance(found, exp.Star):
            if has is None:
                return None
            names += has
        elif not found.alias_or_name:
            return None  # Spark makes up a name
        else:
            names.append(found.alias_or_name)
    return names


def _check_known(text: str, has: list[str] | None, what: str) -> exp.Expr:
    """An expression, if it reads columns that the source has."""
    try:
        found = parse_one(text, dialect="spark")
    except SqlglotError as error:
        raise IncorrectError(f"{what}: {text!r} is not an expression of Spark: {error}") from None
    if has is not None:
        known = {name.lower() for name in has}
        for column in found.find_all(exp.Column):
            first = column.parts[
                0
            ].name  # of a struct's field, or of a source that is named, it is not the column itself
            if not {first.lower(), column.name.lower()} & known and not isinstance(column.this, exp.Star):
                raise IncorrectError(f"{what}: {text!r} reads a column {column.name!r}: {hint(column.name, has)}")
    return found


def _check_columns(plan: TablePlan, source: SparkSource, has: list[str]) -> None:
    beside = {
        getattr(source, what): what
        for what in ("diff", "operation", "order", "position")
        if getattr(source, what) is not None
    }
    for name in (*plan.schema.names, *beside):
        if name not in has:
            what = f"the {beside[name]} column" if name in beside and name not in plan.schema.names else "the column"
            raise IncorrectError(f"{what} {name!r} is missing: {hint(name, has)}")
    extra = [name for name in has if name not in plan.schema.names and name not in beside]
    if extra and source.extra != "ignore":
        raise IncorrectError(
            f"the table has no column {extra[0]!r}: {hint(extra[0], plan.schema.names)}; leave it out, declare it, or "
            "say extra: ignore"
        )
