"""Calls of window functions, and their frames: the rows around each row that a call reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

from tektite.values.types import Type

C = TypeVar("C")
D = TypeVar("D")


@dataclass(frozen=True)
class Reach(Generic[C]):
    """An end of a RANGE frame that lies a value away: the frame goes as far as `value` does not pass the row's `bound`. Both are
    of one type; what stands for a column is an expression, a name or a place.
    """

    value: C
    bound: C
    steady: bool = False
    """Whether the bounds of rows are in the order of the rows, as with a constant distance."""


@dataclass(frozen=True)
class Away(Generic[C]):
    """An end of a ROWS or GROUPS frame that lies as many rows or groups away as each row's `offset` says, in the direction of
    `sign`: -1 before the row, 1 behind it.
    """

    offset: C
    sign: int


Edge: TypeAlias = "int | None | Reach[C] | Away[C]"
"""An end of a frame: rows or groups of peers away from the row's own, None for no end, or a value away. How many rows or groups
may be said by a column.
"""
Frame: TypeAlias = "tuple[str, Edge[C], Edge[C]]"
"""rows, range or groups, and where the frame begins and ends."""


def of_frame(frame: Frame[C], column: Callable[[C], D]) -> Frame[D]:
    """A frame with its columns in another form."""

    def edge(given: Edge[C]) -> Edge[D]:
        if isinstance(given, Away):
            return Away(column(given.offset), given.sign)
        if isinstance(given, Reach):
            return Reach(column(given.value), column(given.bound), given.steady)
        return given

    kind, start, end = frame
    return kind, edge(start), edge(end)


def columns_of_frame(frame: Frame[C]) -> list[C]:
    """The columns that say where a frame begins and ends."""
    found: list[C] = []
    for edge in frame[1:]:
        if isinstance(edge, Reach):
            found += [edge.value, edge.bound]
        elif isinstance(edge, Away):
            found.append(edge.offset)
    return found


@dataclass(frozen=True)
class WindowOptions:
    """The options of a window function beside its arguments and its window."""

    exclude: str = ""
    """Which rows of its frame are left out: those of `EXCLUDE current row`, `group` or `ties`."""
    ignores_nulls: bool = False
    """Whether rows in which its argument is NULL do not count."""
    distinct: bool = False
    """Whether equal values count once."""


PLAIN_OPTIONS = WindowOptions()


@dataclass(frozen=True)
class Ordering:
    """One column of an order."""

    column: str
    descending: bool = False
    nulls_first: bool = False


FROM_COLUMN = "from column"
"""Stands for a constant where each row has a value of its own."""


@dataclass(frozen=True)
class WindowCall:
    """A window function: `kind` of `arguments` (column names), over the partition `by`, in `order`, within `frame`. `title` is
    how it was written.

    `lag` and `lead` have a constant offset and default, or take them from their second and third argument; the constant is then
    `FROM_COLUMN`. So does `nth_value` with its number.
    """

    kind: str
    arguments: tuple[str, ...]
    by: tuple[str, ...]
    order: tuple[Ordering, ...]
    frame: Frame[str]
    type: Type
    constants: tuple[Any, ...] = ()
    title: str = field(default="", compare=False)
    options: WindowOptions = PLAIN_OPTIONS

    @property
    def columns(self) -> set[str]:
        return {*self.arguments, *self.by, *(o.column for o in self.order), *columns_of_frame(self.frame)}
