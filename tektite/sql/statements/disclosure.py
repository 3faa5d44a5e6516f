"""Hides plans and errors that show a user more than it may read below its views.

A view reads with the rights of its owner. So a plan, and the error of a row, may show columns, values and sizes that the user
may not see. They are for those who may read all rows of every relation below the views.

What a statement reads without a view, it reads with the user's own rights: the policies of a table take away what the user may
not see before anything else is computed, so that an error shows a row that the user may read.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sqlglot import exp

from tektite.engine.core import core_of
from tektite.engine.view import View
from tektite.errors import TektiteError
from tektite.sql.bind.definitions import Definition
from tektite.sql.catalog.schemas import written_name
from tektite.sql.parse import parser
from tektite.sql.parse.places import StatementText
from tektite.sql.statements.prepared_names import found_prepared

if TYPE_CHECKING:
    from tektite.sql.statements.runner import StatementRunner

FAILED = (
    "a row that the query depends on fails. Which one, and why, is told to those who may read all that the query's views read. "
    "Reads work again once the row is deleted or corrected"
)
"""The message about a row's error for users who may not see the row."""


def hidden_error(error: TektiteError) -> TektiteError:
    """An error as those are told of it who may not see its row."""
    if not error.shows_row:
        return error
    hidden = type(error)(FAILED)
    hidden.shows_row = False
    return hidden


def sees_below(runner: StatementRunner, who: str | None, names: Iterable[str]) -> bool:
    """Whether somebody may read all rows of what views read, and of what is below that."""
    access, engine = runner.access, core_of(runner.engine)
    if access.is_super(who):
        return True
    seen: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        found = runner.relation_stored(name)
        if found is None:
            return False  # it is gone, or has another name by now
        below: set[str] = set()
        if isinstance(found, Definition):
            below |= found.reads
        elif isinstance(found, View):
            below |= runner.reads.get(name, frozenset())
            for object in engine.system.objects_of(core_of(found).flow):
                kind, _, read = object.partition(" ")
                if kind != "table":
                    return False
                below.add(read)
        below.discard(name)
        if not all([access.sees_all(who, each) for each in below]):
            return False
        waiting.extend(below)
    return True


def disclosed(
    runner: StatementRunner, who: str | None, names: Iterable[str] | None, error: TektiteError
) -> TektiteError:
    """An error as somebody may know it, of a query that reads relations; None for names if nobody knows which."""
    if not error.shows_row or runner.access.is_super(who):
        return error
    if names is not None and sees_below(runner, who, names):
        error.shows_row = False  # not more than its user may see
        return error
    return hidden_error(error)


def disclosed_error(runner: StatementRunner, statement: parser.Statement, error: TektiteError) -> TektiteError:
    """The error of a statement as the caller's user may know it."""
    return disclosed(runner, runner.access.who(), names_of(runner, statement), error) if error.shows_row else error


def names_of(runner: StatementRunner, statement: parser.Statement) -> list[str] | None:
    """The relations that a statement names; None if that is not known."""
    source, tree = statement.source, getattr(statement, "tree", None)
    if isinstance(statement, parser.Execute):
        prepared = found_prepared(runner, statement.name)
        if prepared is None:
            return None
        source, tree = prepared.source, prepared.tree
    return names_in(runner, source, tree) if isinstance(tree, exp.Expr) else None


def names_in(runner: StatementRunner, source: StatementText, tree: exp.Expr) -> list[str]:
    """The relations that a query or a change names."""
    found = []
    for node in tree.find_all(exp.Table):
        if isinstance(node.this, exp.Identifier):
            relation = runner.relation_named(written_name(source, node))
            if relation is not None:
                found.append(relation.name)
    return found
