"""Types that a program declares: other names, unions, records, and tagged values.

A column is of a plain type (number, unsigned, float, symbol) or of a structure, whose values are texts
(`tektite.expr.record_text`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from lark import Tree

from tektite.datalog.syntax import statements
from tektite.values.types import Float, Int, String, Type

PLAIN: dict[str, Type] = {"number": Int, "unsigned": Int, "float": Float, "symbol": String}
STATEMENTS = ("type_alias", "number_alias", "symbol_alias", "record_type", "tagged_type")
Wrong = Callable[[Any, str], Exception]


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
        if name not in self.aliases:
            known = ", ".join((*PLAIN, *self.aliases, *self._fields))
            raise self.wrong(tree, f"there is no type {name!r}; there are: {known}")
        place, of = self.aliases[name]
        if name in within:
            raise self.wrong(place, f"type {name} is defined by itself")
        found = {self.resolved(other, place, (*within, name)) for other in of}
        if len(found) > 1 and any(kind not in PLAIN for kind in found):
            raise self.wrong(place, f"type {name} is a union of records; declare one type of tagged values instead")
        if len({PLAIN.get(kind, String) for kind in found}) > 1:
            raise self.wrong(
                place, f"type {name} is a union of numbers and texts; declare them as columns of their own"
            )
        return found.pop() if len(found) == 1 else "number"

    def structure(self, name: str, tree: Tree[Any]) -> str | None:
        """The structure that a name stands for, if it is one."""
        found = self.resolved(name, tree)
        return found if found not in PLAIN else None

    def structures(self) -> tuple[statements.Structure, ...]:
        """All records and tagged types, their fields resolved."""
        found = []
        for name, (_, tags) in self._fields.items():
            shown = []
            for tag, columns in tags:
                fields = [(str(c.children[0]), self.resolved(str(c.children[1]), c)) for c in columns]
                shown.append((tag, tuple(fields)))
            found.append(statements.Structure(name, tuple(shown)))
        return tuple(found)
