"""Types that a program declares: other names, unions, records, and tagged values.

A column is of a plain type (number, unsigned, float, symbol), of a structure, whose values are texts
(`tektite.expr.record_text`), or of another type that tables have, which Soufflé does not know: date, decimal(10, 2), uuid, int[].
A program's own types come before those: one that calls a record `date` means its record.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any

from lark import Tree

from tektite.datalog.syntax import statements
from tektite.errors import TektiteError
from tektite.values.types import (
    Blob,
    Bool,
    Date,
    Decimal,
    Float,
    Int,
    Interval,
    Json,
    ListType,
    String,
    Time,
    Timestamp,
    TimestampTz,
    Type,
    Uuid,
)  # fmt: skip

PLAIN: dict[str, Type] = {"number": Int, "unsigned": Int, "float": Float, "symbol": String}
TABLE: dict[str, Type] = {
    "int": Int, "string": String, "bool": Bool, "date": Date, "time": Time, "timestamp": Timestamp, "timestamptz": TimestampTz,
    "interval": Interval, "json": Json, "uuid": Uuid, "blob": Blob,
}  # fmt: skip
DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")
STATEMENTS = ("type_alias", "number_alias", "symbol_alias", "record_type", "tagged_type")
Wrong = Callable[[Any, str], Exception]


class TableType(str):
    """The name of a type that tables have and Soufflé has not."""


def table_type(name: str) -> Type | None:
    """The type of that name that tables have and Soufflé has not; None if there is none.

    >>> print(table_type("date"), table_type("decimal(10, 2)"), table_type("symbol[]"), table_type("node"))
    date decimal(10, 2) list(string) None
    """
    if name.endswith("[]"):
        element = PLAIN.get(name[:-2]) or table_type(name[:-2])
        return None if element is None else ListType("list", element)
    digits = DECIMAL.fullmatch(name)
    if digits is None:
        return TABLE.get(name)
    try:
        return Decimal(int(digits[1]), int(digits[2] or 0))
    except TektiteError:
        return None


def is_structure(kind: str) -> bool:
    """Whether a resolved type is a record, or has tags."""
    return kind not in PLAIN and not isinstance(kind, TableType)


def column_type(kind: str) -> Type:
    """The type of the columns of a resolved type."""
    found = table_type(kind) if isinstance(kind, TableType) else PLAIN.get(kind, String)
    assert found is not None, kind
    return found


class DeclaredTypes:
    """The types of one text, by name. They may be declared in any order. `known` are structures that earlier texts declare."""

    def __init__(self, wrong: Wrong, known: Collection[str] = ()) -> None:
        self.wrong = wrong
        self.known = known
        self.aliases: dict[str, tuple[Tree[Any], list[str]]] = {}
        self._fields: dict[str, tuple[Tree[Any], list[tuple[str | None, list[Tree[Any]]]]]] = {}

    def add(self, tree: Tree[Any]) -> None:
        """Take one declaration in."""
        name, *rest = tree.children
        if str(name) in PLAIN or str(name) in self.aliases or str(name) in self._fields:
            raise self.wrong(tree, f"there is a type {str(name)!r} already")
        match tree.data:
            case "record_type":
                self._fields[str(name)] = (tree, [(None, rest)])
            case "tagged_type":
                self._fields[str(name)] = (tree, [(str(tag.children[0]), tag.children[1:]) for tag in rest])
            case "number_alias" | "symbol_alias":
                self.aliases[str(name)] = (tree, ["number" if tree.data == "number_alias" else "symbol"])
            case _:
                self.aliases[str(name)] = (tree, [str(other) for other in rest] or ["symbol"])

    def resolved(self, name: str, tree: Tree[Any], within: tuple[str, ...] = ()) -> str:
        """The plain type or the structure that a name stands for."""
        if name in PLAIN or name in self._fields or (name in self.known and name not in self.aliases):
            return name
        if name not in self.aliases and table_type(name) is not None:
            return TableType(name)
        if name not in self.aliases:
            known = ", ".join((*PLAIN, *self.aliases, *self._fields, *TABLE, "decimal(p, s)", "lists such as date[]"))
            raise self.wrong(tree, f"there is no type {name!r}; there are: {known}")
        place, of = self.aliases[name]
        if name in within:
            raise self.wrong(place, f"type {name} is defined by itself")
        found = {self.resolved(other, place, (*within, name)) for other in of}
        if len(found) > 1 and any(map(is_structure, found)):
            raise self.wrong(place, f"type {name} is a union of records; declare one type of tagged values instead")
        if len({column_type(kind) for kind in found}) > 1:
            raise self.wrong(
                place, f"type {name} is a union of numbers and texts; declare them as columns of their own"
            )
        return found.pop() if len(found) == 1 else "number"

    def structure(self, name: str, tree: Tree[Any]) -> str | None:
        """The structure that a name stands for, if it is one."""
        found = self.resolved(name, tree)
        return found if is_structure(found) else None

    def field(self, name: str, tree: Tree[Any]) -> str:
        """The type of a field or of a functor's value: one that Soufflé knows."""
        found = self.resolved(name, tree)
        if isinstance(found, TableType):
            raise self.wrong(
                tree,
                f"{name} is a type of columns; fields and functors have number, unsigned, float, symbol or records",
            )
        return found

    def structures(self) -> tuple[statements.Structure, ...]:
        """All records and tagged types, their fields resolved."""
        found = []
        for name, (_, tags) in self._fields.items():
            shown = []
            for tag, columns in tags:
                fields = [(str(c.children[0]), self.field(str(c.children[1]), c)) for c in columns]
                shown.append((tag, tuple(fields)))
            found.append(statements.Structure(name, tuple(shown)))
        return tuple(found)
