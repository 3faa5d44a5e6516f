"""`Result`: what a statement of SQL returns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa

from tektite.engine.changes import Changes
from tektite.engine.subscription import Subscription
from tektite.engine.view import View
from tektite.errors import IncorrectError
from tektite.expr.other_names import advice
from tektite.former_names import former_name
from tektite.unknown_options import explains_options
from tektite.values.columns import named_rows, python_rows
from tektite.values.frames import ArrowReadable
from tektite.values.html import SHOWN_ROWS, html_table, html_text
from tektite.values.text_table import show_table

OTHER_NAMES = {
    "df": "to_pandas()",
    "pl": "to_polars()",
    "arrow": "to_arrow()",
    "fetchall": "rows()",
    "fetchone": "rows()[0]",
    "fetchdf": "to_pandas()",
    "fetch_arrow_table": "to_arrow()",
    "collect": "to_arrow()",
    "show": "print(result)",
    "fetchmany": "rows()[:n]",
    "columns": "to_arrow().column_names",
    "description": "to_arrow().schema",
    "rowcount": "len(result), or message",
    "scalar": "rows()[0][0]",
    "scalar_one": "rows()[0][0]",
    "scalars": "[row[0] for row in result]",
    "all": "rows()",
    "first": "rows()[0]",
    "one": "rows()[0]",
    "mappings": "to_arrow().to_pylist()",
    "keys": "to_arrow().column_names",
    "head": "to_arrow().slice(0, n)",
    "limit": "to_arrow().slice(0, n)",
    "to_dicts": "to_arrow().to_pylist()",
    "to_pylist": "to_arrow().to_pylist()",
    "to_dict": "to_arrow().to_pydict()",
    "schema": "to_arrow().schema",
    "shape": "to_arrow().shape",
    "to_df": "to_pandas()",
    "toPandas": "to_pandas()",
    "num_rows": "len(result)",
    "execute": "rows(): a statement has run when sql(text) returns",
    "close": "nothing: a result holds its rows; close() of its subscription ends that",
    "filter": "engine.from_sql(text).filter(...)",
    "select": "engine.from_sql(text).select(...)",
    "join": "engine.from_sql(text).join(...)",
    "group_by": "engine.from_sql(text).group_by(...)",
    "create_view": "engine.create_view(name, text)",
    "fetchnumpy": "to_pandas()",
    "names": "to_arrow().column_names",
    "types": "to_arrow().schema.types",
    "lastrowid": "SQL's RETURNING",
    "one_or_none": "rows()",
    "values": "rows()",
    "fetch_df": "to_pandas()",
    "subscribe": "engine.create_view(name, text).subscribe()",
    "to_list": "rows()",
    "write_csv": "to_pandas().to_csv(path)",
    "to_csv": "to_pandas().to_csv(path)",
    "iterrows": "for row in result",
}
"""Other libraries' names of the methods of a result."""


@explains_options
@dataclass(frozen=True)
class Result(ArrowReadable):
    """The result of a statement: rows as a `table`, a `view`, or a `subscription`; and a `message` always.

    Iterating yields rows as tuples; of a subscription, what iterating that does: deltas, for which it waits.
    """

    message: str
    table: pa.Table | None = None
    view: View | None = None
    subscription: Subscription | None = None
    notice: str = ""
    """A remark for the user beside the message."""
    time: int | None = field(default=None, repr=False, compare=False)
    """The time at which what the statement has written can be read; None if it writes nothing, or in a transaction."""

    reads: tuple[str, ...] | None = field(default=None, repr=False, compare=False)
    """The relations that the query of a subscription names: a server tells of errors by what its users may read."""

    def __iter__(self) -> Iterator[Any]:
        if self.subscription is not None:
            return iter(self.subscription)
        return named_rows(self.rows(), () if self.table is None else self.table.column_names)

    @property
    @former_name("result.subscription")
    def changes(self) -> Changes | None:
        """The changes of a subscription row by row, by a former name."""
        return None if self.subscription is None else Changes(self.subscription)

    def rows(self) -> list[tuple[Any, ...]]:
        """The rows of the table, as tuples; none where there is no table."""
        if self.table is None:
            return []
        if not self.table.num_columns:
            return [()] * self.table.num_rows
        return python_rows(self.table, "the result", "table")

    def __len__(self) -> int:
        return 0 if self.table is None else self.table.num_rows

    def __bool__(self) -> bool:
        """True, also of a result without rows."""
        return True

    def to_arrow(self) -> pa.Table:
        """The rows as a `pyarrow.Table`; without columns where the statement gives none."""
        return pa.table({}) if self.table is None else self.table

    if not TYPE_CHECKING:  # type checkers are to see names that are not there

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(f"a result of SQL has no {name!r}{self._instead_of(name)}")

    def _instead_of(self, name: str) -> str:
        table = self.__dict__.get("table")
        if table is not None and name in table.column_names:
            return f"; use to_arrow()[{name!r}]"
        return advice(name, OTHER_NAMES, type(self), "use to_arrow(), to_pandas() or to_polars(), which have more")

    def __getitem__(self, key: object) -> NoReturn:
        """Refused: rows and columns are asked for by what they are."""
        instead = f"to_arrow()[{key!r}]" if isinstance(key, str) else f"rows()[{key!r}]"
        raise IncorrectError(f"result[{key!r}]: use {instead}")

    def __str__(self) -> str:
        if self.table is None:
            return f"{self.message}: {self.notice}" if self.notice else self.message
        if self.message == "EXPLAIN":
            return "\n".join(row[0] for row in self.rows())
        return show_table(self.table)

    def _repr_html_(self) -> str:
        """The HTML that a notebook shows."""
        if self.table is None or self.message == "EXPLAIN":
            return html_text(str(self))
        shown = python_rows(self.table.slice(0, SHOWN_ROWS), "the result", "table")
        more = f"{SHOWN_ROWS} of {self.table.num_rows} rows" if self.table.num_rows > SHOWN_ROWS else ""
        return html_table(self.table.column_names, shown, "", more)
