"""Binding FROM: the elements of lists and of JSON as relations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from tektite.expr import Expr, col, json_texts
from tektite.sql.bind import nested
from tektite.sql.bind.clause import ClauseContext
from tektite.sql.bind.scope import NameScope, folded
from tektite.sql.bind.table_functions import named, of_function
from tektite.sql.catalog.set_functions import ListRows
from tektite.sql.logical import Node, Project
from tektite.values import types

if TYPE_CHECKING:
    from tektite.sql.bind.query import Binder


def list_elements(
    binder: Binder, node: exp.Expr, left: NameScope, clause: ClauseContext, lists: list[Expr], title: str = "unnest"
) -> tuple[Node, NameScope]:
    """The elements of lists as a relation."""
    if clause.pending:
        raise binder.unsupported(f"a subquery in {title}", node)
    rows = ListRows(clause)
    names = [rows.add(value, node) for value in lists]
    plan: Node = rows.plan()
    alias = node.args.get("alias")
    titles = [title] * len(names)
    if len(names) == 1 and alias is not None and alias.this is not None and not alias.columns and title == "unnest":
        titles = [folded(alias.this)]
    unnest = node.this if isinstance(node, exp.Lateral) else node
    offset = unnest.args.get("offset")
    if offset:
        names.append(rows.position)
        titles.append(folded(offset) if isinstance(offset, exp.Identifier) else "ordinality")
    plan = Project(plan, tuple((name, col(name)) for name in names))
    if title in FIELDS:  # a list of pairs, as two columns
        fields = [
            (binder.name(field, kind), Expr("struct_field", (col(names[0]),), (field,)))
            for field, kind in FIELDS[title]
        ]
        plan = Project(plan, tuple(fields))
        names, titles = [name for name, _ in fields], [field for field, _ in FIELDS[title]]
    if offset and alias is not None and len(alias.columns) == len(names) - 1 and isinstance(offset, exp.Identifier):
        alias.append("columns", offset.copy())
    scope = named(binder, node, left, names, titles, title)
    return plan, of_function(scope) if len(names) == 1 else scope


def json_rows(binder: Binder, node: exp.Expr, left: NameScope, call: exp.Anonymous) -> tuple[Node, NameScope] | None:
    """A table function of JSON: its elements, keys, or pairs of them; None if it is none."""
    title = call.name.lower()
    plain = title.removesuffix("_text")
    if plain not in nested.SETS or len(call.expressions) != 1:
        return None
    clause = ClauseContext(binder, left, title)
    value = nested.SETS[plain](clause.bind(call.expressions[0]))
    if not nested.is_list(clause.scalars, value, node):
        raise binder.source.error(f"{title} needs a list", node)
    plan, scope = list_elements(binder, node, left, clause, [value], plain)
    if plain == title:
        return plan, scope
    outputs = []
    for name, kind in plan.columns.items():  # JSON as text
        shown = Expr("json_text", (col(name),)) if kind == types.Json else col(name)
        outputs.append((binder.name(name, types.String), shown))
    renamed = dict(zip(plan.columns, (name for name, _ in outputs), strict=True))
    for relation in scope.relations:
        relation.columns = [(visible, renamed[unique]) for visible, unique in relation.columns]
    return Project(plan, tuple(outputs)), scope


FIELDS = {"json_each": json_texts.PAIR.fields, "jsonb_each": json_texts.PAIR.fields}
"""Table functions whose rows are the fields of a list's elements."""
