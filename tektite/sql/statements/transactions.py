"""BEGIN, SAVEPOINT, COMMIT, ROLLBACK of the calling session's transaction (`tektite.engine.session`), and how statements write.

A statement that fails leaves the transaction as it was. COMMIT writes all changes into one epoch, or, if they do not fit what the
tables hold by then, none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from tektite.engine.core import core_of
from tektite.engine.write_set import WriteSet
from tektite.errors import ConflictError, NotFoundError, TektiteError, UnsupportedError
from tektite.sql.bind.scope import folded
from tektite.sql.parse.parser import Begin, Savepoint, SetModes
from tektite.sql.parse.places import StatementText, nearest
from tektite.sql.parse.read_arguments import refuse_unread
from tektite.sql.parse.transaction_modes import TransactionModes
from tektite.sql.statements.result import Result

if TYPE_CHECKING:
    from tektite.engine.session import Session, Transaction
    from tektite.engine.table import Table
    from tektite.sql.statements.runner import StatementRunner

Write = tuple[str, Any]
"""A change of a table: the method, insert or remove, and its rows."""


def writes_of(new: pa.Table | None, old: pa.Table | None) -> list[Write]:
    """Taking rows away and then adding others."""
    both = (("remove", old), ("insert", new))
    return [(verb, rows) for verb, rows in both if rows is not None and rows.num_rows]


class Overtaken(Exception):  # noqa: N818 # nobody but the runner sees it
    """Somebody has closed an epoch between what a statement read and what it is about to write."""


def write(runner: StatementRunner, table: Table, writes: list[Write]) -> int | None:
    """Change a table: in the transaction that is open, where what breaks the table's declaration is refused here, not at COMMIT;
    or else in an epoch of its own, which is returned.
    """
    source = core_of(table)

    def write_all(into: WriteSet | None) -> None:
        for verb, rows in writes:
            source.write(rows, None, 1 if verb == "insert" else -1, verb, into)

    if runner.transaction is not None:
        runner.transaction.write(source, write_all)
        return None
    core = core_of(runner.engine)
    if core.sessions.over:
        core.sessions.check_not_over()
    if core.epoch != core.sessions.current().statement_began:
        raise Overtaken
    together = WriteSet()
    write_all(together)
    time = core.commit(together)
    core.sessions.current().statement_began = core.epoch
    return time


# ---------------------------------------------------------------------- statements


def begin(runner: StatementRunner, statement: Begin) -> Result:
    """BEGIN: what follows closes no epoch until COMMIT."""
    if runner.transaction is not None:
        raise statement.source.error(
            "a transaction is open already", statement.start, ConflictError, condition="active-sql-transaction"
        )
    begin_with(core_of(runner.engine).sessions.current(), statement.modes)
    return Result("BEGIN")


def begin_with(session: Session, modes: TransactionModes) -> None:
    """Begin a transaction of some modes. It is never weaker than the session's own level."""
    session.begin(serializable=True if modes.wants_serializable else None, read_only=bool(modes.read_only))


def set_modes(session: Session, modes: TransactionModes, for_session: bool) -> bool:
    """SET TRANSACTION, or SET SESSION CHARACTERISTICS for the transactions to come; whether there was a transaction to set."""
    opened = session.open_transaction
    if for_session:
        if modes.read_only:
            raise UnsupportedError("transactions that only read are begun so: BEGIN READ ONLY")
        session.serializable = session.serializable or modes.wants_serializable
        return True
    if opened is None:
        return False
    if modes.wants_serializable and opened.reads is None:
        raise UnsupportedError("a transaction is made serializable when it begins: BEGIN ISOLATION LEVEL SERIALIZABLE")
    if modes.read_only is False and opened.read_only and opened.has_queried:
        error = ConflictError("a read-only transaction is made one that writes before its first query")
        error.details["sqlstate"] = "25001"
        raise error
    if modes.read_only is not None:
        opened.read_only = modes.read_only
    return True


def change_modes(runner: StatementRunner, statement: SetModes) -> Result:
    """SET TRANSACTION and SET SESSION CHARACTERISTICS."""
    session = core_of(runner.engine).sessions.current()
    try:
        if not set_modes(session, statement.modes, statement.for_session):
            raise ConflictError("SET TRANSACTION is for a transaction that is open: BEGIN it first")
    except TektiteError as error:
        raise statement.source.placed(error, statement.start) from None
    return Result("SET")


def commit(runner: StatementRunner, source: StatementText, tree: exp.Commit, parameters: Mapping[str, Any]) -> Result:
    """COMMIT: all changes since BEGIN become visible at once, or, if they break what a table demands, none does."""
    refuse_unread(source, tree)
    return Result("COMMIT", time=opened(runner, source, tree).commit())


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
    known = runner.savepoints.setdefault(transaction, [])
    if statement.what == "RELEASE":
        del known[place_of(known, statement.source, statement.name, statement.place) :]
        return Result("RELEASE")
    known.append((statement.name, transaction.mark()))
    return Result("SAVEPOINT")


def back_to(runner: StatementRunner, transaction: Transaction, source: StatementText, name: str, at: exp.Expr) -> None:
    """Forget what a transaction has written since a savepoint, and the savepoints after it."""
    known = runner.savepoints.setdefault(transaction, [])
    place = place_of(known, source, name, at)
    del known[place + 1 :]
    transaction.return_to(known[place][1])


def place_of(known: Sequence[tuple[str, Any]], source: StatementText, name: str, at: exp.Expr | int) -> int:
    """The index of the savepoint with a name; of the last one, if several have it."""
    names = [each for each, _ in known]
    if name not in names:
        raise source.error(f"there is no savepoint {name!r}: {nearest(name, names)}", at, NotFoundError)
    return len(names) - 1 - names[::-1].index(name)


def opened(runner: StatementRunner, source: StatementText, tree: exp.Expr | int) -> Transaction:
    """The transaction that is open."""
    found = runner.transaction
    if found is None:
        raise source.error("no transaction is open", tree, ConflictError, condition="no-active-sql-transaction")
    return found
