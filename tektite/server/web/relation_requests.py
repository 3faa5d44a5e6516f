"""Requests about tables and views: creating, dropping, writing, reading."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tektite.engine.core import core_of
from tektite.engine.declarations import filled_table, table_description
from tektite.engine.table import Table
from tektite.engine.view import View
from tektite.errors import IncorrectError, TektiteError, UnsupportedError
from tektite.plan.explanation import Explanation
from tektite.server.web.answers import Answer, described
from tektite.server.web.body import RequestBody
from tektite.server.web.statement_requests import StatementRequests
from tektite.sql.catalog.schemas import sql_name
from tektite.values.columns import python_rows
from tektite.wire.rows import rows_from_data, value_from_data

if TYPE_CHECKING:
    from tektite.engine.engine import Engine

SHARED_ROWS = 1000
"""Rows of an insert up to which it shares an epoch with those of others; more are worth one of their own."""


def table_of(data: Any, found: Table | View) -> pa.Table:
    """Rows, or a table of somebody's, as a table with the columns of a relation; refused if they do not fit these."""
    schema, dictionary = found.schema, core_of(found).engine.dictionary
    return schema.decode(schema.encode(data, dictionary), dictionary)


class RelationRequests(StatementRequests):
    """Tables and views."""

    @property
    def _engine(self) -> Engine:
        return self.session.server.engine

    async def do_relations(self, body: RequestBody) -> Answer:
        """The names of the tables and views that the user is told of."""
        body.finish()
        rights = self.session.rights
        tables, views = await self.session.call(lambda: (rights.visible("table"), rights.visible("view")))
        return Answer({"tables": tables, "views": views})

    async def do_describe(self, body: RequestBody) -> Answer:
        """The schema and the kind of a table or a view."""
        name, kind = body.text("relation"), body.text("kind", None)
        body.finish()
        return Answer(await self.session.call(lambda: self.session.rights.described(name, kind)))

    async def do_create_table(self, body: RequestBody) -> Answer:
        """A new table; the message's table has its first rows."""
        name, columns, kinds = body.text("name"), body.list("columns"), body.list("types")
        options: dict[str, Any] = {
            "mode": body.text("mode", "bag"), "if_exists": body.text("if_exists", "error"),
            "primary_key": body.names("primary_key"), "order_by": body.names("order_by"), "required": body.names("required"),
        }  # fmt: skip
        body.finish()
        if len(columns) != len(kinds):
            raise body.wrong(f"there are {len(columns)} columns and {len(kinds)} types")
        if len(set(map(str, columns))) != len(columns):
            raise body.wrong(f"expected each column once, found {columns}")
        schema = dict(zip(map(str, columns), kinds, strict=True))
        rights, rows = self.session.rights, body.table

        def make() -> dict[str, Any]:
            rights.check_create(name)
            if options["if_exists"] == "replace" and name in self._engine.tables:
                rights.check_owner(name)
            if options["if_exists"] == "keep" and name in self._engine.tables:
                rights.table(name)  # what it is like is not for everybody
            core = core_of(self._engine)
            core.check_changeable(name, "create_table")
            declared = table_description(
                name,
                schema,
                options["mode"],
                options["primary_key"],
                options["order_by"],
                options["required"],
                (),
                True,
            )
            with rights.creating(name, name not in self._engine.tables):
                made = filled_table(core, name, declared, rows, options["if_exists"])
            return described(made)

        return await self._recorded(name, make)

    async def do_create_view(self, body: RequestBody) -> Answer:
        """A query whose answer is kept up to date."""
        name, query = body.text("name"), body.text("query")
        values = {label: value_from_data(value) for label, value in body.parameters().items()}
        order_by, if_exists = body.names("order_by"), body.text("if_exists", "error")
        body.finish()

        rights = self.session.rights
        if rights.is_bound:
            if values or order_by or if_exists != "error":
                raise body.wrong("params, order_by and if_exists are for superusers: write them into the query")
            await self._run_text(f"CREATE MATERIALIZED VIEW {sql_name(name)} AS {query}", {})
            return Answer(await self.session.call(lambda: described(self._engine.view(name))))

        def make() -> dict[str, Any]:
            return described(
                self._engine.create_view(name, query, values, order_by=order_by, if_exists=if_exists)  # type: ignore[arg-type]
            )

        text = f"CREATE MATERIALIZED VIEW {sql_name(name)} AS {query}"
        return await self._recorded(name, make, text, bool(values or order_by))

    async def _recorded(self, name: str, make: Any, text: str = "", is_special: bool = False) -> Answer:
        """Make something, and store the statement that makes it again at the next start."""
        self.session.server.check_accepts_writes()
        catalog = self.session.server.catalog
        if is_special:
            catalog.check_can_store(f"view {name!r} has parameters or an order: write the values into the query")
        found = await self.session.call(lambda: catalog.recorded(text, make))
        await self.session.until_durable()
        return Answer(found)

    async def do_drop(self, body: RequestBody) -> Answer:
        """Remove a table or a view for everybody."""
        name, kind, if_exists = body.text("relation"), body.text("kind"), body.flag("if_exists")
        body.finish()
        engine = self._engine
        if kind not in ("table", "view"):
            raise body.wrong(f"kind is table or view, not {kind[:50]!r}")
        drop = engine.drop_table if kind == "table" else engine.drop_view

        def work() -> dict[str, Any]:
            if name in engine.tables or name in engine.views:
                self.session.rights.check_owner(name)
            elif not if_exists:
                self.session.rights.relation(name, kind)  # says that there is none
            drop(name, if_exists=if_exists)
            self.session.rights.dropped(name)
            return {}

        return await self._recorded(name, work)

    # ------------------------------------------------------------------ writing

    async def do_insert(self, body: RequestBody) -> Answer:
        """Add rows: those of the message's table, or `rows` of JSON. The time at which they can be read."""
        table, data = await self._data(body)
        rights = self.session.rights
        if rights.is_bound and await self.session.call(lambda: rights.check_insert(table)):

            def checked() -> int | None:
                given = table_of(data, table)
                rights.check_insert(table, given)
                return table.insert(given)

            return await self._write(checked)
        if not self.session.is_in_transaction and not isinstance(data, pa.Table):
            server, source = self.session.server, core_of(table)
            server.check_accepts_writes()
            rows: list[Any] = data

            def insert(done: Any) -> bool:
                server.epochs.insert(source, rows, done)
                return True

            return Answer({"time": await self.at_once(insert)})
        return await self._write(lambda: table.insert(data))

    async def do_push(self, body: RequestBody) -> Answer:
        """Rows for a source that takes what clients push, with a number that grows: earlier ones are not taken again."""
        name, rows, number = body.text("source"), body.any("rows", None), body.number("number", None)
        body.finish()
        if (rows is None) == (body.table is None):
            raise body.wrong("it takes rows of JSON or a table of Arrow, and not both")
        connectors, rights = self.session.server.connectors, self.session.rights
        self.session.server.check_accepts_writes()

        def work() -> dict[str, Any]:
            source = connectors.pushed(name)
            table = self._engine.table(source.relation)
            rights.check_insert(table)
            given = table_of(body.table if rows is None else rows_from_data(rows, table.schema), table)
            rights.check_insert(table, given)
            return source.push(given, number)

        found = await self.session.call(work)
        await self.session.until_durable()
        return Answer(found)

    async def do_remove(self, body: RequestBody) -> Answer:
        """Take rows away."""
        table, data = await self._data(body)

        def remove() -> int | None:
            self.session.rights.check_remove(table)
            return table.remove(data)

        return await self._write(remove)

    async def _data(self, body: RequestBody) -> tuple[Table, Any]:
        name, rows = body.text("table"), body.any("rows", None)
        body.finish()
        rights = self.session.rights
        table = await self.session.call(lambda: rights.table(name)) if rights.is_bound else self._engine.table(name)
        if (rows is None) == (body.table is None):
            raise body.wrong("it takes rows of JSON or a table of Arrow, and not both")
        if rows is not None:
            return table, rows_from_data(rows, table.schema)
        given = body.table
        assert given is not None
        is_whole = given.column_names == list(table.schema.names)
        return table, python_rows(given, "the data", "table") if is_whole and given.num_rows <= SHARED_ROWS else given

    async def _write(self, write: Any) -> Answer:
        self.session.server.check_accepts_writes()
        time = await self.session.call(write)
        if not self.session.is_in_transaction:
            await self.session.until_durable()
        return Answer({"time": time})

    async def do_close_input(self, body: RequestBody) -> Answer:
        """End a table: what it holds stays, nobody writes to it any more, and it holds no view up."""
        name = body.text("table")
        body.finish()
        self.session.server.check_accepts_writes()

        def work() -> None:
            table = self.session.rights.table(name)
            self.session.rights.check_owner(name)
            table.finish()

        await self.session.call(work)
        return Answer({})

    async def do_advance(self, body: RequestBody) -> Answer:
        """Close the open epoch, or all before a time; the last one that is closed."""
        to = body.number("to", None)
        body.finish()
        return await self._write(lambda: self.session.rights.advance(to))

    async def do_tick(self, body: RequestBody) -> Answer:
        """Give every view one more turn; whether all of them are up to date."""
        body.finish()
        engine = self._engine
        current, epoch = await self.session.call(lambda: (engine.run(), engine.next_epoch))
        return Answer({"current": current, "next_epoch": epoch})

    # ------------------------------------------------------------------ reading

    async def do_rows(self, body: RequestBody) -> Answer:
        """All rows of a table or a view, as of the last closed epoch or of an earlier one that is held."""
        name, at = body.text("relation"), body.number("at", None)
        body.finish()

        def work() -> pa.Table:
            found = self.session.rights.readable(name)
            if self.session.rights.reads_all(found):
                return found.snapshot(at)
            if at is not None:
                what = "has policies" if isinstance(found, Table | View) else "is only a definition"
                raise UnsupportedError(f"{name!r} {what}: its rows are read as of the last closed epoch")
            return self.session.rights.rows(found)

        return Answer({}, await self.session.call(work))

    async def do_head(self, body: RequestBody) -> Answer:
        """The first rows."""
        name, n = body.text("relation"), body.number("n")
        body.finish()

        def work() -> pa.Table:
            found = self.session.rights.readable(name)
            if self.session.rights.reads_all(found):
                return found.head(n)
            return self.session.rights.rows(found, f"LIMIT {max(n, 0)}")

        return Answer({}, await self.session.call(work))

    async def do_lookup(self, body: RequestBody) -> Answer:
        """The rows with a key."""
        name, key = body.text("relation"), [value_from_data(value) for value in body.list("key")]
        body.finish()

        def work() -> pa.Table:
            found = self.session.rights.readable(name)
            if not self.session.rights.reads_all(found):
                names = [
                    sql_name(column).rpartition(".")[2] for column in self.session.rights.key_columns(found)[: len(key)]
                ]
                parts = [f"{column} = ${at}" for at, column in enumerate(names, 1)]
                return self.session.rights.rows(found, f"WHERE {' AND '.join(parts)}" if parts else "", tuple(key))
            return table_of(found.lookup(*key), found)

        return Answer({}, await self.session.call(work))

    async def do_count(self, body: RequestBody) -> Answer:
        """The number of rows."""
        name = body.text("relation")
        body.finish()

        def work() -> int:
            found = self.session.rights.readable(name)
            return len(found) if self.session.rights.reads_all(found) else self.session.rights.rows(found).num_rows

        return Answer({"count": await self.session.call(work)})

    async def do_view_state(self, body: RequestBody) -> Answer:
        """The time that a view has reached, and the error that a read of it raises."""
        from tektite.wire.failures import as_data

        name = body.text("view")
        body.finish()

        def work() -> tuple[int | None, TektiteError | None]:
            view = self.session.rights.view(name)
            self.session.rights.reads_all(view)
            error = view.error
            return view.time, None if error is None else self.session.rights.disclosure((view.name,))(error)

        time, error = await self.session.call(work)
        return Answer({"time": time, "view_error": None if error is None else as_data(error)})

    async def do_wait(self, body: RequestBody) -> Answer:
        """Wait until a view answers for a time, for at most some seconds; whether it does."""
        name, time, seconds = body.text("view"), body.number("time"), body.seconds("seconds")
        body.finish()
        if seconds is not None and not seconds >= 0:
            raise IncorrectError(f"a timeout is a number of seconds from 0 on, not {seconds!r}")

        def readable() -> View:
            found = self.session.rights.view(name)
            self.session.rights.reads_all(found)
            return found

        view = await self.session.call(readable)
        if await self.session.call(lambda: core_of(view).wait(time, 0)):
            return Answer({"there": True})
        try:
            async with asyncio.timeout(seconds):
                await self.session.wait(view.wait_async(time))
        except TimeoutError:
            return Answer({"there": False})
        return Answer({"there": True})

    async def do_explain(self, body: RequestBody) -> Answer:
        """The explanation of how a view is maintained."""
        name = body.text("view")
        body.finish()

        def work() -> Explanation:
            found = self.session.rights.view(name)
            self.session.rights.check_definition(found)
            return found.explain()

        explained = await self.session.call(work)
        return Answer({"text": explained, "plan": explained.data})
