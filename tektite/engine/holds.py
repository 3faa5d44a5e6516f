"""Holds on history, indexes that stay, and `IndexInfo`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tektite.dataflow.flow import Dataflow
from tektite.engine.lock import StepByStep, guarded_by_core
from tektite.former_names import former_name, without_former
from tektite.trace.trace import Hold
from tektite.unknown_options import explains_options

if TYPE_CHECKING:
    from tektite.engine.engine_core import EngineCore


@dataclass(frozen=True)
class IndexInfo:
    """One shared index in the result of `Engine.indexes`.

    >>> import tektite as tk
    >>> engine = tk.Engine()
    >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
    >>> _ = sales.insert([("north", 3), ("south", 5)])
    >>> (info,) = engine.indexes()
    >>> info.name, info.columns, info.rows
    ('sales', ('shop', 'amount'), 2)
    """

    name: str
    columns: tuple[str, ...]
    rows: int
    batches: int
    bytes: int
    first: int
    """The first time that it answers for."""
    time: int | None
    """The last time that it answers for; None before there is one."""
    readers: tuple[str, ...]

    @property
    @former_name("index.first")
    def since(self) -> int:
        """`first`, by its former name."""
        return self.first

    @property
    @former_name("index.time + 1")
    def upper(self) -> int:
        """The first time that it does not answer for, by a former name."""
        return 0 if self.time is None else self.time + 1

    def __dir__(self) -> list[str]:
        return without_former(type(self), super().__dir__())


@explains_options
class Index:
    """A shared index that stays though no view may read it, until `drop` or the end of a `with` block. Made by
    `Engine.create_index` and `Collection.create_index`.

    >>> import tektite as tk
    >>> engine = tk.Engine()
    >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
    >>> with engine.create_index(sales, by="amount") as index:
    ...     print(index)
    <Index sales by (amount)>
    """

    def __init__(self, core: EngineCore, reader: Dataflow, name: str) -> None:
        self._core = core
        self._reader = reader
        self.name = name

    @guarded_by_core
    def drop(self) -> None:
        """Let it go with the last view that reads it.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> index = engine.create_index(sales, by="amount")
        >>> index.drop()
        >>> [info.name for info in engine.indexes()]
        ['sales']
        """
        core, reader = self._core, self._reader
        core.lock.decide(StepByStep(lambda: core.catalog.release(reader)))

    @former_name("index.drop()")
    def release(self) -> None:
        """`drop`, by its former name."""
        self.drop()

    def __repr__(self) -> str:
        return f"<Index {self.name}>"

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self.drop()


@explains_options
class Held:
    """A hold on history, released by `release` or at the end of a `with` block.

    >>> import tektite as tk
    >>> engine = tk.Engine()
    >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
    >>> time = sales.insert([("north", 3)])
    >>> with engine.hold(sales) as held:
    ...     _ = sales.insert([("south", 5)])
    ...     print(held.at, sales.rows(held.at))
    0 [('north', 3)]
    """

    def __init__(self, hold: Hold, at: int) -> None:
        self._hold = hold
        self.at = at

    def release(self) -> None:
        """Let history be compacted again.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> _ = sales.insert([("north", 3)])
        >>> held = engine.hold(sales)
        >>> held.release()
        """
        self._hold.drop()

    def __enter__(self) -> Held:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
