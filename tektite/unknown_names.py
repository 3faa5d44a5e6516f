"""Names that an object does not have: explains_names answers them with what to write. Collections, expressions, engines and what
a client has answer for themselves, because they know columns, tables and views.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import NoReturn, TypeVar

C = TypeVar("C", bound=type)

_WRITE = "write to the table in the block, as in table.insert(rows): it belongs to the transaction"
_TABLE = "delta.table is a pyarrow.Table"
_NEXT = "next(subscription), poll(timeout), or a for loop"
_OF_SQL = "it has sql(text) and transaction(); a table is engine.table(name), and `with session:` makes its calls the session's"
NAMES: dict[str, dict[str, str]] = {
    "ArgumentQuery": {
        "ask": "answer(value)",
        "call": "answer(value)",
        "execute": "answer(value)",
        "rows": "answer(value)",
        "collect": "answer(value)",
    },
    "Delta": {
        "rows": "delta.table.to_pylist()",
        "to_pylist": "delta.table.to_pylist()",
        "to_dicts": "delta.table.to_pylist()",
        "to_pandas": "delta.table.to_pandas()",
        "to_polars": "polars.from_arrow(delta.table)",
        "to_arrow": "delta.table",
        "df": "delta.table.to_pandas()",
        "data": "delta.table",
        "changes": "delta.table, whose column diff says +1 or -1; subscription.changes() gives rows",
        "diff": "delta.table['diff']",
        "diffs": "delta.table['diff']",
        "inserts": "the rows of delta.table whose diff is positive",
        "inserted": "the rows of delta.table whose diff is positive",
        "deletes": "the rows of delta.table whose diff is negative",
        "deleted": "the rows of delta.table whose diff is negative",
        "removed": "the rows of delta.table whose diff is negative",
        "epoch": "delta.time",
        "timestamp": "delta.time",
        "columns": "delta.table.column_names",
        "schema": "delta.table.schema",
        "num_rows": "delta.table.num_rows",
    },
    "Held": {"close": "release()", "drop": "release()", "time": "at"},
    "Index": {
        "close": "drop()",
        "columns": "engine.indexes(), which lists the columns, rows and readers of each index",
        "rows": "engine.indexes(), which lists the columns, rows and readers of each index",
        "bytes": "engine.indexes(), which lists the columns, rows and readers of each index",
        "lookup": "lookup(key) of the table or view",
    },
    "Following": {
        "processAllAvailable": "process_all_available()",
        "awaitTermination": "await_termination(timeout)",
        "isActive": "active",
        "status": "query.status",
        "lastProgress": "recent[-1]",
        "recentProgress": "recent",
        "progress": "recent",
        "exception": "failure",
        "id": "query.id",
        "runId": "query.runId",
        "name": "query.name",
        "close": "stop()",
        "cancel": "stop()",
        "wait": "process_all_available()",
    },
    "Listener": {"cancel": "close()", "stop": "close()", "unsubscribe": "close()", "dispose": "close()"},
    "Loop": {"result": "leave(collection)", "return_": "leave(collection)", "set": "set(definition) of a variable"},
    "Program": {
        "query": "engine.query(text)",
        "rows": "program['name'].rows()",
        "tables": "predicates",
        "relations": "predicates",
    },
    "Query": {
        **{
            name: f"{name}() of query.view, which is the answer as a view"
            for name in ("head", "lookup", "to_arrow", "to_pandas", "to_polars", "collect", "wait", "show")
        },
        "filter": "query.view, which is the answer as a collection",
        "join": "query.view, which is the answer as a collection",
        "close": "drop()",
        "fetchall": "rows()",
        "result": "answer()",
    },
    "Schema": {
        "columns": "names",
        "dtypes": "types",
        "items": "dict(schema).items()",
        "values": "types",
        "fields": "dict(schema)",
        "field": "schema['x']",
        "get": "schema['x']",
        "to_dict": "dict(schema)",
        "to_arrow": "collect().schema of the collection",
        "to_python": "dict(schema)",
    },
    "Session": {
        "execute": "sql(text)",
        "query": "sql(text)",
        "commit": "sql('COMMIT'), or transaction()",
        "rollback": "sql('ROLLBACK'), or rollback() of the transaction",
        "cursor": "sql(text)",
    },
    "Subscription": {
        "get": _NEXT,
        "read": _NEXT,
        "next": _NEXT,
        "recv": _NEXT,
        "receive": _NEXT,
        "wait": _NEXT,
        "fetch": _NEXT,
        "fetchall": "table() or changes(), which give all that waits",
        "rows": "changes(), or table(), which give all that waits",
        "to_pandas": "table().to_pandas()",
        "to_arrow": "table()",
        "to_polars": "polars.from_arrow(subscription.table())",
        "stop": "close()",
        "cancel": "close()",
        "unsubscribe": "close()",
        "drop": "close()",
        "view": "source",
        "on_change": "subscribe(function) of the view",
        "map": "a for loop",
    },
    "Transaction": {
        "insert": _WRITE,
        "remove": _WRITE,
        "delete": _WRITE,
        "update": _WRITE,
        "table": _WRITE,
        "sql": "engine.sql(text) in the block: it belongs to the transaction",
        "execute": "engine.sql(text) in the block: it belongs to the transaction",
        "abort": "rollback()",
        "epoch": "time",
    },
}  # fmt: skip
"""Other names, by class, each with what to write."""

OTHERWISE = {
    "Delta": f"it has time and table, and {_TABLE}",
    "Session": _OF_SQL,
    "Transaction": f"it has commit(), rollback(), time and positions: {_WRITE}",
    "Program": "a predicate's view is program['name']",
    "Query": "query.view is the answer as a view",
    "Schema": "a column's type is schema['name'], and their names are schema.names",
}
"""What to write in place of a name that is in no table, by class."""


def advice(kind: type, name: str) -> str:
    """The text that follows "has no 'name'" in the error of an object."""
    if name.startswith("_"):
        return ""  # tools ask for these
    found = next((NAMES[base.__name__][name] for base in kind.__mro__ if name in NAMES.get(base.__name__, {})), None)
    if found is not None:
        return f"; {found}" if found == _WRITE else f"; use {found}"
    former = {known for known in dir(kind) if getattr(getattr(kind, known, None), "former", False)}
    public = [known for known in dir(kind) if not known.startswith("_") and known not in former]
    close = get_close_matches(name, public, 1, 0.75)
    if close:
        return f"; did you mean {close[0]!r}?"
    otherwise = next((OTHERWISE[base.__name__] for base in kind.__mro__ if base.__name__ in OTHERWISE), None)
    return f"; {otherwise}" if otherwise else f"; it has {', '.join(public)}"


def _absent(self: object, name: str) -> NoReturn:
    raise AttributeError(f"{type(self).__name__} has no {name!r}{advice(type(self), name)}")


def explains_names(kind: C) -> C:
    """Let the objects of a class say what to write in place of a name that they do not have.

    >>> import tektite as tk
    >>> sales = tk.Engine().create_table("sales", {"shop": str})
    >>> sales.subscribe().unsubscribe()
    Traceback (most recent call last):
    AttributeError: Subscription has no 'unsubscribe'; use close()
    """
    if not any("__getattr__" in vars(base) for base in kind.__mro__[:-1]):
        setattr(kind, "__getattr__", _absent)  # noqa: B010 - a class of any kind
    return kind
