"""The columns of a result: of the types that a table wants, under names that no two of them share."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from tektite.errors import TektiteError
from tektite.expr import col, lit
from tektite.query.builders import project
from tektite.query.collection import Collection
from tektite.sql.bind.zones import converted
from tektite.sql.parse.places import StatementText
from tektite.values import types


def cast_columns(
    found: Collection, wanted: Sequence[types.Type], empty: set[int], source: StatementText, tree: exp.Expr, zone: str
) -> Collection:
    """A collection with its columns of the types that a table wants; columns of NULLs alone fit any."""
    outputs = []
    if len(found.schema.names) != len(wanted):
        raise source.error(
            f"{len(found.schema.names)} values for {len(wanted)} columns", tree, condition="syntax-error"
        )
    for at, (name, given, target) in enumerate(zip(found.schema.names, found.schema.types, wanted, strict=True)):
        value = (
            col(name)
            if given == target
            else lit(None, target)
            if at in empty
            else converted(col(name), given, target, zone)
        )
        outputs.append((name, value))
    try:
        return project(found, outputs)
    except TektiteError as error:
        raise source.placed(error, tree) from None


def unique_titles(titles: list[str]) -> list[str]:
    """Visible names as a table can have them: a repeated one gets a number."""
    found: list[str] = []
    for title in titles:
        name, count = title or "column", 1
        while name in found:
            count += 1
            name = f"{title}_{count}"
        found.append(name)
    return found
