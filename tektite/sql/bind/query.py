"""Binding queries: from sqlglot's tree to a logical plan, with every name resolved and every type checked."""

from __future__ import annotations

import decimal
import functools
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa
from sqlglot import exp

from tektite.errors import IncorrectError, NotFoundError, TektiteError, UnsupportedError
from tektite.expr import Expr, coalesce, col, lit
from tektite.expr import type_of as expression_type
from tektite.expr.fold import folded as folded_constant
from tektite.expr.literals import MAX_INT
from tektite.expr.predicates import conjunction
from tektite.query.columns import is_shown_apart
from tektite.query.window_calls import Ordering, WindowCall
from tektite.sql.bind import pivots, recursion, relations, windows
from tektite.sql.bind.bound import Bound, nothing
from tektite.sql.bind.clause import ClauseContext, each_once
from tektite.sql.bind.definitions import GraphDefinition
from tektite.sql.bind.scope import NameScope, folded
from tektite.sql.bind.select import SelectList, output_place, refuse_ambiguous
from tektite.sql.bind.window_frames import WHOLE
from tektite.sql.catalog.array_text import array_text
from tektite.sql.catalog.contents import CatalogContents
from tektite.sql.logical import (
    Compare,
    Filter,
    Join,
    Names,
    Node,
    Project,
    Top,
    Union,
    Window,
    columns_of,
)
from tektite.sql.parse.instead import CLAUSES
from tektite.sql.parse.instead import instead as other_way
from tektite.sql.parse.internal_tables import HOLDER
from tektite.sql.parse.parser import label_of
from tektite.sql.parse.places import StatementText
from tektite.sql.walking import free_columns
from tektite.values import types
from tektite.values.types import Type

ENDLESS = 1 << 62
"""More rows than there can be: LIMIT and OFFSET beyond it count as this, so that their sum fits a word."""


SHARED_FROM = 8
"""Relations that a common table expression or a view reads, with those that it reads through others, from which on it is bound
once however often it is read: more than a query names by hand, and little to plan.
"""
SHARED_WORK = 64
"""The same, if relations count that were read to bind what it shares: a WITH within the query of a WITH is bound with it."""


ARRAY_READERS = (exp.In, exp.Any, exp.All, exp.Cast, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ)
"""Beside which a parameter that is a list is read as what stands there needs it."""


class Tables(Protocol):
    """The relations that a query can read."""

    def relation(self, name: str, binder: Binder, node: exp.Table) -> tuple[Node, list[str]]:
        """A table's, view's or definition's plan, and the visible names of its columns."""

    def graph_query(self, binder: Binder, node: exp.Table, build: Callable[[GraphDefinition], exp.Expr]) -> Bound:
        """Bind the query that `build` makes of a property graph."""

    def now(self, binder: Binder) -> Node:
        """A relation of one row and one column: the time."""

    @property
    def reads_system(self) -> bool:
        """Whether the statement reads the system catalogs."""

    @property
    def zone(self) -> str:
        """The time zone of the session."""

    def schema_of(self, written: str) -> str:
        """The schema in which a name is found."""

    def contents(self) -> CatalogContents:
        """The contents of the engine, for the system catalogs."""

    def current_user(self) -> Expr:
        """The value of `current_user`."""

    def holder(self) -> Expr:
        """The role whose rights count."""


def as_written(value: Any) -> Any:
    """The value of a parameter as it would be if it stood in the text: whole numbers beyond a word are decimals."""
    return decimal.Decimal(value) if type(value) is int and abs(value) > MAX_INT else value


@dataclass
class CommonTable:
    """A common table expression: its tree, what its columns are called, and the scope it is bound in."""

    tree: exp.Expr
    aliases: list[str]
    ctes: dict[str, Any] = field(default_factory=dict)
    scope: NameScope | None = None
    is_read: bool = False
    shared: Bound | None = None
    """Its query, bound, where every use reads the same one."""


class Binder:
    """Binds the queries of one statement."""

    def __init__(
        self,
        source: StatementText,
        tables: Tables,
        parameters: Mapping[str, Any] | None = None,
        pause: Callable[[], None] | None = None,
    ) -> None:
        """`pause` is called now and then, to let others use the engine."""
        self.source = source
        self.pause = pause
        self.tables = tables
        self.parameters = parameters or {}
        self.names = Names()
        self.columns: dict[str, tuple[int, Type]] = {}
        self.places: dict[str, exp.Expr] = {}
        self.ctes: dict[str, Any] = {}
        self.expanding: list[str] = []
        self.first_rows: int | None = None
        """How many rows the query that is bound needs of the relation in its FROM, where LIMIT says so."""
        self.relations_read = 0
        """How many relations the query has read so far, those of common table expressions as often as these are bound."""
        self.relations_bound = 0
        """The same, with those that only shared common table expressions and views read."""
        self.element_types: dict[int, str] = {}
        """The types of PostgreSQL that the elements of arrays have, by the id of the tree that makes one."""
        self._views: dict[str, Bound] = {}
        """Views that are only definitions, by name, where every use reads the same one."""
        self._declared: dict[Any, str] = {}
        self._declared_literals: dict[int, tuple[Expr, str]] = {}
        self.placeholders: dict[str, Expr] | None = None
        """The columns that stand for a prepared statement's parameters, by number or name."""
        self.meanings: dict[int, Any] | None = None
        """The meaning of each tree of an expression, by the tree's id, if it is recorded."""

    def name(self, wish: str, type: Type) -> str:
        """A new column."""
        name = self.names.new(wish)
        self.columns[name] = (0, type)
        return name

    def declare(self, expression: Expr, type: str) -> Expr:
        """Note which type of PostgreSQL an expression has, where ours does not say it; the expression."""
        if expression.op == "lit":
            self._declared_literals[id(expression)] = (expression, type)
        elif type:
            self._declared[expression.fingerprint] = type
        return expression

    def declared(self, expression: Expr) -> str:
        """The type of PostgreSQL that was noted of an expression; empty if none was."""
        if expression.op == "lit":
            return self._declared_literals.get(id(expression), (expression, ""))[1]
        return self._declared.get(expression.fingerprint, "")

    def unsupported(self, what: str, node: exp.Expr, instead: str = "", condition: str = "") -> TektiteError:
        """The error for an unsupported construct; `instead` says how to write it, after a colon."""
        known = instead or other_way(CLAUSES, what)
        return self.source.error(f"{what} is not supported{known}", node, UnsupportedError, condition)

    def parameter(self, node: exp.Expr) -> Expr:
        """The value of a parameter, or the column that stands for it."""
        label = label_of(node)
        if label == HOLDER:
            return self.tables.holder()
        if self.placeholders is not None:
            if label not in self.placeholders:
                raise self.source.error(
                    f"there is no parameter ${label}", node, NotFoundError, condition="undefined-parameter"
                )
            return self.placeholders[label]
        if label not in self.parameters:
            given = ", ".join(self.parameters) or "none"
            raise self.source.error(
                f"there is no value for parameter {label!r}; given are: {given}",
                node,
                NotFoundError,
                condition="undefined-parameter",
            )
        try:
            value = self.parameters[label]
            if isinstance(value, list | tuple) and not isinstance(value, pa.MonthDayNano):
                return self._list_parameter(list(value), node)
            return lit(as_written(value))
        except TektiteError as error:
            raise self.source.error(f"parameter {label!r}: {error}", node, IncorrectError) from None

    def _list_parameter(self, values: list[Any], node: exp.Expr) -> Expr:
        """A list. Where the text around it decides what its elements are, and where nothing does, it is the text of an array."""
        around = node.parent
        while isinstance(around, exp.Paren):
            around = around.parent
        in_row = isinstance(around, exp.Tuple) and node.find_ancestor(exp.Insert) is not None
        is_shown = isinstance(around, exp.Cast) and around.is_type(*exp.DataType.TEXT_TYPES)
        if is_shown or not in_row and not isinstance(around, ARRAY_READERS) and not self.tables.reads_system:
            try:
                return lit([as_written(value) for value in values])
            except TektiteError:  # its elements have no type in common
                pass
        return self.declare(lit(array_text(values)), "_text")

    # ------------------------------------------------------------------ queries

    def query(self, node: exp.Expr, scope: NameScope | None) -> Bound:
        """A query, in the scope of the query around it."""
        outer = self.ctes
        try:
            return self._query(node, scope)
        finally:
            self.ctes = outer

    def _query(self, node: exp.Expr, scope: NameScope | None) -> Bound:
        while isinstance(node, exp.Subquery | exp.Paren) and not modifiers(node):
            node = node.this
        with_clause = node.args.get("with_")
        if with_clause is None:
            return self._body(node, scope)
        self.ctes = dict(self.ctes)
        self._with(with_clause, scope)
        known = self.ctes
        found = self._body(node, scope)
        for cte in with_clause.expressions:
            table = known[folded(cte.args["alias"].this)]
            if isinstance(table, CommonTable) and not table.is_read:
                self.defined(table, cte)  # what nobody reads must make sense as well
        return found

    def _body(self, node: exp.Expr, scope: NameScope | None) -> Bound:
        if isinstance(node, exp.Select):
            return self.select(node, scope)
        if isinstance(node, exp.SetOperation):
            return self._modified(node, self._set_operation(node, scope))
        if isinstance(node, exp.Values):
            return self._values(node, scope)
        if isinstance(node, exp.Pivot):
            return self.query(pivots.statement_query(self, node), scope)
        if isinstance(node, exp.Subquery):
            return self._modified(node, self.query(node.this, scope))
        if isinstance(node, exp.Column | exp.Identifier | exp.Table):
            raise self.source.error(f"{node.sql()} is no query: write SELECT * FROM {node.sql()}", node)
        raise self.unsupported(f"{node.key.upper()} as a query", node)

    def _with(self, node: exp.With, scope: NameScope | None) -> None:
        self._refuse_twice(node)
        if node.args.get("recursive"):
            recursion.bind(self, node, scope)
            return
        for cte in node.expressions:
            self.ctes[folded(cte.args["alias"].this)] = self.definition(cte, scope)

    def _refuse_twice(self, node: exp.With) -> None:
        """Refuse a WITH that defines a name twice."""
        names: set[str] = set()
        for cte in node.expressions:
            name = folded(cte.args["alias"].this)
            if name in names:
                raise self.source.error(f"WITH defines {name!r} twice", cte.args["alias"], condition="duplicate-alias")
            names.add(name)

    def definition(self, cte: exp.CTE, scope: NameScope | None) -> CommonTable:
        """The definition of one name in a WITH clause. It knows the names before it and keeps those that it mentions."""
        mentioned = {folded(table.this) for table in cte.this.find_all(exp.Table)}
        known = {name: self.ctes[name] for name in mentioned if name in self.ctes}
        return CommonTable(cte.this, [folded(c) for c in cte.args["alias"].columns], known, scope)

    def defined(self, found: CommonTable, node: exp.Expr) -> Bound:
        """A common table expression's query. A small one is bound anew for each use, so that it is joined and filtered as each
        use asks; a large one is bound once: a chain in which each reads the one before twice would double with each link.
        """
        if found.shared is not None:
            return self._again(found.shared)
        outer, self.ctes = self.ctes, found.ctes
        found.is_read = True
        before = self.relations_read, self.relations_bound
        try:
            bound = self.query(found.tree, found.scope)
        finally:
            self.ctes = outer
        made = Bound(bound.visible(), bound.names, self.aliased(bound.titles, found.aliases, node))
        if self._is_large(made, before):
            found.shared = made
            return self._again(made)  # so that no column of what is shared is one of the queries around another use
        return made

    def view(self, name: str, bind: Callable[[], Bound]) -> Bound:
        """The query of a view that is only a definition, which `bind` binds: a large one once, as `defined` has it."""
        known = self._views.get(name)
        if known is not None:
            return self._again(known)
        before = self.relations_read, self.relations_bound
        made = bind()
        if self._is_large(made, before):
            self._views[name] = made
            return self._again(made)
        return made

    def _is_large(self, made: Bound, before: tuple[int, int]) -> bool:
        """Whether a query is bound once for all its uses; it counts as one relation then. `before` is what had been read."""
        read, bound = before
        is_small = self.relations_read - read < SHARED_FROM and self.relations_bound - bound < SHARED_WORK
        if is_small or free_columns(made.plan):
            return False
        self.relations_read = read
        return True

    def _again(self, known: Bound) -> Bound:
        """A second read of a bound relation, under names of its own."""
        self.relations_read += 1
        names = [self.name(name, known.plan.columns[name]) for name in known.names]
        for new, old in zip(names, known.names, strict=True):
            self.declare(col(new), self.declared(col(old)))
        plan = Project(known.plan, tuple((new, col(old)) for new, old in zip(names, known.names, strict=True)))
        return Bound(plan, names, known.titles)

    def aliased(self, titles: list[str], aliases: list[str], node: exp.Expr) -> list[str]:
        """Visible names with the first of them replaced by a list of aliases."""
        if len(aliases) > len(titles):
            raise self.source.error(f"{len(aliases)} names for {len(titles)} columns", node)
        return [*aliases, *titles[len(aliases) :]]

    # ------------------------------------------------------------------ SELECT

    def select(self, node: exp.Select, scope: NameScope | None) -> Bound:
        """SELECT ... FROM ... WHERE ... GROUP BY ... HAVING ... ORDER BY ... LIMIT."""
        self.first_rows = self._first_rows(node)
        try:
            plan, here = relations.bind_from(self, node, scope)
        finally:
            self.first_rows = None
        where = node.args.get("where")
        if where is not None:
            clause = ClauseContext(self, here, "WHERE")
            predicate = clause.predicate(where.this)
            plan = Filter(clause.attach(plan), predicate)
        return SelectList(self, node, here, plan).bound()

    def _first_rows(self, node: exp.Select) -> int | None:
        """The most rows of its one relation that a query needs, if LIMIT alone decides that."""
        said = {name for name, value in node.args.items() if value}
        kinds = (exp.AggFunc, exp.Window, exp.Query, exp.Explode, exp.Anonymous)
        several = any(True for part in node.expressions for _ in part.find_all(*kinds))
        source = None if node.args.get("from_") is None else node.args["from_"].this
        if (
            not isinstance(source, exp.Table)
            or not isinstance(source.this, exp.GenerateSeries)
            or source.args.get("joins")
        ):
            return None
        if not said <= {"expressions", "from_", "limit", "offset"} or "limit" not in said or several:
            return None
        limit, offset = self._limits(node)
        return limit + offset if isinstance(limit, int) and isinstance(offset, int) else None

    # ------------------------------------------------------------------ set operations and values

    def _set_operation(self, node: exp.SetOperation, scope: NameScope | None) -> Bound:
        # a long chain of UNIONs nests to the left: walk down it instead of recursing
        chain: list[exp.SetOperation] = []
        first: exp.Expr = node
        while isinstance(first, exp.SetOperation) and (
            first is node or not modifiers(first) and not first.args.get("with_")
        ):
            chain.append(first)
            first = first.this
        found = self.query(first, scope)
        chain.reverse()
        while chain:
            # UNIONs of one kind in a row are one
            alike = chain[: len(list(itertools.takewhile(functools.partial(same_union, chain[0]), chain))) or 1]
            chain = chain[len(alike) :]
            found = self.combine(alike[0], found, [self.query(operation.expression, scope) for operation in alike])
        return found

    def combine(self, node: exp.SetOperation, left: Bound, others: list[Bound]) -> Bound:
        """UNION of some queries, or INTERSECT or EXCEPT of two."""
        if node.args.get("by_name"):
            if not isinstance(node, exp.Union):
                raise self.unsupported(f"{node.key.upper()} BY NAME", node)
            left, *others = self._by_name([left, *others], node)
        one, *rest = self.unify([part.visible() for part in (left, *others)], node)
        names = [self.name(title, type) for title, type in zip(left.titles, one.columns.values(), strict=True)]
        for name, known in zip(names, left.names, strict=True):
            self.declare(col(name), self.declared(col(known)))
        every = node.args.get("distinct") is False
        plan: Node
        if isinstance(node, exp.Union):
            plan = Union((one, *rest), tuple(names))
            plan = plan if every else each_once(self, plan)
        else:
            (other,) = rest
            kind = "except" if isinstance(node, exp.Except) else "intersect"
            compared: Node = Compare(one, other, kind, every)
            if not every and any(map(is_shown_apart, one.columns.values())):
                theirs = [self.name(name, type) for name, type in other.columns.items()]
                pairs = list(zip(theirs, other.columns, strict=True))
                same = [col(mine).is_same(col(name)) for mine, name in zip(one.columns, theirs, strict=True)]
                right = Project(other, tuple((name, col(old)) for name, old in pairs))
                join = "anti" if kind == "except" else "semi"
                compared = Join(each_once(self, one), right, join, conjunction(same))
            plan = Project(compared, tuple((new, col(old)) for new, old in zip(names, one.columns, strict=True)))
        return Bound(plan, names, left.titles)

    def _by_name(self, parts: list[Bound], node: exp.Expr) -> list[Bound]:
        """Queries with the columns of all of them, in the order in which they come first; NULL where one has no such column."""
        titles: dict[str, str] = {}
        for part in parts:
            if len({title.lower() for title in part.titles}) < len(part.titles):
                raise self.source.error("UNION BY NAME needs columns of different names", node)
            for title in part.titles:
                titles.setdefault(title.lower(), title)
        found = []
        for part in parts:
            own = dict(zip((title.lower() for title in part.titles), part.names, strict=True))
            outputs = []
            for key, title in titles.items():
                value = col(own[key]) if key in own else lit(None)
                kind = part.plan.columns[own[key]] if key in own else types.Int
                outputs.append((self.name(title, kind), value))
            plan = Project(part.visible(), tuple(outputs))
            found.append(Bound(plan, [name for name, _ in outputs], list(titles.values())))
        return found

    def unify(self, parts: list[Node], node: exp.Expr) -> list[Node]:
        """Relations with the same number of columns, each column cast to the type that fits all parts."""
        width = len(parts[0].columns)
        if any(len(part.columns) != width for part in parts):
            widths = " and ".join(str(len(part.columns)) for part in parts)
            raise self.source.error(f"queries of {widths} columns cannot be combined", node, condition="syntax-error")
        wanted: list[Type] = []
        for at in range(width):
            given = {
                f"{i}": (0, list(part.columns.values())[at]) for i, part in enumerate(parts) if not nothing(part, at)
            }
            try:
                wanted.append(expression_type(coalesce(*map(col, given)), given) if given else types.Int)
            except TektiteError:
                found = " and ".join(str(t) for _, t in given.values())
                raise self.source.error(
                    f"column {at + 1} is {found}: cast one of them", node, condition="datatype-mismatch"
                ) from None
        return [self.cast(part, wanted) for part in parts]

    def cast(self, part: Node, wanted: list[Type]) -> Node:
        """A relation with its columns of these types."""
        if list(part.columns.values()) == wanted:
            return part
        outputs = []
        for at, ((name, found), type) in enumerate(zip(part.columns.items(), wanted, strict=True)):
            value = col(name) if found == type else lit(None, type) if nothing(part, at) else col(name).cast(type)
            outputs.append((self.name(name, type), value))
        return Project(part, tuple(outputs))

    def _values(self, node: exp.Values, scope: NameScope | None) -> Bound:
        return self._modified(node, relations.constant_rows(self, node.expressions, scope, node))

    def _modified(self, node: exp.Expr, bound: Bound) -> Bound:
        """ORDER BY and LIMIT behind a set operation or a query in parentheses: over its columns alone."""
        order = []
        for ordered in node.args["order"].expressions if node.args.get("order") else ():
            at = output_place(ordered.this, bound.titles)
            refuse_ambiguous(self.source, ordered.this, bound.titles, [col(name) for name in bound.names])
            if at is None:
                raise self.source.error("ORDER BY here takes columns of the result, by name or number", ordered)
            order.append(self.ordering(ordered, bound.names[at]))
        plan = self.limited(bound.plan, tuple(order), node)
        return Bound(plan, bound.names, bound.titles, tuple(order) or bound.order)

    def ordering(self, node: exp.Ordered, name: str) -> Ordering:
        """One member of ORDER BY, NULLs last unless it says otherwise."""
        return Ordering(name, bool(node.args.get("desc")), bool(node.args.get("nulls_first")))

    def limited(self, plan: Node, order: tuple[Ordering, ...], node: exp.Expr) -> Node:
        """The rows of an order that LIMIT and OFFSET leave."""
        limit, offset = self._limits(node)
        if isinstance(limit, Expr) or isinstance(offset, Expr):
            # of a prepared statement, each binding has its own: rows are numbered, and those kept that it asks for
            number = self.name("row_number", types.Int)
            call = WindowCall("row_number", (), (), order, WHOLE, types.Int)
            before = coalesce(offset, 0) if isinstance(offset, Expr) else lit(offset)
            kept = col(number) > before
            if limit is not None:
                last = (
                    limit if isinstance(limit, Expr) and not isinstance(offset, Expr) and not offset else before + limit
                )
                kept = kept & Expr("case", (last.is_null(), lit(True), col(number) <= last))
            return Project(Filter(Window(plan, ((number, call),)), kept), tuple(columns_of(plan)))
        if limit is not None and limit + offset >= ENDLESS:
            limit = None
        return Top(plan, (), order, limit, min(offset, ENDLESS)) if limit is not None or offset else plan

    def _limits(self, node: exp.Expr) -> tuple[int | Expr | None, int | Expr]:
        """LIMIT and OFFSET: numbers, or what stands for parameters of a prepared statement."""
        limit = node.args.get("limit")
        count: int | Expr | None = None
        if limit is not None:
            tree = limit.args.get("count") if isinstance(limit, exp.Fetch) else limit.expression
            options = limit.args.get("limit_options")
            if options is not None and (options.args.get("percent") or options.args.get("with_ties")):
                instead = ": QUALIFY rank() OVER (ORDER BY x) <= n keeps ties, percent_rank() says percentages"
                raise self.unsupported("LIMIT by percentage or WITH TIES", limit, instead)
            if isinstance(limit, exp.Fetch) and (limit.args.get("direction") or "FIRST") not in ("FIRST", "NEXT"):
                raise self.unsupported(f"FETCH {limit.args['direction']}", limit)
            if not isinstance(tree, exp.Null) and not (isinstance(tree, exp.Var) and tree.name.upper() == "ALL"):
                count = 1 if tree is None else self._count(tree, "LIMIT")
        offset = node.args.get("offset")
        begin = (
            None
            if offset is None or isinstance(offset.expression, exp.Null)
            else self._count(offset.expression, "OFFSET")
        )
        return count, 0 if begin is None else begin

    def _count(self, node: exp.Expr, what: str) -> int | Expr | None:
        clause = ClauseContext(self, NameScope(), what)
        value = folded_constant(clause.bind(node))
        if clause.pending:
            raise self.unsupported(f"a subquery in {what}", node)
        if value.columns() and clause.scalars.type(value, node) == types.Int:
            return value
        if value.op == "lit" and value.params[1] is None and isinstance(node, exp.Placeholder | exp.Parameter):
            return None  # a parameter that is NULL limits nothing
        if value.op != "lit" or type(value.params[1]) is not int or value.params[1] < 0:
            raise self.source.error(f"{what} takes a whole number that is not negative", node)
        return int(value.params[1])

    def window(self, node: exp.Window, clause: ClauseContext) -> Expr:
        """A window function: a column of the window operator over the clause's relation."""
        return windows.declare(self, node, clause)


def modifiers(node: exp.Expr) -> bool:
    """Whether a set operation or a query in parentheses is ordered or limited, or defines names."""
    return any(node.args.get(clause) for clause in ("order", "limit", "offset", "with_"))


def same_union(one: exp.SetOperation, other: exp.SetOperation) -> bool:
    """Whether two operations are both UNION, or both UNION ALL."""
    both = isinstance(one, exp.Union) and isinstance(other, exp.Union)
    if one.args.get("by_name") or other.args.get("by_name"):
        return one is other
    return both and (one.args.get("distinct") is False) == (other.args.get("distinct") is False)
