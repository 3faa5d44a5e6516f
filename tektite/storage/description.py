"""The manifest's descriptions of inputs and published views.

A program that declares a stored input again gets it; one that declares another under its name gets an error. Other processes
read published views by their description.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tektite.errors import UnsupportedError
from tektite.expr import Expr
from tektite.expr.plain import from_plain, to_plain
from tektite.values import type_names
from tektite.values.schema import Schema
from tektite.values.types import Type


def type_from_text(text: str) -> Type:
    """The type that `str` prints as `text`.

    >>> type_from_text("list(decimal(12, 2))")
    list(decimal(12, 2))
    """
    found = type_names.type_from_text(text)
    if found is None:
        raise UnsupportedError(f"a stored column has the type {text!r}, which this version of Tektite does not know")
    return found


@dataclass(frozen=True)
class CheckConstraint:
    """A condition that no row may make false; it may be unknown. `text` is how it was written.

    >>> from tektite.expr import col
    >>> check = CheckConstraint("positive", "x > 0", col("x") > 0)
    >>> CheckConstraint.from_json(check.to_json()) == check
    True
    """

    name: str
    text: str
    condition: Expr = field(compare=False)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return tuple(self.condition.columns())

    def to_json(self) -> list[Any]:
        """Plain values, for a manifest."""
        return [self.name, self.text, to_plain(self.condition)]

    @staticmethod
    def from_json(plain: list[Any]) -> CheckConstraint:
        """The constraint that `to_json` described."""
        return CheckConstraint(plain[0], plain[1], from_plain(plain[2], type_from_text))

    def __str__(self) -> str:
        return f"CHECK ({self.text})"


@dataclass(frozen=True)
class UniqueConstraint:
    """Columns that no two rows share, unless one of them is NULL."""

    name: str
    columns: tuple[str, ...]

    def __str__(self) -> str:
        return f"UNIQUE ({', '.join(self.columns)})"


@dataclass(frozen=True)
class InputDescription:
    """The declaration of an input. With `unique`, no two rows have the same key. Columns in `required` have no NULL. With
    `append`, rows are never removed. All rows pass `checks`, and no two share the columns of one of `uniques`.

    >>> from tektite.values.types import Int, String
    >>> description = InputDescription(Schema(id=Int, name=String), ("id",), "upsert")
    >>> print(description)
    Schema(id=int, name=string), key (id), upsert
    >>> InputDescription(Schema(a=Int, b=Int), ("a", "b"), shard=("a",)).sharded_by
    1
    >>> InputDescription.from_json(description.to_json()) == description
    True
    """

    schema: Schema
    key: tuple[str, ...] = ()
    semantics: str = "bag"
    stream: bool = False
    checked: bool = True
    closed: bool = False
    unique: bool = False
    required: tuple[str, ...] = ()
    append: bool = False
    shard: tuple[str, ...] = ()
    """The first key columns, which decide a row's shard; empty means the whole key."""
    defaults: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    """Columns with what SQL writes into them if nothing is given, as text. The rows do not depend on it."""
    checks: tuple[CheckConstraint, ...] = ()
    uniques: tuple[UniqueConstraint, ...] = ()

    @property
    def constraints(self) -> tuple[CheckConstraint | UniqueConstraint, ...]:
        """Its constraints that have names."""
        return (*self.checks, *self.uniques)

    @property
    def column_order(self) -> tuple[int, ...]:
        """The columns in the order of the stored rows: key columns first."""
        lead = tuple(self.schema.index(name) for name in self.key)
        return (*lead, *(c for c in range(len(self.schema.names)) if c not in lead))

    @property
    def sharded_by(self) -> int:
        """The number of leading columns that decide a row's shard."""
        return len(self.shard) or min(len(self.key) or 1, len(self.schema.names))

    @property
    def rules(self) -> tuple[Any, ...]:
        """The declared rules for its rows, besides their columns."""
        return (
            self.key, self.semantics, self.stream, self.unique, self.required, self.append, self.sharded_by,
            self.checks, self.uniques,
        )  # fmt: skip

    @property
    def shape(self) -> tuple[int, int, int]:
        """Data, time and diff columns of its rows."""
        return len(self.schema.names), 1, 1

    def same_as(self, other: InputDescription) -> bool:
        """Whether both declarations have the same stored rows."""
        return self.schema == other.schema and self.rules == other.rules

    def to_json(self) -> dict[str, Any]:
        """Plain values, for a manifest."""
        return {
            "kind": "input",
            "columns": [[name, str(type)] for name, type in zip(self.schema.names, self.schema.types, strict=True)],
            "key": list(self.key),
            "semantics": self.semantics,
            "stream": self.stream,
            "checked": self.checked,
            "closed": self.closed,
            "unique": self.unique,
            "required": list(self.required),
            "append": self.append,
            "shard": list(self.shard),
            "defaults": dict(self.defaults),
            "checks": [check.to_json() for check in self.checks],
            "uniques": [[unique.name, list(unique.columns)] for unique in self.uniques],
        }

    @staticmethod
    def from_json(plain: dict[str, Any]) -> InputDescription:
        """The input that `to_json` described."""
        schema = Schema({name: type_from_text(text) for name, text in plain["columns"]})
        return InputDescription(
            schema, tuple(plain["key"]), plain["semantics"], plain["stream"], plain["checked"], plain["closed"],
            plain.get("unique", False), tuple(plain.get("required", ())), plain.get("append", False),
            tuple(plain.get("shard", ())), tuple(plain.get("defaults", {}).items()),
            tuple(map(CheckConstraint.from_json, plain.get("checks", ()))),
            tuple(UniqueConstraint(name, tuple(columns)) for name, columns in plain.get("uniques", ())),
        )  # fmt: skip

    def __str__(self) -> str:
        key = f", {'unique ' if self.unique else ''}key ({', '.join(self.key)})" if self.key else ""
        key += f", shard ({', '.join(self.shard)})" if self.shard else ""
        required = f", not NULL ({', '.join(self.required)})" if self.required else ""
        more = "".join(f", {constraint}" for constraint in self.constraints)
        return f"{self.schema!r}{key}{required}{more}, {self.kind}"

    @property
    def kind(self) -> str:
        """Its semantics in a word, as in SQL."""
        return "stream" if self.stream else "append" if self.append else self.semantics


@dataclass(frozen=True)
class ViewDescription:
    """A published view: its columns, which of them each stored column is, and how many stored columns decide a row's shard.

    >>> from tektite.values.types import Int, String
    >>> description = ViewDescription(Schema(shop=String, total=Int), (1, 0), 1)
    >>> ViewDescription.from_json(description.to_json()) == description
    True
    """

    schema: Schema
    column_order: tuple[int, ...]
    sharded_by: int

    def to_json(self) -> dict[str, Any]:
        """Plain values, for a manifest."""
        return {
            "kind": "view",
            "columns": [[name, str(type)] for name, type in zip(self.schema.names, self.schema.types, strict=True)],
            "order": list(self.column_order),
            "sharded_by": self.sharded_by,
        }

    @staticmethod
    def from_json(plain: dict[str, Any]) -> ViewDescription:
        """The view that `to_json` described."""
        schema = Schema({name: type_from_text(text) for name, text in plain["columns"]})
        return ViewDescription(schema, tuple(plain["order"]), plain["sharded_by"])
