"""Requests with statements of SQL: at once, prepared, in transactions."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tektite.errors import ConflictError, IncorrectError, NotFoundError, UnsupportedError
from tektite.server.sessions import KnownStatement
from tektite.server.web.answers import Answer, SessionRequests
from tektite.server.web.body import RequestBody
from tektite.sql import Result
from tektite.sql.parse import parser
from tektite.sql.statements.statement_cache import check_given, labels_of
from tektite.values.words import arrow_type
from tektite.wire.rows import value_from_data

if TYPE_CHECKING:
    from tektite.server.epochs import Done

KNOWN = 100
"""Texts whose statements a session remembers."""


class StatementRequests(SessionRequests):
    """SQL."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._texts: OrderedDict[str, KnownStatement | None] = OrderedDict()
        """Texts of one statement that were run lately; None of one that was run once."""
        self._prepared: dict[str, KnownStatement] = {}

    async def do_sql(self, body: RequestBody) -> Answer:
        """Run statements; the last one's result."""
        text, values = body.text("text"), _values(body)
        body.finish()
        known = await self._known(text)
        if known is not None:
            return await self._run_known(known, values)
        return await self._run_text(text, values)

    async def do_prepare(self, body: RequestBody) -> Answer:
        """Parse a statement that will be run with several values."""
        name, text = body.text("name"), body.text("text")
        body.finish()
        if name in self._prepared:
            raise ConflictError(f"there is a prepared statement {name!r} already: deallocate it first")
        if len(self._prepared) >= self.session.server.plan.limits.prepared:
            raise ConflictError(
                f"there are {len(self._prepared)} prepared statements, which is as many as there may be"
            )
        known = self._prepared[name] = await self.session.prepare(text, {}, described=True)
        if known.statement is None:
            del self._prepared[name]
            raise IncorrectError(f"prepared statement {name!r}: the text holds no statement")
        found = known.description
        columns = None if found.columns is None else [title for title, _ in found.columns]
        kinds = None if found.columns is None else [str(kind) for _, kind in found.columns]
        return Answer(
            {"parameters": {n: str(t) for n, t in found.parameters.items()}, "columns": columns, "types": kinds}
        )

    async def do_execute(self, body: RequestBody) -> Answer:
        """Run a prepared statement."""
        name, values = body.text("name"), _values(body)
        body.finish()
        if name not in self._prepared:
            raise NotFoundError(f"there is no prepared statement {name!r}")
        return await self._run_known(self._prepared[name], values)

    async def do_deallocate(self, body: RequestBody) -> Answer:
        """Forget a prepared statement."""
        name = body.text("name")
        body.finish()
        if self._prepared.pop(name, None) is None:
            raise NotFoundError(f"there is no prepared statement {name!r}")
        return Answer({})

    async def do_begin(self, body: RequestBody) -> Answer:
        """Open a transaction."""
        body.finish()
        if self.channel is None:
            raise UnsupportedError(
                "a transaction of several requests needs a WebSocket: send the statements in one text"
            )
        await self.session.call(self.session.begin)
        return Answer({})

    async def do_commit(self, body: RequestBody) -> Answer:
        """Make what a transaction has written readable; the time at which it is."""
        body.finish()
        transaction = self.session.engine_session.open_transaction
        if transaction is None:
            raise ConflictError("no transaction is open")
        await self.session.commit()
        return Answer({"time": transaction.time})

    async def do_rollback(self, body: RequestBody) -> Answer:
        """Forget what a transaction has written."""
        body.finish()
        await self.session.rollback()
        return Answer({})

    # ------------------------------------------------------------------ running

    async def _known(self, text: str) -> KnownStatement | None:
        """A text that is run again, if it is one statement that was understood."""
        known = self._texts.get(text)
        if text not in self._texts:
            self._texts[text] = None
            if len(self._texts) > KNOWN:
                self._texts.popitem(last=False)
            return None
        self._texts.move_to_end(text)
        if known is None:
            found = await self.session.statements(text)
            if found.mistake is not None:
                raise found.mistake
            if len(found.statements) == 1:
                known = self._texts[text] = await self.session.prepare(text, {}, described=True)
        return known

    async def _run_known(self, known: KnownStatement, values: Mapping[str, Any]) -> Answer:
        session = self.session
        if known.statement is None:
            return Answer({"message": ""})
        takes = known.description.parameters
        if set(values) != set(takes):
            return await self._run_text(known.text, values)  # which says what is wrong
        if known.lookup is not None:
            rows = session.look_up_at_once(known, values)
            if rows is not None:
                schema = pa.schema([(title, arrow_type(kind)) for title, kind in known.lookup.columns])
                columns = list(zip(*rows, strict=True)) or [()] * len(schema)
                arrays = [pa.array(given, kind) for given, kind in zip(columns, schema.types, strict=True)]
                return Answer({"message": f"SELECT {len(rows)}"}, pa.Table.from_arrays(arrays, schema=schema))
        if known.insert is not None and not session.is_in_transaction:
            time = await self.at_once(lambda done: session.insert_at_once(known, values, done))
            if time is not False:
                return Answer({"message": f"INSERT 0 {len(known.insert.cells)}", "time": time})
        return await self._run_text(known.text, values)

    async def at_once(self, insert: Any) -> int | None | bool:
        """Insert rows in the next epoch that clients share; its time, or False if that cannot be."""
        done = self.session.server.loop.create_future()

        def tell(error: Exception | None, time: int | None) -> None:
            if done.done():
                return  # the client has gone
            if error is None:
                done.set_result(time)
            else:
                done.set_exception(error)

        told: Done = tell
        if not insert(told):
            return False
        found: int | None = await done
        return found

    async def _run_text(self, text: str, values: Mapping[str, Any]) -> Answer:
        session = self.session
        catalog = session.server.catalog
        statements, mistake = await session.statements(text)
        if values and mistake is None:
            check_given(labels_of(statements), values)

        def work() -> Result:
            before = session.engine_session.open_transaction
            result = Result("")
            try:
                for statement in statements:
                    if isinstance(statement, parser.Subscribe):
                        raise UnsupportedError(
                            "changes are told to those who subscribe: session.subscribe(query) in Python; in the protocol it is "
                            "the request 'interest', with the query as its 'sql'"
                        )
                    result = catalog.run(statement, values)
                if mistake is not None:
                    raise mistake
            except BaseException:
                opened = session.engine_session.open_transaction
                if opened is not None and opened is not before:
                    opened.rollback()
                raise
            if self.channel is None and session.engine_session.open_transaction is not None:
                session.engine_session.open_transaction.rollback()
                raise UnsupportedError("the text begins a transaction and does not end it: nothing was written")
            return result

        session.server.check_accepts_writes()
        result = await session.call(work)
        if session.engine_session.open_transaction is None:
            await session.until_durable()
        facts: dict[str, Any] = {"message": result.message}
        if result.view is not None:
            facts["view"] = result.view.name
        if result.time is not None:
            facts["time"] = result.time
        return Answer(facts, result.table)


def _values(body: RequestBody) -> dict[str, Any]:
    return {name: value_from_data(value) for name, value in body.parameters().items()}
