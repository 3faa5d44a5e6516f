"""SHOW: what there is, as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from tektite.engine.core import core_of
from tektite.engine.input_core import InputCore
from tektite.engine.table import Table
from tektite.engine.versions import read_version
from tektite.engine.view import View
from tektite.engine.view_core import ViewCore
from tektite.errors import NotFoundError, UnsupportedError
from tektite.sql.bind.definitions import GraphDefinition
from tektite.sql.parse.parser import SHOWN, Refresh, Show
from tektite.sql.parse.places import nearest
from tektite.sql.statements.disclosure import FAILED, sees_below
from tektite.sql.statements.result import Result

if TYPE_CHECKING:
    from tektite.sql.statements.runner import StatementRunner


def show(runner: StatementRunner, statement: Show) -> Result:
    """SHOW TABLES | VIEWS | INDEXES | ARRANGEMENTS | SCHEMAS | COLUMNS FROM name | a setting | ALL."""
    if statement.what == "columns":
        return Result("SHOW", columns(runner, statement))
    if statement.what == "setting":
        return Result("SHOW", setting(runner, statement))
    if statement.what == "all":
        names = ("name", "setting", "description")
        every = list(zip(*runner.settings.rows(), strict=True))
        return Result("SHOW", pa.table({n: pa.array(v, pa.string()) for n, v in zip(names, every, strict=True)}))
    if statement.what in ("sources", "sinks"):
        return Result("SHOW", runner.connectors_of(statement).shown(statement.what.removesuffix("s")))
    shown = {
        "tables": tables, "views": views, "indexes": indexes, "arrangements": arrangements, "schemas": schemas,
    }  # fmt: skip
    return Result("SHOW", shown[statement.what](runner))


def refresh(runner: StatementRunner, statement: Refresh) -> Result:
    """REFRESH MATERIALIZED VIEW: a view follows every epoch, so that there is nothing to do but to find it."""
    found = runner.relation_named(statement.name)
    if not isinstance(found, View):
        hint = nearest(statement.name, [v for v in runner.engine.views if v in runner.visible()])
        message = f"there is no materialized view {statement.name!r}: {hint}"
        raise statement.source.error(message, statement.place, NotFoundError, condition="undefined-table")
    notice = f"{found.name!r} is kept up to date with every change, there is nothing to refresh"
    return Result("REFRESH MATERIALIZED VIEW", notice=notice)


def setting(runner: StatementRunner, statement: Show) -> pa.Table:
    """One setting, as a column of its name."""
    try:
        name = runner.settings.known(statement.name)
    except NotFoundError:
        listed = ", ".join(word.upper() for word in SHOWN)
        message = (
            f"SHOW {statement.name.upper()} is not supported; there are settings (SHOW ALL lists them), and {listed}"
        )
        raise statement.source.error(message, statement.place, UnsupportedError) from None
    return pa.table({name: pa.array([runner.settings.show(name)], pa.string())})


def tables(runner: StatementRunner) -> pa.Table:
    """Tables with their sizes, modes and keys."""
    shown = set(runner.visible())
    found = [i for i in core_of(runner.engine).inputs.values() if i.name in shown]
    return pa.table(
        {
            "name": pa.array([i.name for i in found], pa.string()),
            "rows": pa.array([rows_of(i) if is_readable(runner, i.facade) else None for i in found], pa.int64()),
            "mode": pa.array([i.declared.kind for i in found], pa.string()),
            "key": pa.array([", ".join(i.declared.key) for i in found], pa.string()),
        }
    )


def schemas(runner: StatementRunner) -> pa.Table:
    """The schemas."""
    return pa.table({"name": pa.array(runner.visible_schemas(), pa.string())})


def is_readable(runner: StatementRunner, found: Table | View) -> bool:
    """Whether the session's user may read all rows of a relation, and so know how many there are and which of them fail."""
    return runner.access.allows_directly(runner.access.who(), "SELECT", found)


def rows_of(table: InputCore) -> int | None:
    """The number of rows of a table, repeated rows included; None if it keeps none."""
    if table.is_stream:
        return None
    return int(read_version(table.trace, table.low - 1)[-1].sum()) if table.low else 0


def views(runner: StatementRunner) -> pa.Table:
    """Views: those that are kept, with their sizes and what a read of them raises, and those that are definitions, as
    property graphs are."""
    shown = set(runner.visible())
    kept = [v for v in core_of(runner.engine).views.values() if v.name in shown]
    defined = [name for name in runner.definitions if name in shown]
    names = [*(v.name for v in kept), *defined]
    graphs = {graph.name for graph in runner.graphs()}
    kinds = ["materialized"] * len(kept) + ["property graph" if name in graphs else "definition" for name in defined]
    readable = [is_readable(runner, v.facade) for v in kept]
    rows = [v.count if may else None for v, may in zip(kept, readable, strict=True)]
    errors = [shown_error(runner, v) if may else None for v, may in zip(kept, readable, strict=True)]
    rows, errors = rows + [None] * len(defined), errors + [None] * len(defined)
    return pa.table(
        {
            "name": pa.array(names, pa.string()),
            "kind": pa.array(kinds, pa.string()),
            "rows": pa.array(rows, pa.int64()),
            "error": pa.array(errors, pa.string()),
        }
    )


def shown_error(runner: StatementRunner, view: ViewCore) -> str | None:
    """The error that a read of a view raises, as the session's user may know it."""
    if view.error is None:
        return None
    return str(view.error) if sees_below(runner, runner.access.who(), [view.name]) else FAILED


def indexes(runner: StatementRunner) -> pa.Table:
    """Indexes by name."""
    who = runner.access.who()
    found = [index for index in runner.indexes.values() if runner.access.knows(who, index.table)]
    return pa.table(
        {
            "name": pa.array([i.name for i in found], pa.string()),
            "table": pa.array([i.table for i in found], pa.string()),
            "columns": pa.array([", ".join(i.columns) for i in found], pa.string()),
        }
    )


def arrangements(runner: StatementRunner) -> pa.Table:
    """Every shared arrangement, with its size and readers."""
    runner.access.check_super(runner.access.who(), "to see how large all arrangements are")
    found = [a for a in runner.engine.indexes() if not a.name.startswith("__")]
    return pa.table(
        {
            "name": pa.array([a.name for a in found], pa.string()),
            "columns": pa.array([", ".join(a.columns) for a in found], pa.string()),
            "rows": pa.array([a.rows for a in found], pa.int64()),
            "bytes": pa.array([a.bytes for a in found], pa.int64()),
            "readers": pa.array([", ".join(a.readers) for a in found], pa.string()),
        }
    )


def columns(runner: StatementRunner, statement: Show) -> pa.Table:
    """The columns of a table or view."""
    found = runner.relation_named(statement.name)
    if found is None:
        message = f"there is no table or view {statement.name!r}: {nearest(statement.name, runner.visible())}"
        raise statement.source.error(message, statement.place, NotFoundError, condition="undefined-table")
    if not runner.access.knows(runner.access.who(), found.name):
        runner.access.check_read(runner.access.who(), found)
    if isinstance(found, GraphDefinition):
        labels = f"node labels {', '.join(found.nodes)}; edge labels {', '.join(found.edges) or 'none'}"
        raise statement.source.error(
            f"{statement.name!r} is a property graph, without columns; {labels}", statement.place
        )
    schema = found.schema if isinstance(found, Table | View) else runner.described(found)
    return pa.table(
        {
            "name": pa.array(schema.names, pa.string()),
            "type": pa.array([str(type) for type in schema.types], pa.string()),
        }
    )
