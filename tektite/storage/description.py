"""How the manifest describes inputs and published views.

A program that declares a stored input again gets it; one that declares another under its name gets an error. Other processes
read published views by their description.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tektite.errors import UnsupportedError
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
class InputDescription:
    """The declaration of an input. With `unique`, no two rows have the same key. Columns in `required` have no NULL. With
    `append`, rows are never removed.

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

    @property
    def column_order(self) -> tuple[int, ...]:
        """The columns in the order of the stored rows: key columns first."""
        lead = tuple(self.schema.index(name) for name in self.key)
        return (*lead, *(c for c in range(len(self.schema.names)) if c not in lead))

    @property
    def sharded_by(self) -> int:
        """How many leading columns decide a row's shard."""
        return len(self.shard) or min(len(self.key) or 1, len(self.schema.names))

    @property
    def rules(self) -> tuple[Any, ...]:
        """What is declared of its rows besides their columns."""
        return self.key, self.semantics, self.stream, self.unique, self.required, self.append, self.sharded_by

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
        }

    @staticmethod
    def from_json(plain: dict[str, Any]) -> InputDescription:
        """The input that `to_json` described."""
        schema = Schema({name: type_from_text(text) for name, text in plain["columns"]})
        return InputDescription(
            schema, tuple(plain["key"]), plain["semantics"], plain["stream"], plain["checked"], plain["closed"],
            plain.get("unique", False), tuple(plain.get("required", ())), plain.get("append", False),
            tuple(plain.get("shard", ())), tuple(plain.get("defaults", {}).items()),
        )  # fmt: skip

    def __str__(self) -> str:
        key = f", {'unique ' if self.unique else ''}key ({', '.join(self.key)})" if self.key else ""
        key += f", shard ({', '.join(self.shard)})" if self.shard else ""
        required = f", not NULL ({', '.join(self.required)})" if self.required else ""
        return f"{self.schema!r}{key}{required}, {self.kind}"

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
