"""Typing of functions of intervals, lists, structs, JSON, moments in time zones and wide decimals.

Intervals add up by their parts: months, days and microseconds. A date or a timestamp moves by months first, then by days, then by
the rest. The result of arithmetic with a decimal of more than 18 digits has up to 38; with others it has at most 18, which is
one word.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tektite.errors import IncorrectError
from tektite.expr import json_texts
from tektite.expr.ast import Expr, concat, lit
from tektite.expr.interval_parts import IntervalParts
from tektite.expr.literals import DAY, MAX_INT, Untyped
from tektite.expr.steps import CONSTANT, INPUT, Step, number, word
from tektite.expr.zones import zone_named
from tektite.kernels.expr import steps as ops
from tektite.values.composites import END, MISSING
from tektite.values.intervals import IntervalValue
from tektite.values.types import (
    MOST_DIGITS,
    Bool,
    Date,
    Decimal,
    DecimalType,
    Float,
    Int,
    Interval,
    Json,
    ListType,
    String,
    StructType,
    Time,
    Timestamp,
    TimestampTz,
    Type,
)
from tektite.values.words import NULL

if TYPE_CHECKING:
    from tektite.expr.typing import Resolver

MOVED = (Date, Timestamp, TimestampTz)


def checked(resolver: Resolver, expr: Expr, found: Step, *given: Step) -> Step:
    """A result that is an error where it is NULL though nothing given is."""
    known = given[0]
    for other in given[1:]:
        absent = Step(ops.IS_NULL, Bool, (other,), 0, expr)
        known = Step(ops.SELECT, known.type, (absent, word(NULL, known.type), known), 0, expr)
    return Step(ops.CHECK_PARSED, found.type, (found, known), 0, expr)


# ---------------------------------------------------------------------- arithmetic


def arithmetic(resolver: Resolver, expr: Expr, left: Step, right: Step) -> Step | None:
    """Arithmetic with an interval or a wide decimal; None if there is neither."""
    if expr.op == "add" and {left.type, right.type} == {Date, Time}:
        day, clock = expr.args if left.type == Date else reversed(expr.args)
        return resolver.step(day.cast(Timestamp) + Expr("reinterpret", (clock,), (Int,)))
    if expr.op == "sub" and is_difference((left.type, right.type)):
        found = resolver.step(Expr("interval", interval_parts(resolver, expr, (left.type, right.type)).each()))
        return Step(found.op, found.type, found.args, found.extra, expr)
    if Interval in (left.type, right.type):
        return _with_interval(resolver, expr, left, right)
    wide = left.type.interned and number(left.type) or right.type.interned and number(right.type)
    if not wide:
        return None
    left, right = resolver.typed_nulls(left, right)
    if not (number(left.type) and number(right.type)):
        raise resolver.wrong(expr, f"{expr.op} needs two numbers", left, right)
    if expr.op == "div" or Float in (left.type, right.type):
        floats = resolver.floats(left), resolver.floats(right)
        return resolver.float_operation(expr, *floats)
    kinds = [kind if isinstance(kind, DecimalType) else Decimal(19) for kind in (left.type, right.type)]
    type = _result(resolver, expr, kinds[0], kinds[1])
    given = (left.type, right.type)
    return checked_arithmetic(resolver, expr, left, right, given, type)


def checked_arithmetic(
    resolver: Resolver, expr: Expr, left: Step, right: Step, kinds: tuple[Type, Type], type: Type
) -> Step:
    """An operation on wide decimals. Division by zero is NULL; what does not fit is an error."""
    found = resolver.text(f"decimal_{expr.op}", expr, type, (left, right), (kinds, type))
    return (
        found if expr.op in ("floordiv", "mod") or found.op == CONSTANT else checked(resolver, expr, found, left, right)
    )


def _result(resolver: Resolver, expr: Expr, one: DecimalType, other: DecimalType) -> DecimalType:
    scale = max(one.scale, other.scale)
    whole = max(one.precision - one.scale, other.precision - other.scale)
    if expr.op == "mul":
        scale = one.scale + other.scale
        if scale > MOST_DIGITS:
            raise IncorrectError(
                f"{expr}: the product has {scale} digits behind the point, at most {MOST_DIGITS} fit: cast an operand to fewer"
            )
        return Decimal(min(MOST_DIGITS, one.precision + other.precision), scale)
    if expr.op == "floordiv":
        return Decimal(MOST_DIGITS, 0)
    return Decimal(min(MOST_DIGITS, whole + scale + (expr.op in ("add", "sub"))), scale)


def interval_parts(resolver: Resolver, value: Expr, kinds: tuple[Type, ...] | None = None) -> IntervalParts:
    """The parts of an interval. Those of a difference of moments need no interval that is a value; `kinds` are the types of its
    operands, if they are known.
    """
    kinds = difference_of(resolver, value) if kinds is None else kinds
    if kinds is None:
        return IntervalParts.of(value)
    return IntervalParts.between(value.args[0], value.args[1], kinds[0])


def difference_of(resolver: Resolver, value: Expr) -> tuple[Type, ...] | None:
    """The types of the two moments of which an expression is the difference, which is an interval; None if it is no such."""
    kinds = subtracted(resolver, value)
    return kinds if kinds is not None and is_difference(kinds) else None


def subtracted(resolver: Resolver, value: Expr) -> tuple[Type, ...] | None:
    """The types of the operands of a difference, where a text literal is what stands beside it; None of anything else."""
    if value.op != "sub":
        return None
    steps = [resolver.step(arg) for arg in value.args]
    said = [step.op == CONSTANT and step.type == String for step in steps]
    return tuple(steps[1 - at].type if said[at] else step.type for at, step in enumerate(steps))


def is_difference(kinds: tuple[Type, ...]) -> bool:
    """Whether a difference of these types is an interval. That of two dates is a number of days."""
    return kinds[0] == kinds[1] and kinds[0] in (Timestamp, TimestampTz, Time) or set(kinds) == {Date, Timestamp}


def elapsed(resolver: Resolver, expr: Expr, later: Step, earlier: Step) -> Step:
    """The microseconds from one moment to another."""
    later, earlier = resolver.common(expr, (later, earlier))
    if later.type not in (Timestamp, TimestampTz, Time):
        raise resolver.wrong(expr, "elapsed needs two moments", later, earlier)
    return Step(ops.SUB, Int, (later, earlier), MAX_INT, expr)


def _with_interval(resolver: Resolver, expr: Expr, left: Step, right: Step) -> Step:
    one, other = expr.args
    op = expr.op
    kinds = (left.type, right.type)
    if op in ("add", "sub", "div") and set(kinds) <= {Interval, Untyped}:
        first, second = interval_parts(resolver, one), interval_parts(resolver, other)
        if op == "div":
            return resolver.step(Expr("div", (first.length(), second.length())))
        return resolver.step(first.plus(second if op == "add" else second.negated()).value())
    if op == "add" and left.type == Interval:
        one, other, kinds = other, one, (kinds[1], kinds[0])
    if op in ("add", "sub") and kinds[1] == Interval and kinds[0] in (*MOVED, Time):
        by = interval_parts(resolver, other)
        return resolver.step((by if op == "add" else by.negated()).move(one, kinds[0]))
    if op == "mul" and (number(left.type) or number(right.type)):
        interval, factor = (one, other) if left.type == Interval else (other, one)
        kind = right.type if left.type == Interval else left.type
        if kind == Int:
            return resolver.step(interval_parts(resolver, interval).times(factor).value())
        return resolver.step(Expr("interval_times", (interval, factor.cast(Float))))
    if op == "div" and left.type == Interval and number(right.type):
        return resolver.step(Expr("interval_over", (one, other.cast(Float))))
    raise resolver.wrong(
        expr,
        "an interval can be added to and taken from a moment or an interval, multiplied by a number, and divided by a number or "
        "an interval",
        left,
        right,
    )


def known_length(resolver: Resolver, value: Expr) -> Expr | None:
    """The microseconds of a difference of moments or dates, or of an interval whose parts are known; None of others, and of a
    constant that is longer than microseconds can say.
    """
    if value.op == "lit" and isinstance(value.params[1], IntervalValue):
        known = value.params[1]
        length = (known.months * 30 + known.days) * DAY + known.microseconds
        return lit(length) if abs(length) <= MAX_INT else None
    if value.op == "interval":
        return IntervalParts.of(value).length()
    kinds = subtracted(resolver, value)
    if kinds == (Date, Date):
        return value * DAY
    return interval_parts(resolver, value, kinds).length() if kinds is not None and is_difference(kinds) else None


def compared_lengths(resolver: Resolver, expr: Expr) -> Expr | None:
    """A comparison of intervals of which one is a difference of moments or dates, as one of microseconds; None if it is none."""
    if all(arg.op != "sub" for arg in expr.args):
        return None
    one, other = (known_length(resolver, arg) for arg in expr.args)
    return None if one is None or other is None else Expr(expr.op, (one, other))


def negated(resolver: Resolver, expr: Expr, value: Step) -> Step:
    """Unary minus of an interval or a wide decimal."""
    if value.type == Interval:
        return resolver.step(interval_parts(resolver, expr.args[0]).negated().value())
    return resolver.step(Expr("sub", (lit(0), expr.args[0])))


def magnitude(resolver: Resolver, expr: Expr, value: Step) -> Step:
    """abs and sign of a wide decimal, or of an interval, whose sign is that of its length."""
    given = expr.args[0]
    if value.type == Interval:
        none = lit(IntervalValue())
        branches = (given < none, -given, given) if expr.op == "abs" else (given < none, lit(-1), given > none, lit(1))
        rest = () if expr.op == "abs" else (given.is_null(), lit(None, Int), lit(0))
        return resolver.step(Expr("case", (*branches, *rest)))
    if expr.op == "abs":
        return resolver.step(Expr("case", (given < 0, -given, given)))
    return resolver.step(Expr("case", (given < 0, lit(-1), given > 0, lit(1), given.is_null(), lit(None, Int), lit(0))))


# ---------------------------------------------------------------------- casts


def cast_decimal(resolver: Resolver, expr: Expr, value: Step) -> Step:
    """A number as a wide decimal, or a wide decimal as another number."""
    target: Type = expr.params[0]
    found = resolver.text("decimal_cast", expr, target, (value,), (value.type, target))
    return found if expr.op == "try_cast" or found.op == CONSTANT else checked(resolver, expr, found, value)


def cast(resolver: Resolver, expr: Expr, value: Step) -> Step | None:
    """Casts between types of which one is interned; None if there is none."""
    target: Type = expr.params[0]
    source = value.type
    if source == Json and target == String:
        return _retyped(value, String)
    if source == Json:
        found = resolver.text("json_to", expr, target, (value,), (target,))
        return found if expr.op == "try_cast" or found.op == CONSTANT else checked(resolver, expr, found, value)
    if target == Json and source != String:
        return to_json(resolver, Expr("to_json", expr.args), value)
    if isinstance(source, ListType) and isinstance(target, ListType) and source.element == Untyped:
        return _retyped(value, target)
    if isinstance(source, StructType) and isinstance(target, StructType) and len(source.fields) != len(target.fields):
        return None
    if isinstance(source, ListType) and isinstance(target, ListType) or source.kind == target.kind == "struct":
        check_nested_cast(resolver, expr, source, target)
        tries = expr.op == "try_cast"
        found = resolver.text("nested_cast", expr, target, (value,), (source, target, tries))
        return found if expr.op == "try_cast" or found.op == CONSTANT else checked(resolver, expr, found, value)
    if source == Time and target == Interval:
        return resolver.step(Expr("interval", (lit(0), lit(0), Expr("reinterpret", expr.args, (Int,)))))
    if source == Interval and target == Time:
        return resolver.step(interval_parts(resolver, expr.args[0]).move(lit("00:00", Time), Time))
    return None


def check_nested_cast(resolver: Resolver, expr: Expr, source: Type, target: Type) -> None:
    """Refuse a cast of lists or structs whose elements have none. An Int may be a NULL whose type was open: its row decides."""
    if source in (Untyped, Int) or source == target:
        return
    if isinstance(source, ListType) and isinstance(target, ListType):
        check_nested_cast(resolver, expr, source.element, target.element)
    elif isinstance(source, StructType) and isinstance(target, StructType) and len(source.fields) == len(target.fields):
        for (_, one), (_, other) in zip(source.fields, target.fields, strict=True):
            check_nested_cast(resolver, expr, one, other)
    else:
        from tektite.expr import functions

        functions.cast(resolver, Expr(expr.op, expr.args, (target,)), Step(INPUT, source, (), 0, expr.args[0]))


def _retyped(value: Step, type: Type) -> Step:
    return Step(value.op, type, value.args, value.extra, value.source)


def reinterpret(resolver: Resolver, expr: Expr, value: Step) -> Step:
    """The same words, read as another type."""
    return _retyped(value, expr.params[0])


# ---------------------------------------------------------------------- zones


def zoned(wanted: Type, result: Type) -> Callable[..., Step]:
    """A function of a moment, or of what a clock shows, and a time zone, which is a constant or a text."""

    def typed(resolver: Resolver, expr: Expr, value: Step) -> Step:
        if value.type not in (wanted, Untyped):
            raise resolver.wrong(expr, f"{expr.op} needs a {wanted}", value)
        return resolver.text(expr.op, expr, result, (value,), (zone_named(expr.params[0]),))

    return typed


def zone_text(resolver: Resolver, expr: Expr, value: Step) -> Step:
    """Moments, and lists and structs of them, as texts."""
    return resolver.text("zone_text", expr, String, (value,), (value.type, zone_named(expr.params[0])))


# ---------------------------------------------------------------------- intervals


def interval(resolver: Resolver, expr: Expr, *parts: Step) -> Step:
    """An interval of its months, days and microseconds."""
    for part in parts:
        if part.type not in (Int, Untyped):
            raise resolver.wrong(expr, "an interval has whole months, days and microseconds", *parts)
    found = resolver.text("interval", expr, Interval, parts)
    return found if found.op == CONSTANT else checked(resolver, expr, found, *parts)


def part(resolver: Resolver, expr: Expr, value: Step) -> Step:
    """The months, days or microseconds of an interval."""
    if value.type not in (Interval, Untyped):
        raise resolver.wrong(expr, f"{expr.op} needs an interval", value)
    return resolver.text(expr.op, expr, Int, (value,))


def interval_times(resolver: Resolver, expr: Expr, value: Step, factor: Step) -> Step:
    """An interval times a float, or divided by one; by zero it is NULL."""
    found = resolver.text("interval_times", expr, Interval, (value, factor), (expr.op == "interval_over",))
    return found


# ---------------------------------------------------------------------- lists and structs


def _items(resolver: Resolver, expr: Expr, steps: list[Step], result: Type) -> Step:
    """A list or a struct of the values of some steps."""
    items = []
    for step in steps:
        if step.op == CONSTANT and step.extra == NULL:
            items.append(Step(CONSTANT, String, (), MISSING + END, expr))
            continue
        item = resolver.text("item", expr, String, (step,), (step.type,))
        items.append(Step(ops.COALESCE, String, (item, Step(CONSTANT, String, (), MISSING + END)), 0, expr))
    if not items:
        return Step(CONSTANT, result, (), "", expr)
    from tektite.expr import functions

    joined = functions.joined(resolver, expr, items)
    return _retyped(joined, result) if joined.op != CONSTANT else Step(CONSTANT, result, (), joined.extra, expr)


def listed(resolver: Resolver, expr: Expr, *values: Step) -> Step:
    """A list of values."""
    if not values:
        return Step(CONSTANT, ListType("list", Untyped), (), "", expr)
    steps = resolver.common(expr, values)
    return _items(resolver, expr, steps, ListType("list", steps[0].type))


def structured(resolver: Resolver, expr: Expr, *values: Step) -> Step:
    """A struct of values, with the names that are given."""
    fields = tuple((name, step.type) for name, step in zip(expr.params, values, strict=True))
    return _items(resolver, expr, list(values), StructType("struct", fields))


def _list_type(resolver: Resolver, expr: Expr, value: Step) -> ListType:
    if value.type == Untyped:
        return ListType("list", Untyped)
    if not isinstance(value.type, ListType):
        raise resolver.wrong(expr, f"{expr.op} needs a list", value)
    return value.type


def _like_element(resolver: Resolver, expr: Expr, lists: Step, value: Step) -> tuple[Step, Step, Type]:
    """A list and a value, with the type that fits the elements and the value."""
    element = _list_type(resolver, expr, lists).element
    if element == Untyped:
        element = value.type if value.type != Untyped else Int
    if value.type != element:
        if value.op == CONSTANT or not number(value.type):
            value = resolver.coerce(value, element, expr)
        else:
            element = resolver.common(expr, (word(0, element), value))[0].type
            value = resolver.coerce(value, element, expr)
    wanted = ListType("list", element)
    if lists.type != wanted:
        from tektite.expr import functions

        lists = functions.cast(resolver, Expr("cast", expr.args[:1], (wanted,)), lists)
    return lists, value, element


def length(resolver: Resolver, expr: Expr, value: Step) -> Step:
    _list_type(resolver, expr, value)
    return resolver.text("list_length", expr, Int, (value,))


def element(resolver: Resolver, expr: Expr, value: Step, index: Step) -> Step:
    """An element by its place, from 1, or from the end if it is negative; NULL if there is none."""
    type = _list_type(resolver, expr, value).element
    if index.type not in (Int, Untyped):
        raise resolver.wrong(expr, "a place in a list is an Int", value, index)
    return resolver.text("list_element", expr, Int if type == Untyped else type, (value, index), (type,))


def sliced(resolver: Resolver, expr: Expr, value: Step, low: Step, high: Step) -> Step:
    type = _list_type(resolver, expr, value)
    for place in (low, high):
        if place.type not in (Int, Untyped):
            raise resolver.wrong(expr, "a place in a list is an Int", value, low, high)
    return resolver.text("list_slice", expr, type, (value, low, high))


def searched(resolver: Resolver, expr: Expr, lists: Step, value: Step) -> Step:
    """list_contains and list_position."""
    lists, value, type = _like_element(resolver, expr, lists, value)
    return resolver.text(expr.op, expr, Bool if expr.op == "list_contains" else Int, (lists, value), (type,))


def ordered(resolver: Resolver, expr: Expr, value: Step) -> Step:
    """The list in another order, or with each element once."""
    type = _list_type(resolver, expr, value)
    return resolver.text("list_order", expr, type, (value,), (*expr.params, type.element))


def joined(resolver: Resolver, expr: Expr, value: Step, separator: Step) -> Step:
    """The elements as one text."""
    type = _list_type(resolver, expr, value).element
    return resolver.text("list_join", expr, String, (value, separator), (type, *expr.params))


def split(resolver: Resolver, expr: Expr, value: Step, separator: Step) -> Step:
    """The parts of a text between a separator."""
    if not {value.type, separator.type} <= {String, Untyped}:
        raise resolver.wrong(expr, "a text is divided by a text", value, separator)
    return resolver.text("text_split", expr, ListType("list", String), (value, separator))


def list_concat(resolver: Resolver, expr: Expr, *lists: Step) -> Step:
    """Lists one after the other."""
    steps = resolver.common(expr, lists)
    _list_type(resolver, expr, steps[0])
    from tektite.expr import functions

    found = functions.joined(resolver, expr, [_retyped(step, String) for step in steps])
    return _retyped(found, steps[0].type)


def field(resolver: Resolver, expr: Expr, value: Step) -> Step:
    """A field of a struct, by name or by its place from 1."""
    if not isinstance(value.type, StructType):
        raise resolver.wrong(expr, "only a struct has fields", value)
    name = expr.params[0]
    place = name - 1 if isinstance(name, int) else value.type.field(name)
    if place is None or not 0 <= place < len(value.type.fields):
        names = ", ".join(known for known, _ in value.type.fields)
        raise IncorrectError(f"{expr}: there is no field {name!r}; the fields are: {names}")
    type = value.type.fields[place][1]
    return resolver.text("struct_field", expr, type, (value,), (place, len(value.type.fields), type))


# ---------------------------------------------------------------------- JSON


def of_json(result: Type, *others: Type) -> Callable[..., Step]:
    """A function of a JSON value, or of a text that says one."""

    def typed(resolver: Resolver, expr: Expr, value: Step, *more: Step) -> Step:
        if value.type not in (Json, String, Untyped):
            raise resolver.wrong(expr, f"{expr.op} needs JSON", value, *more)
        return resolver.text(expr.op, expr, result, (value, *more))

    return typed


def to_json(resolver: Resolver, expr: Expr, value: Step) -> Step:
    """A value as JSON."""
    if value.type == Untyped:
        return word(NULL, Json)
    if value.type == Json:
        return value
    return resolver.text("to_json", expr, Json, (value,), (value.type, *expr.params))


def _parts(pairs: list[tuple[Expr, ...]], marks: str) -> Expr:
    between: list[Any] = [marks[0]]
    for at, pair in enumerate(pairs):
        between += [","] * (at > 0)
        if len(pair) == 2:
            between += [Expr("json_quoted", (pair[0].cast(String),)), ":"]
        between.append(Expr("coalesce", (Expr("to_json", (pair[-1],)).cast(String), lit("null"))))
    return Expr("reinterpret", (concat(*between, marks[1]),), (Json,))


def json_array(*values: Expr) -> Expr:
    """A JSON array of values."""
    return _parts([(value,) for value in values], "[]")


def json_object(*values: Expr) -> Expr:
    """A JSON object of keys and values, one after the other."""
    return _parts(list(zip(values[::2], values[1::2], strict=True)), "{}")


RULES: dict[str, Callable[..., Step]] = {
    "reinterpret": reinterpret,
    "in_zone": zoned(TimestampTz, Timestamp),
    "from_zone": zoned(Timestamp, TimestampTz),
    "zone_text": zone_text,
    "elapsed": elapsed,
    "interval": interval,
    **dict.fromkeys(("interval_months", "interval_days", "interval_micros"), part),
    **dict.fromkeys(("interval_times", "interval_over"), interval_times),
    "list": listed,
    "struct": structured,
    "list_length": length,
    "list_element": element,
    "list_slice": sliced,
    **dict.fromkeys(("list_contains", "list_position"), searched),
    "list_order": ordered,
    "list_join": joined,
    "list_concat": list_concat,
    "struct_field": field,
    "text_split": split,
    "to_json": to_json,
    **dict.fromkeys(("json_extract", "json_extract_path"), of_json(Json)),
    **dict.fromkeys(
        ("json_extract_text", "json_extract_path_text", "json_type", "json_typeof", "json_text"), of_json(String)
    ),
    "json_length": of_json(Int),
    "json_valid": of_json(Bool),
    "json_items": of_json(ListType("list", Json)),
    "json_pairs": of_json(ListType("list", json_texts.PAIR)),
    "json_keys": of_json(ListType("list", String)),
    "json_quoted": of_json(String),
    "json_minified": of_json(Json),
    "decimal_limb": lambda resolver, expr, value: resolver.text(
        "decimal_limb", expr, Int, (value,), (value.type, *expr.params)
    ),
    "decimal_from_limbs": lambda resolver, expr, *parts: checked(
        resolver, expr, resolver.text("decimal_from_limbs", expr, expr.params[0], parts, expr.params), *parts
    ),
    "list_item": lambda resolver, expr, value: Step(
        ops.COALESCE,
        String,
        (resolver.text("item", expr, String, (value,), (value.type,)), Step(CONSTANT, String, (), MISSING + END)),
        0,
        expr,
    ),
}
