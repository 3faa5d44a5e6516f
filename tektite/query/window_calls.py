"""What a window function computes, and of which rows around each one: its frame."""

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


Edge: TypeAlias = "int | None | Reach[C]"
"""An end of a frame: rows or groups of peers away from the row's own, None for no end, or a value away."""
Frame: TypeAlias = "tuple[str, Edge[C], Edge[C]]"
"""rows, range or groups, and where the frame begins and ends."""


def of_frame(frame: Frame[C], column: Callable[[C], D]) -> Frame[D]:
    """A frame with its columns in another form."""

    def edge(given: Edge[C]) -> Edge[D]:
        return Reach(column(given.value), column(given.bound)) if isinstance(given, Reach) else given

    kind, start, end = frame
    return kind, edge(start), edge(end)


@dataclass(frozen=True)
class Ordering:
    """One column of an order."""

    column: str
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True)
class WindowCall:
    """A window function: `kind` of `arguments` (column names), over the partition `by`, in `order`, within `frame`. `title` is
    how it was written.
    """

    kind: str
    arguments: tuple[str, ...]
    by: tuple[str, ...]
    order: tuple[Ordering, ...]
    frame: Frame[str]
    type: Type
    constants: tuple[Any, ...] = ()
    title: str = field(default="", compare=False)

    @property
    def columns(self) -> set[str]:
        reached = [name for edge in self.frame[1:] if isinstance(edge, Reach) for name in (edge.value, edge.bound)]
        return {*self.arguments, *self.by, *(o.column for o in self.order), *reached}
