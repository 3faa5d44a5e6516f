"""DROP: tables, views and indexes, one by one while nothing reads them, or, with CASCADE, together with all that does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from tektite.engine.core import core_of
from tektite.engine.table import Table
from tektite.engine.view import View
from tektite.errors import ConflictError, NotFoundError, UnsupportedError
from tektite.sql.access.access_control import schema_object, table_object
from tektite.sql.bind.definitions import Definition, GraphDefinition
from tektite.sql.bind.scope import folded
from tektite.sql.catalog.schemas import DEFAULT, SYSTEM, name_parts, same_schema, written_name
from tektite.sql.parse.places import StatementText, nearest
from tektite.sql.parse.property_graphs import KIND
from tektite.sql.parse.read_arguments import refuse_unread
from tektite.sql.statements import prepared
from tektite.sql.statements.create import drop_relation, kind_of, readers_left, remove_index, view_reads
from tektite.sql.statements.prepared_names import OF
from tektite.sql.statements.result import Result

if TYPE_CHECKING:
    from tektite.sql.statements.runner import StatementRunner


def drop(runner: StatementRunner, source: StatementText, tree: exp.Drop, parameters: Mapping[str, Any]) -> Result:
    """DROP TABLE, VIEW, MATERIALIZED VIEW, INDEX or PROPERTY GRAPH: refused while something reads
    it, unless that is to go as well.
    """
    kind = (tree.args.get("kind") or "").upper()
    if kind == "SCHEMA":
        return drop_schemas(runner, source, tree)
    if kind not in ("TABLE", "VIEW", "INDEX", KIND):
        raise source.error(f"DROP {kind} is not supported", source.where(kind), UnsupportedError)
    cascade = bool(tree.args.get("cascade"))
    tree.args.get("restrict")  # is what DROP does without it
    more: list[str] = []
    nodes = tree.args.get("tables") or [tree.this]
    names = [wanted(runner, source, kind, node, bool(tree.args.get("exists"))) for node in nodes]
    refuse_unread(source, tree)
    for name in names:
        if name is not None:
            check_owner(runner, kind, name)
    together = set(names)
    for node, name in zip(nodes, names, strict=True):
        if name is not None and kind != "INDEX":  # all are refused, or none
            check_droppable(runner, source, kind, node, name, together, cascade)
    left = list(dict.fromkeys(names))
    while left:
        name = left.pop(0)
        if name is None:
            continue
        if kind == "INDEX":
            remove(runner, kind, name)
            continue
        for reader in all_readers(runner, name) if cascade or len(together) > 1 else ():
            remove(runner, *reader)
            if reader[1] in together:
                left = [other for other in left if other != reader[1]]
            elif reader[0] != "SUBSCRIPTION":
                more.append(reader[1].partition(OF)[0] if reader[0] == "PREPARE" else reader[1])
        remove(runner, kind, name)
    dropped = f"DROP {kind}"
    return Result(f"{dropped}, and what read it: {', '.join(more)}" if more else dropped)


def check_droppable(
    runner: StatementRunner,
    source: StatementText,
    kind: str,
    node: exp.Expr,
    name: str,
    together: set[str | None],
    cascade: bool,
) -> None:
    """Refuse to drop what something reads that does not go `together` with it, and what the open transaction has changed."""
    found = runner.relation_stored(name)
    readers = [] if cascade else readers_left(runner, name, len(together) > 1)
    readers = [reader for reader in readers if reader not in together]
    if readers:
        shown = ", ".join(repr(reader) for reader in readers)
        message = f"cannot drop {kind.lower()} {name!r}: {shown} read{'s' * (len(readers) == 1)} it"
        raise source.error(message, node, ConflictError, condition="dependent-objects-still-exist")
    if isinstance(found, Table) and runner.transaction is not None and runner.transaction.changes(found):
        message = f"cannot drop table {name!r}: the open transaction has changed it; COMMIT or ROLLBACK first"
        raise source.error(message, node, ConflictError)


def drop_schemas(runner: StatementRunner, source: StatementText, tree: exp.Drop) -> Result:
    """DROP SCHEMA: refused while something is in it, unless that is to go as well."""
    nodes = tree.args.get("tables") or [tree.this]
    cascade, may_be_missing = bool(tree.args.get("cascade")), bool(tree.args.get("exists"))
    chosen = []
    for node in nodes:
        name = same_schema(folded(node.args.get("db")))
        if name in (DEFAULT, *SYSTEM):
            raise source.error(f"schema {name!r} cannot be dropped", node, ConflictError)
        if name not in runner.schema_names():
            if may_be_missing:
                continue
            raise source.error(
                f"there is no schema {name!r}: {nearest(name, runner.visible_schemas())}",
                node,
                NotFoundError,
                condition="undefined-schema",
            )
        runner.access.check_owner(runner.access.who(), schema_object(name))
        inside = [known for known in runner.known() if name_parts(known)[0] == name]
        if inside and not cascade:
            visible = sorted(set(inside) & set(runner.visible()))
            shown = [*map(repr, visible), *["others"] * (len(visible) < len(inside))]
            message = (
                f"cannot drop schema {name!r}: {', '.join(shown)} {'is' if len(inside) == len(shown) == 1 else 'are'} in it; "
                "CASCADE drops all"
            )
            raise source.error(message, node, ConflictError, condition="dependent-objects-still-exist")
        chosen.append((name, inside))
    refuse_unread(source, tree)
    for name, inside in chosen:
        for known in inside:
            if runner.relation_stored(known) is None:
                continue  # it went with what it reads
            for reader in all_readers(runner, known):
                remove(runner, *reader)
            remove(runner, kind_of(runner, known).upper(), known)
        runner.schemas.discard(name)
        runner.access.dropped([schema_object(name)])
    return Result("DROP SCHEMA")


def check_owner(runner: StatementRunner, kind: str, name: str) -> None:
    """Refuse to let somebody drop what is not theirs; an index is its table's."""
    named = runner.indexes[name].table if kind == "INDEX" else name
    runner.access.check_owner(runner.access.who(), table_object(named))


def wanted(runner: StatementRunner, source: StatementText, kind: str, node: exp.Expr, lenient: bool) -> str | None:
    """The name of what is to be dropped; None if there is no such thing and that is no mistake."""
    name = folded(node.this) if kind == "INDEX" else written_name(source, node)
    found: Any = runner.indexes.get(name) if kind == "INDEX" else runner.relation_named(name)
    right = {
        "TABLE": isinstance(found, Table),
        "VIEW": isinstance(found, View | Definition) and not isinstance(found, GraphDefinition),
        KIND: isinstance(found, GraphDefinition),
        "INDEX": found is not None,
    }
    if found is not None and right[kind]:
        return str(found.name)
    if found is not None:
        other = kind_of(runner, found.name)
        raise source.error(
            f"{name!r} is a {other}: DROP {other.upper()} drops it", node, ConflictError, condition="wrong-object-type"
        )
    if lenient:
        return None
    shown = [i.name for i in runner.indexes.values() if runner.access.knows(runner.access.who(), i.table)]
    known = shown if kind == "INDEX" else runner.visible()
    if kind == KIND:
        known = [graph.name for graph in runner.graphs() if graph.name in known]
    raise source.error(
        f"there is no {kind.lower()} {name!r}: {nearest(name, known)}",
        node,
        NotFoundError,
        condition=f"undefined-{'object' if kind == 'INDEX' else 'table'}",
    )


def all_readers(runner: StatementRunner, name: str) -> list[tuple[str, str]]:
    """All that reads something, directly or through others, each with what kind of thing it is, and behind all that reads it.
    Views of programs are among it.
    """
    found: list[tuple[str, str]] = []

    def visit(known: str) -> None:
        source = runner.relation_stored(known)
        views = [v.name for v in runner.view_texts if not v.dropped and known in runner.reads.get(v.name, ())]
        views += [d.name for d in runner.definitions.values() if known in d.reads]
        if isinstance(source, Table | View):
            all_views = [v for v in core_of(runner.engine).views.values() if not v.name.startswith("__")]
            views += [v.name for v in all_views if view_reads(v, source)]
        for view in dict.fromkeys(views):
            if ("VIEW", view) not in found:
                visit(view)
                found.append(("VIEW", view))
        found.extend(("INDEX", i.name) for i in runner.indexes.values() if i.table == known)
        found.extend(("PREPARE", key) for key, p in runner.prepared.items() if known in p.reads)
        found.extend(("SUBSCRIPTION", q.view.name) for q in runner.shared.all() if known in q.reads)

    visit(name)
    return list(dict.fromkeys(found))


def remove(runner: StatementRunner, kind: str, name: str) -> None:
    """Take away what has a name and is not read."""
    if kind == "INDEX":
        remove_index(runner, name)
    elif kind == "PREPARE":
        prepared.forget(runner, name)
    elif kind == "SUBSCRIPTION":
        for shared in runner.shared.all():
            if shared.view.name == name:
                runner.shared.remove(shared)
    elif name in runner.definitions:
        del runner.definitions[name]
        runner.access.dropped([table_object(name)])
    else:
        drop_relation(runner, name)
        runner.standing_secured.pop(name, None)
        runner.access.dropped([table_object(name)])
