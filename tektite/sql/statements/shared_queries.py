"""SharedQueries: the standing queries of many clients that differ in constants and users alone are one dataflow.

The constants and the user of each are a row of an argument table, with a number. The query is computed for all rows at once, as a
correlated subquery would be, and its answer has the number beside its own columns: EXECUTE looks its number up, SUBSCRIBE follows
it (`engine.routing`). What reads no argument is one view for everybody.

With roles, an argument row counts only while its user may read what the query reads: the row is joined with the view of those who
may. So a subscriber's rows are retracted in the epoch in which a grant is withdrawn, and come back with it. Policies see the
user of the row as `current_user`.

An expression that can fail, such as a cast of a text, is not computed for many subscribers at once: its error would be
everybody's. Prepared statements share until a row does fail: then each binding is answered alone, and only those that the row
concerns fail (`prepared.execute`).

A dataflow of users with limits may keep as much as they may keep together. If it keeps more, those who take more than is theirs
end with the error; the others go on in a new dataflow (`recover`).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from tektite.dataflow.failures import KeepsTooMuch
from tektite.engine.argument_tables import ArgumentTables
from tektite.engine.core import core_of
from tektite.engine.hooks import StandingQuery
from tektite.engine.routing import RoutedFeed, Router
from tektite.engine.subscription import Subscription, release_with
from tektite.engine.table import Table
from tektite.engine.view import View
from tektite.engine.write_set import WriteSet
from tektite.errors import ConflictError, IncorrectError, TektiteError, UnsupportedError
from tektite.expr import Expr, col, lit
from tektite.expr.fold import can_fail
from tektite.plan.explanation import Explanation
from tektite.query.builders import project
from tektite.query.collection import Collection
from tektite.sql.access.access_control import PermissionDenied
from tektite.sql.bind.bound import Bound
from tektite.sql.bind.named_relations import HIDDEN, ReaderIdentity, Reads
from tektite.sql.bind.query import Binder
from tektite.sql.logical import Node, Once, Project, outer_columns
from tektite.sql.parse.internal_tables import internal_table
from tektite.sql.parse.read_arguments import refuse_unread
from tektite.sql.rules.decorrelate import decorrelate
from tektite.sql.rules.domains import Domain, pushed_down, word_of
from tektite.sql.statements.parametrised import ParametrisedQuery
from tektite.sql.statements.shared_query import ARGUMENTS, BindingRow, QueryShape, SharedQuery, counts, drop, rows_of
from tektite.sql.walking import walk
from tektite.values import types
from tektite.values.schema import Schema
from tektite.values.types import Type

if TYPE_CHECKING:
    from tektite.engine.view_core import ViewCore
    from tektite.sql.statements.runner import StatementRunner

BINDING = "#binding"
"""The column of an answer that has the number of the arguments."""


@dataclass(frozen=True)
class SharedAnswer:
    """The answer of a shared query to one user and some values: a part of its view, which can be followed as a view can."""

    queries: SharedQueries
    shared: SharedQuery
    values: tuple[Any, ...]
    user: str

    @property
    def name(self) -> str:
        """Its name in messages."""
        return "a query"

    @property
    def _kind(self) -> str:
        return "view"

    @property
    def schema(self) -> Schema:
        """Its columns."""
        return self.shared.schema

    @property
    def time(self) -> int | None:
        """The last time that it answers for; see `View.time`."""
        return self.shared.view.time

    @property
    def _core(self) -> ViewCore:
        return core_of(self.shared.view)

    @property
    def begun(self) -> int:
        """The time from which on the dataflow that is there answers it."""
        shared = self.shared
        number = shared.bindings.get((self.user, *(self.values if shared.query.labels else ())))
        return shared.begun.get(number, 0) if number is not None else 0

    def check_held(self, since: int | None) -> None:
        """Refuse a time before its arguments were there: what it would have answered then is not known."""
        begun = self.begun
        if since is not None and since < begun:
            raise IncorrectError(f"the query has been answered from time {begun} on, which is later than {since}")

    def subscribe(self, *, snapshot: bool = True, progress: bool = False, since: int | None = None) -> Subscription:
        """Its changes; see `View.subscribe`."""
        with self._core.lock.held:
            return self.queries.follow(self, snapshot, progress, since)


class SharedQueries:
    """The shared dataflows of one engine, by their shapes. Used with the engine's lock held."""

    def __init__(self, runner: StatementRunner) -> None:
        self._runner = runner
        self._by_shape: dict[QueryShape, SharedQuery] = {}
        self._followed: Counter[str] = Counter()
        """How many subscriptions each user has."""
        self._left: deque[tuple[SharedQuery, int, str | None]] = deque()
        """Numbers that one follower less needs."""
        self._unneeded: deque[tuple[SharedQuery, int]] = deque()
        """Numbers that nobody needs, and that are still in the argument tables."""
        self.alone: dict[tuple[str, tuple[Type, ...]], str] = {}
        """Why queries share with nobody, by their texts and types."""
        self._numbers = 0
        hooks = core_of(runner.engine).hooks
        hooks.before_commit.append(self._forget)
        hooks.queries.append(self._standing)

    def all(self) -> list[SharedQuery]:
        """Every shared dataflow."""
        return list(self._by_shape.values())

    def _standing(self) -> list[StandingQuery]:
        """The standing queries with their users, for `system.queries`."""
        self._count()
        found = []
        for shared in self.all():
            many: Counter[str] = Counter()
            for row, number in shared.bindings.items():
                many[row[0]] += shared.followers.get(number, 0)
            found += [StandingQuery(core_of(shared.view).flow, user, followed) for user, followed in many.items()]
        return found

    # ------------------------------------------------------------------ asking

    def answer(self, query: ParametrisedQuery) -> SharedAnswer:
        """The answer of a query to the caller, which can be followed."""
        self.sweep()
        return SharedAnswer(self, self.get(query), query.values, self._runner.settings.user)

    def answer_of(self, view: View) -> SharedAnswer | None:
        """The answer that a view of a shared dataflow is, None for another view. Whoever follows it counts as a follower."""
        found = next((shared for shared in self.all() if shared.view is view), None)
        return None if found is None else SharedAnswer(self, found, (), self._runner.settings.user)

    def follow(self, answer: SharedAnswer, snapshot: bool, progress: bool, since: int | None) -> Subscription:
        """The changes of an answer. What that needs goes when it ends."""
        shared = answer.shared
        runner, number = self._runner, 0
        allowed = runner.allowed()
        runner.check_queries(allowed)
        if shared.arguments is None:
            shared.allow(0, allowed.memory)
            self._need(shared, 0)
        else:
            number = self.bind(shared, answer.values if shared.query.labels else (), answer.user)
        try:
            if shared.arguments is None:
                found = shared.view.subscribe(snapshot=snapshot, progress=progress, since=since)
            else:
                answer.check_held(since)
                feed = self._routed(shared, number, answer, snapshot, since)
                found = Subscription(core_of(shared.view), snapshot, progress, since, feed)
        except BaseException:
            self.release(shared, number)
            raise
        left, user = self._left, answer.user
        self._followed[user] += 1
        release_with(found, lambda: left.append((shared, number, user)))
        return found

    @staticmethod
    def _need(shared: SharedQuery, number: int) -> None:
        """Somebody needs a number until it is released. Called before anything that gives others a turn: they sweep."""
        shared.followers[number] = shared.followers.get(number, 0) + 1

    def _routed(
        self, shared: SharedQuery, number: int, answer: SharedAnswer, snapshot: bool, since: int | None
    ) -> RoutedFeed:
        """A feed of what has a number. If that is too much for the dataflow, those who take too much end: perhaps the caller."""
        try:
            if shared.router is None:
                shared.router = Router(core_of(shared.view))
                shared.router.recovery = lambda: self.recover(shared)
            return shared.router.follow(number, answer, snapshot, since)
        except KeepsTooMuch:
            self.recover(shared)
            if shared.router is None or not shared.is_answering or number not in shared.bound:
                raise
            return shared.router.follow(number, answer, snapshot, since)

    def followed_by(self, user: str) -> int:
        """The number of subscriptions of a user."""
        self._count()
        return self._followed[user]

    def bind(self, shared: SharedQuery, values: tuple[Any, ...], user: str) -> int:
        """The number of a user and some values, which are answered from here on. The caller needs it until it is released."""
        number = self.number_for(shared, values, user)
        try:
            self.write_arguments(shared, number, values, user)
        except BaseException:
            self.release(shared, number)
            raise
        return number

    def number_for(self, shared: SharedQuery, values: tuple[Any, ...], user: str) -> int:
        """The number of a user and some values, for `write_arguments`. The caller needs it until it is released."""
        number = shared.number((user, *values))
        self._need(shared, number)
        return number

    def write_arguments(self, shared: SharedQuery, number: int, values: tuple[Any, ...], user: str) -> None:
        """Write the arguments of a number, unless they are there. Others get a turn: they may write them, too, or release it."""
        if number in shared.begun:
            return
        assert shared.arguments is not None
        shared.allow(number, self._runner.allowed().memory)
        shared.arguments.commit({BINDING: [(number, user, *values)]}, 1, "bind")
        if number in shared.followers:
            shared.begun.setdefault(number, core_of(self._runner.engine).epoch - 1)

    def set_apart(self, query: ParametrisedQuery, reason: str) -> None:
        """Let a query share with nobody from here on."""
        self.alone[(query.text, query.types)] = reason

    def get(self, query: ParametrisedQuery, name: str = "", is_prepared: bool = False) -> SharedQuery:
        """The dataflow of a query, which is made if there is none. What it reads, the caller must be allowed to read."""
        runner = self._runner
        who = runner.access.who()
        key, row = (query.text, query.types), (runner.settings.user, *query.values)
        is_limited = runner.allowed().memory is not None
        if key not in self.alone:
            shape = QueryShape(query.text, self._names(), query.types, who is not None, is_prepared, is_limited)
            try:
                found = self._found(query, shape, who, name)
                if row not in found.greedy:
                    return found
            except SharesNothing as reason:
                self.alone[key] = str(reason)
        alone = query.alone()
        shape = QueryShape(query.text, self._names(), query.types, who is not None, is_prepared, is_limited, row)
        return self._found(alone, shape, who, name)

    def _names(self) -> tuple[str, ...]:
        """The settings that decide the meaning of a text: the session's schemas and its time zone."""
        return (*self._runner.settings.search_path, self._runner.settings.zone)

    def _found(self, query: ParametrisedQuery, shape: QueryShape, who: str | None, name: str) -> SharedQuery:
        found = self._by_shape.get(shape)
        if found is not None and found.is_answering:
            self.check(found, who)
            return found
        self._numbers += 1
        found = self._by_shape[shape] = self._made(name or f"{HIDDEN}shared_{self._numbers}", query, shape, who)
        return found

    def check(self, shared: SharedQuery, who: str | None) -> None:
        """Refuse a query that somebody may not read."""
        access = self._runner.access
        for needed, object in sorted(shared.needs, key=str):
            access.check(
                who if needed is None else needed, "USAGE" if object.startswith("schema ") else "SELECT", object
            )

    # ------------------------------------------------------------------ making

    def _made(self, name: str, query: ParametrisedQuery, shape: QueryShape, who: str | None) -> SharedQuery:
        """Install a query for all arguments."""
        runner, core = self._runner, core_of(self._runner.engine)
        is_alone = bool(shape.alone)
        columns: dict[str, Type] = {"binding": types.Int, "user": types.String}
        columns |= {f"p{label}": type for label, type in zip(query.labels, query.types, strict=True) if not is_alone}
        arguments = ArgumentTables(core)
        with arguments.kept_if_installed():
            made = core.transient_input(f"{name}_arguments", Schema(columns), ["binding"], "upsert")
            arguments.tables[BINDING] = made
            binder, bound, reads, names = self._bound(query, columns, made, who, shape)
            is_asked = bool(query.labels or shape.is_gated or reads.reads_user or shape.is_prepared)
            number: list[str] = []
            if is_asked:
                plan, number = self._answered(bound, binder, reads, columns, names, is_alone)
            else:
                plan = decorrelate(bound.plan, binder.names)
            with outer_columns(binder.columns):
                collection = runner.lowered(plan)
            titles = runner.titles(bound.titles)
            outputs: list[tuple[str, Expr]] = [(BINDING, col(number[0]))] if is_asked else []
            outputs += [(title, col(column)) for title, column in zip(titles, bound.names, strict=True)]
            extra = [o.column for o in bound.order if is_asked and o.column not in bound.names]
            outputs += [(column, col(column)) for column in dict.fromkeys(extra)]
            order_by = [BINDING] if is_asked else []
            limit = None if is_asked else runner.allowed().memory  # who asks is not known yet
            view = runner.engine.install(name, project(collection, outputs), order_by=order_by, limit=limit)
        if not is_asked:
            arguments.drop()
        kept = arguments if is_asked else None
        shown = dict(zip(bound.names, titles, strict=True))
        order = [(shown.get(o.column, o.column), o) for o in bound.order]
        return SharedQuery(query, shape, who, view, kept, titles, order, reads.names, reads.secured, reads.needs)

    def _bound(
        self,
        query: ParametrisedQuery,
        columns: Mapping[str, Type],
        arguments: Table,
        who: str | None,
        shape: QueryShape,
    ) -> tuple[Binder, Bound, Reads, tuple[str, ...]]:
        """The query with columns in place of its arguments and of its user."""
        runner, is_alone = self._runner, bool(shape.alone)
        user = lit(runner.settings.user, types.String)
        reads = Reads(runner, {ARGUMENTS: arguments}, ReaderIdentity(who, None, user, is_standing=True))
        binder = Binder(query.source, reads, query.parameters if is_alone else {})
        names = tuple(binder.name(n, t) for n, t in columns.items())
        if not is_alone:
            reads.read_for(ReaderIdentity(who, None if who is None else col(names[1]), col(names[1]), is_standing=True))
            binder.placeholders = dict(zip(query.labels, map(col, names[2:]), strict=True))
        with outer_columns(binder.columns):
            bound = binder.query(query.tree, None)
            if reads.reads_system:
                raise UnsupportedError(
                    "the query reads the system catalogs, which cannot be kept up to date: run it once, without SUBSCRIBE"
                )
            refuse_unread(query.source, query.tree)
            is_followed = not is_alone and not shape.is_prepared
            if is_followed and (query.labels or who is not None or reads.reads_user):
                refuse_failing(bound.plan, binder)
        return binder, bound, reads, names

    def _answered(
        self,
        bound: Bound,
        binder: Binder,
        reads: Reads,
        columns: Mapping[str, Type],
        names: tuple[str, ...],
        is_alone: bool,
    ) -> tuple[Node, list[str]]:
        """A query for every row of its arguments that counts, and the column that has the number."""
        query = exp.Select(
            expressions=[exp.column(n, quoted=True) for n in columns],
            from_=exp.From(this=internal_table(ARGUMENTS)),
        )
        parts = [counts(needed, object) for needed, object in sorted(reads.needs, key=str)]
        if parts and reads.is_gated:
            query.set("where", exp.Where(this=exp.and_(*parts, copy=False)))
        try:
            with outer_columns(binder.columns):
                gate = binder.query(query, None)
                given = decorrelate(gate.plan, binder.names)
                own = [binder.name(n, t) for n, t in columns.items()]
                values = [word_of(col(name), t) for name, t in zip(gate.names, columns.values(), strict=True)]
                renamed = Project(given, tuple(zip(own, values, strict=True)))
                domain = Domain(renamed, dict(zip(names, columns.values(), strict=True)), own)
                return pushed_down(decorrelate(bound.plan, binder.names), domain, binder.names), own
        except UnsupportedError as error:
            if is_alone:
                raise
            raise SharesNothing(str(error)) from None

    def explain(self, query: ParametrisedQuery) -> tuple[list[str], Explanation]:
        """Explains how a subscription to a query is computed: its arguments and who shares it, and its plan."""
        runner = self._runner
        shared = self.get(query)
        try:
            lines = []
            if shared.shape.alone:
                reason = self.alone.get((query.text, query.types), "it kept more than its user may keep")
                lines.append(f"alone: {reason}")
            elif shared.arguments is None:
                lines.append("one dataflow for everybody: it depends on tables alone")
            else:
                values = zip(query.labels, query.types, query.values, strict=True)
                shown = [f"${label} {type} = {value!r}" for label, type, value in values]
                user = [f"user = {runner.settings.user!r}"] if shared.shape.is_gated else []
                lines.append(f"one dataflow for all arguments: {', '.join([*user, *shown]) or 'the user'}")
                lines.append(f"arguments at the moment: {len(shared.bindings)}")
            for needed, object in sorted(shared.needs, key=str):
                lines.append(
                    f"joined with the readers of {object}{'' if needed is None else f', for its reader {needed!r}'}"
                )
            return lines, runner.engine.explain(Collection(runner.engine, core_of(shared.view).definition))
        finally:
            self.sweep()

    # ------------------------------------------------------------------ letting go

    def release(self, shared: SharedQuery, number: int) -> None:
        """Somebody does not need a number any more."""
        self._left.append((shared, number, None))

    def _count(self) -> None:
        """Take those who have left out of the counts."""
        while self._left:
            shared, number, user = self._left.popleft()
            if user is not None:
                self._followed[user] -= 1
            left = shared.followers.get(number, 0) - 1
            if left > 0:
                shared.followers[number] = left
                continue
            shared.followers.pop(number, None)
            if shared.unbind(number) is not None:
                self._unneeded.append((shared, number))

    def _forget(self, writes: WriteSet) -> None:
        """Take the arguments that nobody needs out of their tables, with whatever is committed."""
        self._count()
        while self._unneeded:
            shared, number = self._unneeded.popleft()
            if shared.arguments is not None and shared.is_answering:
                core_of(shared.arguments.tables[BINDING]).write([(number,)], None, -1, "bind", writes)

    def sweep(self) -> None:
        """Remove dataflows that nobody needs."""
        self._count()
        for shared in self.all():
            if not shared.followers or not shared.is_answering:
                self.remove(shared)

    def remove(self, shared: SharedQuery, reason: TektiteError | None = None) -> None:
        """Take a dataflow away; whoever follows it is told."""
        self._by_shape.pop(shared.shape, None)
        if shared.router is not None:
            shared.router.close(reason)
        if shared.is_answering:
            shared.view.drop()
        if shared.arguments is not None:
            shared.arguments.drop()

    def replan(self, table: str) -> None:
        """Install the queries anew that depend on the policies of a table, and tell their followers what that changes. Nobody
        else gets a turn meanwhile: who subscribes is asked for in the old dataflow or in the new one.
        """
        core = core_of(self._runner.engine)
        with core.lock.held, core.undisturbed():
            self._replan(table)

    def _replan(self, table: str) -> None:
        for shared in self.all():
            if table not in shared.secured or not shared.is_answering:
                continue
            try:
                made = self._made_anew(shared)
            except TektiteError as error:
                self.remove(shared, ConflictError(f"the policies of {table!r} have changed: subscribe again ({error})"))
                continue
            assert made.arguments is not None
            made.arguments.commit({BINDING: rows_of(shared)}, 1, "bind")
            self._replace(shared, made)

    def _replace(self, shared: SharedQuery, made: SharedQuery) -> None:
        """Answer from here on by another dataflow; followers are told the difference."""
        old_view, old_arguments = shared.view, shared.arguments
        assert old_arguments is not None
        if shared.router is not None:
            shared.router.change_to(core_of(made.view))
        shared.view, shared.arguments = made.view, made.arguments
        shared.reads, shared.secured, shared.needs = made.reads, made.secured, made.needs
        shared.order, shared.titles, shared.who = made.order, made.titles, made.who
        shared.set_limit()
        shared.begun = dict.fromkeys(shared.bindings.values(), core_of(self._runner.engine).epoch - 1)
        old_view.drop()
        old_arguments.drop()

    def recover(self, shared: SharedQuery) -> None:
        """A dataflow keeps more than its users may keep together. Those who alone keep more than they may end with the error; the
        others go on. Nobody else gets a turn meanwhile.
        """
        core = core_of(self._runner.engine)
        with core.lock.held, core.undisturbed():
            failure = core_of(shared.view).failure
            if failure is not None and shared.is_answering:  # else another thread has recovered it, or removed it
                self._recover(shared, failure)

    def _recover(self, shared: SharedQuery, failure: TektiteError) -> None:
        self._count()
        rows, greedy = rows_of(shared), set[int]()
        made = self._fitting(shared, rows)  # it may have kept the rows of somebody who has gone
        if made is None:
            greedy = self._greedy(shared, rows)
            others = [row for row in rows if row[0] not in greedy]
            made = self._fitting(shared, others) if others else None
        if made is None:
            self.remove(shared, failure)
            return
        for number in sorted(greedy & shared.bound.keys()):
            if shared.router is not None:
                shared.router.end(number, failure)
            shared.greedy.add(shared.bound[number])
            shared.unbind(number)
        self._replace(shared, made)

    def _greedy(self, shared: SharedQuery, rows: Sequence[BindingRow]) -> set[int]:
        """Of numbers that do not fit together, those whose answers alone keep more than their users may. They are found by
        halves: few dataflows for many numbers.
        """
        if len(rows) == 1:
            return {rows[0][0]}
        found, middle = set[int](), len(rows) // 2
        for half in (rows[:middle], rows[middle:]):
            made = self._fitting(shared, half)
            if made is None:
                found |= self._greedy(shared, half)
            else:
                drop(made)
        return found

    def _fitting(self, shared: SharedQuery, rows: Sequence[BindingRow]) -> SharedQuery | None:
        """A dataflow for some of the numbers, unless it keeps more than their users may keep together."""
        made = self._made_anew(shared)
        made.memory_sum = sum([shared.memory.get(number, 0) for number, *_ in rows])
        made.set_limit()
        assert made.arguments is not None
        made.arguments.commit({BINDING: rows}, 1, "bind")
        core_of(self._runner.engine).finish(core_of(made.view))
        if core_of(made.view).failure is None:
            return made
        drop(made)
        return None

    def _made_anew(self, shared: SharedQuery) -> SharedQuery:
        """The dataflow of a query once more, by the rights of somebody who has them still: of its users, some may not."""
        is_alone = shared.who is None or shared.shape.alone
        users = [shared.who] if is_alone else [shared.who, *(row[0] for row in shared.bindings)]
        self._numbers += 1
        refused: PermissionDenied | None = None
        for who in dict.fromkeys(users):
            try:
                with self._meaning(shared.shape, who):
                    return self._made(f"{HIDDEN}shared_{self._numbers}", shared.query, shared.shape, who)
            except PermissionDenied as error:
                refused = refused or error
        assert refused is not None
        raise refused

    @contextmanager
    def _meaning(self, shape: QueryShape, who: str | None) -> Iterator[None]:
        """In the block a text means what it meant to whoever asked, and not to the caller: its names, its zone and its user."""
        with self._runner.engine.session() as session:
            settings = self._runner.settings_of(session)
            *path, settings.changed["timezone"] = shape.names
            settings.search_path = tuple(path)
            settings.user = str(shape.alone[0]) if shape.alone else who or settings.user
            yield


class SharesNothing(TektiteError):
    """A query cannot be computed for many at once; its message says why."""


def refuse_failing(plan: Node, binder: Binder) -> None:
    """Refuse to compute an expression that can fail for many at once."""
    for node in walk(plan):
        if isinstance(node, Once):
            raise SharesNothing("a scalar subquery can give several rows")
        given = {name: (0, type) for below in node.inputs for name, type in below.columns.items()}
        for expression in node.expressions:
            if can_fail(expression, {**binder.columns, **given}):
                raise SharesNothing(f"{expression} can fail, and its error would be everybody's")
