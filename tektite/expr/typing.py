"""Typing: types an expression against a schema. The result is a tree of typed steps, or an error with the reason.

The rules are DuckDB's, unless a rule says otherwise:

* Int with Float gives Float; Decimal with Float gives Float; Int with Decimal counts as a Decimal of scale 0.
* Decimal + and - align scales; * adds them. The precision is capped at 18; a result beyond it is an error of the row.
* `/` of any two numbers is a Float. `//` and `%` round down as in Python, and `//` of Decimals is an Int. SQL and Datalog divide
  towards zero: these are the operations `truncdiv` and `truncmod`.
* `+` of two texts joins them.
* Division by zero is NULL, for floats too (DuckDB gives them an infinity). Integer overflow is an error of the row.
* Numbers of different types compare by value: Int and Decimal with each other exactly, Int and Float exactly, Decimal
  and Float as floats. NaN equals NaN and is greater than every other number; -0.0 equals 0.0.
* Date - Date is an Int of days. The difference of two Timestamps, of two TimestampTz and of two Times is an Interval; `elapsed`
  is the same in microseconds. Date and Timestamp plus or minus an Int move by days and by microseconds. Next to a Timestamp, a
  Date means its midnight. Next to a date, a time, a timestamp or another value that is written as a text, a text literal is
  read as one.
* A TimestampTz is a moment. Its fields are those of clocks in UTC; `dt.in_zone` gives those of others. It does not mix with a
  Timestamp.
* Text compares by its code points, which is the order of its UTF-8 bytes.
* Casts from Float round to even, casts between Decimals (and to Int) round halves away from zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

from tektite.errors import IncorrectError, NotFoundError
from tektite.expr import expansions, functions, interned_functions, record_text, scalar_library
from tektite.expr.ast import Expr
from tektite.expr.comparisons import SIGNS
from tektite.expr.literals import DAY, MAX_DIGITS, MAX_INT, Untyped, literal_value, literal_word
from tektite.expr.steps import CONSTANT, INPUT, Step, TextFunction, limit_of, number, word
from tektite.kernels.expr import steps as ops
from tektite.values.columns import text_of
from tektite.values.types import (
    MOST_DIGITS,
    Bool,
    Date,
    Decimal,
    DecimalType,
    Float,
    Int,
    Interval,
    ListType,
    String,
    StructType,
    Time,
    Timestamp,
    TimestampTz,
    Type,
)
from tektite.values.words import NULL

Columns = Mapping[str, tuple[int, Type]]


def type_of(expr: Expr, columns: Columns) -> Type:
    """The type of an expression over these columns."""
    return resolve(expr, columns).type


def resolve(expr: Expr, columns: Columns) -> Step:
    """The steps that compute an expression. An untyped NULL becomes an Int."""
    step = Resolver(columns).step(expr)
    type = settled(step.type)
    return step if step.type == type else Step(step.op, type, step.args, step.extra, step.source)


def settled(type: Type) -> Type:
    """A type in which what is not known to be of any type is an Int."""
    if type == Untyped:
        return Int
    if isinstance(type, ListType):
        return ListType("list", settled(type.element))
    if isinstance(type, StructType):
        return StructType("struct", tuple((name, settled(kind)) for name, kind in type.fields))
    return type


class Resolver:
    """Turns expressions over one schema into steps. Methods that build steps take the expression that they serve."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns

    def step(self, expr: Expr) -> Step:
        """The steps of an expression."""
        if expr.op == "col":
            return self._column(expr)
        if expr.op == "lit":
            return self._literal(expr)
        args = [self.step(arg) for arg in expr.args]
        return RULES[expr.op](self, expr, *args)

    def wrong(self, expr: Expr, problem: str, *steps: Step) -> IncorrectError:
        """An error that names the expression, and each operand with its type."""
        sources = [given if step.source is None else step.source for given, step in zip(expr.args, steps, strict=False)]
        found = " and ".join(f"{'column ' if a.op == 'col' else ''}{a} of type {s.type}"
                             for a, s in zip(sources, steps, strict=True))  # fmt: skip
        return IncorrectError(f"{expr}: {problem}" + (f", found {found}" if found else "") + _instead(steps)).about(
            condition="undefined-function"
        )

    def _named_as_text(self, expr: Expr) -> str:
        """A note that a text among some values is the name of a column, which may have been meant."""
        names = [arg.params[1] for arg in expr.args if arg.op == "lit" and isinstance(arg.params[1], str)]
        meant = next((name for name in names if name in self.columns), None)
        return "" if meant is None else f" ({meant!r} is a text here; the column is col({meant!r}))"

    def _column(self, expr: Expr) -> Step:
        """A column of the schema."""
        name = expr.params[0]
        if name not in self.columns:
            known = ", ".join(self.columns) or "none"
            raise NotFoundError(f"column {name!r} does not exist; the columns are: {known}").about(
                condition="undefined-column"
            )
        index, type = self.columns[name]
        return Step(INPUT, type, (), index, expr)

    def _literal(self, expr: Expr) -> Step:
        """A constant: its word, or its text."""
        type, value = expr.params
        if type.interned and value is not None:
            return Step(CONSTANT, type, (), value if type == String else text_of(value, type), expr)
        return Step(CONSTANT, type, (), literal_word(value, type), expr)

    # -- conversions -----------------------------------------------------------------------------------------------

    def floats(self, step: Step) -> Step:
        """A number as a Float."""
        if step.type == Float:
            return step
        if step.type == Untyped:
            return word(NULL, Float)
        if step.type.interned:
            return self.text("decimal_cast", step.source, Float, (step,), (step.type, Float))
        divisor = 10**step.type.scale if isinstance(step.type, DecimalType) else 1
        return Step(ops.INT_TO_FLOAT, Float, (step,), divisor, step.source)

    def decimals(self, step: Step) -> Step:
        """An Int as a Decimal of scale 0: a constant has its number of digits, anything else 18."""
        if isinstance(step.type, DecimalType):
            return step
        if step.type == Untyped:
            return word(NULL, Decimal(1))
        if step.op == CONSTANT and abs(step.extra) < 10**MAX_DIGITS:
            return word(step.extra, Decimal(len(str(abs(step.extra)))))
        return self.scaled(step, Decimal(MAX_DIGITS), 0)

    def scaled(self, step: Step, type: DecimalType, by: int) -> Step:
        """The word times 10**by, which must fit `type`."""
        return Step(ops.MUL, type, (step, word(10**by)), limit_of(type), step.source)

    def aligned(self, left: Step, right: Step) -> tuple[Step, Step]:
        """Two Decimals with the same scale."""
        left, right = self.decimals(left), self.decimals(right)
        assert isinstance(left.type, DecimalType) and isinstance(right.type, DecimalType)
        scale = max(left.type.scale, right.type.scale)
        both = []
        for step in (left, right):
            assert isinstance(step.type, DecimalType)
            by = scale - step.type.scale
            type = Decimal(min(MAX_DIGITS, step.type.precision + by), scale)
            both.append(self.scaled(step, type, by) if by else step)
        return both[0], both[1]

    def coerce(self, step: Step, type: Type, expr: Expr) -> Step:
        """A step as another type, where that loses nothing: how branches of a case are made equal."""
        if step.type == type:
            return step
        if step.type == Untyped:
            return word(NULL, type)
        if number(type) and number(step.type) and (type.interned or step.type.interned) and type != Float:
            return functions.cast(self, Expr("cast", (expr,), (type,)), step)
        if type == Float and number(step.type):
            return self.floats(step)
        if isinstance(type, DecimalType) and step.type.kind in ("int", "decimal"):
            step = self.decimals(step)
            assert isinstance(step.type, DecimalType)
            by = type.scale - step.type.scale
            if by == 0:
                return Step(step.op, type, step.args, step.extra, step.source)
            return self.scaled(step, type, by)
        if type == Timestamp and step.type == Date:
            return Step(ops.MUL, Timestamp, (step, word(DAY)), MAX_INT, step.source)
        if type.kind in WRITTEN and step.op == CONSTANT and step.type == String:
            return self._literal(Expr("lit", (), (type, literal_value(step.extra, type))))
        if (
            {step.type.kind, type.kind} <= {"list", "struct", "null"}
            or type.interned
            and number(type)
            and number(step.type)
        ):
            return functions.cast(self, Expr("cast", (expr,), (type,)), step)
        raise self.wrong(expr, f"{step.type} and {type} have no common type")

    def common(self, expr: Expr, steps: Sequence[Step]) -> list[Step]:
        """The steps converted to the one type that fits them all."""

        def meet(one: Type, other: Type) -> Type:
            if one == other or other == Untyped:
                return one
            if one == Untyped:
                return other
            if number(one) and number(other):
                if Float in (one, other):
                    return Float
                one, other = (t if isinstance(t, DecimalType) else Decimal(MAX_DIGITS) for t in (one, other))
                most = MOST_DIGITS if one.interned or other.interned else MAX_DIGITS
                assert isinstance(one, DecimalType) and isinstance(other, DecimalType)
                scale = max(one.scale, other.scale)
                whole = max(one.precision - one.scale, other.precision - other.scale)
                return Decimal(min(most, whole + scale), scale)
            if {one, other} == {Date, Timestamp}:
                return Timestamp
            if isinstance(one, ListType) and isinstance(other, ListType):
                return ListType("list", meet(one.element, other.element))
            if isinstance(one, StructType) and isinstance(other, StructType):
                if _unnamed(one):
                    one, other = other, one
                if len(one.fields) == len(other.fields) and (_unnamed(other) or one.names == other.names):
                    met = [meet(a, b) for (_, a), (_, b) in zip(one.fields, other.fields, strict=True)]
                    return StructType("struct", tuple((n, t) for (n, _), t in zip(one.fields, met, strict=True)))
            raise self.wrong(expr, f"{one} and {other} have no common type{self._named_as_text(expr)}", *steps)

        # a text literal next to dates becomes a date, so it does not count; an Int constant has few digits
        kinds = {step.type for step in steps}
        types = []
        for step in steps:
            if step.op == CONSTANT and step.type == String and any(kind.kind in WRITTEN for kind in kinds):
                continue
            if step.op == CONSTANT and step.type == Int and any(isinstance(kind, DecimalType) for kind in kinds):
                step = self.decimals(step)
            types.append(step.type)
        type = reduce(meet, types)
        return [self.coerce(step, type, expr) for step in steps]

    # -- arithmetic ------------------------------------------------------------------------------------------------

    def arithmetic(self, expr: Expr, left: Step, right: Step) -> Step:
        """+ - * / // % of numbers, and where they exist, of dates and timestamps."""
        op = expr.op
        moved = interned_functions.arithmetic(self, expr, left, right)
        if moved is None:
            moved = self._moved(expr, left, right)
        if moved is not None:
            return moved
        if op == "add" and String in (left.type, right.type) and {left.type, right.type} <= {String, Untyped}:
            return functions.concat(self, expr, left, right)
        left, right = self.typed_nulls(left, right)
        if not (number(left.type) and number(right.type)):
            raise self.wrong(expr, f"{op} needs two numbers", left, right)
        if op == "div" or Float in (left.type, right.type):
            return self.float_operation(expr, self.floats(left), self.floats(right))
        if left.type == Int and right.type == Int:
            return Step(INT_OPS[op], Int, (left, right), MAX_INT if op in CHECKED else 0, expr)
        if op == "mul":
            left, right = self.decimals(left), self.decimals(right)
            assert isinstance(left.type, DecimalType) and isinstance(right.type, DecimalType)
            scale = left.type.scale + right.type.scale
            if scale > MAX_DIGITS:
                raise self.wrong(expr, f"the product has {scale} digits behind the point, at most {MAX_DIGITS} fit: "
                                 "cast an operand to fewer", left, right)  # fmt: skip
            type = Decimal(max(1, min(MAX_DIGITS, left.type.precision + right.type.precision)), scale)
            return Step(ops.MUL, type, (left, right), limit_of(type), expr)
        left, right = self.aligned(left, right)
        assert isinstance(left.type, DecimalType) and isinstance(right.type, DecimalType)
        precision = max(left.type.precision, right.type.precision)
        if op in ("add", "sub"):
            type = Decimal(min(MAX_DIGITS, precision + 1), left.type.scale)
            return Step(INT_OPS[op], type, (left, right), limit_of(type), expr)
        return Step(INT_OPS[op], Int if op == "floordiv" else right.type, (left, right), 0, expr)

    def float_operation(self, expr: Expr, left: Step, right: Step) -> Step:
        """+ - * / // % of floats."""
        return Step(FLOAT_OPS[expr.op], Float, (left, right), 0, expr)

    def typed_nulls(self, left: Step, right: Step) -> tuple[Step, Step]:
        """A bare NULL operand takes the type of the other operand, or Int."""
        if left.type == Untyped:
            left = word(NULL, Int if right.type == Untyped else right.type)
        if right.type == Untyped:
            right = word(NULL, left.type)
        return left, right

    def _moved(self, expr: Expr, left: Step, right: Step) -> Step | None:
        """Arithmetic on dates and timestamps; None if it is something else."""
        times = (Date, Timestamp, TimestampTz, Time)
        if left.type not in times and right.type not in times:
            return None
        if expr.op == "sub" and right.type in (*times, String) and left.type in (*times, String):
            return self._between(expr, left, right)
        if expr.op == "add" and right.type in times:
            left, right = right, left
        if expr.op in ("add", "sub") and left.type in times and left.type != Time and right.type in (Int, Untyped):
            return Step(INT_OPS[expr.op], left.type, (left, right), limit_of(left.type), expr)
        raise self.wrong(
            expr, "dates and timestamps can only be subtracted, or moved by an Int or an interval", left, right
        )

    def _between(self, expr: Expr, left: Step, right: Step) -> Step:
        """The difference of two dates, or of a moment and a text that says one."""
        both = self.common(expr, (left, right))
        if both[0].type == Date:
            return Step(ops.SUB, Int, tuple(both), MAX_INT, expr)
        said = zip(expr.args, (left, right), both, strict=True)
        ends = tuple(arg.cast(step.type) if own.type != step.type else arg for arg, own, step in said)
        return self.step(Expr("sub", ends))

    def negative(self, expr: Expr, value: Step) -> Step:
        """Unary minus."""
        if value.type == Interval or number(value.type) and value.type.interned:
            return interned_functions.negated(self, expr, value)
        if not number(value.type) and value.type != Untyped:
            raise self.wrong(expr, "unary minus needs a number", value)
        if value.type == Float:
            return Step(ops.FMUL, Float, (value, word(literal_word(-1.0, Float), Float)), 0, expr)
        return Step(ops.SUB, value.type, (word(0), value), MAX_INT, expr)

    def magnitude(self, expr: Expr, value: Step) -> Step:
        """abs and sign."""
        if not number(value.type) and value.type not in (Interval, Untyped):
            raise self.wrong(expr, f"{expr.op} needs a number", value)
        if value.type.interned:
            return interned_functions.magnitude(self, expr, value)
        if expr.op == "abs":
            return Step(ops.FABS if value.type == Float else ops.ABS, value.type, (value,), 0, expr)
        return Step(ops.SIGN, Int, (self.key(value),), 0, expr)

    def extreme(self, expr: Expr, *values: Step) -> Step:
        """least and greatest."""
        steps = self.common(expr, values)
        kind = steps[0].type
        if not kind.interned:
            op = ops.LEAST if expr.op == "least" else ops.GREATEST
            return reduce(lambda a, b: Step(op, a.type, (a, b), 0, expr), steps)

        def pick(one: Step, other: Step) -> Step:
            order = self._text_order(expr, one, other)
            better = (order, word(0)) if expr.op == "least" else (word(0), order)
            # if one of the two is NULL, so is the comparison, and the other is chosen
            chosen = Step(ops.SELECT, kind, (Step(ops.LE, Bool, better), one, other), 0, expr)
            return Step(ops.COALESCE, kind, (chosen, one), 0, expr)

        return reduce(pick, steps)

    # -- comparison and logic --------------------------------------------------------------------------------------

    def key(self, step: Step) -> Step:
        """Words that are equal where the values are equal."""
        if step.type.interned and step.type.has_keys:
            return self.text("equal_key", step.source, step.type, (step,), (step.type,))
        return Step(ops.FLOAT_KEY, Float, (step,), 0, step.source) if step.type == Float else step

    def comparison(self, expr: Expr, left: Step, right: Step) -> Step:
        """== != < <= > >=."""
        op = expr.op
        if Interval in (left.type, right.type):
            lengths = interned_functions.compared_lengths(self, expr)
            if lengths is not None:
                return self.step(lengths)
        if op in ("gt", "ge"):
            op, left, right = ("lt" if op == "gt" else "le"), right, left
        kinds = (left.type.kind, right.type.kind)
        if kinds == ("int", "float"):
            order = Step(ops.COMPARE_INT_FLOAT, Int, (left, right), 0, expr)
            return Step(COMPARISONS[op], Bool, (order, word(0)), 0, expr)
        if kinds == ("float", "int"):
            order = Step(ops.COMPARE_INT_FLOAT, Int, (right, left), 0, expr)
            return Step(COMPARISONS[op], Bool, (word(0), order), 0, expr)
        wide = left.type.interned or right.type.interned
        if "decimal" in kinds and set(kinds) <= {"int", "decimal"} and not wide:
            scales = [t.scale if isinstance(t, DecimalType) else 0 for t in (left.type, right.type)]
            if op in ("lt", "le"):  # a product is compared in full, though its word may not fit
                if wide_product(left) and scales[0] > scales[1]:
                    left, scales[0] = self.at_scale(left, scales[1], up=op == "le"), scales[1]
                elif wide_product(right) and scales[1] > scales[0]:
                    right, scales[1] = self.at_scale(right, scales[0], up=op == "lt"), scales[0]
            both = [self._saturated(s, max(scales) - scale) for s, scale in zip((left, right), scales, strict=True)]
            return Step(COMPARISONS[op], Bool, (both[0], both[1]), 0, expr)
        try:
            left, right = self.common(expr, (left, right))
        except IncorrectError:
            raise self.wrong(expr, "these two cannot be compared", *map(self.step, expr.args)) from None
        if left.type.interned and op in ("lt", "le"):
            return Step(COMPARISONS[op], Bool, (self._text_order(expr, left, right), word(0)), 0, expr)
        return Step(COMPARISONS[op], Bool, (self.key(left), self.key(right)), 0, expr)

    def at_scale(self, step: Step, scale: int, up: bool) -> Step:
        """The next decimal of `scale` places: see `tektite.expr.at_scale`. Takes a product in full."""
        assert isinstance(step.type, DecimalType)
        by = step.type.scale - scale
        type = Decimal(MAX_DIGITS, scale)
        if by <= 0:
            return Step(ops.COPY, type, (self._saturated(step, -by),), 0, step.source)
        one, other = step.args if wide_product(step) else (step, word(1))
        if up:  # the ceiling is the negative's floor, negated
            one = Step(ops.SUB, one.type, (word(0), one), MAX_INT, step.source)
        floor = Step(ops.MUL_FLOOR, type, (one, other), 10**by, step.source)
        return Step(ops.SUB, type, (word(0), floor), MAX_INT, step.source) if up else floor

    def _saturated(self, step: Step, by: int) -> Step:
        """The word times 10**by, for comparisons only: an overflow is greater than any decimal."""
        return step if by == 0 else Step(ops.SCALE_SATURATED, step.type, (step, word(10**by)), 0, step.source)

    def _text_order(self, expr: Expr, left: Step, right: Step) -> Step:
        """-1, 0 or 1 if one text is before, equal to or after another."""
        return self.text("compare", expr, Int, (self.key(left), self.key(right)))

    def logic(self, expr: Expr, *values: Step) -> Step:
        """& | ~."""
        for value in values:
            if value.type not in (Bool, Untyped):
                hint = "" if expr.op == "not" else " (comparisons need parentheses: (a < b) & c)"
                raise self.wrong(expr, f"{expr.op} needs Bool operands{hint}", *values)
        steps = tuple(self.coerce(value, Bool, expr) for value in values)
        return Step({"and": ops.AND, "or": ops.OR, "not": ops.NOT}[expr.op], Bool, steps, 0, expr)

    def is_null(self, expr: Expr, value: Step) -> Step:
        """is_null and is_not_null."""
        null = Step(ops.IS_NULL, Bool, (value,), 0, expr)
        return null if expr.op == "is_null" else Step(ops.NOT, Bool, (null,), 0, expr)

    def same(self, expr: Expr, left: Step, right: Step) -> Step:
        """Equality that treats NULL as a value."""
        equal = self.comparison(Expr("eq", expr.args), left, right)
        both_null = Step(ops.AND, Bool, (Step(ops.IS_NULL, Bool, (left,)), Step(ops.IS_NULL, Bool, (right,))), 0, expr)
        return Step(ops.COALESCE, Bool, (equal, both_null), 0, expr)

    def isin(self, expr: Expr, value: Step, *items: Step) -> Step:
        """Membership: of constants by a set, of anything else by comparisons."""
        if expr.params:
            (constants,) = expr.params
            words = None if value.type.interned and value.type.has_keys else constants.words(value.type)
            if words is not None:
                return self._member(expr, value, words, constants.has_null)
            literals = constants.literals()
            expr, items = Expr("isin", (*expr.args, *literals)), tuple(map(self.step, literals))
        if (
            items
            and not (value.type.interned and value.type.has_keys)
            and all(i.op == CONSTANT and i.type in (value.type, Untyped) for i in items)
        ):
            words = tuple(item.extra for item in items if item.extra != NULL)
            return self._member(expr, value, words, len(words) < len(items))
        tests = []
        for source, item in zip(expr.args[1:], items, strict=True):
            try:
                tests.append(self.comparison(Expr("eq", (expr.args[0], source)), value, item))
            except IncorrectError as error:
                raise IncorrectError(f"{expr}: {error}") from None
        if not tests:
            return word(0, Bool)
        while len(tests) > 1:  # in pairs: a long list stays a shallow tree
            tests = [reduce(lambda a, b: Step(ops.OR, Bool, (a, b), 0, expr), tests[i : i + 2])
                     for i in range(0, len(tests), 2)]  # fmt: skip
        return tests[0]

    def _member(self, expr: Expr, value: Step, words: tuple[Any, ...], has_null: bool) -> Step:
        """Membership in a set of words or texts."""
        if value.type == Float:
            words = tuple(0 if w == -1 else w for w in words)  # the word of -0.0
        return Step(ops.MEMBER, Bool, (self.key(value), word(NULL if has_null else 0, Bool)), words, expr)

    def among(self, expr: Expr, *_: Step) -> Step:
        """Refused: rows of a collection are no values of an expression."""
        raise IncorrectError(f"{expr}: is_in(collection) is for filter(...); elsewhere join with how='left' or 'semi'")

    def case(self, expr: Expr, *args: Step) -> Step:
        """A chain of choices, the last one innermost."""
        conditions = args[0:-1:2]
        for source, condition in zip(expr.args[0:-1:2], conditions, strict=True):
            if condition.type not in (Bool, Untyped):
                raise IncorrectError(
                    f"{expr}: the condition {source} is of type {condition.type}, not bool"
                    + (
                        f"; a column is tk.col({source.params[1]!r})"
                        if source.op == "lit" and condition.type == String
                        else ""
                    )
                )
        *values, result = self.common(expr, [*args[1:-1:2], args[-1]])
        for condition, value in zip(reversed(conditions), reversed(values), strict=True):
            result = Step(ops.SELECT, result.type, (condition, value, result), 0, expr)
        return result

    def coalesce(self, expr: Expr, *values: Step) -> Step:
        """The first value that is not NULL."""
        steps = self.common(expr, values)
        result = steps[-1]
        for step in reversed(steps[:-1]):
            result = Step(ops.COALESCE, result.type, (step, result), 0, expr)
        return result

    # -- text ------------------------------------------------------------------------------------------------------

    def text(
        self, name: str, expr: Expr | None, result: Type, args: Sequence[Step], constants: Sequence[Any] = ()
    ) -> Step:
        """A function of text: constant arguments become part of it, the others go through its memo."""
        if any(arg.op == CONSTANT and arg.extra == NULL for arg in args):
            return word(NULL, result)
        free = [arg for arg in args if arg.op != CONSTANT]
        if not free:  # only constants: the first serves as the argument
            free = [args[0]]
            pattern: list[Any] = [None, *(arg.extra for arg in args[1:])]
        else:
            pattern = [None if arg.op != CONSTANT else arg.extra for arg in args]
        function = TextFunction(name, (*pattern, *constants), tuple(arg.type for arg in free), result)
        return Step((ops.MAP1, ops.MAP2, ops.MAP3)[len(free) - 1], result, tuple(free), function, expr)


def _instead(steps: Sequence[Step]) -> str:
    """Advice for operands of which one has a time zone and the other has none."""
    if {step.type for step in steps} != {Timestamp, TimestampTz}:
        return ""
    return (
        "; say which clock a timestamp shows: .dt.from_zone('UTC') of it is a moment, and .dt.in_zone('UTC') of a moment is what "
        "the clock shows (of Python's values, value.replace(tzinfo=datetime.UTC), and back)"
    )


def _unnamed(type: StructType) -> bool:
    """Whether the fields of a struct have the names that ROW gives."""
    return type.names == tuple(f"f{at}" for at in range(1, len(type.fields) + 1))


def precision(step: Step) -> int:
    """The greatest number of digits of a step's words."""
    return step.type.precision if isinstance(step.type, DecimalType) else MAX_DIGITS


def wide_product(step: Step) -> bool:
    """Whether a step is a product of decimals that may have more digits than fit."""
    decimals = isinstance(step.type, DecimalType) and step.op == ops.MUL
    return decimals and sum(map(precision, step.args)) > MAX_DIGITS


WRITTEN = frozenset({"date", "timestamp", "timestamptz", "time", "interval", "uuid", "blob", "json", "list", "struct"})
"""Types whose values a text literal beside them says."""
INT_OPS = {"add": ops.ADD, "sub": ops.SUB, "mul": ops.MUL, "floordiv": ops.FLOORDIV, "mod": ops.MOD}
FLOAT_OPS = {
    "add": ops.FADD, "sub": ops.FSUB, "mul": ops.FMUL, "div": ops.FDIV, "floordiv": ops.FFLOORDIV, "mod": ops.FMOD,
}  # fmt: skip
CHECKED = frozenset({"add", "sub", "mul"})
COMPARISONS = {"eq": ops.EQ, "ne": ops.NE, "lt": ops.LT, "le": ops.LE}
RULES: dict[str, Callable[..., Step]] = {
    **dict.fromkeys(("add", "sub", "mul", "div", "floordiv", "mod"), Resolver.arithmetic),
    "neg": Resolver.negative,
    **dict.fromkeys(("abs", "sign"), Resolver.magnitude),
    **dict.fromkeys(("least", "greatest"), Resolver.extreme),
    **dict.fromkeys(SIGNS, Resolver.comparison),
    **dict.fromkeys(("and", "or", "not"), Resolver.logic),
    **dict.fromkeys(("is_null", "is_not_null"), Resolver.is_null),
    "is_same": Resolver.same,
    "isin": Resolver.isin,
    "is_among": Resolver.among,
    "case": Resolver.case,
    "coalesce": Resolver.coalesce,
    **dict.fromkeys(("cast", "try_cast"), functions.cast),
    **dict.fromkeys(("strptime", "try_strptime"), functions.moment_of),
    **dict.fromkeys(functions.TEXT_FUNCTIONS, functions.text_function),
    "concat": functions.concat,
    **dict.fromkeys(("year", "quarter", "month", "day", "weekday"), functions.date_field),
    **dict.fromkeys(("hour", "minute", "second"), functions.time_field),
    "add_days": functions.add_days,
    "add_months": functions.add_months,
    "truncate": functions.truncate,
    **dict.fromkeys(("sqrt", "ln", "exp", "power", *scalar_library.OF_FLOATS), functions.of_floats),
    **dict.fromkeys(scalar_library.TYPES, functions.library_function),
    **dict.fromkeys((*functions.BIT_OPS, "bit_not"), functions.bits),
    **dict.fromkeys(expansions.NUMBERS, expansions.of_number),
    **dict.fromkeys(expansions.DIVISIONS, expansions.division),
    **dict.fromkeys(expansions.MOMENTS, expansions.of_moment),
    "time_bucket": expansions.of_bucket,
    "interval_length": expansions.of_length,
    "alias": expansions.of_alias,
    **dict.fromkeys(("aggregate", "window", "over", "filter", "unique", "now", "sql_expr"), expansions.of_rows),
    "hash64": functions.hash,
    "key": functions.key,
    "rank": functions.rank,
    "text_word": functions.text_word,
    "at_scale": functions.at_scale,
    **dict.fromkeys(record_text.FUNCTIONS, record_text.typed),
    **interned_functions.RULES,
}
