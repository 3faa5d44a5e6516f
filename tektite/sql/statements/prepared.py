"""Prepared statements: installed once, they answer any number of bindings in one dataflow.

The parameters are a collection: binding values inserts a row, and the query, computed for all rows of it at once as a correlated
subquery would be, keeps each binding's answer up to date until it is deallocated. A statement is installed when it is
first executed, for the types of the values it then gets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from tektite.engine.argument_tables import ArgumentTables
from tektite.engine.core import core_of
from tektite.engine.view import View
from tektite.errors import ConflictError, NotFoundError, TektiteError, UnsupportedError
from tektite.expr import Expr, col, lit
from tektite.plan.equal_columns import common_type
from tektite.query.builders import project
from tektite.query.row_order import sorted_rows
from tektite.query.window_calls import Ordering
from tektite.sql.bind.bound import Bound
from tektite.sql.bind.clause import ClauseContext
from tektite.sql.bind.query import Binder
from tektite.sql.bind.scope import NameScope
from tektite.sql.logical import Node, Project, Scan, outer_columns
from tektite.sql.parse.parser import Deallocate, Execute, Prepare, label_of
from tektite.sql.parse.places import StatementText, nearest
from tektite.sql.parse.read_arguments import copied, refuse_unread
from tektite.sql.rules.decorrelate import decorrelate
from tektite.sql.rules.domains import Domain, pushed_down
from tektite.sql.statements.result import Result
from tektite.sql.statements.shown_zone import in_zone
from tektite.values import types
from tektite.values.schema import Schema
from tektite.values.types import Type

if TYPE_CHECKING:
    from tektite.sql.statements.runner import StatementRunner

BINDING = "#binding"


@dataclass
class Prepared:
    """A prepared statement: its query, and, once executed, its dataflow and the bindings that it answers."""

    name: str
    source: StatementText
    tree: exp.Expr
    labels: list[str]
    counts: dict[str, str] = field(default_factory=dict)
    """The parameters that are a LIMIT or an OFFSET, and which."""
    reads: set[str] = field(default_factory=set)
    types: tuple[Type, ...] = ()
    arguments: ArgumentTables | None = None
    view: View | None = None
    titles: list[str] = field(default_factory=list)
    order: list[tuple[str, Ordering]] = field(default_factory=list)
    bindings: dict[tuple[Any, ...], int] = field(default_factory=dict)
    numbers: int = 0


def prepare(runner: StatementRunner, statement: Prepare) -> Result:
    """PREPARE name AS query."""
    if statement.name in runner.prepared:
        raise statement.source.error(
            f"there is a prepared statement {statement.name!r} already", statement.place, ConflictError
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
    counts = {
        label_of(node.expression): node.key.upper()
        for node in statement.tree.find_all(exp.Limit, exp.Offset)
        if isinstance(node.expression, exp.Placeholder | exp.Parameter)
    }
    made = Prepared(statement.name, statement.source, statement.tree, labels, counts)
    if isinstance(statement.tree, exp.Query):
        check(runner, made)
        refuse_unread(statement.source, statement.tree)
    runner.prepared[statement.name] = made
    return Result("PREPARE")


def check(runner: StatementRunner, made: Prepared) -> None:
    """Refuse a statement that cannot be bound, whatever the types of its parameters are: they are known when it is executed.

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
            return
        except NotFoundError:
            raise
        except TektiteError as error:
            if not made.labels or str(error) in failures:
                raise
            if type is None:
                failures.add(str(error))


def named(runner: StatementRunner, statement: Execute | Deallocate) -> Prepared:
    """A prepared statement by its name."""
    found = runner.prepared.get(statement.name)
    if found is None:
        message = f"there is no prepared statement {statement.name!r}: {nearest(statement.name, runner.prepared)}"
        raise statement.source.error(message, statement.place, NotFoundError)
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
    given = []
    for tree in trees:
        binder = Binder(source, runner.reader(), parameters)
        clause = ClauseContext(binder, NameScope(), "EXECUTE")
        value = runner.constant(clause.bind(tree), clause.scalars.type(clause.bind(tree), tree), source, tree)
        given.append(value)
        refuse_unread(source, tree)
    for label, tree, (number, type) in zip(found.labels, trees, given, strict=True):
        if label in found.counts and number is not None and (type != types.Int or number < 0):
            raise source.error(f"{found.counts[label]} takes a whole number that is not negative", tree)
    return given


def execute(runner: StatementRunner, statement: Execute, parameters: Mapping[str, Any]) -> Result:
    """EXECUTE name(values): the answer for a binding, which is kept up to date from its first execution on."""
    found = named(runner, statement)
    given = values_of(runner, found, statement.values, statement, parameters)
    row = tuple(value for value, _ in given)
    if not isinstance(found.tree, exp.Query):  # nothing is kept up to date: it is run with these values
        return runner.run_tree(found.source, copied(found.tree), dict(zip(found.labels, row, strict=True)))
    if runner.transaction is not None:  # it reads an epoch in which there is no such binding
        values = dict(zip(found.labels, row, strict=True))
        return Result("EXECUTE", runner.select(found.source, found.tree, values))
    wanted = fitting(found, given, statement)
    fresh = row not in found.bindings
    if found.view is None or wanted != found.types:
        install(runner, found, wanted)
    assert found.view is not None and found.arguments is not None
    if fresh:
        found.numbers += 1
        found.bindings[row] = found.numbers
        found.arguments.commit({BINDING: [(found.numbers, *row)]}, 1, "bind")
    mine = core_of(found.view).lookup(found.bindings[row])
    rows = in_zone(sorted_rows(mine, found.order).select(found.titles), runner.settings.zone)
    return Result("EXECUTE", rows, view=found.view)


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


def install(runner: StatementRunner, found: Prepared, wanted: tuple[Type, ...]) -> None:
    """Install a statement for parameters of these types, with the bindings that it has."""
    remove(runner, found)
    columns: dict[str, Type] = {"binding": types.Int}
    columns |= {f"p{label}": type for label, type in zip(found.labels, wanted, strict=True)}
    engine = core_of(runner.engine)
    arguments = ArgumentTables(engine)
    with arguments.kept_if_installed():
        parameters = engine.transient_input(f"__parameters_{found.name}", Schema(columns), ["binding"], "upsert")
        arguments.tables[BINDING] = parameters
        reads = runner.reader()
        binder = Binder(found.source, reads)
        names = tuple(binder.name(n, t) for n, t in columns.items())
        binder.placeholders = dict(zip(found.labels, map(col, names[1:]), strict=True))
        with outer_columns(binder.columns):
            bound = binder.query(found.tree, None)
            plan, names_of_result = answered(bound, binder, Scan("parameters", parameters, names), names)
            collection = runner.lowered(plan)
        titles = runner.titles(bound.titles)
        outputs: list[tuple[str, Expr]] = [(BINDING, col(names_of_result[0]))]
        outputs += [(title, col(name)) for title, name in zip(titles, bound.names, strict=True)]
        extra = [o.column for o in bound.order if o.column not in bound.names]
        outputs += [(name, col(name)) for name in dict.fromkeys(extra)]
        view = runner.engine.install(f"__prepared_{found.name}", project(collection, outputs), order_by=[BINDING])
    shown = dict(zip(bound.names, titles, strict=True))
    found.arguments, found.view, found.titles, found.reads, found.types = arguments, view, titles, reads.names, wanted
    found.order = [(shown.get(o.column, o.column), o) for o in bound.order]
    if found.bindings:
        arguments.commit({BINDING: [(number, *row) for row, number in found.bindings.items()]}, 1, "bind")


def remove(runner: StatementRunner, found: Prepared) -> None:
    """Take a statement's dataflow away, if it has one."""
    if found.view is not None and found.arguments is not None:
        found.view.drop()
        found.arguments.drop()
        found.view = found.arguments = None


def widened(type: Type) -> Type:
    """The type of a parameter whose first value is of a type: decimals may have more digits next time."""
    return types.Decimal(18, max(type.scale, 4)) if isinstance(type, types.DecimalType) else type


def answered(bound: Bound, binder: Binder, parameters: Scan, names: tuple[str, ...]) -> tuple[Node, list[str]]:
    """A query for every row of its parameters, with the number of the binding beside its own columns."""
    own = [binder.name(name, binder.columns[name][1]) for name in names]
    renamed = Project(parameters, tuple((new, col(old)) for new, old in zip(own, names, strict=True)))
    domain = Domain(renamed, list(names), own)
    return pushed_down(decorrelate(bound.plan, binder.names), domain, binder.names), own


def deallocate(runner: StatementRunner, statement: Deallocate, parameters: Mapping[str, Any]) -> Result:
    """DEALLOCATE name: forget the statement; DEALLOCATE name(values): stop answering one binding."""
    found = named(runner, statement)
    if statement.values is not None:
        given = values_of(runner, found, statement.values, statement, parameters)
        number = found.bindings.pop(tuple(value for value, _ in given), None)
        if number is None or found.arguments is None:
            raise statement.source.error(f"{found.name!r} is not bound to these values", statement.place, NotFoundError)
        found.arguments.commit({BINDING: [(number,)]}, -1, "bind")
        return Result("DEALLOCATE")
    remove(runner, found)
    del runner.prepared[statement.name]
    return Result("DEALLOCATE")
