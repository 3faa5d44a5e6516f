"""Attributes: facts [entity attribute value], each attribute a relation of its own over (e, v), or over e alone.

An attribute is indexed by entity and by value for as long as it exists: [e a ?v] and [?e a v] are look-ups, and [?e a ?v] reads
either index. A unary attribute has no values, and so no second index. The attribute's mode says what writing a fact twice means:

| mode | a second [e a v] | [e a w] after [e a v] |
|---|---|---|
| bag, append | counts twice | both are there |
| set, cardinality many | changes nothing | both are there |
| upsert, cardinality one | changes nothing | w replaces v |

A retraction from an attribute of mode upsert removes the entity's row, whatever its value.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tektite.client_protocol import Mode
from tektite.datalog.syntax import edn
from tektite.engine.core import core_of
from tektite.errors import IncorrectError, NotFoundError
from tektite.values.type_names import TypeLike

if TYPE_CHECKING:
    from tektite.engine.engine import Engine
    from tektite.engine.holds import Index
    from tektite.engine.table import Table
    from tektite.engine.write_set import WriteSet

ATTRIBUTE_MODES: tuple[Mode, ...] = ("bag", "set", "upsert", "append")
CARDINALITIES: dict[str, Mode] = {"one": "upsert", "many": "set"}
FORMER_MODES: dict[str, Mode] = {
    "raw": "bag",
    "distinct": "set",
    "cardinality-many": "set",
    "cardinality-one": "upsert",
    "last-write-wins": "upsert",
}
"""Former names of modes, from when they were `semantics`."""
OPERATIONS = {"add": True, "db/add": True, "retract": False, "db/retract": False}


class Attribute:
    """An attribute of entities. Made by `Engine.attribute`.

    >>> import tektite as tk
    >>> engine = tk.Engine()
    >>> speed = engine.attribute("device/speed", tk.Int, cardinality="one")
    >>> _ = engine.transact([(7, "device/speed", 120)])
    >>> _ = engine.transact([(7, "device/speed", 200)])
    >>> engine.query("[:find ?e ?v :where [?e :device/speed ?v]]").rows()
    [(7, 200)]
    """

    def __init__(self, name: str, mode: Mode, table: Table, reverse: Index | None) -> None:
        self.name = name
        self.mode = mode
        self.table = table
        self.reverse = reverse

    @property
    def unary(self) -> bool:
        """Whether it says something of entities without a value."""
        return len(self.table.schema.names) == 1

    def drop(self) -> None:
        """Remove the attribute and its indexes; refused while a query reads it."""
        reverse, self.reverse = self.reverse, None
        if reverse is not None:
            reverse.drop()
        try:
            self.table.engine.drop(self.table.name)
        except BaseException:
            if reverse is not None:
                self.reverse = self.table.create_index("v")
            raise

    def __repr__(self) -> str:
        return f"<Attribute :{self.name} {self.mode} {self.table.schema}>"


def declare(
    engine: Engine, name: str, value: TypeLike | None, cardinality: str | None, mode: str | None, entity: TypeLike
) -> Attribute:
    """A new attribute."""
    name = plain(name)
    if cardinality is not None and cardinality not in CARDINALITIES:
        raise IncorrectError(f"attribute {name!r}: cardinality is one or many, not {cardinality!r}")
    found = FORMER_MODES.get(mode or "", mode)
    if found is not None and found not in ATTRIBUTE_MODES:
        raise IncorrectError(f"attribute {name!r}: mode is one of {', '.join(ATTRIBUTE_MODES)}, not {mode!r}")
    if cardinality is not None and found is not None and found != CARDINALITIES[cardinality]:
        raise IncorrectError(f"attribute {name!r}: cardinality {cardinality!r} is not mode {mode!r}; give one of them")
    kind = found or CARDINALITIES.get(cardinality or "", "set")
    if value is None:
        if kind == "upsert":
            raise IncorrectError(
                f"attribute {name!r} has no value that another could replace: leave the cardinality out"
            )
        return Attribute(name, kind, engine.create_table(name, {"e": entity}, mode=kind), None)
    ordered: dict[str, Any] = {"primary_key" if kind == "upsert" else "order_by": "e"}
    table = engine.create_table(name, {"e": entity, "v": value}, mode=kind, **ordered)
    return Attribute(name, kind, table, table.create_index("v"))


def plain(name: Any) -> str:
    """An attribute's name without its colon."""
    if not isinstance(name, str) or not name.removeprefix(":"):
        raise IncorrectError(f"an attribute is named by a text such as 'person/knows', not {name!r}")
    return name.removeprefix(":")


def transact(engine: Engine, attributes: dict[str, Attribute], facts: Any) -> int | None:
    """Write facts [e a v] and [e a], or with add or retract before them; all of them, or none if one is wrong. A retraction
    from an attribute of one value may leave the value out, and does not look at it.
    """
    written = isinstance(facts, str)
    if written:
        facts = [read_fact(form) for form in facts_of(facts)]
    batches: list[tuple[Attribute, bool, list[tuple[Any, ...]]]] = []
    for number, fact in enumerate(facts):
        adding, attribute, row = parse_fact(attributes, fact, number)
        if written:  # a number that is written says a decimal exactly
            types = attribute.table.schema.types
            row = tuple(
                Decimal(repr(value)) if isinstance(value, float) and types[at].kind == "decimal" else value
                for at, value in enumerate(row)
            )
        last = batches[-1] if batches else None
        if last is not None and last[:2] == (attribute, adding) and len(last[2][0]) == len(row):
            last[2].append(row)
        else:
            batches.append((attribute, adding, [row]))
    # Every row is read before the first is written.
    for attribute, _, rows in batches:
        schema = attribute.table.schema
        try:
            schema.select(*schema.names[: len(rows[0])]).encode(rows, core_of(attribute.table.engine).dictionary)
        except IncorrectError as error:
            raise IncorrectError(f"transact: attribute :{attribute.name}: {error}") from None

    def write(into: WriteSet) -> None:
        for attribute, adding, rows in batches:
            table = core_of(attribute.table)
            table.write(rows, None, 1 if adding else -1, "transact", into)

    return core_of(engine).write(write)


def parse_fact(attributes: dict[str, Attribute], fact: Any, number: int) -> tuple[bool, Attribute, tuple[Any, ...]]:
    """Whether a fact is added, its attribute and its row."""
    items = list(fact) if isinstance(fact, Iterable) and not isinstance(fact, str) else []
    operation = items[0].removeprefix(":") if items and isinstance(items[0], str) else None
    adding = True
    if operation in OPERATIONS and len(items) > 2:
        adding = OPERATIONS[operation]
        items = items[1:]
    if len(items) not in (2, 3):
        raise IncorrectError(
            f"transact: fact {number} is {fact!r}; a fact is [entity attribute value] or [entity attribute]"
        )
    entity, name, *value = items
    name = plain(name)
    if name not in attributes:
        known = ", ".join(f":{known}" for known in attributes) or "none"
        raise NotFoundError(f"transact: fact {number}: there is no attribute :{name}; there are: {known}")
    attribute = attributes[name]
    by_entity = not adding and attribute.mode == "upsert"
    if attribute.unary == bool(value) and not (by_entity and not value):
        wanted = "no value" if attribute.unary else "a value"
        raise IncorrectError(f"transact: fact {number} is {fact!r}, but attribute :{name} takes {wanted}")
    return adding, attribute, (entity, *value)


def facts_of(text: str) -> tuple[edn.EdnForm, ...]:
    """The facts of a text: one after the other, or all in one vector."""
    forms = edn.read(text, "transaction")
    if len(forms) == 1 and isinstance(forms[0], edn.Group) and any(isinstance(i, edn.Group) for i in forms[0].items):
        return forms[0].items
    return forms


def read_fact(form: edn.EdnForm) -> list[Any]:
    """A fact that is written as EDN."""
    if not isinstance(form, edn.Group):
        raise IncorrectError(f"{form.position}: a fact is [entity :attribute value], not {edn.show(form)}")
    found: list[Any] = []
    for item in form.items:
        if isinstance(item, edn.EdnScalar):
            found.append(item.value)
        elif isinstance(item, edn.Keyword):
            found.append(f":{item.name}")
        else:
            raise IncorrectError(f"{item.position}: {edn.show(item)} is not a value")
    return found
