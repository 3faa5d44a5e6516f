"""The kinds of statements: what each of them says. A statement keeps its text, so that an error can point at a place in it."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from tektite.sql.parse.places import StatementText
from tektite.sql.parse.transaction_modes import TransactionModes


@dataclass(frozen=True)
class Statement:
    """A statement: sqlglot's tree, or one of the kinds below."""

    source: StatementText
    start: int


@dataclass(frozen=True)
class Plain(Statement):
    """A statement that sqlglot has a tree for."""

    tree: exp.Expr


@dataclass(frozen=True)
class Explain(Statement):
    """EXPLAIN [ANALYZE] query, or EXPLAIN SUBSCRIBE query; with (FORMAT JSON), as data."""

    tree: exp.Expr
    analyze: bool = False
    is_subscription: bool = False
    as_json: bool = False


@dataclass(frozen=True)
class Named(Statement):
    """A statement about what has a name, which stands at `place`."""

    place: int
    name: str


@dataclass(frozen=True)
class Prepare(Named):
    """PREPARE name [(types)] AS query."""

    tree: exp.Expr
    declared: tuple[exp.DataType, ...] = ()
    """The types of $1, $2 and so on, as far as they are said."""


@dataclass(frozen=True)
class Execute(Named):
    """EXECUTE name(values)."""

    values: tuple[exp.Expr, ...]


@dataclass(frozen=True)
class Deallocate(Named):
    """DEALLOCATE name, or DEALLOCATE name(values) for one of its bindings."""

    values: tuple[exp.Expr, ...] | None


@dataclass(frozen=True)
class Subscribe(Statement):
    """SUBSCRIBE [TO] view, or SUBSCRIBE [TO] (query)."""

    tree: exp.Expr


@dataclass(frozen=True)
class Show(Named):
    """SHOW TABLES | VIEWS | INDEXES | ARRANGEMENTS | SCHEMAS | SOURCES | SINKS | COLUMNS FROM name | setting | ALL."""

    what: str


@dataclass(frozen=True)
class SetSetting(Named):
    """SET name = values, and RESET name, which has no values; the name is empty for RESET ALL."""

    values: tuple[str, ...] | None


@dataclass(frozen=True)
class Begin(Statement):
    """BEGIN [WORK | TRANSACTION] modes, or START TRANSACTION modes."""

    modes: TransactionModes


@dataclass(frozen=True)
class SetModes(Statement):
    """SET TRANSACTION modes or, for transactions to come, SET SESSION CHARACTERISTICS AS TRANSACTION modes."""

    modes: TransactionModes
    for_session: bool


@dataclass(frozen=True)
class Savepoint(Named):
    """SAVEPOINT name, or RELEASE name."""

    what: str


@dataclass(frozen=True)
class Refresh(Named):
    """REFRESH MATERIALIZED VIEW name."""


@dataclass(frozen=True)
class Nothing(Statement):
    """A statement about what there is not."""

    what: str
