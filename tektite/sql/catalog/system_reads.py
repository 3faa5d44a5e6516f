"""System relations as a statement reads them: rows built from the engine's catalog, for the statement alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tektite.engine.constants import constants
from tektite.expr import col
from tektite.sql.catalog.contents import CatalogContents
from tektite.sql.catalog.information import INFORMATION_ROWS
from tektite.sql.catalog.pg_relations import PG_ROWS
from tektite.sql.catalog.pg_types import INTEGERS, own_type
from tektite.sql.catalog.system_columns import SYSTEM_COLUMNS
from tektite.sql.logical import Node, Scan
from tektite.values.schema import Schema

if TYPE_CHECKING:
    from tektite.sql.bind.query import Binder


def system_name(written: str) -> tuple[str, str] | None:
    """The system relation that a name means: one of pg_catalog is found without its schema."""
    schema, dot, name = written.rpartition(".")
    found = (schema if dot else "pg_catalog", name)
    return found if found in SYSTEM_COLUMNS else None


def system_scan(contents: CatalogContents, binder: Binder, key: tuple[str, str]) -> tuple[Node, list[str]]:
    """A system relation's rows, and what its columns are called."""
    kind, columns = SYSTEM_COLUMNS[key]
    types = {title: own_type(type) for title, type in columns.items()}
    rows = constants(contents.runner.engine, Schema(types), system_rows(contents, key))
    names = []
    for title, type in columns.items():
        names.append(binder.name(title, types[title]))
        binder.declare(col(names[-1]), type)
    return Scan(".".join(key), rows, tuple(names)), list(columns)


def system_rows(contents: CatalogContents, key: tuple[str, str]) -> list[tuple[Any, ...]]:
    """The rows of a system relation."""
    schema, name = key
    kind, columns = SYSTEM_COLUMNS[key]
    make = (PG_ROWS if schema == "pg_catalog" else INFORMATION_ROWS).get(name)
    if make is None:
        return []
    # the tables of pg_catalog have hardly a NULL: tools compare with 0 and with the empty text
    absent = {title: nothing(type) if kind == "r" else None for title, type in columns.items()}
    return [tuple((absent | row).values()) for row in make(contents)]


def nothing(type: str) -> Any:
    """The value of a type that stands for no information: false, 0, an empty text or NULL."""
    return False if type == "bool" else 0 if type in INTEGERS else "" if type in ("name", "char") else None
