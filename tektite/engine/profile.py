"""Profile: what every operator did within a block, as a table, as text and as a flame graph. Made by `Engine.profile`.

Operators of dataflows that came and went within the block count too: those of a query that was answered once, for instance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from tektite.blocks import safe_block
from tektite.dataflow.work_log import OperatorWork, WorkLog
from tektite.engine.core import HIDDEN_PREFIX
from tektite.engine.flame_graph import flame_graph
from tektite.engine.system.observation import shown_name
from tektite.errors import ConflictError
from tektite.values.html import SHOWN_ROWS, html_table, html_text

if TYPE_CHECKING:
    from tektite.dataflow.node import Node
    from tektite.engine.engine_core import EngineCore


@dataclass(frozen=True)
class OperatorProfile:
    """The work of one operator within a profile.

    >>> import tektite as tk
    >>> engine = tk.Engine()
    >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
    >>> with engine.profile() as profile:
    ...     _ = sales.count(by="shop").collect()
    >>> all(operator.seconds >= 0 for operator in profile.operators)
    True
    """

    dataflow: str
    """The view, or the shared index, that it computes; `query` for a query that was answered once."""
    loops: str
    """The loops that it is in, from the outermost one."""
    operator: str
    runs: int
    seconds: float
    received: int
    """Rows that other operators sent it, and that it took from arrangements."""
    sent: int
    """Rows that it sent to others."""
    bytes: int
    """Bytes of its arrangement, if it keeps one, when the profile was read or ended."""
    shared: bool
    """Whether it belongs to an index that several queries may share."""
    text: str | None
    """The line of the plan that it was made for."""


class Profile:
    """The work of operators within a block. It is complete when the block has ended.

    >>> import tektite as tk
    >>> engine = tk.Engine()
    >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
    >>> with engine.profile() as profile:
    ...     _ = sales.count(by="shop").collect()
    >>> print(str(profile).splitlines()[0])
          time    runs    received        sent      memory  index   operator
    """

    def __init__(self) -> None:
        self._operators: tuple[OperatorProfile, ...] | None = None

    @property
    def operators(self) -> tuple[OperatorProfile, ...]:
        """The operators that ran, the most expensive first.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> totals = engine.create_view("totals", sales.group_by("shop").agg(tk.sum("amount")))
        >>> with engine.profile() as profile:
        ...     _ = sales.insert([("north", 3), ("south", 5)])
        >>> {found.dataflow for found in profile.operators}
        {'totals'}
        """
        if self._operators is None:
            raise ConflictError("the profile is complete at the end of its block: read it behind the with statement")
        return self._operators

    def table(self) -> pa.Table:
        """The operators as a table, one row each.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> with engine.profile() as profile:
        ...     pass
        >>> profile.table().num_rows
        0
        """
        columns = list(OperatorProfile.__dataclass_fields__)
        rows = [asdict(operator) for operator in self.operators]
        if not rows:
            return pa.table({name: pa.array([], pa.null()) for name in columns})
        return pa.Table.from_pylist(rows)

    def folded(self) -> str:
        """A line for each operator with its path and its microseconds, as tools for flame graphs read them.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> with engine.profile() as profile:
        ...     pass
        >>> profile.folded()
        ''
        """
        return "".join(f"{';'.join(path)} {microseconds}\n" for path, microseconds in self._stacks())

    def flame(self, path: str | Path) -> None:
        """Write a flame graph as an SVG file: dataflows at the bottom, loops and operators above, as wide as they took long.

        >>> import tempfile
        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> with engine.profile() as profile:
        ...     pass
        >>> profile.flame(tempfile.mktemp(suffix=".svg"))
        """
        Path(path).write_text(flame_graph(self._stacks()))

    def _stacks(self) -> list[tuple[tuple[str, ...], int]]:
        found: dict[tuple[str, ...], float] = {}
        for each in self.operators:
            loops = each.loops.split("/") if each.loops else []
            path = (each.dataflow, *loops, each.operator)
            found[path] = found.get(path, 0.0) + each.seconds
        return [(path, round(seconds * 1e6)) for path, seconds in sorted(found.items())]

    def _repr_html_(self) -> str:
        """The HTML that a notebook shows: the operators that took most."""
        if self._operators is None:
            return html_text("a profile, complete at the end of its block")
        titles = ["milliseconds", "runs", "received", "sent", "bytes", "index", "operator", "of", "made for"]
        rows = [
            (round(each.seconds * 1e3, 3), each.runs, each.received, each.sent, each.bytes,
             "shared" if each.shared else "own", each.operator, "/".join(filter(None, (each.dataflow, each.loops))),
             each.text or "")
            for each in self._operators[:SHOWN_ROWS]
        ]  # fmt: skip
        many = len(self._operators)
        return html_table(titles, rows, "", f"{SHOWN_ROWS} of {many} operators" if many > SHOWN_ROWS else "")

    def __str__(self) -> str:
        lines = [f"{'time':>10}  {'runs':>6}  {'received':>10}  {'sent':>10}  {'memory':>10}  index   operator"]
        for each in self.operators:
            where = "/".join(filter(None, (each.dataflow, each.loops)))
            lines.append(
                f"{each.seconds * 1e3:>7.3f} ms  {each.runs:>6}  {each.received:>10}  {each.sent:>10}  {each.bytes:>10}  "
                f"{'shared' if each.shared else 'own':<6}  {each.operator} of {where}"
            )
        return "\n".join(lines)


@safe_block
def profiled(core: EngineCore) -> Iterator[Profile]:
    """Count what operators do within a block."""
    profile = Profile()
    with core.lock.held:
        core.lock.roll_forward()
        journal = core.coordinator.journal
        if journal.work is None:
            journal.work = WorkLog()
        log = journal.work
        log.users += 1
        before = {node: replace(work) for node, work in log.items()}
        shared = {entry.flow for entry in core.catalog.entries if entry.flow is not None}
    try:
        yield profile
    finally:
        with core.lock.held:
            shared |= {entry.flow for entry in core.catalog.entries if entry.flow is not None} | set(log.indexes)
            there = core.coordinator.flows
            found = [
                _operator(node, work, before.get(node, OperatorWork()), node.flow in shared, node.flow in there)
                for node, work in log.items()
            ]
            log.users -= 1
            if not log.users:
                log.forget()
                if not core.system.needs_work():
                    journal.work = None
        ran = [operator for operator in found if operator.runs]
        profile._operators = tuple(sorted(ran, key=lambda operator: -operator.seconds))


def _operator(
    node: Node, now: OperatorWork, before: OperatorWork, shared: bool, is_there: bool
) -> OperatorProfile:  # fmt: skip
    loops = "/".join(scope.name for scope in reversed(list(node.scope.enclosing())) if scope.name)
    return OperatorProfile(
        _shown(node.flow.name), loops, node.name, now.runs - before.runs, now.seconds - before.seconds,
        now.received - before.received, now.sent - before.sent, _bytes(node) if is_there else now.left, shared,
        node.flow.purpose_of(node),
    )  # fmt: skip


def _bytes(node: Node) -> int:
    return 0 if node.mints is None else node.mints.bytes


def _shown(name: str) -> str:
    """The name of a dataflow as people know it; all queries that are answered once have one."""
    return "query" if name.startswith(f"{HIDDEN_PREFIX}collect_") else shown_name(name)
