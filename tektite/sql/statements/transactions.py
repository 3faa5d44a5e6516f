"""Transactions: BEGIN, COMMIT, ROLLBACK, and what is read and written between them.

The changes of a transaction wait in it, and not in the tables: an epoch that someone else closes meanwhile takes none of them
along. Its own statements read every table as the last closed epoch left it with the transaction's changes on top, and views
as they would be then. A statement that fails leaves the transaction as it was. COMMIT writes all changes into one epoch, or,
if they do not fit what the tables hold by then, none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from tektite.engine.core import core_of
from tektite.engine.input_core import InputCore
from tektite.engine.view_core import ViewCore
from tektite.errors import ConflictError, TektiteError
from tektite.plan import algebra as plan
from tektite.plan.substitute import substitute
from tektite.query.collection import Collection
from tektite.sql.parse.places import StatementText
from tektite.sql.statements.result import Result

if TYPE_CHECKING:
    from tektite.engine.engine import Engine
    from tektite.engine.input import Input
    from tektite.sql.statements.session import Session

Write = tuple[str, pa.Table]
"""What is done to a table, insert or remove, and the rows."""


def writes_of(new: pa.Table | None, old: pa.Table | None) -> list[Write]:
    """Taking rows away and then adding others."""
    both = (("remove", old), ("insert", new))
    return [(verb, rows) for verb, rows in both if rows is not None and rows.num_rows]


class Transaction:
    """What one transaction changes, table by table."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._writes: dict[Input, list[Write]] = {}

    def write(self, table: Input, writes: list[Write]) -> None:
        """Change a table; what breaks its declaration is refused here, not at COMMIT."""
        if writes:
            wanted = [*self._writes.get(table, ()), *writes]
            core_of(table).dry_run(wanted)
            self._writes[table] = wanted

    def changes(self, table: Input) -> bool:
        """Whether something was written to a table."""
        return table in self._writes

    def seen(self, collection: Collection) -> Collection:
        """A collection as the transaction sees it."""
        reads: dict[Any, plan.Operator] = {}

        def other(read: plan.Read) -> plan.Operator:
            source = read.readable
            if source not in reads:
                reads[source] = self._seen(read, other)
            return reads[source]

        operator = substitute(collection.operator, other)
        return collection if operator is collection.operator else Collection(self._engine, operator)

    def _seen(self, read: plan.Read, other: Any) -> plan.Operator:
        """What is read instead of a source. A stream has no past, so that nobody who begins to read it sees changes."""
        source = read.readable
        if source.is_stream:
            return read
        if isinstance(source, ViewCore):
            definition = substitute(source.definition, other)
            return read if definition is source.definition else definition
        if not isinstance(source, InputCore) or source.facade not in self._writes:
            return read
        words, diffs = source.dry_run(self._writes[source.facade])
        gained, lost = (np.repeat(words, np.maximum(by, 0), axis=1) for by in (diffs, -diffs))
        parts: list[plan.Operator] = [read]
        if gained.shape[1]:
            parts.append(plan.Rows(read.schema, gained))
        if lost.shape[1]:
            parts.append(plan.Negate(read.schema, plan.Rows(read.schema, lost)))
        return plan.Concat(read.schema, tuple(parts)) if len(parts) > 1 else read

    def commit(self) -> None:
        """Write everything, and close an epoch."""
        with core_of(self._engine).lock:
            before = {table: core_of(table).savepoint() for table in self._writes}
            try:
                for table, writes in self._writes.items():
                    apply(table, writes)
                self._engine.advance()
            except TektiteError:
                for table, savepoint in before.items():
                    core_of(table).rollback(savepoint)
                raise


def apply(table: Input, writes: list[Write]) -> None:
    """Write to a table, in the epoch that is open."""
    for verb, rows in writes:
        (table.insert if verb == "insert" else table.remove)(rows)


# ---------------------------------------------------------------------- statements


def begin(session: Session, source: StatementText, tree: exp.Transaction, parameters: Mapping[str, Any]) -> Result:
    """BEGIN: what follows closes no epoch until COMMIT."""
    if session.transaction is not None:
        raise source.error("a transaction is open already", tree, ConflictError)
    if not session.engine.epoch:
        session.engine.advance()  # its queries answer as of an epoch: that of empty tables is the first
    session.transaction = Transaction(session.engine)
    return Result("BEGIN")


def commit(session: Session, source: StatementText, tree: exp.Commit, parameters: Mapping[str, Any]) -> Result:
    """COMMIT: all changes since BEGIN become visible at once, or, if they break what a table demands, none does."""
    ended(session, source, tree).commit()
    return Result("COMMIT")


def rollback(session: Session, source: StatementText, tree: exp.Rollback, parameters: Mapping[str, Any]) -> Result:
    """ROLLBACK: forget all changes since BEGIN."""
    ended(session, source, tree)
    return Result("ROLLBACK")


def ended(session: Session, source: StatementText, tree: exp.Expr) -> Transaction:
    """The transaction that was open until here."""
    found = session.transaction
    if found is None:
        raise source.error("no transaction is open", tree, ConflictError)
    session.transaction = None
    return found
