"""The methods of Engine for holds on history and for shared indexes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tektite.engine.catalog import RecordingCatalog
from tektite.engine.constraints import check_time
from tektite.engine.core import core_of
from tektite.engine.engine_core import EngineCore
from tektite.engine.holds import Held, Index, IndexInfo
from tektite.engine.lock import StepByStep, guarded_by_core
from tektite.engine.table import Table
from tektite.engine.view import View
from tektite.errors import ConflictError, IncorrectError
from tektite.former_names import former_name
from tektite.query.collection import Collection
from tektite.query.columns import column_numbers
from tektite.trace.trace import Hold
from tektite.unknown_options import explains_options

if TYPE_CHECKING:
    pass


@explains_options
class IndexMethods:
    """Holds on history, and shared indexes."""

    _core: EngineCore

    @guarded_by_core
    def hold(self, what: Table | View, at: int | None = None) -> Held:
        """Keep every time from `at` on (the last closed epoch, where left out) readable until the hold is released.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> time = sales.insert([("north", 3)])
        >>> with engine.hold(sales, time):
        ...     _ = sales.insert([("south", 5)])
        ...     print(sales.rows(time), len(sales))
        [('north', 3)] 2
        """
        if not isinstance(what, Table | View):
            raise IncorrectError(f"hold takes a table or a view, not {what!r}")
        if at is not None:
            check_time(at)
        source = core_of(what)
        if source.is_stream:
            raise ConflictError(f"{source.name!r} keeps no history that could be held")
        source.check_usable()
        since = min((t[0] for t in source.trace.since()), default=0)
        epoch = max(source.low - 1, 0) if at is None else at
        if epoch < since:
            raise IncorrectError(f"{source.name!r} can be held from time {since} on, not from {epoch}")
        return Held(Hold(source.trace, lambda: ((epoch,),)), epoch)

    @guarded_by_core
    def create_index(self, collection: Collection, by: str | Sequence[str]) -> Index:
        """Keep a shared index of a table, a view or a query, whether or not a view reads it, until it is dropped. So the next
        query that looks rows up by these columns finds the index there.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
        >>> index = engine.create_index(edges, by="dst")
        >>> index
        <Index edges by (dst)>
        >>> [(info.name, info.columns) for info in engine.indexes()]
        [('edges', ('src', 'dst')), ('edges by (dst)', ('dst', 'src'))]
        >>> index.drop()
        >>> [info.name for info in engine.indexes()]
        ['edges']
        """
        if not isinstance(collection, Collection):
            raise IncorrectError(
                f"create_index takes a table, a view or a query, not {collection!r}; engine.table(name) and "
                "engine.view(name) find one by its name"
            )
        catalog = self._core.catalog
        catalog.clean_up()
        lead = column_numbers(collection.schema, by)
        names = ", ".join([collection.schema.names[column] for column in lead])
        reader = catalog.begun(catalog.new_flow(f"index by ({names})"))
        try:
            made = RecordingCatalog(catalog, reader).arrangement(collection.operator, lead, None, len(lead))
            title = getattr(collection, "name", "a query") if isinstance(collection, Table | View) else "a query"
            index = Index(self._core, reader, f"{title} by ({names})")
            catalog.finished(reader)  # before others use the engine: they clean up what is not
            self._core.finish(made.source)
            return index
        except BaseException:
            self._core.lock.decide(StepByStep(lambda: catalog.abandon(reader)))
            raise

    @former_name("engine.create_index(collection, by), or collection.create_index(by)")
    def keep(self, collection: Collection, by: str | Sequence[str]) -> Index:
        """`create_index`, by its former name."""
        return self.create_index(collection, by)

    @guarded_by_core
    def indexes(self, of: Table | View | None = None) -> list[IndexInfo]:
        """Every shared index, with its size and its readers; or those of one table or view.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> totals = engine.create_view("totals", sales.group_by("shop").agg(tk.sum("amount")))
        >>> [(index.name, index.columns) for index in engine.indexes()]
        [('sales', ('shop', 'amount')), ('totals', ('shop', 'amount'))]
        """
        if of is not None and not hasattr(of, "operator"):
            raise IncorrectError(f"indexes takes a table or a view, not {of!r}; engine.table(name) finds one")
        found = []
        for entry in self._core.catalog.entries:
            if of is not None and entry.collection != of.operator.fingerprint:
                continue
            trace = entry.trace
            low = entry.source.low
            first = min((t[0] for t in trace.since()), default=low)
            found.append(
                IndexInfo(
                    entry.name, entry.column_names, trace.count, trace.batches, trace.bytes, first,
                    low - 1 if low else None, tuple(sorted({reader.name for reader in entry.readers})),
                )
            )  # fmt: skip
        return found

    @former_name("engine.indexes()")
    def arrangements(self, of: Table | View | None = None) -> list[IndexInfo]:
        """`indexes`, by its former name."""
        return self.indexes(of)
