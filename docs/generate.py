"""Writes docs/api/: a page for each group of public names, from their signatures, docstrings and raise statements.

`python docs/generate.py` writes the pages. `tests/house/test_reference_pages.py` fails when one is not what this would write.
Names that a class inherits are on the page of the class that defines them. A name's errors are those that its own code raises;
what it calls may raise others. Examples are those of the docstrings, which run as tests.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tektite as tk
from tektite import errors
from tektite.client.async_session import AsyncSession, AsyncStatement, AsyncTransaction
from tektite.client.relations import AsyncRelation, AsyncTable, AsyncView
from tektite.client.results import RemoteResult
from tektite.client.session import RemoteSession, RemoteStatement, RemoteTransaction
from tektite.client.subscriptions import AsyncSubscription
from tektite.client.tables import RemoteRelation, RemoteSubscription, RemoteTable, RemoteView
from tektite.engine.readable_collection import ReadableCollection
from tektite.engine.system.relations import SYSTEM
from tektite.former_names import without_former

FOLDER = Path(__file__).parent / "api"
PAGES: dict[str, tuple[str, tuple[str, ...]]] = {
    "engine": (
        "Engine, sessions and storage",
        ("Engine", "Session", "Transaction", "Storage", "Held", "Index", "IndexInfo", "Profile", "OperatorProfile", "SpanExport"),
    ),
    "tables-and-views": ("Tables and views", ("Table", "View", "ReadableCollection")),
    "subscriptions": ("Subscriptions", ("Subscription", "Delta", "Change", "Listener")),
    "clients": (
        "Clients of a server",
        (
            "connect", "RemoteSession", "RemoteTable", "RemoteView", "RemoteRelation", "RemoteSubscription", "RemoteStatement",
            "RemoteResult", "RemoteTransaction", "connect_async", "AsyncSession", "AsyncTable", "AsyncView", "AsyncRelation",
            "AsyncSubscription", "AsyncStatement", "AsyncTransaction",
        ),
    ),
    "queries": ("Queries", ("Collection", "Grouped", "Loop", "LoopVariable", "match", "ArgumentQuery", "Explanation")),
    "expressions": (
        "Expressions",
        ("Expr", "col", "lit", "when", "coalesce", "concat", "concat_ws", "greatest", "least", "hash64", "now", "sql_expr",
            "truncdiv", "truncmod"),
    ),
    "aggregates": (
        "Aggregates and windows",
        (
            "sum", "count", "mean", "avg", "min", "max", "median", "std", "var", "first", "last", "any", "all", "n_unique",
            "corr", "cov",
            "count_distinct", "row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead",
        ),
    ),
    "types-and-errors": (
        "Types and errors",
        (
            "Schema", "Type", "Int", "Int64", "Float", "Float64", "Bool", "Date", "Time", "Timestamp", "TimestampTz",
            "Interval", "IntervalValue", "String", "Decimal", "List", "Struct", "Json", "Uuid", "Blob",
            "TektiteError", "IncorrectError", "NotFoundError", "ConflictError", "TransactionConflict", "UnsupportedError",
            "FaultError", "FunctionError",
        ),
    ),
}  # fmt: skip
"""Pages by file name: a title, and the names on it. Every name of `tektite.__all__` is on one."""
UNNAMED: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        ReadableCollection, RemoteSession, RemoteTable, RemoteView, RemoteRelation, RemoteSubscription, RemoteStatement,
        RemoteResult, RemoteTransaction, AsyncSession, AsyncTable, AsyncView, AsyncRelation, AsyncSubscription, AsyncStatement,
        AsyncTransaction,
    )
}  # fmt: skip
"""Classes that programs get and do not make, so that `tektite` has no names for them."""


INTERNAL = frozenset({
    "Expr.args", "Expr.op", "Expr.params", "Expr.fingerprint", "Expr.columns", "Expr.walk", "Expr.substitute", "Expr.replaced",
    "Schema.decode_rows", "Schema.encode_ints", "Schema.int_columns", "Schema.decode", "Schema.encode",
    "Type.interned", "Type.has_keys", "Storage.of", "Storage.open", "Subscription.lock", "Listener.lock",
    "Transaction.lock", "Transaction.reads", "Transaction.write", "Transaction.forget", "Transaction.seen",
})  # fmt: skip
"""Members without an underscore that languages, loads and executors use, and programs do not."""


HEAD = """# Generated reference

Every public name with its parameters, defaults, errors and examples, from the code. The tables of the
[reference](../reference.md) are shorter. Examples leave out `tk.` here and there.

"""


def public(name: str) -> Any:
    """The object that a page documents under a name."""
    return UNNAMED[name] if name in UNNAMED else getattr(tk, name)


def pages() -> dict[Path, str]:
    """The text of each page."""
    found = {FOLDER / f"{file}.md": page(title, names) for file, (title, names) in PAGES.items()}
    found[FOLDER / "system-relations.md"] = system_relations()
    listed = "".join(f"| [{title}]({file}.md) | {', '.join(f'`{name}`' for name in names)} |\n"
                     for file, (title, names) in PAGES.items())  # fmt: skip
    listed += (
        "| [System relations](system-relations.md) | `system.views` and others: what an engine says about itself |\n"
    )
    found[FOLDER / "index.md"] = f"{HEAD}| page | names |\n|---|---|\n{listed}"
    return found


def system_relations() -> str:
    """The page of the relations that an engine keeps about itself."""
    parts = [
        "# System relations\n\nWhat an engine says about itself, as tables: see [look inside](../how-to/look-inside.md).\n"
    ]
    for name, relation in SYSTEM.items():
        parts.append(f"## `{name}`\n\n{relation.about[0].upper()}{relation.about[1:]}.\n\n| column | type |\n|---|---|")
        parts.append("\n".join(f"| `{column}` | {type} |" for column, type in relation.columns.items()) + "\n")
    return "\n".join(parts)


def page(title: str, names: tuple[str, ...]) -> str:
    """One page."""
    parts = [f"# {title}\n"]
    for name in names:
        found = public(name)
        if inspect.isclass(found):
            parts += class_section(name, found)
        elif callable(found) and not isinstance(found, tk.Type):
            parts.append(entry(f"## `tk.{name}", found))
        else:
            parts.append(
                f"## `tk.{name}`\n\nThe type `{found}`.\n" if isinstance(found, tk.Type) else f"## `tk.{name}`\n"
            )
    return "\n".join(parts)


def class_section(name: str, kind: type) -> Iterator[str]:
    """A class, then its methods and properties: its own, and those of bases that have no page."""
    documented = {*tk.__all__, *UNNAMED}
    bases = [base.__name__ for base in kind.__mro__[1:] if base.__name__ in documented]
    elsewhere = {part for base in kind.__mro__[1:] if base.__name__ in documented for part in base.__mro__}
    parts = [kind, *(base for base in kind.__mro__[1:] if _is_part(base, documented) and base not in elsewhere)]
    hidden = getattr(kind, "_internal", ())
    own = dict.fromkeys(each for part in parts for each in vars(part) if is_public(name, each) and each not in hidden)
    heading = f"## `{name}" if name in UNNAMED else f"## `tk.{name}"
    yield entry(heading, kind, f"Also has what {' and '.join(f'`{base}`' for base in bases)} has." if bases else "")
    for member in without_former(kind, list(own)):
        found = inspect.getattr_static(kind, member)
        if isinstance(found, property):
            yield f"### `{name}.{member}`\n\n{prose(found.fget)}\n"
        elif isinstance(found, staticmethod | classmethod):
            yield entry(f"### `{name}.{member}", found.__func__)
        elif inspect.isfunction(getattr(kind, member)):  # what the class gives, where a descriptor stands for a method
            yield entry(f"### `{name}.{member}", getattr(kind, member))


def is_public(name: str, member: str) -> bool:
    """Whether a member of a class is for programs."""
    return not member.startswith("_") and f"{name}.{member}" not in INTERNAL


def _is_part(base: type, documented: set[str]) -> bool:
    """Whether a class is one of ours that only holds methods of others."""
    return base.__module__.startswith("tektite.") and base.__name__ not in documented


def entry(heading: str, found: Any, note: str = "") -> str:
    """A function or class: its signature, its docstring, its errors."""
    raised = raises(found)
    errors_line = f"Raises {', '.join(f'`{error}`' for error in raised)}.\n" if raised else ""
    return "\n".join(
        filter(None, [f"{heading}{signature(found)}`\n", f"{prose(found)}\n", f"{note}\n" if note else "", errors_line])
    )


def signature(found: Any) -> str:
    """Parameters with types and defaults, without `self`."""
    if inspect.isclass(found) and (
        found.__init__ in (object.__init__, Exception.__init__) or found in UNNAMED.values()
    ):
        return ""
    try:
        given = inspect.signature(found.__init__ if inspect.isclass(found) else found)
    except ValueError:
        return ""
    parts, keyword_only = [], False
    for parameter in given.parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            if not any(part.startswith("*") for part in parts):
                parts.append("*")
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        keyword_only |= parameter.kind is parameter.VAR_POSITIONAL
        typed = "" if parameter.annotation is parameter.empty else f": {parameter.annotation}"
        default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        parts.append(f"{stars}{parameter.name}{typed}{default}")
    result = (
        "" if inspect.isclass(found) or given.return_annotation is given.empty else f" -> {given.return_annotation}"
    )
    return f"({', '.join(parts)}){result}"


def prose(found: Any) -> str:
    """A docstring as Markdown: examples are code."""
    text = inspect.getdoc(found) or ""
    return re.sub(
        r"(^>>>.*?)(?=\n\n|\Z)", lambda example: f"```python\n{example[1]}\n\n```", text, flags=re.MULTILINE | re.DOTALL
    )


def raises(found: Any) -> list[str]:
    """The kinds of errors that the code itself raises."""
    code = inspect.unwrap(found.__init__ if inspect.isclass(found) else found)
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(code)))
    except (OSError, TypeError):
        return []
    calls = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)]
    names = [call.func.id for call in calls if isinstance(call.func, ast.Name)]
    return sorted({name for name in names if hasattr(errors, name)})


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for path, text in pages().items():
        path.write_text(text)
