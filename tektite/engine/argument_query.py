"""ArgumentQuery: one standing dataflow that answers a query for any number of arguments, which come and go while it runs.

The query is written once, over the table of its arguments, and its answer has the arguments in its first columns. To ask, add
a row to the table, read the rows of the answer that begin with it, and remove the row in the end. Nothing is installed to ask,
and an answer that stands is kept up to date as any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tektite.blocks import safe_block
from tektite.engine.argument_tables import ArgumentTables
from tektite.engine.core import core_of
from tektite.engine.engine import Engine
from tektite.engine.session import Transaction
from tektite.engine.table import Table
from tektite.engine.view import View
from tektite.errors import IncorrectError
from tektite.query.collection import Collection
from tektite.unknown_options import explains_options

Build = Callable[[Collection], Collection]


@explains_options
class ArgumentQuery:
    """A query with arguments, maintained for all arguments that somebody asks for.

    `columns` are the arguments' names and types. `build` is called once with the collection of all different arguments, and
    returns the answer, whose first columns are the arguments, in their order. Several clients may ask for the same arguments:
    they are answered until the last of them has removed them.

    >>> import tektite as tk
    >>> from tektite import graph
    >>> engine = tk.Engine()
    >>> web = graph.Graph.create(engine, "web")
    >>> _ = web.add_edges([(1, 2), (2, 3), (2, 4)])
    >>> two_hops = tk.ArgumentQuery(engine, "two_hops", {"node": tk.Int}, lambda asked: graph.walks(web, asked, 2))
    >>> sorted(two_hops.once(1))
    [(1, 3), (1, 4)]
    >>> with two_hops.asked(1) as answer:
    ...     _ = web.add_edges([(2, 5)])
    ...     print(sorted(answer()))
    [(1, 3), (1, 4), (1, 5)]
    >>> two_hops.view.rows()
    []
    """

    def __init__(self, engine: Engine, name: str, columns: Mapping[str, Any], build: Build) -> None:
        if not columns:
            raise IncorrectError(f"{name}: a query with arguments has at least one; install a query without as a view")
        self.name = name
        self._engine = engine
        self._tables = ArgumentTables(core_of(engine))
        self.arguments: Table = engine.create_table(f"{name} ?arguments", columns, required=list(columns))
        """The table of arguments, for programs that write many at once. A row is there once for each client that asks for it."""
        self._tables.tables["arguments"] = self.arguments
        wanted = self.arguments.schema
        with self._tables.kept_if_installed():
            found = build(self.arguments.distinct())
            if not isinstance(found, Collection):
                raise IncorrectError(f"{name}: the query returned {found!r}, not a collection")
            names, types = found.schema.names[: len(wanted.names)], found.schema.types[: len(wanted.names)]
            if types != wanted.types:
                raise IncorrectError(
                    f"{name}: the answer must begin with its arguments ({wanted}), but its columns are {found.schema}"
                )
            self.view: View = engine.install(name, found, order_by=list(names))
            """The answers for all arguments."""

    def __repr__(self) -> str:
        return f"<ArgumentQuery {self.name!r} ({self.arguments.schema})>"

    def insert(self, rows: Any) -> int | None:
        """Ask for further arguments, a row each: what `Table.insert` takes and returns.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> query = tk.ArgumentQuery(engine, "of_shop", {"shop": str}, lambda asked: asked.join(sales, on="shop"))
        >>> _ = query.insert([("north",), ("south",)])
        >>> sorted(query.view.rows())
        [('north', 3), ('south', 5)]
        """
        return self.arguments.insert(rows)

    def remove(self, rows: Any) -> int | None:
        """Ask for some arguments no longer. One that nobody asks for is refused.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> query = tk.ArgumentQuery(engine, "of_shop", {"shop": str}, lambda asked: asked.join(sales, on="shop"))
        >>> _ = query.insert([("north",), ("south",)])
        >>> _ = query.remove([("north",)])
        >>> query.view.rows()
        [('south', 5)]
        """
        return self.arguments.remove(rows)

    def answer(self, *arguments: Any) -> list[tuple[Any, ...]]:
        """The rows of the answer for arguments that somebody asks for.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> query = tk.ArgumentQuery(engine, "of_shop", {"shop": str}, lambda asked: asked.join(sales, on="shop"))
        >>> _ = query.insert([("north",)])
        >>> query.answer("north")
        [('north', 3)]
        """
        return self.view.lookup(*self._checked(arguments))

    @safe_block
    def asked(self, *arguments: Any) -> Iterator[Callable[[], list[tuple[Any, ...]]]]:
        """Ask for some arguments within a block. It gets a function that reads their answer, as it is then.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> query = tk.ArgumentQuery(engine, "of_shop", {"shop": str}, lambda asked: asked.join(sales, on="shop"))
        >>> with query.asked("north") as answer:
        ...     _ = sales.insert([("north", 4)])
        ...     print(sorted(answer()))
        [('north', 3), ('north', 4)]
        """
        row = self._checked(arguments)
        changes: list[Transaction] = []
        try:
            try:
                with self._engine.transaction() as asking:
                    changes.append(asking)
                    self.arguments.insert([row])
                yield lambda: self.view.lookup(*row)
            finally:
                self._forget(row, changes)
        finally:  # an interrupt may have ended the first attempt
            self._forget(row, changes)

    def _forget(self, row: tuple[Any, ...], changes: list[Transaction]) -> None:
        """Remove the arguments of a block, if they were added and not removed yet."""
        if sum(each.time is not None for each in changes) == 1:
            with self._engine.transaction() as forgetting:
                changes.append(forgetting)
                self.arguments.remove([row])

    def once(self, *arguments: Any) -> list[tuple[Any, ...]]:
        """The answer for some arguments, as it is at present.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> query = tk.ArgumentQuery(engine, "of_shop", {"shop": str}, lambda asked: asked.join(sales, on="shop"))
        >>> query.once("south")
        [('south', 5)]
        """
        with self.asked(*arguments) as answer:
            return answer()

    def drop(self) -> None:
        """Stop answering.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> query = tk.ArgumentQuery(engine, "of_shop", {"shop": str}, lambda asked: asked.join(sales, on="shop"))
        >>> query.drop()
        >>> engine.views, engine.tables
        ((), ('sales',))
        """
        self.view.drop()
        self._tables.drop()

    def _checked(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        names = self.arguments.schema.names
        if len(arguments) != len(names):
            many = f"{len(names)} argument{'s' * (len(names) != 1)} ({', '.join(names)})"
            raise IncorrectError(f"{self.name} takes {many}, not {arguments}")
        return arguments
