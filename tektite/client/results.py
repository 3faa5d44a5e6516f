"""RemoteResult: the result of a statement."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa

from tektite.errors import IncorrectError
from tektite.expr.other_names import advice
from tektite.unknown_options import explains_options
from tektite.values.columns import named_rows, python_rows
from tektite.values.frames import ArrowReadable
from tektite.values.text_table import show_table

OF_SESSIONS = {
    **dict.fromkeys(("filter", "select", "join", "group_by"), "session.sql(text), with that in its text"),
    "create_view": "session.create_view(name, text)",
    "subscribe": "session.subscribe(text)",
}
"""What a session has in place of what an engine has for a query."""


@explains_options
class RemoteResult(ArrowReadable):
    """The result of a statement: its rows as a `table`, if it has rows; a `message`; and the `time` of a commit, if it is known.

    Iterating yields rows as tuples.

    >>> import tektite as tk
    >>> console = tk.Engine().console()
    the console is at ...
    >>> session = tk.connect(console.url)
    >>> made = session.sql("CREATE MATERIALIZED VIEW one AS SELECT 1 AS a")
    >>> made.message, made.table, made.time, made.view_name
    ('CREATE MATERIALIZED VIEW', None, None, 'one')
    >>> found = session.sql("SELECT a, a + 1 AS b FROM one")
    >>> found.rows(), found.to_arrow().to_pylist(), found.to_pandas().shape
    ([(1, 2)], [{'a': 1, 'b': 2}], (1, 2))
    >>> session.close()
    >>> console.close()
    """

    def __init__(self, message: str, table: pa.Table | None, view: str | None = None, time: int | None = None) -> None:
        self.message = message
        self.table = table
        self.view_name = view
        """The view that the statement has made, if it has."""
        self.time = time

    def to_arrow(self) -> pa.Table:
        """The rows as a `pyarrow.Table`; without columns where the statement gives none."""
        return pa.table({}) if self.table is None else self.table

    def rows(self) -> list[tuple[Any, ...]]:
        """The rows as tuples; none where there is no table."""
        if self.table is None:
            return []
        return python_rows(self.table, "the result", "table") if self.table.num_columns else [()] * self.table.num_rows

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return named_rows(self.rows(), () if self.table is None else self.table.column_names)

    if not TYPE_CHECKING:  # type checkers are to see names that are not there

        def __getattr__(self, name: str) -> NoReturn:
            from tektite.sql.statements.result import OTHER_NAMES

            here = {other: ours for other, ours in OTHER_NAMES.items() if "engine." not in ours} | OF_SESSIONS
            hint = advice(name, here, type(self), "use to_arrow(), to_pandas() or to_polars(), which have more")
            raise AttributeError(f"a result of SQL has no {name!r}{hint}")

        def __getitem__(self, key: object) -> NoReturn:
            instead = f"to_arrow()[{key!r}]" if isinstance(key, str) else f"rows()[{key!r}]"
            raise IncorrectError(f"result[{key!r}]: use {instead}")

        def __aiter__(self) -> NoReturn:
            raise IncorrectError("the rows of a result are here already: write `for`")

    def __len__(self) -> int:
        return 0 if self.table is None else self.table.num_rows

    def __bool__(self) -> bool:
        """True, also of a result without rows."""
        return True

    def __str__(self) -> str:
        """The text that `print` shows: the rows as a table, or the message."""
        if self.table is None:
            return self.message
        if self.message == "EXPLAIN":
            return "\n".join(str(row[0]) for row in self.rows())
        return show_table(self.table)

    def __repr__(self) -> str:
        rows = "" if self.table is None else f", {self.table.num_rows} rows"
        return f"<RemoteResult {self.message!r}{rows}>"
