"""Steps: the instructions of a typed expression. Each is one instruction of the kernel over the results of others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tektite.expr.ast import Expr
from tektite.expr.literals import DAY, MAX_DAYS, MAX_INT
from tektite.kernels.expr import steps as ops
from tektite.values.types import Date, DecimalType, Int, Time, Timestamp, TimestampTz, Type

CONSTANT, INPUT = -1, -2  # steps that are leaves

READS_TEXTS = frozenset({ops.LIKE, ops.TEXT_WORD})

FALLIBLE = frozenset(
    {
        ops.ADD, ops.SUB, ops.MUL, ops.MUL_FLOOR, ops.FLOAT_TO_INT, ops.ADD_MONTHS, ops.CHECK_PARSED,
        ops.BIT_AND, ops.BIT_OR, ops.BIT_XOR, ops.SHIFT_LEFT, ops.SHIFT_RIGHT,
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TextFunction:
    """A function that is evaluated in Python once for each distinct argument: see `tektite.expr.text`.

    `pattern` says where the arguments go among the constants: None stands for the next argument.
    """

    name: str
    pattern: tuple[Any, ...]
    arguments: tuple[Type, ...]
    result: Type


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One step over the results of others. `extra` is a column number, a word or text, a limit, a function or a set."""

    op: int
    type: Type
    args: tuple[Step, ...] = ()
    extra: Any = 0
    source: Expr | None = None
    fallible: bool = field(init=False)

    def __post_init__(self) -> None:
        fallible = any([arg.fallible for arg in self.args]) or can_fail(self)
        object.__setattr__(self, "fallible", fallible)


def can_fail(step: Step) -> bool:
    """Whether a step itself may fail on a row."""
    if step.op not in FALLIBLE:
        return False
    if (
        step.op == ops.MUL and step.args[1].op == CONSTANT
    ):  # a conversion: a date at midnight, a decimal of a larger scale
        return limit_of(step.args[0].type) * abs(int(step.args[1].extra)) > int(step.extra)
    return True


def word(value: int, type: Type = Int) -> Step:
    return Step(CONSTANT, type, (), value)


def number(kind: Type) -> bool:
    return kind.kind in ("int", "float", "decimal")


def limit_of(type: Type) -> int:
    """The greatest size of a result of this type."""
    if isinstance(type, DecimalType):
        return int(10**type.precision) - 1
    if type == Time:
        return DAY
    return MAX_DAYS if type == Date else (MAX_DAYS + 1) * DAY - 1 if type in (Timestamp, TimestampTz) else MAX_INT
