"""Creates tables and views as `Engine.create_table` and `Engine.create_view` describe them, and decides what an existing one of
the same name means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import pyarrow as pa

from tektite.client_protocol import IfExists, Mode
from tektite.engine.input_core import InputCore
from tektite.engine.lock import StepByStep
from tektite.engine.names import check_name
from tektite.engine.stored_inputs import widen
from tektite.engine.write_set import WriteSet
from tektite.errors import ConflictError, IncorrectError
from tektite.expr import Expr, lit
from tektite.expr import type_of as expression_type
from tektite.query.collection import Collection
from tektite.storage.description import CheckConstraint, InputDescription, UniqueConstraint
from tektite.storage.epoch_writer import DurableChange
from tektite.values.columns import hint
from tektite.values.schema import Schema
from tektite.values.types import Bool

if TYPE_CHECKING:
    from tektite.engine.engine_core import EngineCore
    from tektite.engine.table import Table
    from tektite.engine.view import View

MODES: tuple[str, ...] = get_args(Mode)
IF_EXISTS: tuple[str, ...] = get_args(IfExists)


def table_description(
    name: str,
    schema: Schema | Mapping[str, Any] | pa.Schema,
    mode: str,
    primary_key: str | Sequence[str],
    order_by: str | Sequence[str],
    required: str | Sequence[str],
    shard_by: str | Sequence[str],
    checked: bool,
    unique: str | Sequence[str | Sequence[str]] = (),
    checks: Expr | Sequence[Expr] | Mapping[str, Expr] = (),
) -> InputDescription:
    """The declaration of a table, or what is wrong with it."""
    what = f"table {name!r}"
    if mode not in MODES:
        raise IncorrectError(f"{what}: mode is one of {', '.join(MODES)}, not {mode!r}")
    try:
        columns = Schema(schema)
    except IncorrectError as error:
        raise IncorrectError(f"{what}: {error}") from None
    if not len(columns):
        raise IncorrectError(f"{what} needs columns, such as {{'id': int, 'name': str}}")
    primary, order = _names(what, columns, primary_key, "primary_key"), _names(what, columns, order_by, "order_by")
    if mode == "upsert" and not primary:
        raise IncorrectError(
            f"{what}: a row of mode 'upsert' replaces the one with the same primary_key: say which columns"
        )
    if primary and order and primary != order[: len(primary)]:
        raise IncorrectError(f"{what}: order_by begins with the primary key ({', '.join(primary)})")
    if primary and len(order) > len(primary):
        raise IncorrectError(f"{what}: rows with a primary key are ordered by it alone: leave order_by out")
    key = primary or order
    shard = _names(what, columns, shard_by, "shard_by")
    if shard != key[: len(shard)]:
        raise IncorrectError(
            f"{what}: the columns in shard_by are the first ones of primary_key or order_by, ({', '.join(key)}), not "
            f"({', '.join(shard)})"
        )
    needed = tuple(name for name in _names(what, columns, required, "required") if name not in key)
    return InputDescription(
        columns, key, mode if mode in ("set", "upsert") else "bag", mode == "stream", checked, False,
        bool(primary) and mode != "upsert", needed, mode == "append", shard,
        checks=check_constraints(name, columns, checks), uniques=unique_constraints(name, columns, mode, unique),
    )  # fmt: skip


def check_constraints(
    table: str, schema: Schema, given: Expr | Sequence[Expr] | Mapping[str, Expr]
) -> tuple[CheckConstraint, ...]:
    """The conditions of `checks=`, with names of their own or made up."""
    what = f"table {table!r}: checks="
    if isinstance(given, Expr):
        given = [given]
    if not isinstance(given, Mapping | list | tuple):
        raise IncorrectError(f"{what} takes conditions such as tk.col('price') > 0, not {given!r}")
    named = given if isinstance(given, Mapping) else {f"{table}_check{at + 1}": one for at, one in enumerate(given)}
    return tuple(check_constraint(what, schema, name, condition, str(condition)) for name, condition in named.items())


def check_constraint(what: str, schema: Schema, name: str, condition: Any, text: str) -> CheckConstraint:
    """One condition of rows, or what is wrong with it."""
    if not isinstance(condition, Expr):
        raise IncorrectError(f"{what} takes conditions such as tk.col('price') > 0, not {condition!r}")
    for column in condition.columns():
        if column not in schema.names:
            raise IncorrectError(f"{what} {condition} names {column!r}: {hint(column, schema.names)}")
    kind = expression_type(condition, schema.positions)
    if kind != Bool:
        raise IncorrectError(f"{what} takes conditions, and {condition} is {kind}")
    return CheckConstraint(name, text, condition)


def unique_constraints(
    table: str, schema: Schema, mode: str, given: str | Sequence[str | Sequence[str]]
) -> tuple[UniqueConstraint, ...]:
    """The keys of `unique=`, with names made up."""
    keys = [given] if isinstance(given, str) else given
    if not isinstance(keys, Sequence):
        raise IncorrectError(f"table {table!r}: unique= takes columns, or lists of columns, not {given!r}")
    found = []
    for key in keys:
        columns = _names(f"table {table!r}", schema, key, "unique=")
        found.append(unique_constraint(table, mode == "stream", f"{table}_{'_'.join(columns)}_key", columns))
    return tuple(found)


def unique_constraint(table: str, is_stream: bool, name: str, columns: tuple[str, ...]) -> UniqueConstraint:
    """One key beside the primary one, or what is wrong with it."""
    if is_stream:
        raise IncorrectError(f"table {table!r} is a stream: it keeps no rows that UNIQUE could compare with")
    if not columns or len(set(columns)) < len(columns):
        raise IncorrectError(f"table {table!r}: UNIQUE takes columns, each once, not ({', '.join(columns)})")
    return UniqueConstraint(name, columns)


def _names(what: str, columns: Schema, given: str | Sequence[str], option: str) -> tuple[str, ...]:
    """The columns that an option names."""
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, Sequence):
        raise IncorrectError(f"{what}: {option} names a column or several, not {given!r}")
    for name in names:
        if name not in columns.names:
            raise IncorrectError(f"{what}: {option} names {name!r}: {hint(name, columns.names)}")
    return tuple(names)


def create_table(core: EngineCore, name: str, declared: InputDescription, if_exists: str) -> Table:
    """A new table; or what is there already, as `if_exists` says. One that was stored is declared again by this."""
    check_if_exists(if_exists)
    storage = core.storage
    if storage is not None and name in storage.unclaimed and if_exists != "replace":
        stored = core.inputs[name]
        if storage.claim(name, declared):
            return widen(core, storage, stored, declared)
        stored.rules = replace(stored.rules, checked=declared.checked and not declared.stream)
        return stored.facade
    existing = core.inputs.get(name)
    if existing is not None and if_exists != "error":
        if if_exists == "keep":
            found = replace(existing.describe(), checked=declared.checked, closed=False)
            if found == declared:
                return existing.facade
            raise ConflictError(f"table {name!r} is there already, and is another one: {found}, not {declared}")
        try:
            core.drop(name)
        except ConflictError as error:
            if not _is_emptied(existing, declared):
                raise ConflictError(
                    f"{error}: drop that first. A table with the same columns and options is replaced while it is read; "
                    "if_exists='keep' keeps the table with its rows"
                ) from None
            return existing.facade
    check_name(core, name)
    made = InputCore(core, name, declared, core.epoch)
    change = DurableChange(core.epoch, arrangements={name: made.describe().to_json()}, lows={name: made.low})
    return core.add_input(made, core.to_storage(change))


def _is_emptied(existing: InputCore, declared: InputDescription) -> bool:
    """Whether a table that is read can be replaced by one of the same declaration: its rows go, and its readers stay."""
    found = replace(existing.describe(), checked=declared.checked)
    return found == declared and not declared.append


def filled_table(
    core: EngineCore, name: str, declared: InputDescription, rows: pa.Table | None, if_exists: IfExists
) -> Table:
    """The table of `create_table`, with its first `rows` if it is new or was replaced. Rows that do not fit its declaration
    change nothing.
    """
    before = core.inputs.get(name)
    if rows is not None:
        _check_rows(core, name, declared, rows)
    made = create_table(core, name, declared, if_exists)
    if core.inputs[name] is before and if_exists == "replace":  # views read it, and follow
        with core.engine.transaction():
            if not declared.stream:
                made.delete(lit(True))
            if rows is not None:
                made.insert(rows)
    elif rows is not None and core.inputs[name] is not before:
        try:
            made.insert(rows)
        except BaseException:
            core.drop(name)
            raise
    return made


def _check_rows(core: EngineCore, name: str, declared: InputDescription, rows: pa.Table) -> None:
    """Refuse rows that a new table could not begin with."""
    trial = InputCore(core, name, declared, core.epoch, is_stored=False)
    writes = WriteSet()
    try:
        trial.write(rows, None, 1, "insert", writes)
        trial.prepare(trial.low + 1, writes)
    finally:
        trial.release()


def set_constraints(table: InputCore, declared: InputDescription) -> None:
    """Declare other constraints of a table's rows: `checks`, `uniques`, `required`. Refused if rows that are there break them."""
    core = table.engine
    with core.lock.held:
        core.lock.roll_forward()
        check_held_rows(table, declared)
        described = replace(
            table.describe(), checks=declared.checks, uniques=declared.uniques, required=declared.required
        )
        steps = [core.to_storage(DurableChange(core.epoch, arrangements={table.name: described.to_json()}))]
        core.lock.decide(StepByStep(*(steps if table.is_stored else ()), lambda: table.declare(declared)))


def check_held_rows(table: InputCore, declared: InputDescription) -> None:
    """Refuse a declaration that rows of a table break: they are checked as if they came into a new one."""
    if table.is_stream or not table.low:
        return
    core = table.engine
    trial = InputCore(core, table.name, replace(declared, closed=False), table.low - 1, is_stored=False)
    trial.facade = table.facade
    words = table.words(None)
    width = len(table.columns)
    writes = WriteSet()
    trial.update_words(np.ascontiguousarray(words[:width]), words[width + 1], into=writes)
    trial.prepare(table.low, writes)
    trial.release()


def defaults_of(table: InputCore) -> dict[str, Any]:
    """The values that SQL writes into columns that a statement leaves out."""
    kinds = table.schema.arrow
    return {name: pa.scalar(text).cast(kinds.field(name).type).as_py() for name, text in table.declared.defaults}


def set_defaults(table: InputCore, defaults: Mapping[str, Any]) -> None:
    """Keep `defaults` with the declaration of a table, also in the storage."""
    kinds = table.schema.arrow
    texts = tuple(
        (name, pa.scalar(value, kinds.field(name).type).cast(pa.string()).as_py()) for name, value in defaults.items()
    )
    core = table.engine
    with core.lock.held:
        core.lock.roll_forward()
        if texts == table.declared.defaults:
            return
        declared = replace(table.declared, defaults=texts)
        described = replace(table.describe(), defaults=texts).to_json()
        steps = [core.to_storage(DurableChange(core.epoch, arrangements={table.name: described}))]
        core.lock.decide(StepByStep(*(steps if table.is_stored else ()), lambda: setattr(table, "declared", declared)))


def create_view(
    core: EngineCore,
    name: str,
    query: Collection,
    order_by: str | Sequence[str],
    keep: bool,
    if_exists: str,
    limit: int | None = None,
) -> View:
    """A new view; or what is there already, as `if_exists` says."""
    check_if_exists(if_exists)
    if not isinstance(keep, bool):
        raise IncorrectError(f"view {name!r}: keep is True or False, not {keep!r}")
    existing = core.views.get(name)
    if existing is not None and if_exists != "error":
        if if_exists == "keep":
            if existing.definition.fingerprint == query.operator.fingerprint:
                return existing.facade
            raise ConflictError(
                f"view {name!r} is there already, with another definition: if_exists='replace' replaces it"
            )
        core.drop(name)
    (view,) = core.install_together({name: query}, {name: order_by}, keep, limit=limit)
    return view


def check_if_exists(given: object) -> None:
    """Refuse what says nothing about existing objects."""
    if given not in IF_EXISTS:
        raise IncorrectError(f"if_exists is one of {', '.join(IF_EXISTS)}, not {given!r}")
