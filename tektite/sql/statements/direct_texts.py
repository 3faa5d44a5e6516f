"""Texts of SQL that need no plan: which they are is found out once for a text and the types of its values.

Promise: the answer is that of the planned statement, or None, and then nothing has happened. Errors are those of the planned
statement: where something does not fit, it is run, and says so.

Rows that an INSERT writes out are read as values here, without parsing the statement: the text without its rows comes again.
"""

from __future__ import annotations

import datetime
import re
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tektite.engine.core import core_of
from tektite.errors import TektiteError
from tektite.sql.parse import parser
from tektite.sql.statements.direct import LookupByKey, RowInsert, key_lookup, row_insert
from tektite.sql.statements.result import Result
from tektite.sql.statements.transactions import write
from tektite.values.types import Bool, Date, Float, Int, String, Type

if TYPE_CHECKING:
    from tektite.engine.table import Table
    from tektite.engine.view import View
    from tektite.sql.statements.runner import StatementRunner

TEXTS = 256
"""How many texts are remembered, with what they are."""
LONGEST = 1 << 16
"""Characters of a text that is worth remembering, and of an INSERT that is worth reading ahead of the parser."""

_TYPES: dict[type, Type] = {int: Int, str: String, bool: Bool, float: Float, datetime.date: Date}
_LARGEST = 2**63 - 1

_INSERT = re.compile(r"\s*(INSERT\s+INTO\s+[a-z_]\w*\s*(?:\([\w\s,]*\)\s*)?VALUES)\s*(?=\()", re.IGNORECASE | re.ASCII)
# A value and what follows it. A text with a backslash, a longer number and all else are the parser's.
_VALUE = re.compile(r"(\(?)\s*(?:(-?\d{1,18})|'((?:[^'\\]|'')*)')\s*(,|\)\s*+,|\)\s*+;?\s*+$)\s*", re.ASCII)

Direct = RowInsert | LookupByKey


class DirectTexts:
    """Runs texts that need no plan."""

    def __init__(self, runner: StatementRunner) -> None:
        self._runner = runner
        self._known: OrderedDict[tuple[str, tuple[tuple[str, type], ...]], Direct | None] = OrderedDict()

    def run(self, text: str, parameters: Mapping[str, Any]) -> Result | None:
        """The result of a text, if it is one of these; else None."""
        if len(text) > LONGEST or self._runner.transaction is not None:
            return None
        if not parameters:
            found = _written_rows(text)
            return None if found is None else self._insert_all(*found)
        direct = self._find(text, parameters)
        if isinstance(direct, RowInsert):
            return self._insert(direct, direct.rows(parameters))
        return None if direct is None else self._look_up(direct, parameters)

    def _find(self, text: str, values: Mapping[str, Any]) -> Direct | None:
        """The direct statement that a text is with values of these types; None if it is none."""
        key = (text, tuple([(label, type(value)) for label, value in values.items()]))
        found = self._known.get(key)
        if key in self._known:
            self._known.move_to_end(key)
            if found is None or found.stands(self._runner):
                return found
            if isinstance(found, LookupByKey) and self._runner.relation_named(found.name) is found.found:
                return None  # it cannot be read at once
        found = self._known[key] = self._recognised(text, values)
        if len(self._known) > TEXTS:
            self._known.popitem(last=False)
        return found if found is not None and found.stands(self._runner) else None

    def _recognised(self, text: str, values: Mapping[str, Any]) -> Direct | None:
        given = {label: _TYPES.get(type(value)) for label, value in values.items()}
        try:
            statements = list(parser.parse(text))
            if len(statements) != 1 or set(parser.parameters_of(statements[0])) != set(given):
                return None
            types = {label: kind for label, kind in given.items() if kind is not None}
            insert = row_insert(self._runner, statements[0], types)
            if insert is not None:
                return insert
            lookup = key_lookup(self._runner, statements[0], types)
            if lookup is None or not isinstance(statements[0], parser.Plain):
                return None
            planned = self._runner.bind(statements[0].source, statements[0].tree, values)
            return None if any(planned.declared) else lookup
        except TektiteError:
            return None  # the planned statement says what is wrong

    # ------------------------------------------------------------------ running

    def _insert_all(self, head: str, rows: list[tuple[Any, ...]]) -> Result | None:
        """INSERT of rows that the text writes out, all of the same types."""
        labels = [str(at) for at in range(1, len(rows[0]) + 1)]
        values = dict(zip(labels, rows[0], strict=True))
        direct = self._find(f"{head} ({', '.join(f'${label}' for label in labels)})", values)
        if not isinstance(direct, RowInsert):
            return None
        found = [row for given in rows for row in direct.rows(dict(zip(labels, given, strict=True)))]
        return self._insert(direct, found)

    def _may(self, privilege: str, found: Table | View) -> bool:
        """Whether the caller may read or write a relation without a plan, which would say what is not allowed."""
        access = self._runner.access
        return access.allows_directly(access.who(), privilege, found)

    def _insert(self, insert: RowInsert, rows: list[tuple[Any, ...]]) -> Result | None:
        if not self._may("INSERT", insert.table):
            return None
        core = core_of(self._runner.engine)
        began = core.sessions.current().statement_began = core.epoch
        try:
            time = write(self._runner, insert.table, [("insert", rows)])
        except TektiteError:
            if core.epoch != began:
                raise
            return None
        return Result(f"INSERT 0 {len(rows)}", time=time)

    def _look_up(self, lookup: LookupByKey, values: Mapping[str, Any]) -> Result | None:
        if not self._may("SELECT", lookup.found) or self._runner.allowed().rows is not None:
            return None
        if not core_of(self._runner.engine).epoch or any(
            [type(value) is int and not -_LARGEST <= value <= _LARGEST for value in values.values()]
        ):
            return None
        try:
            return Result("SELECT", lookup.table(values))
        except TektiteError:
            return None


def _written_rows(text: str) -> tuple[str, list[tuple[Any, ...]]] | None:
    """An INSERT without its rows, and the rows that it writes out as integers and texts: those of one type in each column.

    >>> _written_rows("insert into t (a, b) values (1, 'it''s'), (-2, '')")
    ('insert into t (a, b) values', [(1, "it's"), (-2, '')])
    >>> _written_rows("INSERT INTO t VALUES (1, 2.5)"), _written_rows("INSERT INTO t VALUES (1, 2), (3)")
    (None, None)
    """
    start = _INSERT.match(text)
    if start is None:
        return None
    rows: list[tuple[Any, ...]] = []
    row: list[Any] = []
    at, is_open = start.end(), False
    while at < len(text):
        found = _VALUE.match(text, at)
        if found is None or bool(found[1]) is is_open:
            return None
        row.append(int(found[2]) if found[2] is not None else found[3].replace("''", "'"))
        is_open = found[4] == ","
        if not is_open:
            rows.append(tuple(row))
            row = []
        at, ended = found.end(), not found[4].rstrip().endswith(",")
    kinds = [type(value) for value in rows[0]] if rows else []
    if row or not rows or not ended or any([[type(value) for value in each] != kinds for each in rows]):
        return None
    return start[1], rows
