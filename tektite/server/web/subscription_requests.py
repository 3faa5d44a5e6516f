"""Requests for changes: interest and uninterest."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable
from typing import Any

from tektite.engine.core import core_of
from tektite.engine.table import Table
from tektite.engine.view import View
from tektite.errors import ConflictError, NotFoundError, TektiteError, UnsupportedError
from tektite.server.feeds import FeedSource, SharedFeed
from tektite.server.granularity import Granularity
from tektite.server.interests import Interest
from tektite.server.web.answers import Answer, described
from tektite.server.web.body import RequestBody
from tektite.server.web.statement_requests import StatementRequests
from tektite.sql import runner
from tektite.sql.access.system_policies import SYSTEM_POLICIES
from tektite.sql.catalog.schemas import sql_name
from tektite.sql.parse import parser
from tektite.sql.statements.shared_queries import SharedAnswer
from tektite.sql.statements.statement_cache import check_given, labels_of
from tektite.wire.failures import HistoryGone
from tektite.wire.rows import value_from_data


class SubscriptionRequests(StatementRequests):
    """Subscriptions of one client."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._interests: dict[int, tuple[Hashable, Interest]] = {}

    async def do_interest(self, body: RequestBody) -> Answer:
        """Be told the changes of a table or a view, of a predicate, or of a query that is installed for that; see `Interest`."""
        number = body.number("subscription")
        name, sql, datalog = body.text("name", None), body.text("sql", None), body.text("datalog", None)
        given = {label: value_from_data(value) for label, value in body.parameters().items()}
        said = body.any("granularity", None)
        granularity, progress = Granularity.parse(said), body.flag("progress")
        snapshot, since, lineage = body.any("snapshot", None), body.number("since", None), body.text("lineage", None)
        logged, sink = body.flag("logged", True), body.text("sink", None)
        body.finish()
        server, session = self.session.server, self.session
        if sum(each is not None for each in (name, sql, datalog)) != 1:
            raise body.wrong("it takes one of: name, a query as 'sql', a goal or query as 'datalog'")
        if snapshot is not None and not isinstance(snapshot, bool):
            raise body.wrong(f"snapshot is true or false, not {str(snapshot)[:100]!r}")
        if given and name is not None:
            raise body.wrong("params are for queries")
        if sink is not None:
            return await self._to_sink(body, name, sink)
        if self.channel is None:
            raise UnsupportedError("changes are told over a WebSocket")
        if number in self._interests:
            raise ConflictError(f"there is a subscription {number} already")
        if len(self._interests) >= server.plan.limits.subscriptions:
            raise ConflictError(f"there are {len(self._interests)} subscriptions, which is as many as there may be")
        if since is not None and lineage is not None and lineage != server.lineage:
            raise HistoryGone("the server has begun anew since: its times are others. Subscribe again, with a snapshot")
        asked = await self._asked(sql)
        make, what, check = self._source(name, sql, asked, datalog, given)
        key = (what, granularity, progress)
        feed = await server.feeds.get(key, lambda: server.loop.create_task(self._new_feed(make, granularity, progress)))
        interest = Interest(number, session, self.channel, feed, self.form, progress, check)
        interest.on_end = lambda: self._forget(number)
        self._interests[number] = key, interest
        session.subscriptions = len(self._interests)
        try:
            await feed.refresh()
            facts = described(feed.source.relation)
            is_stream = core_of(feed.source.relation).is_stream
            starts = (since is None and not is_stream) if snapshot is None else snapshot
            if starts and is_stream:
                raise ConflictError(f"{facts['name']!r} keeps no rows to begin with: subscribe with snapshot=False")
            if since is not None:
                await server.call(lambda: feed.check_held(since))
        except BaseException:
            self._forget(number)
            raise
        if logged:
            server.log.info("interest", user=session.user, relation=facts["name"], subscription=number)
        # The answer has to be on its way before the first change is.
        server.loop.call_soon(self._begin, number, since, starts)
        return Answer({"subscription": number, "relation": facts, "lineage": server.lineage})

    def _begin(self, number: int, since: int | None, snapshot: bool) -> None:
        if number not in self._interests:
            return  # the client has gone
        interest = self._interests[number][1]
        try:
            interest.begin(since, snapshot)
        except TektiteError as error:
            interest.end(error)

    async def do_refresh(self, body: RequestBody) -> Answer:
        """Be told everything that was committed before this request, before its answer."""
        number = body.number("subscription")
        body.finish()
        if number in self._interests:
            await self._interests[number][1].refresh()
        return Answer({})

    async def do_uninterest(self, body: RequestBody) -> Answer:
        """Be told no more."""
        number = body.number("subscription")
        body.finish()
        if number not in self._interests:
            raise NotFoundError(f"there is no subscription {number}")
        self._forget(number)
        return Answer({})

    def close_interests(self) -> None:
        """The client has gone. What it was interested in is held for a while: it may come back."""
        for number in list(self._interests):
            self._forget(number)

    def _forget(self, number: int) -> None:
        key, interest = self._interests.pop(number, (None, None))
        if interest is None:
            return
        self.session.subscriptions = len(self._interests)
        interest.close()
        self.session.server.feeds.left(key, interest.feed)

    async def _new_feed(self, make: Callable[[], FeedSource], granularity: Granularity, progress: bool) -> SharedFeed:
        """A new feed. Others may wait for the same one, so that a client which goes does not interrupt it."""
        server = self.session.server

        def work() -> SharedFeed:
            with self.session.engine_session:
                source = make()
            try:
                return SharedFeed(server, source, granularity, progress)
            except BaseException:
                if source.release is not None:
                    source.release()
                raise

        return await server.call(work)

    def _source(
        self,
        name: str | None,
        sql: str | None,
        asked: list[parser.Statement],
        datalog: str | None,
        given: dict[str, Any],
    ) -> tuple[Callable[[], FeedSource], Hashable, Callable[[], None]]:
        """A function that makes the source of a feed; the feed's key, by which clients share one; and a check that raises when
        the client may not follow the feed any more, for sources whose dataflow does not check that itself.
        """
        session = self.session
        values = json.dumps(given, default=str, sort_keys=True)
        path, user = session.settings.search_path, session.settings.user
        if datalog is not None:
            check = session.rights.rules_check()
            check()  # here, because a feed that others have made already makes nothing
            return lambda: self._of_query(datalog, given), ("datalog", datalog, values), check
        if sql is not None:
            return lambda: self._of_sql(asked, given), ("sql", sql, values, path, user), _nothing
        assert name is not None
        if session.rights.is_bound and not (session.rights.may_use_rules and self._is_of_rules(name)):
            text = f"SELECT * FROM {sql_name(name)}"
            return lambda: self._of_sql(list(parser.parse(text)), {}), ("sql", text, "", path, user), _nothing
        check = session.rights.rules_check() if session.rights.is_bound else _nothing
        return lambda: self._named(name), ("name", name, self._identity(name), path), check

    def _is_of_rules(self, name: str) -> bool:
        """Whether a name can only be a predicate of rules: SQL finds its view, once somebody asked for it."""
        engine = self.session.server.engine
        core = core_of(engine)
        installed = self.session.server.feeds.installed
        is_view = name in core.views and core.views[name] not in installed
        return not (is_view or name in core.inputs or name in runner(engine).definitions or name in SYSTEM_POLICIES)

    def _identity(self, name: str) -> str:
        """Whether a name is a table or a view. Rules have no view before somebody asks. `Feeds` notices relations made anew."""
        return "table" if name in core_of(self.session.server.engine).inputs else "view"

    def _named(self, name: str) -> FeedSource:
        engine = self.session.server.engine
        core = core_of(engine)
        if name in core.inputs and not name.startswith("__"):
            return FeedSource(engine.table(name), None)
        if name in runner(engine).definitions:
            return self._of_sql(list(parser.parse(f"SELECT * FROM {sql_name(name)}")), {})
        installed = self.session.server.feeds.installed
        was_there = name in core.views and core.views[name] not in installed
        view = engine.view(name)
        if was_there:
            return FeedSource(view, None)
        installed.add(core_of(view))
        return FeedSource(view, lambda: _drop_unused(view))

    async def _asked(self, sql: str | None) -> list[parser.Statement]:
        """The statements of a query that a client is interested in, if it is one of SQL."""
        found, mistake = await self.session.statements(sql or "")
        if mistake is not None:
            raise mistake
        return found

    def _of_sql(self, statements: list[parser.Statement], given: dict[str, Any]) -> FeedSource:
        engine = self.session.server.engine
        if len(statements) != 1 or not isinstance(statements[0], parser.Plain):
            raise UnsupportedError("a client is interested in one query: this is none, or several statements")
        if given:
            check_given(labels_of(statements), given)
        asked = statements[0]
        result = self.session.server.catalog.run(parser.Subscribe(asked.source, asked.start, asked.tree), given)
        assert result.subscription is not None
        shared, relation = runner(engine).shared, result.subscription.source
        result.subscription.close()
        assert isinstance(relation, Table | View | SharedAnswer)
        # A view that was made for the query stays while somebody follows the answer, not the view itself.
        answer = shared.answer_of(relation) if isinstance(relation, View) else None
        disclosed = self.session.rights.disclosure(result.reads)
        return FeedSource(relation if answer is None else answer, shared.sweep, disclosed)

    def _of_query(self, text: str, given: dict[str, Any]) -> FeedSource:
        query = self.session.server.engine.query(text, given)
        return FeedSource(query.view, query.drop)

    async def _to_sink(self, body: RequestBody, name: str | None, sink: str) -> Answer:
        """An interest whose changes go to a sink, which the server keeps: CREATE SINK."""
        if name is None:
            raise body.wrong("a sink is written from a table or a view: give its name")
        return await self._run_text(sink, {})


def _nothing() -> None:
    """The dataflow knows who is told what."""


def _drop_unused(view: Any) -> None:
    """Drop a view that was installed for clients that have gone, unless somebody else follows or reads it by now."""
    core = core_of(view)
    if not core.dropped and not core.feeds and not isinstance(view, Table):
        try:
            view.drop()
        except ConflictError:
            return  # others build on it: it is theirs
