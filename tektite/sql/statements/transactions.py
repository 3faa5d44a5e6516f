"""BEGIN, SAVEPOINT, COMMIT, ROLLBACK of the calling session's transaction (`tektite.engine.session`), and how statements write.

A statement that fails leaves the transaction as it was. COMMIT writes all changes into one epoch, or, if they do not fit what the
tables hold by then, none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from tektite.engine.core import core_of
from tektite.engine.write_set import WriteSet
from tektite.errors import ConflictError, NotFoundError
from tektite.sql.bind.scope import folded
from tektite.sql.parse.parser import Savepoint
from tektite.sql.parse.places import StatementText, nearest
from tektite.sql.parse.read_arguments import refuse_unread
from tektite.sql.statements.result import Result

if TYPE_CHECKING:
    from tektite.engine.session import Transaction
    from tektite.engine.table import Table
    from tektite.sql.statements.runner import StatementRunner

Write = tuple[str, Any]
"""What is done to a table, insert or remove, and the rows."""


def writes_of(new: pa.Table | None, old: pa.Table | None) -> list[Write]:
    """Taking rows away and then adding others."""
    both = (("remove", old), ("insert", new))
    return [(verb, rows) for verb, rows in both if rows is not None and rows.num_rows]


class Overtaken(Exception):  # noqa: N818 # nobody but the runner sees it
    """Somebody has closed an epoch between what a statement read and what it is about to write."""


def write(runner: StatementRunner, table: Table, writes: list[Write]) -> None:
    """Change a table: in the transaction that is open, where what breaks the table's declaration is refused here, not at COMMIT;
    or else in an epoch of its own.
    """
    source = core_of(table)

    def write_all(into: WriteSet | None) -> None:
        for verb, rows in writes:
            source.write(rows, None, 1 if verb == "insert" else -1, verb, into)

    if runner.transaction is not None:
        runner.transaction.write(source, write_all)
    else:
        core = core_of(runner.engine)
        if core.epoch != core.sessions.current().statement_began:
            raise Overtaken
        together = WriteSet()
        write_all(together)
        core.commit(together)
        core.sessions.current().statement_began = core.epoch


# ---------------------------------------------------------------------- statements


def begin(
    runner: StatementRunner, source: StatementText, tree: exp.Transaction, parameters: Mapping[str, Any]
) -> Result:
    """BEGIN: what follows closes no epoch until COMMIT."""
    if runner.transaction is not None:
        raise source.error("a transaction is open already", tree, ConflictError)
    refuse_unread(source, tree)
    core_of(runner.engine).sessions.current().begin()
    return Result("BEGIN")


def commit(runner: StatementRunner, source: StatementText, tree: exp.Commit, parameters: Mapping[str, Any]) -> Result:
    """COMMIT: all changes since BEGIN become visible at once, or, if they break what a table demands, none does."""
    refuse_unread(source, tree)
    opened(runner, source, tree).commit()
    return Result("COMMIT")


def rollback(
    runner: StatementRunner, source: StatementText, tree: exp.Rollback, parameters: Mapping[str, Any]
) -> Result:
    """ROLLBACK: forget all changes since BEGIN, or, with TO, since a savepoint."""
    saved = tree.args.get("savepoint")
    name = "" if saved is None else folded(saved)
    refuse_unread(source, tree)
    if saved is not None:
        back_to(runner, opened(runner, source, tree), source, name, saved)
    else:
        opened(runner, source, tree).rollback()
    return Result("ROLLBACK")


def savepoint(runner: StatementRunner, statement: Savepoint) -> Result:
    """SAVEPOINT name: what was written so far can be gone back to. RELEASE name: it cannot any more."""
    transaction = opened(runner, statement.source, statement.place)
    known = runner.savepoints.setdefault(transaction, {})
    if statement.what == "RELEASE":
        for later in list(known)[place_of(known, statement.source, statement.name, statement.place) :]:
            del known[later]
        return Result("RELEASE")
    known.pop(statement.name, None)
    known[statement.name] = transaction.mark()
    return Result("SAVEPOINT")


def back_to(runner: StatementRunner, transaction: Transaction, source: StatementText, name: str, at: exp.Expr) -> None:
    """Forget what a transaction has written since a savepoint, and the savepoints after it."""
    known = runner.savepoints.setdefault(transaction, {})
    for later in list(known)[place_of(known, source, name, at) + 1 :]:
        del known[later]
    transaction.return_to(known[name])


def place_of(known: Mapping[str, Any], source: StatementText, name: str, at: exp.Expr | int) -> int:
    """Which of the savepoints has a name."""
    if name not in known:
        raise source.error(f"there is no savepoint {name!r}: {nearest(name, known)}", at, NotFoundError)
    return list(known).index(name)


def opened(runner: StatementRunner, source: StatementText, tree: exp.Expr | int) -> Transaction:
    """The transaction that is open."""
    found = runner.transaction
    if found is None:
        raise source.error("no transaction is open", tree, ConflictError)
    return found
