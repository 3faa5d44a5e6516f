"""Pauses: while a long statement is bound, others use the engine now and then.

Binding reads what names mean and who may read it, and no rows. If that is as it was when the statement is bound, nothing was
missed, and the statement begins there. Otherwise it is run again.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from tektite.engine.core import HIDDEN_PREFIX, core_of
from tektite.sql.parse import parser
from tektite.sql.parse.read_arguments import copied
from tektite.sql.statements.transactions import Overtaken

if TYPE_CHECKING:
    from tektite.sql.statements.runner import StatementRunner

LONG_TEXT = 1 << 14
"""Characters of a statement that takes some milliseconds to copy."""
BETWEEN = 0.005
"""Seconds for which a statement is bound before others may use the engine."""


class Pauses:
    """The pauses of one statement, in the thread that runs it and holds the engine's lock."""

    def __init__(self, runner: StatementRunner) -> None:
        self._runner = runner
        self._core = core_of(runner.engine)
        self._until = time.perf_counter() + BETWEEN
        self._before: tuple[Any, ...] | None = None

    def __call__(self) -> None:
        """Let others use the engine, if it is time."""
        if time.perf_counter() > self._until:
            self._note()
            self._core.let_others()
            self._until = time.perf_counter() + BETWEEN

    def end(self) -> None:
        """The statement is bound."""
        user = self._core.sessions.current()
        user.statement_pause = None  # from here on it may read rows
        if self._before is not None:
            if self._before != self._facts():
                raise Overtaken
            user.statement_began = self._core.epoch

    def _note(self) -> None:
        if self._before is None:
            self._before = self._facts()

    def _facts(self) -> tuple[Any, ...]:
        """The meaning of each name, and the version of the rights."""
        runner, core = self._runner, self._core
        relations: list[Mapping[str, Any]] = [core.inputs, core.views, runner.definitions]
        meanings = [
            {name: one for name, one in found.items() if not name.startswith(HIDDEN_PREFIX)} for found in relations
        ]
        return *meanings, frozenset(runner.schemas), runner.access.version


def pauses_for(runner: StatementRunner, statement: parser.Statement) -> Pauses | None:
    """Those of a statement that is about to be run: one that reads or writes rows, and defines nothing."""
    kinds = exp.Query | exp.Values | exp.Insert | exp.Update | exp.Delete
    return Pauses(runner) if isinstance(statement, parser.Plain) and isinstance(statement.tree, kinds) else None


def pauses_of(runner: StatementRunner) -> Pauses | None:
    """Those of the statement that the calling session runs, if it is being bound, and may be interrupted by others."""
    found = core_of(runner.engine).sessions.current().statement_pause
    return found if isinstance(found, Pauses) else None


def copied_beside_others(runner: StatementRunner, statement: parser.Plain) -> exp.Expr:
    """A copy of a statement's tree. While a long one is copied, others use the engine."""
    core = core_of(runner.engine)
    if len(statement.source.statement) < LONG_TEXT or core.coordinator.working:
        return copied(statement.tree)
    found: list[exp.Expr] = []
    core.without_lock(lambda: found.append(copied(statement.tree)))
    core.lock.roll_forward()
    return found[0]
