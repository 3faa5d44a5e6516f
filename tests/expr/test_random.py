"""Random expressions over random rows agree with the twin that evaluates one row at a time in Python.

Hypothesis draws a seed; expression and rows come from it, so that every operation is about equally likely.
"""

from __future__ import annotations

import datetime
import decimal
import math
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tektite.errors import IncorrectError
from tektite.expr import Expr, at_scale, coalesce, col, concat, greatest, least, lit, when
from tektite.values.types import Bool, Date, Decimal, Float, Int, String, Timestamp
from tests.support.expression_twin import Rows, TextDictionary, evaluate
from tests.support.nightly import by_day_or_night

SCHEMA = {
    "i": Int, "j": Int, "x": Float, "y": Float, "p": Decimal(9, 2), "q": Decimal(5, 3), "b": Bool, "c": Bool,
    "s": String, "r": String, "d": Date, "e": Date, "t": Timestamp, "u": Timestamp,
}  # fmt: skip
COLUMNS = {"int": "ij", "float": "xy", "decimal": "pq", "bool": "bc", "string": "sr", "date": "de", "stamp": "tu"}
KINDS = {name: kind for kind, names in COLUMNS.items() for name in names}
SPECIAL_FLOATS = (0.0, -0.0, 1.0, -1.5, math.inf, -math.inf, math.nan)


def value(kind: str, rng: random.Random, name: str = "") -> Any:
    """A random value of a kind; of the range of column `name`."""
    if kind == "int":
        wide = 2**63 - 1 if name == "i" and rng.random() < 0.1 else rng.choice((3, 1000))
        return rng.randint(-wide, wide)
    if kind == "float":
        return rng.choice(SPECIAL_FLOATS) if rng.random() < 0.5 else rng.uniform(-1e3, 1e3)
    if kind == "decimal":
        digits, scale = {"p": (9, 2), "q": (5, 3)}.get(name, (4, 1))
        size = 10 ** rng.randint(1, digits) - 1
        return decimal.Decimal(rng.randint(-size, size)).scaleb(-scale)
    if kind == "bool":
        return rng.random() < 0.5
    if kind == "string":
        return "".join(rng.choices("abAB %_é\\n", k=rng.randint(0, 4)))
    if kind == "date":
        return datetime.date.fromordinal(rng.randint(693596, 767009))
    return datetime.datetime(1900, 1, 1) + datetime.timedelta(microseconds=rng.randint(0, 6_000_000_000_000_000))


def random_rows(rng: random.Random) -> list[tuple[Any, ...]]:
    return [tuple(None if rng.random() < 0.15 else value(KINDS[name], rng, name) for name in SCHEMA)
            for _ in range(rng.randint(0, 12))]  # fmt: skip


def arithmetic(*names: str) -> list[Any]:
    return [getattr(Expr, f"__{name}__") for name in names]


FOUR = arithmetic("add", "sub", "floordiv", "mod")
THREE = arithmetic("add", "sub", "mul")
COMPARE = [*arithmetic("eq", "ne", "lt", "le", "gt", "ge"), Expr.is_same]

# kind of the result -> (kinds of the operands, what builds it); a lower-case name that is no kind draws a Python value
OPERATIONS: dict[str, list[tuple[str, Any]]] = {
    "int": [
        *[("int int", call) for call in (*FOUR, Expr.__mul__, Expr.bit_and, Expr.bit_or, Expr.bit_xor)],
        *[("int", call) for call in (abs, Expr.__neg__, Expr.sign, Expr.bit_not)],
        ("float", Expr.sign), ("decimal", Expr.sign), ("string", Expr.length), ("decimal decimal", Expr.__floordiv__),
        *[("date", call) for call in (Expr.year, Expr.month, Expr.day, Expr.quarter, Expr.weekday)],
        *[("stamp", call) for call in (Expr.year, Expr.day, Expr.hour, Expr.minute, Expr.second, Expr.weekday)],
        ("date date", Expr.__sub__), ("stamp stamp", lambda a, b: (a - b).dt.total_microseconds()),
        ("int shift", Expr.shift_right),
    ],
    "float": [
        *[("float float", call) for call in (*FOUR, Expr.__mul__, Expr.__truediv__)],
        *[("float int", call) for call in THREE], *[("decimal float", call) for call in THREE],
        ("int int", Expr.__truediv__), ("decimal int", Expr.__truediv__), ("float", abs), ("float", Expr.__neg__),
    ],
    "decimal": [
        *[("decimal decimal", call) for call in (*THREE, Expr.__mod__)], *[("decimal int", call) for call in THREE],
        *[("int decimal", call) for call in THREE], ("decimal", abs), ("decimal", Expr.__neg__),
    ],
    "bool": [
        *[(f"{kind} {kind}", call) for kind in COLUMNS for call in COMPARE if kind != "bool"],
        *[(kinds, call) for kinds in ("int float", "float int", "int decimal", "decimal int") for call in COMPARE],
        *[(kind, call) for kind in COLUMNS for call in (Expr.is_null, Expr.is_not_null)],
        *[("bool bool", call) for call in arithmetic("and", "or") * 5], *[("bool", Expr.__invert__)] * 5,
        *[(f"{kind} {kind} {kind} {kind}", lambda a, *items: a.isin([*items, None, items[0]])) for kind in COLUMNS],
        *[(f"{kind} {kind}s", Expr.isin) for kind in ("int", "float", "string", "date", "decimal")],
        *[("stamp stamp stamp stamp", lambda a, b, c, d, call=call: call(a - b, c - d)) for call in COMPARE],
        *[("string string", call) for call in (Expr.startswith, Expr.endswith, Expr.contains)],
    ],
    "string": [
        *[("string", call) for call in (Expr.lower, Expr.upper, Expr.strip)], ("string string", concat),
        ("string string string string", lambda a, b, c, d: concat(a, b, c, "-", d)),
        ("string string string", Expr.replace), ("string position length", Expr.substring),
    ],
    "date": [("date move", call) for call in (Expr.add_days, Expr.add_months, Expr.__add__, Expr.__sub__)],
    "stamp": [("stamp move", call) for call in (Expr.add_days, Expr.add_months, Expr.__add__, Expr.__sub__)],
}  # fmt: skip


def random_expression(kind: str, depth: int, rng: random.Random) -> Any:
    if kind == "move":
        return rng.randint(-40, 40)
    if kind in ("shift", "position", "length"):
        return rng.randint(*{"shift": (0, 70), "position": (1, 4), "length": (0, 3)}[kind])
    if kind.endswith("s"):
        return [rng.choice([None, value(kind[:-1], rng)]) for _ in range(rng.randint(0, 3))]
    if depth == 0:
        return col(rng.choice(COLUMNS[kind])) if rng.random() < 0.8 else lit(value(kind, rng))

    def below(wanted: str) -> Any:
        return random_expression(wanted, rng.randrange(depth), rng)

    if rng.random() < 0.25:
        shape = rng.randrange(5)
        if shape == 0:
            return when(below("bool"), below(kind)).otherwise(rng.choice([below(kind), lit(None)]))
        if shape == 1:
            return when(below("bool"), below(kind)).when(below("bool"), below(kind))
        call = (coalesce, least, greatest)[shape - 2]
        return call(below(kind), rng.choice([below(kind), lit(None)]), below(kind))
    operands, build = rng.choice(OPERATIONS[kind])
    return build(*map(below, operands.split()))


def agree(got: Any, expected: Any) -> bool:
    if isinstance(expected, float) and isinstance(got, float):
        return (
            got == expected or (math.isnan(got) and math.isnan(expected)) or math.isclose(got, expected, rel_tol=1e-9)
        )
    return bool(got == expected)


def holds(rng: random.Random, filtered: bool) -> None:
    """The program's rows are the twin's."""
    expr = random_expression(rng.choice(list(COLUMNS)), 3, rng)
    predicate = random_expression("bool", 2, rng) if filtered else None
    source = Rows(SCHEMA, random_rows(rng), TextDictionary())
    try:
        got = source.run([expr, col("j")], predicate)
    except IncorrectError as error:  # the twin has no bounds: overflow has tests of its own
        assert any(word in str(error) for word in ("out of range", "overflow", "behind the point")), error
        return
    expected = []
    for at, row in enumerate(source.dicts()):
        if predicate is None or evaluate(predicate, row) is True:
            expected.append((evaluate(expr, row), row["j"], at, 1))
    assert len(got) == len(expected), f"{expr} where {predicate}: {got}, expected {expected}"
    for one, other in zip(got, expected, strict=True):
        assert agree(one[0], other[0]) and one[1:] == other[1:], f"{expr} where {predicate}: {one}, expected {other}"


@settings(max_examples=by_day_or_night(200, 1000), deadline=None)
@given(seed=st.integers(0, 2**48))
def test_random_expressions_agree_with_the_twin(seed: int) -> None:
    holds(random.Random(seed), filtered=False)


@settings(max_examples=by_day_or_night(200, 1000), deadline=None)
@given(seed=st.integers(0, 2**48))
def test_random_filters_agree_with_the_twin(seed: int) -> None:
    holds(random.Random(seed), filtered=True)


@settings(max_examples=by_day_or_night(20, 100), deadline=None)
@given(seed=st.integers(0, 2**48))
def test_many_blocks_give_what_few_rows_give(seed: int) -> None:
    rng = random.Random(seed)
    expr = random_expression(rng.choice(list(COLUMNS)), 3, rng)
    predicate = random_expression("bool", 2, rng)
    few = random_rows(rng)
    copies = 1500 // max(len(few), 1)
    dictionary = TextDictionary()
    try:
        once = Rows(SCHEMA, few, dictionary).run([expr], predicate)
    except IncorrectError:
        with pytest.raises(IncorrectError):
            Rows(SCHEMA, few * copies, dictionary).run([expr], predicate)
        return
    got = Rows(SCHEMA, few * copies, dictionary).run([expr], predicate)
    assert [repr(row[0]) for row in got] == [repr(row[0]) for row in once] * copies


@settings(max_examples=by_day_or_night(60, 300), deadline=None)
@given(
    pairs=st.lists(st.tuples(*[st.one_of(st.integers(-(2**63) + 1, 2**63 - 1), st.integers(-(2**33), 2**33))] * 2)),
    op=st.sampled_from(["__add__", "__sub__", "__mul__"]),
)
def test_an_integer_overflow_is_reported_for_the_first_row_that_has_it(pairs: list[tuple[int, int]], op: str) -> None:
    source = Rows({"i": Int, "j": Int}, pairs, TextDictionary())
    exact = [getattr(a, op)(b) for a, b in pairs]
    over = [at for at, result in enumerate(exact) if abs(result) > 2**63 - 1]
    expr = getattr(col("i"), op)(col("j"))
    if over:
        with pytest.raises(IncorrectError, match=rf"overflow of int in row {over[0]}, found {pairs[over[0]][0]} and"):
            source.values(expr)
    else:
        assert source.values(expr) == exact


@settings(max_examples=by_day_or_night(40, 200), deadline=None)
@given(
    pairs=st.lists(st.tuples(*[st.integers(-(10**12) + 1, 10**12 - 1)] * 2)),
    op=st.sampled_from(["__add__", "__sub__", "__mul__"]),
)
def test_a_decimal_beyond_18_digits_is_an_overflow(pairs: list[tuple[int, int]], op: str) -> None:
    values = [(decimal.Decimal(a).scaleb(-2), decimal.Decimal(b).scaleb(-3)) for a, b in pairs]
    source = Rows({"p": Decimal(12, 2), "q": Decimal(12, 3)}, values, TextDictionary())
    exact = [getattr(a, op)(b) for a, b in values]
    scale = 5 if op == "__mul__" else 3
    over = [at for at, result in enumerate(exact) if abs(result.scaleb(scale)) >= 10**18]
    expr = getattr(col("p"), op)(col("q"))
    if over:
        with pytest.raises(IncorrectError, match=rf"overflow of decimal\(18, {scale}\) in row {over[0]}"):
            source.values(expr)
    else:
        assert source.values(expr) == exact


@settings(max_examples=by_day_or_night(20, 100), deadline=None)
@given(values=st.lists(st.integers(-(2**62), 2**62)))
def test_an_overflow_names_the_operands_though_later_steps_use_their_registers(values: list[int]) -> None:
    source = Rows({"i": Int}, [(value,) for value in values], TextDictionary())
    expr = (col("i") + 1) * 3 - 1 - col("i")
    over = [value + 1 for value in values if abs((value + 1) * 3) > 2**63 - 1]
    if over:
        with pytest.raises(IncorrectError, match=rf"overflow of int in row \d+, found {over[0]} and 3"):
            source.values(expr)
    else:
        assert source.values(expr) == [value * 2 + 2 for value in values]


WIDE = st.one_of(st.integers(-(10**18) + 1, 10**18 - 1), st.integers(-(10**10), 10**10), st.integers(-9, 9))


@settings(max_examples=by_day_or_night(60, 300), deadline=None)
@given(
    rows=st.lists(st.tuples(WIDE, WIDE, WIDE)),
    scales=st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 18)),
    op=st.sampled_from(["__lt__", "__le__", "__gt__", "__ge__"]),
)
def test_a_product_beyond_18_digits_compares_as_itself(
    rows: list[tuple[int, int, int]], scales: tuple[int, int, int], op: str
) -> None:
    values = [tuple(decimal.Decimal(v).scaleb(-by) for v, by in zip(row, scales, strict=True)) for row in rows]
    source = Rows(dict(zip("pqr", (Decimal(18, by) for by in scales), strict=True)), values, TextDictionary())
    p, q, r = map(col, "pqr")
    with decimal.localcontext(prec=80):
        exact = [(p * q, r) for p, q, r in values]
        step = decimal.Decimal(1).scaleb(-scales[2])
        floors = [int(product // step - (product % step < 0)) for product, _ in exact]
    beyond = scales[0] + scales[1] <= scales[2]  # nothing is rounded away: the product itself has to fit
    over = [abs(row[0] * row[1]) if beyond else abs(floor) + 1 for row, floor in zip(rows, floors, strict=True)]
    if any(size >= 10**18 for size in over):
        return
    assert source.values(getattr(p * q, op)(r)) == [getattr(a, op)(b) for a, b in exact]
    assert source.values(getattr(r, op)(p * q)) == [getattr(b, op)(a) for a, b in exact]
    if any(abs(floor) >= 10**18 for floor in floors):
        return  # places that are gained saturate
    places = [decimal.Decimal(floor).scaleb(-scales[2]) for floor in floors]
    assert source.values(at_scale(p * q, scales[2], up=False)) == places
    assert source.values(at_scale(-p * q, scales[2], up=True)) == [-place for place in places]


@pytest.mark.parametrize("up", [False, True])
def test_a_decimal_that_gains_places_saturates_where_it_would_overflow(up: bool) -> None:
    values = [(decimal.Decimal(sign) * 10**17,) for sign in (1, -1)]
    source = Rows({"p": Decimal(18, 0)}, values, TextDictionary())
    high, low = source.values(at_scale(col("p"), 4, up))
    assert high > 10**14 and low < -(10**14)
