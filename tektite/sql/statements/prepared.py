"""Prepared statements: installed once, they answer any number of bindings in one dataflow.

The parameters are a collection: binding values inserts a row, and the query, computed for all rows of it at once as a correlated
subquery would be, keeps each binding's answer up to date until it is deallocated. A statement is installed when it is
first executed, for the types of the values it then gets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from tektite.engine.core import core_of
from tektite.engine.write_set import WriteSet
from tektite.errors import ConflictError, NotFoundError, TektiteError, UnsupportedError
from tektite.expr import col, lit
from tektite.plan.equal_columns import common_type
from tektite.query.row_order import sorted_rows
from tektite.sql.access.access_control import PermissionDenied
from tektite.sql.bind.clause import ClauseContext
from tektite.sql.bind.functions import column_type
from tektite.sql.bind.named_relations import HIDDEN
from tektite.sql.bind.query import Binder
from tektite.sql.bind.scope import NameScope
from tektite.sql.logical import outer_columns
from tektite.sql.parse.parser import Deallocate, Execute, Prepare, label_of
from tektite.sql.parse.places import StatementText, nearest
from tektite.sql.parse.read_arguments import copied, refuse_unread
from tektite.sql.statements.parametrised import ParametrisedQuery
from tektite.sql.statements.prepared_names import found_prepared, prepared_key, refused
from tektite.sql.statements.result import Result
from tektite.sql.statements.shared_query import SharedQuery
from tektite.sql.statements.shown_zone import in_zone
from tektite.sql.statements.transactions import Overtaken
from tektite.sql.statements.value_keys import as_key
from tektite.values import types
from tektite.values.types import Type

if TYPE_CHECKING:
    import pyarrow as pa

    from tektite.sql.statements.runner import StatementRunner


@dataclass
class Prepared:
    """A prepared statement: its query, and, once executed, its dataflow and the bindings that it answers."""

    name: str
    source: StatementText
    tree: exp.Expr
    labels: list[str]
    counts: dict[str, str] = field(default_factory=dict)
    """The parameters that are a LIMIT or an OFFSET, and which."""
    owner: str | None = None
    """The user who prepared it."""
    declared: tuple[exp.DataType, ...] = ()
    """The types that it gives its first parameters."""
    types: tuple[Type, ...] = ()
    shared: list[SharedQuery] = field(default_factory=list)
    """The dataflows that answer it: one, unless it can only be computed for one binding at a time."""
    bindings: dict[tuple[Any, ...], tuple[SharedQuery, int]] = field(default_factory=dict)
    """For each user and values, what answers them, and under which number."""
    is_forgotten: bool = False
    """Whether it was deallocated, perhaps while another connection executes it."""

    @property
    def reads(self) -> set[str]:
        """The relations that it reads, once executed."""
        return {name for shared in self.shared for name in shared.reads}


def prepare(runner: StatementRunner, statement: Prepare) -> Result:
    """PREPARE name [(types)] AS query."""
    if prepared_key(runner, statement.name) in runner.prepared:
        raise statement.source.error(
            f"there is a prepared statement {statement.name!r} already",
            statement.place,
            ConflictError,
            condition="duplicate-statement",
        )
    if not isinstance(statement.tree, exp.Query | exp.Insert | exp.Update | exp.Delete):
        message = "only queries, INSERT, UPDATE and DELETE can be prepared"
        raise statement.source.error(message, statement.place, UnsupportedError)
    found = {label_of(node): node for node in statement.tree.find_all(exp.Placeholder, exp.Parameter)}
    labels = sorted(found, key=lambda label: (not label.isdigit(), int(label) if label.isdigit() else 0, label))
    numbers = [int(label) for label in labels if label.isdigit()]
    for wanted, number in enumerate(numbers, 1):
        if number != wanted:
            message = f"parameters of {statement.name!r} are $1, $2 and so on, none left out: there is no ${wanted}"
            raise statement.source.error(message, found[str(number)])
    if len(statement.declared) > len(numbers):
        message = f"{statement.name!r} has no parameter ${len(numbers) + 1}, whose type is said"
        raise statement.source.error(message, statement.declared[len(numbers)])
    for said in statement.declared:
        column_type(statement.source, said)
    counts = {
        label_of(node.expression): node.key.upper()
        for node in statement.tree.find_all(exp.Limit, exp.Offset)
        if isinstance(node.expression, exp.Placeholder | exp.Parameter)
    }
    made = Prepared(
        statement.name, statement.source, statement.tree, labels, counts, runner.access.who(), statement.declared
    )
    if isinstance(statement.tree, exp.Query) and check(runner, made):
        refuse_unread(statement.source, statement.tree)
    runner.prepared[prepared_key(runner, statement.name)] = made
    return Result("PREPARE")


def check(runner: StatementRunner, made: Prepared) -> bool:
    """Refuse a statement that cannot be bound, whatever the types of its parameters are: they are known when it is executed.
    Whether it was bound, and so read, to its end: parameters of several types may keep it from that.

    A name that nothing has is unknown for all types. Another mistake has nothing to do with the parameters if it is the same for
    NULLs, which fit wherever a value does, as for columns of some type.
    """
    failures: set[str] = set()
    for type in (None, types.Int, types.String, types.Timestamp, types.Bool):
        binder = Binder(made.source, runner.reader())
        kinds = {label: types.Int if label in made.counts else type for label in made.labels}
        binder.placeholders = {
            label: lit(None) if kind is None else col(binder.name(f"p{label}", kind)) for label, kind in kinds.items()
        }
        try:
            with outer_columns(binder.columns):
                binder.query(made.tree, None)
            return True
        except NotFoundError:
            raise
        except TektiteError as error:
            if not made.labels or str(error) in failures:
                raise
            if type is None:
                failures.add(str(error))
    return False


def named(runner: StatementRunner, statement: Execute | Deallocate) -> Prepared:
    """A prepared statement by its name."""
    found = found_prepared(runner, statement.name)
    if found is None:
        own = [made.name for made in runner.prepared.values() if made.owner == runner.access.who()]
        message = f"there is no prepared statement {statement.name!r}: {nearest(statement.name, own)}"
        raise statement.source.error(message, statement.place, NotFoundError, condition="undefined-statement")
    return found


def values_of(
    runner: StatementRunner,
    found: Prepared,
    trees: tuple[exp.Expr, ...],
    statement: Execute | Deallocate,
    parameters: Mapping[str, Any],
) -> list[tuple[Any, Type]]:
    """The values that a statement is executed with, and their types."""
    source, many = statement.source, len(found.labels)
    if len(trees) != many:
        listed = f" ({', '.join('$' + label for label in found.labels)})" if many else ""
        message = f"prepared statement {found.name!r} takes {many} value{'s' * (many != 1)}{listed}, not {len(trees)}"
        raise source.error(message, trees[many] if len(trees) > many else statement.place)
    given: list[tuple[Any, Type]] = []
    for tree, declared in zip_longest(trees, found.declared):
        value, type = constant_of(runner, source, tree, parameters)
        refuse_unread(source, tree)
        wanted = type if declared is None else column_type(found.source, declared)
        if value is not None and wanted != type:
            cast = exp.Cast(this=copied(tree), to=copied(declared))
            try:
                value, _ = constant_of(runner, source, cast, parameters)
            except TektiteError:
                label = found.labels[len(given)]
                raise source.error(f"${label} of {found.name!r} is {wanted}, which this is not", tree) from None
        given.append((as_key(value), wanted))
    for label, tree, (number, type) in zip(found.labels, trees, given, strict=True):
        if label in found.counts and number is not None and (type != types.Int or number < 0):
            raise source.error(f"{found.counts[label]} takes a whole number that is not negative", tree)
    return given


def constant_of(
    runner: StatementRunner, source: StatementText, tree: exp.Expr, parameters: Mapping[str, Any]
) -> tuple[Any, Type]:
    """The value of an expression that reads nothing, and its type."""
    clause = ClauseContext(Binder(source, runner.reader(), parameters), NameScope(), "EXECUTE")
    value, type = runner.constant(clause.bind(tree), clause.scalars.type(clause.bind(tree), tree), source, tree)
    return value, type


def execute(runner: StatementRunner, statement: Execute, parameters: Mapping[str, Any]) -> Result:
    """EXECUTE name(values): the answer for a binding, which is kept up to date from its first execution on."""
    found, who = named(runner, statement), runner.access.who()
    try:
        return executed(runner, found, statement, parameters)
    except PermissionDenied as error:
        raise refused(found, who, error) from None


def executed(runner: StatementRunner, found: Prepared, statement: Execute, parameters: Mapping[str, Any]) -> Result:
    """The result of a prepared statement for values."""
    given = values_of(runner, found, statement.values, statement, parameters)
    row = tuple(value for value, _ in given)
    if not isinstance(found.tree, exp.Query):  # nothing is kept up to date: it is run with these values
        return runner.run_tree(found.source, copied(found.tree), dict(zip(found.labels, row, strict=True)))
    if runner.transaction is not None:  # it reads an epoch in which there is no such binding
        values = dict(zip(found.labels, row, strict=True))
        return Result("EXECUTE", runner.select(found.source, found.tree, values))
    wanted = fitting(found, given, statement)
    if found.types and wanted != found.types:
        found.types = wanted
        rebind(runner, found)
    else:
        found.types = wanted
    shared, number = bound(runner, found, row)
    try:
        mine = looked_up(runner, found, row, shared, number)
    except TektiteError as error:
        if shared.shape.alone or core_of(shared.view).error is None:
            raise
        # A row fails, perhaps for another binding: from here on each is answered alone.
        runner.shared.set_apart(asked(found, row), str(error))
        rebind(runner, found)
        shared, number = bound(runner, found, row)
        mine = looked_up(runner, found, row, shared, number)
    rows = in_zone(sorted_rows(mine, shared.order).select(shared.titles), runner.settings.zone)
    return Result("EXECUTE", rows, view=shared.view)


def bound(runner: StatementRunner, found: Prepared, row: tuple[Any, ...]) -> tuple[SharedQuery, int]:
    """The shared query that answers the caller for some values, and the number of their binding.

    The binding is noted before its arguments are written, which gives others a turn: whoever deallocates the statement or
    answers it by another dataflow meanwhile finds the binding, and releases it.
    """
    queries, key = runner.shared, key_of(runner, row)
    known = found.bindings.get(key)
    if known is not None and known[0].is_answering:
        queries.check(known[0], runner.access.who())
        shared, number = known
    else:
        query = asked(found, row)
        name = f"{HIDDEN}prepared_{found.name}"
        is_free = not found.shared and name not in core_of(runner.engine).views
        shared = queries.get(query, name if is_free else "", is_prepared=True)
        number = queries.number_for(shared, row if shared.query.labels else (), runner.settings.user)
        known = found.bindings[key] = shared, number
        if shared not in found.shared:
            found.shared.append(shared)
    try:
        queries.write_arguments(shared, number, row if shared.query.labels else (), runner.settings.user)
    except BaseException:
        if found.bindings.get(key) is known:
            del found.bindings[key]
            queries.release(shared, number)
        raise
    check_bound(runner, found, key, known)
    return known


def looked_up(
    runner: StatementRunner, found: Prepared, row: tuple[Any, ...], shared: SharedQuery, number: int
) -> pa.Table:
    """The rows of a binding, if it has been there all the time: others get a turn while they are computed."""
    key, known = key_of(runner, row), (shared, number)
    try:
        rows = core_of(shared.view).lookup(number)
    except TektiteError:
        check_bound(runner, found, key, known)
        raise
    check_bound(runner, found, key, known)
    return rows


def key_of(runner: StatementRunner, row: tuple[Any, ...]) -> tuple[Any, ...]:
    """The key of the caller's binding of some values."""
    return (runner.settings.user, runner.settings.zone, *row)


def check_bound(runner: StatementRunner, found: Prepared, key: tuple[Any, ...], known: tuple[SharedQuery, int]) -> None:
    """Have the statement executed again if another thread has taken the binding away, or let another dataflow answer it."""
    if found.is_forgotten or found.bindings.get(key) != known or not known[0].is_answering:
        raise Overtaken


def asked(found: Prepared, row: tuple[Any, ...]) -> ParametrisedQuery:
    """A statement with some values."""
    return ParametrisedQuery(found.source, found.tree, tuple(found.labels), found.types, row)


def fitting(found: Prepared, given: list[tuple[Any, Type]], statement: Execute) -> tuple[Type, ...]:
    """The types that hold the values given and all that the statement is bound to already."""
    if not found.types:
        counted = [label in found.counts for label in found.labels]
        return tuple(types.Int if count else widened(type) for count, (_, type) in zip(counted, given, strict=True))
    wanted = []
    for label, known, (value, type), tree in zip(found.labels, found.types, given, statement.values, strict=True):
        try:
            wanted.append(known if value is None else widened(common_type(known, type)))
        except TektiteError:
            message = f"${label} of {found.name!r} is {known}, not {type}"
            raise statement.source.error(message, tree) from None
    return tuple(wanted)


def rebind(runner: StatementRunner, found: Prepared) -> None:
    """Answer all bindings from other dataflows, because types are wider, or because each is answered alone."""
    known = list(found.bindings)
    remove(runner, found)
    for user, zone, *row in known:
        if (user, zone) == (runner.settings.user, runner.settings.zone):  # others have theirs again when they ask
            bound(runner, found, tuple(row))


def remove(runner: StatementRunner, found: Prepared) -> None:
    """Let go of a statement's dataflows."""
    for shared, number in found.bindings.values():
        runner.shared.release(shared, number)
    found.bindings.clear()
    found.shared.clear()
    runner.shared.sweep()


def forget(runner: StatementRunner, key: str) -> None:
    """Let go of a statement."""
    found = runner.prepared.pop(key)
    found.is_forgotten = True
    remove(runner, found)


def widened(type: Type) -> Type:
    """The type of a parameter whose first value is of a type: decimals may have more digits next time."""
    return types.Decimal(18, max(type.scale, 4)) if isinstance(type, types.DecimalType) else type


def deallocate(runner: StatementRunner, statement: Deallocate, parameters: Mapping[str, Any]) -> Result:
    """DEALLOCATE name: forget the statement; DEALLOCATE name(values): stop answering one binding."""
    found = named(runner, statement)
    if statement.values is not None:
        given = values_of(runner, found, statement.values, statement, parameters)
        key = (runner.settings.user, runner.settings.zone, *(value for value, _ in given))
        known = found.bindings.pop(key, None)
        if known is None:
            raise statement.source.error(f"{found.name!r} is not bound to these values", statement.place, NotFoundError)
        runner.shared.release(*known)
        core_of(runner.engine).commit(WriteSet())
        return Result("DEALLOCATE")
    if found.owner != runner.access.who():
        message = f"permission denied: {found.name!r} was prepared by a superuser, for all"
        raise statement.source.error(message, statement.place, PermissionDenied)
    forget(runner, prepared_key(runner, statement.name))
    return Result("DEALLOCATE")
