"""Requests with rules, attributes and facts: register, create-attribute, transact, query."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tektite.server.web.answers import Answer
from tektite.server.web.body import RequestBody
from tektite.server.web.statement_requests import StatementRequests
from tektite.sql.catalog.schemas import sql_name
from tektite.values.type_names import as_type
from tektite.wire.rows import value_from_data


class RuleRequests(StatementRequests):
    """Datalog, and queries that are registered and run when somebody is interested."""

    async def do_register(self, body: RequestBody) -> Answer:
        """Register rules in either syntax of Datalog, queries of SQL by name, or both. Nothing runs until somebody asks."""
        rules, queries, source = body.text("datalog", None), body.mapping("sql", {}), body.text("name", None)
        body.finish()
        if rules is None and not queries:
            raise body.wrong("it takes rules as 'datalog', or queries by their names as 'sql'")
        server = self.session.server
        server.check_accepts_writes()
        for name, query in queries.items():
            if not isinstance(query, str):
                raise body.wrong(f"the query {name!r} is a text, not {str(query)[:100]!r}")
            await self._run_text(f"CREATE VIEW {sql_name(name)} AS {query}", {})
        predicates: list[str] = []
        if rules is not None:
            predicates = await self.session.call(lambda: self._allowed(lambda: server.catalog.register(rules, source)))
            await self.session.until_durable()
        return Answer({"predicates": predicates, "views": list(queries)})

    async def do_create_attribute(self, body: RequestBody) -> Answer:
        """Declare an attribute of entities."""
        name, kind, entity = body.text("name"), body.text("type", None), body.text("entity", "int")
        options: dict[str, Any] = {"cardinality": body.text("cardinality", None), "mode": body.text("mode", None)}
        body.finish()
        server = self.session.server
        server.check_accepts_writes()
        said = {"name": name, "type": kind, "entity": entity, **options}
        as_type(entity, "entity: ")
        await self.session.call(lambda: self._allowed(lambda: server.catalog.attribute(said)))
        await self.session.until_durable()
        return Answer({})

    async def do_transact(self, body: RequestBody) -> Answer:
        """Write facts of attributes: EDN, or a list such as [[1, "knows", 2], ["retract", 1, "knows", 3]]."""
        facts = body.any("facts")
        body.finish()
        engine = self.session.server.engine
        self.session.server.check_accepts_writes()
        if isinstance(facts, list):
            facts = [tuple(value_from_data(fact)) if isinstance(fact, list) else fact for fact in facts]
        elif not isinstance(facts, str):
            raise body.wrong("facts are a text of EDN, or a list of lists")
        time = await self.session.call(lambda: self._allowed(lambda: engine.transact(facts)))
        if not self.session.is_in_transaction:
            await self.session.until_durable()
        return Answer({"time": time})

    async def do_query(self, body: RequestBody) -> Answer:
        """Answer a goal or a query of Datalog once."""
        text, given = body.text("text"), {n: value_from_data(v) for n, v in body.mapping("params", {}).items()}
        body.finish()
        engine = self.session.server.engine

        def work() -> Any:
            with engine.query(text, given) as query:
                return query.snapshot()

        return Answer({}, await self.session.call(lambda: self._allowed(work)))

    def _allowed(self, work: Callable[[], Any]) -> Any:
        """Do something with rules, if the user may use them."""
        self.session.rights.check_rules()
        return work()

    async def do_register_source(self, body: RequestBody) -> Answer:
        """A source as a statement: CREATE SOURCE."""
        text = body.text("sql")
        body.finish()
        return await self._run_text(text, {})
