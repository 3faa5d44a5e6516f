"""Binding scalars: from sqlglot's tree of an expression to an expression of ours, typed, or an error that points at it."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import Any, Protocol

from sqlglot import exp

from tektite.errors import TektiteError, UnsupportedError
from tektite.expr import Expr, concat, lit, truncdiv, truncmod
from tektite.expr import type_of as expression_type
from tektite.expr.fold import folded as folded_constant
from tektite.expr.interval_parts import IntervalParts, of_unit, parse_interval
from tektite.expr.predicates import FALSE, TRUE, conjunction
from tektite.sql.bind import comparisons, constant_sets, functions, nested, numbers, zones
from tektite.sql.bind.long_sums import long_sum, sum_in_groups
from tektite.sql.catalog import catalog_lookup
from tektite.sql.catalog.contents import CatalogContents
from tektite.sql.parse.instead import CLAUSES, FUNCTIONS
from tektite.sql.parse.instead import instead as other_way
from tektite.sql.parse.places import StatementText
from tektite.sql.parse.read_arguments import written
from tektite.values import types
from tektite.values.interval_text import unit_name
from tektite.values.types import Type

COMPARISONS = {exp.EQ: "eq", exp.NEQ: "ne", exp.LT: "lt", exp.LTE: "le", exp.GT: "gt", exp.GTE: "ge"}
LITERALS = ("date", "timestamp", "time", "interval", "uuid", "blob", "json", "list", "struct")
"""Types of which a text says a constant."""


class Context(Protocol):
    """The context of an expression: resolves columns, subqueries, aggregates and windows."""

    def column(self, node: exp.Column) -> Expr:
        """The column that a name means."""

    def subquery(self, kind: str, node: exp.Expr, comparison: str, tests: tuple[Expr, ...]) -> Expr:
        """The column that will hold a subquery's result."""

    def aggregate(self, node: exp.Expr, scalars: Scalars) -> Expr:
        """The column that will hold an aggregate's result."""

    def window(self, node: exp.Window, scalars: Scalars) -> Expr:
        """The column that will hold a window function's result."""

    def parameter(self, node: exp.Expr) -> Expr:
        """The expression of a parameter."""

    def now(self, node: exp.Expr) -> Expr:
        """The column that will hold the time."""

    @property
    def zone(self) -> str:
        """The time zone of the session."""

    def current_user(self) -> Expr:
        """The value of `current_user`."""

    def contents(self) -> CatalogContents:
        """The contents of the engine, for functions of the system catalogs."""

    def reads_system(self) -> bool:
        """Whether the statement reads the system catalogs."""

    def declare(self, expression: Expr, type: str) -> Expr:
        """Note which type of PostgreSQL an expression has; the expression."""

    def declared(self, expression: Expr) -> str:
        """The type of PostgreSQL that was noted of an expression."""

    def element_types(self) -> dict[int, str]:
        """The types of elements of arrays, by the id of the tree that makes one."""

    @property
    def pause(self) -> Callable[[], None] | None:
        """Called now and then, to let others use the engine."""

    def set_function(self, node: exp.Expr, field: str = "") -> Expr | None:
        """The column of a function that gives several rows, or a field of what it gives; None if the node calls none."""


CALLED_AS = {"comprehension": "a list comprehension", "order": "ORDER BY in the arguments", "star": "*"}
"""Kinds of nodes by what is written for them, where the parser has a word of its own."""


class Scalars:
    """Binds expressions in one context. `columns` types every column of the statement, by its unique name."""

    def __init__(
        self,
        source: StatementText,
        context: Context,
        columns: dict[str, tuple[int, Type]],
        meanings: dict[int, Expr | IntervalParts] | None = None,
    ) -> None:
        self.source = source
        self.context = context
        self.columns = columns
        self._pause = context.pause
        self.meanings = meanings
        """Where to note what each tree means, by its id; for who infers the types of parameters."""

    def pause(self) -> None:
        """Let others use the engine, if it is time."""
        if self._pause is not None:
            self._pause()

    # ------------------------------------------------------------------ entrances

    def bind(self, node: exp.Expr | None) -> Expr:
        """The expression that a tree means."""
        if node is None:  # the parser takes some functions without their values
            raise TypeError("a value is missing")
        found = self.any(node)
        return self.checked(found.value(), node) if isinstance(found, IntervalParts) else found

    def predicate(self, node: exp.Expr, where: str) -> Expr:
        """An expression that is a condition."""
        parts = [condition(self.bind(part)) for part in flatten(node, exp.And)]
        for part, tree in zip(parts, flatten(node, exp.And), strict=True):
            if self.type(part, tree) != types.Bool:
                raise self.error(f"{where} needs a condition, not {self.type(part, tree)}", tree, "datatype-mismatch")
        return conjunction(parts)

    def type(self, expression: Expr, node: exp.Expr) -> Type:
        """The type of an expression. An error points at its place."""
        if expression.op == "col" and expression.params[0] in self.columns:
            return self.columns[expression.params[0]][1]
        try:
            return expression_type(expression, self.columns)
        except TektiteError as error:
            raise self.source.placed(error, node) from None

    def error(self, message: str, node: exp.Expr, condition: str = "") -> TektiteError:
        return self.source.error(message, node, condition=condition)

    def unsupported(self, what: str, node: exp.Expr, condition: str = "", instead: str = "") -> TektiteError:
        known = instead or other_way(CLAUSES, what)
        return self.source.error(f"{what} is not supported{known}", node, UnsupportedError, condition)

    # ------------------------------------------------------------------ by kind of node

    def any(self, node: exp.Expr) -> Expr | IntervalParts:
        """The expression or the interval of a tree."""
        self.pause()
        found = self._any(node)
        if self.context.zone != "UTC" and isinstance(found, Expr):
            found = zones.localised(self, found, node)
        if self.meanings is not None:
            self.meanings[id(node)] = found
        return found

    def _any(self, node: exp.Expr) -> Expr | IntervalParts:
        kind = type(node)
        if kind in COMPARISONS:
            return comparisons.comparison(self, node, COMPARISONS[kind])
        rule = RULES.get(kind)
        if rule is not None:
            found: Expr | IntervalParts = rule(self, node)
            return found
        if isinstance(node, exp.AggFunc):
            return self.context.aggregate(node, self)
        if isinstance(node, exp.Func):
            built = functions.build(self, node)
            if built is not None:
                return self.checked(built, node)
            known = other_way(FUNCTIONS, self.source.called(node))
            raise self.unsupported(f"function {self.source.called(node)}", node, "undefined-function", known)
        if kind in functions.BITS:
            operands = [node.this, node.expression] if node.args.get("expression") is not None else [node.this]
            return self.checked(functions.BITS[kind](*map(self.bind, operands)), node)
        word = CALLED_AS.get(node.key, node.key.upper())
        raise self.unsupported(f"{word} ({written(node)[:60]})", node, instead=other_way(CLAUSES, word))

    def checked(self, expression: Expr, node: exp.Expr) -> Expr:
        self.type(expression, node)
        return expression

    def literal(self, node: exp.Literal) -> Expr:
        if node.is_string:
            return lit(node.this)
        return self.number(node.this, node)

    def number(self, text: str, node: exp.Expr) -> Expr:
        try:
            if "e" in text.lower():
                return lit(float(text))
            if "." in text:
                whole, _, fraction = text.partition(".")
                if is_operand(node):  # without zeros at its end, so that products keep room for digits
                    fraction = fraction.rstrip("0")
                return lit(decimal.Decimal(f"{whole or 0}.{fraction or '0'}"))
            number = int(text)
            # -2**63 is the word of NULL: as all numbers beyond a word, it is a decimal
            return lit(number) if abs(number) < 2**63 else lit(decimal.Decimal(number))
        except TektiteError as error:
            raise self.source.placed(error, node) from None
        except (ValueError, decimal.InvalidOperation):
            raise self.error(f"{text} is not a number", node) from None

    def paren(self, node: exp.Paren) -> Expr | IntervalParts:
        return self.any(node.this)

    def negative(self, node: exp.Neg) -> Expr | IntervalParts:
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            return self.number("-" + node.this.this, node)
        found = self.any(node.this)
        return found.negated() if isinstance(found, IntervalParts) else self.checked(-found, node)

    def boolean(self, node: exp.Boolean) -> Expr:
        return TRUE if node.this else FALSE

    def conjunction(self, node: exp.And) -> Expr:
        return self.predicate(node, "AND")

    def disjunction(self, node: exp.Or) -> Expr:
        parts = []
        for found in constant_sets.alternatives(self, flatten(node, exp.Or)):
            if isinstance(found, Expr):
                parts.append(self.checked(found, node))
                continue
            part = condition(self.bind(found))
            if self.type(part, found) != types.Bool:
                raise self.error(f"OR needs conditions, not {self.type(part, found)}", found)
            parts.append(part)
        while len(parts) > 1:
            parts = [parts[i] | parts[i + 1] if i + 1 < len(parts) else parts[i] for i in range(0, len(parts), 2)]
        return parts[0]

    def negation(self, node: exp.Not) -> Expr:
        return self.checked(~self.bind(node.this), node)

    def arithmetic(self, node: exp.Binary) -> Expr | IntervalParts:
        links = long_sum(node)
        if links:
            return sum_in_groups(self, node, links)
        left, right = self.any(node.this), self.any(node.expression)
        if any(isinstance(side, IntervalParts) or self.type(side, node) == types.Interval for side in (left, right)):
            return self.with_interval(node, left, right)
        assert isinstance(left, Expr) and isinstance(right, Expr)
        kind = type(node)
        if kind is exp.Add:
            if types.String == self.type(left, node) == self.type(right, node):
                raise self.error("+ adds numbers; || joins texts", node)
            return self.checked(left + right, node)
        if kind is exp.Sub:
            kinds = {self.type(left, node), self.type(right, node)}
            if kinds == {types.Time}:
                return IntervalParts.between(left, right, types.Time)
            if kinds & {types.Timestamp, types.TimestampTz} and kinds <= {
                types.Date,
                types.Timestamp,
                types.TimestampTz,
            }:
                if types.TimestampTz in kinds:
                    left, right = (zones.cast(self, end, types.TimestampTz, node) for end in (left, right))
                return IntervalParts.between(left, right, types.Timestamp)
            return self.checked(left - right, node)
        if kind is exp.Mul:
            return self.checked(left * right, node)
        if kind is exp.Div:
            return self.checked(left / right, node)
        self.checked(left % right, node)
        if kind is exp.Mod:
            return truncmod(left, right)
        if types.Float in (self.type(left, node), self.type(right, node)):
            raise self.unsupported("// of floats", node)
        return truncdiv(left, right)

    def with_interval(
        self, node: exp.Binary, left: Expr | IntervalParts, right: Expr | IntervalParts
    ) -> Expr | IntervalParts:
        """Arithmetic in which intervals take part."""
        if isinstance(left, Expr) and self.type(left, node) == types.Interval:
            left = IntervalParts.of(left)
        if isinstance(right, Expr) and self.type(right, node) == types.Interval:
            right = IntervalParts.of(right)
        if isinstance(left, IntervalParts) and isinstance(right, IntervalParts):
            if isinstance(node, exp.Add | exp.Sub):
                return left.plus(right if isinstance(node, exp.Add) else right.negated())
            raise self.error("intervals can be added and subtracted, and multiplied by numbers", node)
        if isinstance(node, exp.Mul | exp.Div):
            interval, factor = (left, right) if isinstance(left, IntervalParts) else (right, left)
            assert isinstance(interval, IntervalParts) and isinstance(factor, Expr)
            if isinstance(node, exp.Mul) and self.type(factor, node) == types.Int:
                return interval.times(factor)
            if isinstance(node, exp.Div) and isinstance(right, IntervalParts):
                raise self.error("an interval can be divided by a number; nothing can be divided by it", node)
            result = interval.value() * factor if isinstance(node, exp.Mul) else interval.value() / factor
            return self.checked(result, node)
        if isinstance(node, exp.Add) and isinstance(left, IntervalParts):
            left, right = right, left
        if isinstance(left, Expr) and isinstance(right, IntervalParts) and isinstance(node, exp.Add | exp.Sub):
            kind = self.type(left, node)
            if kind in (types.Date, types.Time, types.Timestamp, types.TimestampTz):
                interval = right if isinstance(node, exp.Add) else right.negated()
                return self.checked(interval.move(left, kind, self.context.zone), node)
        raise self.error("an interval can be added to or taken from a date or a timestamp", node)

    def interval(self, node: exp.Interval) -> IntervalParts:
        unit = node.args.get("unit")
        if unit is None:
            text = node.this.this if isinstance(node.this, exp.Literal) else ""
            found = parse_interval(text)
            if found is None:
                raise self.error(f"interval {text!r} is not a length of time, such as '3 days'", node)
            return found
        if isinstance(unit, exp.IntervalSpan):
            said = (
                "an interval from one unit TO another is not supported: say its parts, as in INTERVAL '1 year 3 months'"
            )
            raise self.source.error(said, node, UnsupportedError)
        if not isinstance(unit, exp.Var) and not (isinstance(unit.this, exp.Literal) and unit.this.is_int):
            raise self.unsupported("such a unit of an interval", node)
        # in INTERVAL '90' DAY (3), which looks like a call, the number says how many digits there may be
        word = unit.name if isinstance(unit, exp.Var) else unit.sql_name()
        name = unit_name(word)
        if name is None:
            raise self.unsupported(f"interval unit {word}", node)
        value = node.this
        if isinstance(value, exp.Literal) and value.is_string:
            try:
                return of_unit(lit(int(value.this)), name)
            except ValueError:
                found = parse_interval(f"{value.this} {name}")
                if found is None:
                    raise self.error(f"interval {value.this!r} is not a number of {name}s", node) from None
                return found
        amount = self.bind(value)
        if self.type(amount, node) != types.Int:
            raise self.error(f"interval: a number of {name}s is a whole number", node)
        return of_unit(amount, name)

    # ------------------------------------------------------------------ comparisons

    def compare(self, op: str, left: Expr, right: Expr, node: exp.Expr) -> Expr:
        """A comparison; a date meets a constant timestamp as a date where that says the same, and a number a constant text
        as the number that it says.
        """
        left, right = self.as_said(left, right, node), self.as_said(right, left, node)
        left, right = zones.alike(self, left, right, node)
        left, right = self.as_dates(left, right)
        right, left = self.as_dates(right, left)
        return self.checked(Expr(op, (left, right)), node)

    def as_said(self, one: Expr, other: Expr, node: exp.Expr) -> Expr:
        """A constant text as a value of the type that it is compared with, where that is a number or a truth value."""
        if one.op != "lit" or not isinstance(one.params[1], str) or one.params[0] != types.String:
            return one
        kind = self.type(other, node)
        if kind.kind not in ("int", "float", "decimal", "bool"):
            return one
        if isinstance(kind, types.DecimalType):  # with all the places that the text has
            places = len(one.params[1].partition(".")[2].strip())
            kind = types.Decimal(18, min(18, max(kind.scale, places)))
        found = folded_constant(one.cast(kind))
        if found.op != "lit":
            raise self.error(
                f"{one.params[1]!r} is not a valid value of type {kind}", node, condition="invalid-text-representation"
            )
        return found

    def as_dates(self, one: Expr, other: Expr) -> tuple[Expr, Expr]:
        """Two sides, the second as a date if the first is one and the second is a constant midnight."""
        if other.op == "cast" and other.params[0] == types.Timestamp and not other.columns():
            inner = other.args[0]
            if expression_type(one, self.columns) == types.Date == expression_type(inner, self.columns):
                return one, inner
        return one, other

    def member_of(self, node: exp.Dot) -> Expr:
        """(f(x)).field: a field of what a function gives several rows of."""
        inner = node.this.this if isinstance(node.this, exp.Paren) else node.this
        if (
            not isinstance(inner, exp.Explode | exp.Anonymous)
            or isinstance(inner, exp.Anonymous)
            and inner.name.lower() == "row"
        ):
            part = nested.field(self, self.bind(inner), node.name, node)
            if part is not None:
                return part
        found = self.context.set_function(inner, node.name.lower())
        if found is None and isinstance(inner, exp.Column):
            value = self.bind(inner)
            if self.context.declared(value) == "_pg_expandarray" and node.name.lower() == "x":
                return value
        if found is None:
            raise self.unsupported(f"a field ({written(node)[:60]})", node)
        return found

    def from_set(self, node: exp.Expr) -> Expr:
        """A function that gives several rows."""
        found = self.context.set_function(node)
        if found is None:
            known = other_way(FUNCTIONS, self.source.called(node))
            raise self.unsupported(f"function {self.source.called(node)} here", node, "undefined-function", known)
        return found

    def subscript(self, node: exp.Bracket) -> Expr:
        found = nested.subscript(self, node, self.bind(node.this))
        if found is not None:
            return self.checked(found, node)
        return self.checked(catalog_lookup.subscript(self, node), node)

    def session_value(self, node: exp.Expr) -> Expr:
        named = {"currentschema": "current_schema", "currentcatalog": "current_catalog", "currentdatabase": "current_database",
                 "sessionuser": "session_user", "currentuser": "current_user"}  # fmt: skip
        return catalog_lookup.session_value(self, named[node.key])

    def current_schemas(self, node: exp.Expr) -> Expr:
        return catalog_lookup.current_schemas(self, lit(False) if node.this is None else self.bind(node.this))

    def version(self, node: exp.Expr) -> Expr:
        return catalog_lookup.version(self)

    # ------------------------------------------------------------------ the rest

    def case(self, node: exp.Case) -> Expr:
        subject = None if node.this is None else self.bind(node.this)
        args: list[Expr] = []
        for branch in node.args["ifs"]:
            if subject is None:
                condition = self.predicate(branch.this, "WHEN")
            else:
                condition = self.compare("eq", subject, self.bind(branch.this), branch.this)
            args += [condition, self.bind(branch.args["true"])]
        default = node.args.get("default")
        args.append(lit(None) if default is None else self.bind(default))
        return self.decided(self.checked(Expr("case", tuple(args)), node), node)

    def decided(self, choice: Expr, node: exp.Expr) -> Expr:
        """A choice without the branches that a constant condition rules out: they may fail if they are computed."""
        kept: list[Expr] = []
        *branches, otherwise = choice.args
        for condition, value in zip(branches[::2], branches[1::2], strict=True):
            certain = folded_constant(condition)
            if certain.op != "lit":
                kept += [condition, value]
            elif certain.params[1]:
                otherwise = value
                break
        if len(kept) + 1 == len(choice.args):
            return choice
        kind = self.type(choice, node)
        found = Expr("case", (*kept, otherwise)) if kept else otherwise
        return found if self.type(found, node) == kind else found.cast(kind)

    def conditional(self, node: exp.If) -> Expr:
        otherwise = node.args.get("false")
        args = (self.predicate(node.this, "IF"), self.bind(node.args["true"]))
        choice = Expr("case", (*args, lit(None) if otherwise is None else self.bind(otherwise)))
        return self.decided(self.checked(choice, node), node)

    def cast(self, node: exp.Cast) -> Expr:
        special = catalog_lookup.pg_cast(self, node)
        if special is not None:
            return self.checked(special, node)
        target = functions.column_type(self.source, node.args["to"])
        value = self.bind(node.this)
        if zones.TYPES & {self.type(value, node.this), target}:
            return self.checked(zones.cast(self, value, target, node), node)
        is_said = isinstance(node.this, exp.Literal) and node.this.is_string
        if (is_said or comparisons.is_list(self, node.this, value)) and target.kind in LITERALS:
            zones.check_nested(self, types.String, target, node)
            try:
                return lit(value.params[1], target)
            except TektiteError as error:
                if isinstance(node, exp.TryCast):
                    return lit(None, target)
                raise self.source.placed(error, node.this) from None
        if target == types.String == self.type(value, node.this) and self.context.declared(value) == "":
            return value
        if not isinstance(node, exp.TryCast):
            return self.checked(value.cast(target), node)
        kind = self.type(value, node.this)
        if kind == types.String or kind.interned or target.interned:
            return self.checked(value.try_cast(target), node)
        return self.checked(numbers.where_it_fits(value, kind, target), node)

    def joined(self, node: exp.DPipe) -> Expr:
        parts = [self.bind(part) for part in flatten(node, exp.DPipe)]
        if any(nested.is_list(self, part, node) for part in parts):
            return nested.concatenated(self, parts, node)
        if all(part.op == "lit" and isinstance(part.params[1], str | None) for part in parts):
            texts = [part.params[1] for part in parts]
            return lit(None if None in texts else "".join(texts), types.String)
        return self.checked(concat(*parts), node)

    def subquery(self, node: exp.Expr) -> Expr:
        return self.context.subquery("scalar", node, "eq", ())

    def column(self, node: exp.Column) -> Expr:
        return self.context.column(node)

    def aggregate(self, node: exp.Expr) -> Expr:
        return self.context.aggregate(node, self)

    def window(self, node: exp.Window) -> Expr:
        return self.context.window(node, self)

    def parameter(self, node: exp.Expr) -> Expr:
        return self.context.parameter(node)

    def now(self, node: exp.Expr) -> Expr:
        return zones.now(self, node)

    def today(self, node: exp.Expr) -> Expr:
        return zones.now(self, node).cast(types.Date)

    def null(self, node: exp.Null) -> Expr:
        return lit(None)

    def alias(self, node: exp.Alias) -> Expr | IntervalParts:
        return self.any(node.this)


def is_operand(node: exp.Expr) -> bool:
    """Whether a number takes part in arithmetic or a comparison."""
    around = node.parent
    while isinstance(around, exp.Paren | exp.Neg):
        around = around.parent
    return isinstance(around, exp.Binary | exp.Between | exp.In) and not isinstance(around, exp.DPipe)


def condition(expression: Expr) -> Expr:
    """A bare NULL as the condition that it is where one is asked for."""
    bare = expression.op == "lit" and expression.params[1] is None
    return lit(None, types.Bool) if bare else expression


def flatten(node: exp.Expr, kind: type[exp.Expr]) -> list[exp.Expr]:
    """The operands of a chain of one operator, in order, however the chain is nested."""
    found: list[exp.Expr] = []
    waiting = [node]
    while waiting:
        part = waiting.pop()
        while isinstance(part, exp.Paren) and isinstance(part.this, kind | exp.Paren):
            part = part.this
        if isinstance(part, kind):
            waiting += [part.expression, part.this]
        else:
            found.append(part)
    return found


RULES: dict[type[exp.Expr], Callable[..., Any]] = {
    exp.Literal: Scalars.literal,
    exp.Paren: Scalars.paren,
    exp.Neg: Scalars.negative,
    exp.Boolean: Scalars.boolean,
    exp.Null: Scalars.null,
    exp.And: Scalars.conjunction,
    exp.Or: Scalars.disjunction,
    exp.Not: Scalars.negation,
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod), Scalars.arithmetic),
    exp.Interval: Scalars.interval,
    exp.AtTimeZone: zones.at_time_zone,
    exp.NullSafeEQ: comparisons.same,
    exp.NullSafeNEQ: comparisons.different,
    exp.Between: comparisons.between,
    exp.In: comparisons.member,
    exp.Exists: comparisons.exists,
    exp.Is: comparisons.is_a,
    **dict.fromkeys((exp.Like, exp.ILike, exp.Escape), comparisons.like),
    exp.SimilarTo: comparisons.similar,
    exp.Case: Scalars.case,
    exp.If: Scalars.conditional,
    **dict.fromkeys((exp.Cast, exp.TryCast), Scalars.cast),
    exp.DPipe: Scalars.joined,
    exp.Subquery: Scalars.subquery,
    exp.Select: Scalars.subquery,
    exp.Column: Scalars.column,
    exp.Filter: Scalars.aggregate,
    exp.IgnoreNulls: Scalars.aggregate,
    exp.WithinGroup: Scalars.aggregate,
    exp.Window: Scalars.window,
    exp.Placeholder: Scalars.parameter,
    exp.Parameter: Scalars.parameter,
    exp.CurrentTimestamp: Scalars.now,
    exp.CurrentDate: Scalars.today,
    exp.Alias: Scalars.alias,
    exp.Dot: Scalars.member_of,
    exp.Bracket: Scalars.subscript,
    exp.Array: nested.array,
    exp.Struct: nested.struct,
    exp.Explode: Scalars.from_set,
    **dict.fromkeys(
        (exp.CurrentUser, exp.SessionUser, exp.CurrentSchema, exp.CurrentCatalog, exp.CurrentDatabase),
        Scalars.session_value,
    ),
    exp.CurrentSchemas: Scalars.current_schemas,
    exp.CurrentVersion: Scalars.version,
}
