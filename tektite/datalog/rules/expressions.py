"""Terms as expressions over columns that are named like the variables.

Arithmetic is the textbook's: whole numbers divide towards zero, and floats become whole numbers towards zero, as in
Soufflé. A quotient by zero has no value, so that a rule that needs one says nothing for these rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Context, Decimal
from math import isfinite
from typing import Any

from tektite.datalog.syntax import ir
from tektite.errors import IncorrectError, TektiteError, UnsupportedError
from tektite.expr import Expr, coalesce, col, concat, greatest, hash64, least, lit, truncdiv, truncmod, type_of, when
from tektite.expr.comparisons import OPERATIONS
from tektite.expr.literals import literal_value, parse
from tektite.expr.record_text import python_call, record, record_field, whole_of_text, whole_power
from tektite.values.types import Bool, DecimalType, Float, Int, String, Type

VariableTypes = Mapping[ir.RuleVariable, Type]
HIGHEST_PRODUCT = 4
"""Powers up to this are computed as products, by kernels alone."""
WHOLE = ("to_number", "ftoi", "to_unsigned", "ftou", "utoi", "itou")
"""Functions that make whole numbers of other values."""
EXACT = Context(prec=400)
"""Enough digits for any float's shortest text."""


def constant_type(value: ir.Value) -> Type:
    """The type that a constant has by itself."""
    if isinstance(value, bool):
        return Bool
    return Int if isinstance(value, int) else Float if isinstance(value, float) else String


def fits(value: ir.Value, type: Type) -> bool:
    """Whether a constant may stand where a type is wanted: a whole number may stand for a float, a number for a decimal that has
    as many places, and a text for a value that only SQL has a way to write, such as a date.
    """
    own = constant_type(value)
    if own == String and type != String and type not in (Int, Float) and not isinstance(type, DecimalType):
        return _said(value, type) is not None
    if isinstance(type, DecimalType) and own in (Int, Float):
        exact = Decimal(repr(value))
        if not exact.is_finite():
            return False
        return exact == exact.quantize(Decimal(1).scaleb(-type.scale), context=EXACT) and abs(exact) < 10 ** (
            type.precision - type.scale
        )
    return own == type or (type == Float and own == Int)


def _said(value: ir.Value, type: Type) -> Any:
    """The value of a type that a text says; None if it says none."""
    try:
        return parse(str(value), type) if type == Bool else literal_value(value, type)
    except (TektiteError, ValueError):
        return None


def plain_value(value: ir.Value, type: Type) -> Any:
    """A constant as a value of a type that it fits."""
    if isinstance(value, str):
        return value if type == String else _said(value, type)
    return float(value) if type == Float else Decimal(repr(value)) if type.kind == "decimal" else value


def literal(value: ir.Value, type: Type) -> Expr:
    """A constant as an expression of a type that it fits."""
    return lit(plain_value(value, type), type)


def expression(term: ir.Term, types: VariableTypes) -> Expr:
    """A term as an expression; raises where its types do not fit."""
    found = _expression(term, types)
    if isinstance(term, ir.Compute):
        _checked(term, found, types)
    return found


def term_type(term: ir.Term, types: VariableTypes) -> Type | None:
    """The type of a term; None while that of one of its variables is not known."""
    if isinstance(term, ir.RuleVariable):
        return types.get(term)
    if isinstance(term, ir.Constant):
        return constant_type(term.value)
    if any(v not in types for v in ir.variables(term)):
        return None
    return _checked(term, _expression(term, types), types)


def may_fail(term: ir.HeadTerm | None) -> bool:
    """Whether a term may have no value: where it divides or takes a field of a record."""
    if isinstance(term, ir.HeadAggregate):
        return may_fail(term.of)
    if not isinstance(term, ir.Compute):
        return False
    return term.op in ("/", "%", "ratio", "floor-mod", "field") or any(map(may_fail, term.args))


def comparison(op: str, left: ir.Term, right: ir.Term, types: VariableTypes) -> Expr:
    """A comparison as an expression; a constant is read as the other side's type."""
    sides = [_expression(left, types), _expression(right, types)]
    for at, (one, other) in enumerate(((left, right), (right, left))):
        if isinstance(one, ir.Constant):
            type, own = term_type(other, types), constant_type(one.value)
            if type is not None and type.kind == "decimal" and own == Float and isfinite(float(one.value)):
                sides[at] = lit(Decimal(repr(one.value)))
                continue
            if type is not None and own == String != type and fits(one.value, type):
                sides[at] = literal(one.value, type)
                continue
            numbers = ({Int, Float}, {type, Int}) if type is not None and type.kind == "decimal" else ({Int, Float},)
            if type is not None and not fits(one.value, type) and {type, own} not in numbers:
                raise IncorrectError(f"{other} is {type}, and {one} is {own}")
    a, b = sides
    return Expr(OPERATIONS[op], (a, b))


def check_test(literal: ir.Comparison | ir.Condition, types: VariableTypes) -> None:
    """Refuse a comparison or a condition whose types do not fit."""
    if isinstance(literal, ir.Condition):
        found = _expression(literal.test, types)
    else:
        found = comparison(literal.op, literal.left, literal.right, types)
    columns = {v.name: (at, types[v]) for at, v in enumerate(dict.fromkeys(ir.literal_variables(literal)))}
    if type_of(found, columns) != Bool:
        raise IncorrectError(f"{literal} is not true or false")


def _checked(term: ir.Term, found: Expr, types: VariableTypes) -> Type:
    columns = {v.name: (at, types[v]) for at, v in enumerate(dict.fromkeys(ir.variables(term)))}
    try:
        return type_of(found, columns)
    except TektiteError as error:
        raise IncorrectError(f"{term}: {error}") from None


def _expression(term: ir.Term, types: VariableTypes) -> Expr:
    if isinstance(term, ir.RuleVariable):
        return col(term.name)
    if isinstance(term, ir.Constant):
        return lit(float(term.value) if isinstance(term.value, float) else term.value)
    assert isinstance(term, ir.Compute), term
    if term.op in ("record", "branch", "field"):
        return _structured(term, types)
    args = [_expression(arg, types) for arg in term.args]
    if isinstance(term, ir.FunctorCall):
        return python_call(term.function, *args)
    if term.op == "match":
        return _matched(term, args)
    if term.op == "is_branch":
        assert isinstance(term.args[1], ir.Constant)
        return (args[0] == f"${term.args[1].value}") | args[0].startswith(f"${term.args[1].value}(")
    if term.op == "ord" and len(args) == 1:
        return hash64(args[0]) if term_type(term.args[0], types) == String else args[0]
    if term.op in ("/", "%"):
        both = [term_type(arg, types) for arg in term.args]
        return _divided(term.op, args[0], args[1], both == [Int, Int])
    if term.op == "+" and String in [term_type(arg, types) for arg in term.args]:
        if [term_type(arg, types) for arg in term.args] != [String, String]:
            raise IncorrectError(
                f"{term}: + joins two texts, or adds two numbers; make a text of the other with to_string"
            )
        return concat(*args)
    if term.op == "^":
        return _power(term, args[0], args[1], types)
    if term.op in WHOLE and len(args) == 1:
        return _whole(args[0], term_type(term.args[0], types))
    known = FUNCTIONS.get((term.op, len(args))) or FUNCTIONS.get((term.op, -1))
    if known is None:
        names = sorted({"match", "ord", "range", *(name for name, _ in FUNCTIONS)} - {"not"})
        raise UnsupportedError(f"there is no function {term.op!r} of {len(args)} terms; there are: {', '.join(names)}")
    return known(*args)


def _divided(op: str, a: Expr, b: Expr, whole: bool) -> Expr:
    if not whole:
        return a / b if op == "/" else a % b
    return truncdiv(a, b) if op == "/" else truncmod(a, b)


def _whole(a: Expr, type: Type | None) -> Expr:
    """A value as a whole number: of a float what stands before its point, as in Soufflé, where a cast would round it."""
    if type == String:
        return whole_of_text(a)
    if type is None or (type != Float and type.kind != "decimal"):
        return a.cast(Int)
    return ((a.abs() // 1) * a.sign()).cast(Int)


def _power(term: ir.Compute, base: Expr, exponent: Expr, types: VariableTypes) -> Expr:
    """A power: of whole numbers a whole number, otherwise a float. Small powers that are written out are products."""
    given = term.args[1]
    if isinstance(given, ir.Constant) and type(given.value) is int and 0 <= given.value <= HIGHEST_PRODUCT:
        result = lit(1)
        for _ in range(given.value):
            result = result * base
        return result
    if [term_type(arg, types) for arg in term.args] == [Int, Int]:
        return whole_power(base, exponent)
    return base.power(exponent)


def _matched(term: ir.Compute, args: list[Expr]) -> Expr:
    """Whether all of a text matches a regular expression."""
    pattern = term.args[0]
    if len(args) != 2 or not isinstance(pattern, ir.Constant) or not isinstance(pattern.value, str):
        raise UnsupportedError(f"{term}: match takes a regular expression that is written out, and a text")
    return args[1].matches(f"^(?:{pattern.value})$")


def _structured(term: ir.Compute, types: VariableTypes) -> Expr:
    """A record or a tagged value of its fields, or a field of one. The first constant says what the fields are."""
    if term.op == "field":
        value, place, shape = term.args
        assert isinstance(place, ir.Constant) and isinstance(shape, ir.Constant)
        type = {"number": Int, "float": Float}.get(str(shape.value), String)
        return record_field(_expression(value, types), int(place.value), type, shape.value == "symbol")
    given, *fields = term.args
    assert isinstance(given, ir.Constant)
    tag, *kinds = str(given.value).split(" ")
    parts = []
    for kind, field in zip(kinds, fields, strict=True):
        found = _expression(field, types)
        own = term_type(field, types)
        wanted = {"number": Int, "float": Float}.get(kind, String)
        if own is not None and own != wanted and (own, wanted) != (Int, Float):
            raise IncorrectError(f"{field} is {own}, and the field of the record is {wanted}")
        parts.append((found.cast(Float) if kind == "float" else found, kind == "symbol"))
    return record(parts, tag or None)


def _unsigned_shift(a: Expr, bits: Expr) -> Expr:
    """Shifted to the right, with zeros from the left."""
    return when(bits == 0, a).otherwise(a.shift_right(1).bit_and((1 << 63) - 1).shift_right(bits - 1))


def _truth(a: Expr) -> Expr:
    """1 for what is true, else 0."""
    return when(a, 1).otherwise(0)


FUNCTIONS: dict[tuple[str, int], Callable[..., Expr]] = {
    ("+", 2): lambda a, b: a + b,
    ("-", 2): lambda a, b: a - b,
    ("-", 1): lambda a: -a,
    ("*", 2): lambda a, b: a * b,
    ("ratio", 2): lambda a, b: a / b,
    ("floor-mod", 2): lambda a, b: a % b,
    ("band", 2): lambda a, b: a.bit_and(b),
    ("bor", 2): lambda a, b: a.bit_or(b),
    ("bxor", 2): lambda a, b: a.bit_xor(b),
    ("bnot", 1): lambda a: a.bit_not(),
    ("bshl", 2): lambda a, bits: a.shift_left(bits),
    ("bshr", 2): lambda a, bits: a.shift_right(bits),
    ("bshru", 2): _unsigned_shift,
    ("land", 2): lambda a, b: _truth((a != 0) & (b != 0)),
    ("lor", 2): lambda a, b: _truth((a != 0) | (b != 0)),
    ("lxor", 2): lambda a, b: _truth((a != 0) != (b != 0)),
    ("lnot", 1): lambda a: _truth(a == 0),
    ("min", -1): lambda *args: least(*args),
    ("max", -1): lambda *args: greatest(*args),
    ("cat", -1): lambda *args: concat(*args),
    ("strlen", 1): lambda a: a.length(),
    ("substr", 3): lambda a, start, length: a.substring(start + 1, length),
    ("subs", 3): lambda a, start, stop: a.substring(start + 1, stop - start),
    **{(name, 1): lambda a: _whole(a, None) for name in WHOLE},
    ("to_float", 1): lambda a: a.cast(Float),
    ("to_string", 1): lambda a: a.cast(String),
    ("itof", 1): lambda a: a.cast(Float),
    ("utof", 1): lambda a: a.cast(Float),
    ("contains", 2): lambda part, text: text.contains(part),
    ("not", 1): lambda a: ~coalesce(a, lit(False)),
}
