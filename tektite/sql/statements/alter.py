"""ALTER TABLE: the DEFAULT of a column. The columns of a table stay what they are: CREATE TABLE AS makes another one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from tektite.engine.core import core_of
from tektite.engine.declarations import defaults_of, set_defaults
from tektite.errors import NotFoundError, UnsupportedError
from tektite.sql.access.access_control import table_object
from tektite.sql.bind.scope import folded
from tektite.sql.parse.places import StatementText, nearest
from tektite.sql.parse.read_arguments import refuse_unread
from tektite.sql.statements.create import default_value
from tektite.sql.statements.result import Result
from tektite.sql.statements.table_writes import target

if TYPE_CHECKING:
    from tektite.sql.statements.runner import StatementRunner

CALLED = {"columndef": "ADD COLUMN", "drop": "DROP COLUMN", "renamecolumn": "RENAME COLUMN", "alterrename": "RENAME TO",
          "altercolumn": "ALTER COLUMN TYPE"}  # fmt: skip


def alter(runner: StatementRunner, source: StatementText, tree: exp.Alter, parameters: Mapping[str, Any]) -> Result:
    """ALTER TABLE name ALTER COLUMN column SET DEFAULT value | DROP DEFAULT."""
    kind = (tree.args.get("kind") or "").upper()
    if kind != "TABLE":
        raise source.error(f"ALTER {kind} is not supported", source.where(kind), UnsupportedError)
    table = target(runner, source, tree.this)
    runner.access.check_owner(runner.access.who(), table_object(table.name))
    changes: dict[str, Any] = {}
    for action in tree.args.get("actions") or ():
        if not isinstance(action, exp.AlterColumn) or action.args.get("dtype") is not None:
            what = CALLED.get(action.key, action.key.upper())
            message = (
                f"ALTER TABLE {what} is not supported: the columns of a table stay as they were made. "
                f"CREATE TABLE new AS SELECT ... FROM {table.name} makes another one"
            )
            raise source.error(message, action, UnsupportedError)
        column = folded(action.this)
        if column not in table.schema.names:
            message = f"table {table.name!r} has no column {column!r}: {nearest(column, table.schema.names)}"
            raise source.error(message, action, NotFoundError)
        said, gone = action.args.get("default"), action.args.get("drop")
        if said is None and not gone:
            raise source.error("ALTER COLUMN takes SET DEFAULT and DROP DEFAULT", action, UnsupportedError)
        type = table.schema.types[table.schema.index(column)]
        changes[column] = None if said is None else default_value(runner, source, said, type)
    refuse_unread(source, tree)
    known = defaults_of(core_of(table)) | changes
    set_defaults(core_of(table), {column: value for column, value in known.items() if value is not None})
    return Result("ALTER TABLE")
