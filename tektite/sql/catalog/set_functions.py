"""Functions that give several rows where a value stands: unnest and its like of lists and JSON, and of catalog arrays
generate_subscripts and _pg_expandarray.

Those of one SELECT go in step: they are columns of one join, with the elements of every list by position. A list that is shorter
than another has NULL in the rows behind its end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from tektite.expr import Expr, coalesce, col, greatest, lit
from tektite.expr.fold import folded
from tektite.expr.predicates import TRUE
from tektite.sql.bind import nested
from tektite.sql.catalog.array_text import array_elements, is_array
from tektite.sql.catalog.catalog_lookup import element_type, is_text
from tektite.sql.catalog.system_columns import SYSTEM_COLUMNS
from tektite.sql.catalog.system_reads import system_rows
from tektite.sql.logical import Filter, Node, Project, Series, Values
from tektite.values import types
from tektite.values.types import Type

if TYPE_CHECKING:
    from tektite.sql.bind.clause import ClauseContext
    from tektite.sql.catalog.contents import CatalogContents

NAMES = ("unnest", "generate_subscripts", "_pg_expandarray")
SOURCES = (("pg_catalog", "pg_index"), ("pg_catalog", "pg_constraint"))
"""The system relations that have arrays."""


class SetFunctions:
    """The functions of one clause that give several rows."""

    def __init__(self, clause: ClauseContext) -> None:
        self.clause = clause
        self._known: dict[Any, tuple[str, str]] = {}
        """The columns of the position and the element, by array."""
        self._lists: ListRows | None = None
        """The rows of all lists."""

    def column(self, node: exp.Expr, field: str = "") -> Expr | None:
        """The column of a function's values, or of a field of them; None if the node calls no such function."""
        called = (
            "unnest" if isinstance(node, exp.Explode) else node.name.lower() if isinstance(node, exp.Anonymous) else ""
        )
        if called not in NAMES and called not in nested.SETS:
            return None
        given = [node.this] if isinstance(node, exp.Explode) else node.expressions
        if not given:
            raise self.clause.binder.source.error(f"{called} needs an array", node)
        array, *others = [
            folded(self.clause.bind(part)) if at else self.clause.bind(part) for at, part in enumerate(given)
        ]
        if others and (others[0].op != "lit" or others[0].params[1] not in (1, None)):
            raise self.clause.binder.unsupported(f"{called} of another dimension than 1", node)
        listed = self._of_list(called, array, node)
        if listed is not None:
            return listed
        if called not in NAMES:
            return None
        position, element = self._elements(array, node)
        if called == "generate_subscripts":
            first = 0 if self.clause.declared(array).endswith("vector") else 1
            return col(position) - (1 - first)
        if called == "_pg_expandarray" and field == "n":
            return col(position)
        found = col(element)
        return self.clause.declare(found, "_pg_expandarray") if called == "_pg_expandarray" else found

    def _of_list(self, called: str, value: Expr, node: exp.Expr) -> Expr | None:
        """The column of the elements of a list; None if the value is none."""
        from tektite.sql.bind.clause import Pending

        scalars = self.clause.scalars
        if called in nested.SETS:
            value = nested.SETS[called](value)
        if called not in nested.SETS or not nested.is_list(scalars, value, node):
            return None
        if self._lists is None:
            self._lists = ListRows(self.clause)
            self._lists.pending = Pending("lateral", self._lists.plan(), "", "inner", (TRUE,), node)
            self.clause.pending.append(self._lists.pending)
        name = self._lists.add(value, node)
        self.clause.binder.places.setdefault(name, node)
        return col(name)

    def _elements(self, array: Expr, node: exp.Expr) -> tuple[str, str]:
        """The columns of an array's positions and elements, joined to the clause's rows."""
        from tektite.sql.bind.clause import Pending

        if array.fingerprint in self._known:
            return self._known[array.fingerprint]
        binder = self.clause.binder
        plan, position, element = element_rows(self.clause, array, node)
        first = next(iter(self._known.values()), None)
        if first is not None:
            plan = Filter(plan, col(position) == col(first[0]))
        self.clause.pending.append(Pending("lateral", plan, "", "inner", (TRUE,), node))
        self._known[array.fingerprint] = (position, element)
        binder.places.setdefault(element, node)
        return position, element


class ListRows:
    """The elements of some lists, side by side: a row for each place of the longest."""

    def __init__(self, clause: ClauseContext) -> None:
        self.clause = clause
        self.position = clause.binder.name("position", types.Int)
        self.unit = Values((clause.binder.name("unit", types.Int),), (types.Int,), ((0,),))
        self.lists: list[tuple[str, Expr]] = []
        self.pending: Any = None
        """What joins them to the rows of a clause; its plan follows when a list is added."""

    def add(self, value: Expr, node: exp.Expr) -> str:
        """The column of the elements of one more list."""
        for known, lists in self.lists:
            if lists.fingerprint == value.fingerprint:
                return known
        element = Expr("list_element", (value, col(self.position)))
        name = self.clause.binder.name("unnest", self.clause.scalars.type(element, node))
        self.lists.append((name, value))
        if self.pending is not None:
            self.pending.plan = self.plan()
        return name

    def plan(self) -> Node:
        """The positions and elements, as a relation."""
        longest = lit(0)
        for _, value in self.lists:
            longest = greatest(longest, coalesce(Expr("list_length", (value,)), 0))
        rows = Series(self.unit, self.position, lit(1), longest, lit(1))
        elements = [(name, Expr("list_element", (value, col(self.position)))) for name, value in self.lists]
        return Project(rows, ((self.position, col(self.position)), *elements))


def element_rows(clause: ClauseContext, array: Expr, node: exp.Expr) -> tuple[Node, str, str]:
    """The elements of an array as a relation, and the columns of their positions and values."""
    binder = clause.binder
    declared = clause.declared(array)
    if not is_array(declared) and not is_text(array):
        raise binder.unsupported("unnest of what is not an array of the catalogs", node)
    kind = element_type(declared or "_text")
    position, element = binder.name("position", types.Int), binder.name("element", kind)
    if is_text(array):
        rows = [(at, valued(part, kind)) for at, part in enumerate(array_elements(array.params[1]), 1)]
        return Values((position, element), (types.Int, kind), tuple(rows)), position, element
    whole = binder.name("array", types.String)
    every = []
    for text in known_arrays(clause.contents()):
        parts = array_elements(text)
        if kind == types.String or all(part is None or part.lstrip("-").isdigit() for part in parts):
            every += [(text, at, valued(part, kind)) for at, part in enumerate(parts, 1)]
    plan = Values((whole, position, element), (types.String, types.Int, kind), tuple(every))
    return Filter(plan, col(whole) == array), position, element


def valued(part: str | None, kind: Type) -> Any:
    """An element as a value."""
    return int(part) if part is not None and kind == types.Int else part


def known_arrays(contents: CatalogContents) -> list[str]:
    """The texts of every array in the catalogs."""
    found: dict[str, None] = {}
    for key in SOURCES:
        places = [at for at, type in enumerate(SYSTEM_COLUMNS[key][1].values()) if is_array(type)]
        for row in system_rows(contents, key):
            found.update(dict.fromkeys(row[at] for at in places if row[at] is not None))
    return list(found)
