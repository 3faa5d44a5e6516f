"""Records and tagged values as texts, whole powers, and functions in Python: what Datalog adds to the functions of text.

A record is a text such as `[1, "a", nil]`. A tagged value is one, too: `$Node("a", 3)`, or `$Leaf` if it has no fields.
Numbers in it are written as casts write them, texts in double quotes, records and tagged values as they are. So two records are
equal exactly if their texts are, and the dictionary of texts holds each once.

Each function is evaluated once for each distinct argument (`tektite.expr.text`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tektite.errors import IncorrectError
from tektite.expr.ast import Expr, concat, lit
from tektite.expr.literals import literal_word, parse
from tektite.expr.steps import Step
from tektite.kernels.expr import steps as ops
from tektite.values.types import Bool, Float, Int, String, Type
from tektite.values.words import NULL, word_floats

if TYPE_CHECKING:
    from tektite.expr.typing import Resolver

NIL = "nil"
LARGEST = 2**63 - 1
WHOLE = re.compile(r"[-+]?([0-9]{1,30}|0[xX][0-9a-fA-F]{1,30}|0[bB][01]{1,70})")
QUOTED = re.compile(r'"(?:\\.|[^"\\])*"', re.DOTALL)
PIECE = re.compile(r'"(?:\\.|[^"\\])*"|[\[(]|[\])]|, |[^"\[\](),]+|,', re.DOTALL)
"""Tokens of a record's text: a text, an opening or closing bracket, a comma, anything else."""


@dataclass(frozen=True)
class PythonFunction:
    """A pure Python function of up to three values, with the types of its arguments and of its result."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[Type, ...]
    result: Type


# -- expressions -------------------------------------------------------------------------------------------------------


def record(fields: Sequence[tuple[Expr, bool]], tag: str | None = None) -> Expr:
    """A record of some fields, or a value with a tag. Each field says whether it is text, which is quoted.

    >>> record([(lit(1), False), (lit("a"), True)])
    <Expr concat('[', 1, ', ', 'a'.quoted(), ']')>
    >>> record([], "Leaf")
    <Expr '$Leaf'>
    """
    if tag is not None and not fields:
        return lit(f"${tag}")
    parts: list[Expr] = [lit("[" if tag is None else f"${tag}(")]
    for at, (value, is_text) in enumerate(fields):
        parts += [lit(", ")] * (at > 0) + [Expr("quoted", (value,)) if is_text else value]
    return concat(*parts, lit("]" if tag is None else ")"))


def record_field(value: Expr, place: int, type: Type, is_text: bool) -> Expr:
    """A field of a record or of a tagged value, counted from 0. NULL if there is no such field, or none of that type: who takes a
    value apart by one tag reads those of other tags, too.
    """
    return Expr("record_field", (value,), (place, type, is_text))


def whole_power(base: Expr, exponent: Expr) -> Expr:
    """An Int to the power of an Int; a negative power is cut off towards zero. What does not fit into 64 bits is an error."""
    return Expr("whole_power", (base, exponent))


def whole_of_text(value: Expr) -> Expr:
    """The whole number that a text says, in digits, as 0x1f or as 0b101. A text that says none is an error."""
    return Expr("whole_of_text", (value,))


def python_call(function: PythonFunction, *args: Expr) -> Expr:
    """A call of a Python function with some values, as an expression."""
    return Expr("python_call", args, (function,))


# -- typing ------------------------------------------------------------------------------------------------------------


def typed(resolver: Resolver, expr: Expr, *args: Step) -> Step:
    """One of the functions above, checked."""
    if expr.op == "python_call":
        (function,) = expr.params
        wanted, result = function.arguments, function.result
    elif expr.op == "whole_power":
        wanted, result = (Int, Int), Int
    else:
        results = {"record_field": expr.params[1] if len(expr.params) > 1 else Int, "whole_of_text": Int}
        wanted, result = (String,), results.get(expr.op, String)
    if len(args) != len(wanted):
        raise resolver.wrong(expr, f"{expr.op} takes {len(wanted)} values", *args)
    steps = []
    for arg, type in zip(args, wanted, strict=True):
        if arg.type != type and not (type == Float and arg.type == Int):
            raise resolver.wrong(expr, f"{expr.op} needs {', '.join(map(str, wanted))}", *args)
        steps.append(resolver.floats(arg) if type == Float else arg)
    found = resolver.text(expr.op, expr, result, steps, expr.params)
    if expr.op not in ("whole_power", "whole_of_text"):
        return found
    # The error waits until a row needs the value: a condition may exclude the row.
    return Step(ops.CHECK_PARSED, Int, (found, steps[0]), 0, expr)


# -- evaluation --------------------------------------------------------------------------------------------------------


def quoted(text: str) -> str:
    """A text as it stands in a record.

    >>> print(quoted('5" wide'))
    "5\\" wide"
    """
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def unquoted(text: str) -> str:
    """The text that stands quoted in a record."""
    return re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.DOTALL)


def fields_of(text: str) -> list[str]:
    """The fields of a record or a tagged value, as they are written.

    >>> fields_of('$Node([1, "a, b"], nil)'), fields_of("$Leaf"), fields_of("nil")
    (['[1, "a, b"]', 'nil'], [], [])
    """
    start = min((at for at in (text.find("["), text.find("(")) if at >= 0), default=-1)
    if start < 0 or text.startswith('"'):
        return []
    found, depth, field = [], 0, ""
    for piece in PIECE.findall(text, start):
        depth += (piece in ("[", "(")) - (piece in ("]", ")"))
        if (depth == 1 and piece == ", ") or depth == 0:
            found.append(field)
            field = ""
        elif depth > 1 or piece not in ("[", "("):
            field += piece
    return found if found != [""] else []


def _fields(texts: Any, place: int, type: Type, is_text: bool) -> Any:
    values: list[Any] = []
    for text in texts.to_pylist():
        fields = fields_of(text)
        values.append(fields[place] if place < len(fields) else None)
    if type == String:
        if is_text:
            values = [unquoted(v) if v is not None and v.startswith('"') else None for v in values]
        return pa.array(values, pa.string())
    words = np.full(len(values), NULL, np.int64)
    for at, value in enumerate(values):
        with suppress(ValueError, OverflowError):
            words[at] = NULL if value is None else literal_word(parse(value, type), type)
    return words


def _whole_powers(bases: Any, exponents: Any) -> npt.NDArray[np.int64]:
    count = max(len(side) for side in (bases, exponents) if isinstance(side, np.ndarray))
    words = np.full(count, NULL, np.int64)
    pairs = zip(*(np.broadcast_to(side, count).tolist() for side in (bases, exponents)), strict=True)
    for at, (base, exponent) in enumerate(pairs):
        if exponent < 0:
            if base:
                words[at] = int(base) ** (exponent % 2) if abs(base) == 1 else 0
            continue
        # Powers of 2 and more overflow from the 64th on; those of -1, 0 and 1 repeat from the second on.
        value = int(base) ** (min(exponent, 64) if abs(base) > 1 else exponent if exponent < 2 else 2 + exponent % 2)
        if abs(value) <= LARGEST:
            words[at] = value
    return words


def _called(*args: Any) -> Any:
    function: PythonFunction = args[-1]
    columns: list[list[Any]] = []
    count = max(len(arg) for arg in args[:-1] if isinstance(arg, np.ndarray | pa.Array))
    for arg, type in zip(args[:-1], function.arguments, strict=True):
        if isinstance(arg, pa.Array):
            columns.append(arg.to_pylist())
        elif isinstance(arg, np.ndarray):
            columns.append((word_floats(arg) if type == Float else arg).tolist())
        else:
            value = word_floats(np.array([arg], np.int64))[0] if type == Float else arg
            columns.append([value] * count)
    found = [_checked(function, values) for values in zip(*columns, strict=True)]
    if function.result == String:
        return pa.array(found, pa.string())
    return np.array([literal_word(value, function.result) for value in found], np.int64)


def _checked(function: PythonFunction, values: tuple[Any, ...]) -> Any:
    """The results of a Python function for some values. Raises if one is not of the declared type."""
    shown = f"@{function.name}({', '.join(map(repr, values))})"
    try:
        value = function.function(*values)
    except Exception as error:
        raise IncorrectError(f"{shown} failed: {type(error).__name__}: {error}") from error
    wanted: Any = {"int": int, "float": (int, float), "string": str, "bool": bool}[function.result.kind]
    if not isinstance(value, wanted) or (isinstance(value, bool) and function.result != Bool):
        raise IncorrectError(f"{shown} gave {value!r}, not a value of type {function.result}")
    if function.result == Int and abs(value) > LARGEST:
        raise IncorrectError(f"{shown} gave {value}, which does not fit into 64 bits").about(
            condition="numeric-value-out-of-range"
        )
    return float(value) if function.result == Float else value


def _wholes(texts: Any) -> npt.NDArray[np.int64]:
    words = np.full(len(texts), NULL, np.int64)
    for at, text in enumerate(texts.to_pylist()):
        if WHOLE.fullmatch(text):
            plain = text.lstrip("+-")
            value = int(plain, 0) if plain[:2].lower() in ("0x", "0b") else int(plain)
            if value <= LARGEST:
                words[at] = -value if text.startswith("-") else value
    return words


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "quoted": lambda texts: pa.array(map(quoted, texts.to_pylist()), pa.string()),
    "record_field": _fields,
    "whole_power": _whole_powers,
    "python_call": _called,
    "whole_of_text": _wholes,
}
