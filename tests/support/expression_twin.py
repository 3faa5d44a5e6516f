"""What the expression tests share: a stand-in dictionary, rows from Python values, and the slow, obvious twin.

`evaluate(expr, row)` computes an expression over a dict of Python values, NULL being None, one row at a time.
"""

from __future__ import annotations

import datetime
import decimal
import math
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import pyarrow as pa

from tektite.expr import Expr, RowProgram, compile
from tektite.expr.literals import float_of_word, literal_word
from tektite.kernels.layout.rows import copy_out, head_of_array
from tektite.values.dictionary import Dictionary
from tektite.values.text_space import TextTable
from tektite.values.types import Bool, Date, DecimalType, Float, Int, String, Timestamp, Type
from tektite.values.words import NULL
from tests.support.narrow import narrow_columns

EPOCH = datetime.datetime(1970, 1, 1)
DAY = datetime.timedelta(days=1)


class TextDictionary:
    """A dictionary that counts what is looked up, and gives every text back by its id."""

    def __init__(self) -> None:
        self.texts: dict[int, str] = {}
        self.looked_up = 0
        self._real = Dictionary()

    def add(self, texts: pa.Array) -> np.ndarray:
        ids = self._real.add(texts)
        self.texts.update(zip(ids.tolist(), texts.to_pylist(), strict=True))
        return ids

    def pin(self, words: Any) -> None:
        """It keeps all texts."""

    def adding(self) -> AbstractContextManager[Any]:
        """It keeps all texts."""
        return nullcontext()

    def text_table(self) -> TextTable:
        return self._real.text_table()

    @property
    def lasting(self) -> Any:
        return self

    def lookup(self, ids: np.ndarray) -> pa.Array:
        self.looked_up += len(ids)
        return pa.array([self.texts[i] for i in ids.tolist()], pa.string())

    def word(self, text: str) -> int:
        return int(self.add(pa.array([text]))[0])


def to_word(value: Any, type: Type, dictionary: TextDictionary) -> int:
    if value is None:
        return NULL
    return dictionary.word(value) if type == String else literal_word(value, type)


def from_word(word: int, type: Type, dictionary: TextDictionary) -> Any:
    if word == NULL:
        return None
    if type == String:
        return dictionary.texts[word]
    if type == Bool:
        return bool(word)
    if type == Float:
        return float_of_word(word)
    if type == Date:
        return (EPOCH + word * DAY).date()
    if type == Timestamp:
        return EPOCH + datetime.timedelta(microseconds=word)
    if isinstance(type, DecimalType):
        return decimal.Decimal(word).scaleb(-type.scale)
    return word


class Rows:
    """Rows of Python values as a head over an array, with an epoch and a multiplicity for each."""

    def __init__(self, schema: dict[str, Type], rows: list[tuple[Any, ...]], dictionary: TextDictionary,
                 epochs: list[int] | None = None, diffs: list[int] | None = None) -> None:  # fmt: skip
        self.columns = {name: (i, type) for i, (name, type) in enumerate(schema.items())}
        self.rows = rows
        self.names = list(schema)
        self.dictionary = dictionary
        self.nd = len(schema)
        self.array = np.zeros((self.nd + 2, max(len(rows), 1)), np.int64)
        for j, type in enumerate(schema.values()):
            self.array[j, : len(rows)] = [to_word(row[j], type, dictionary) for row in rows]
        self.array[self.nd, : len(rows)] = epochs if epochs is not None else range(len(rows))
        self.array[self.nd + 1, : len(rows)] = diffs if diffs is not None else 1
        self.head = head_of_array(self.array, len(rows))
        self.narrow = narrow_columns(self.head)

    def compile(self, outputs: list[Expr], predicate: Expr | None = None) -> RowProgram:
        return compile(outputs, predicate, self.columns, self.dictionary)

    def run(self, outputs: list[Expr], predicate: Expr | None = None, lo: int = NULL) -> list[tuple[Any, ...]]:
        """The rows that come out: the outputs' values, the epoch, the multiplicity."""
        program = self.compile(outputs, predicate)
        keep, head = program.run(int(self.head[1]), self.nd, 1, 1, lo, self.array)
        words = read(head)
        columns = [[from_word(w, type, self.dictionary) for w in column]
                   for column, type in zip(words.tolist(), (*program.types, Int, Int), strict=True)]  # fmt: skip
        del keep
        return list(zip(*columns, strict=True))

    def values(self, expr: Expr) -> list[Any]:
        return [row[0] for row in self.run([expr])]

    def dicts(self) -> list[dict[str, Any]]:
        return [dict(zip(self.names, row, strict=True)) for row in self.rows]


def read(head: np.ndarray) -> np.ndarray:
    """All words of rows, (columns x rows)."""
    target = np.zeros((int(head[2]), int(head[0])), np.int64)
    copy_out(int(head[1]), target)
    return target


def evaluate(expr: Expr, row: dict[str, Any]) -> Any:
    """The value of an expression over one row."""
    if expr.op == "col":
        return row[expr.params[0]]
    if expr.op == "lit":
        return expr.params[1]
    if expr.op == "case":
        for condition, value in zip(expr.args[0:-1:2], expr.args[1:-1:2], strict=True):
            if evaluate(condition, row) is True:
                return evaluate(value, row)
        return evaluate(expr.args[-1], row)
    args = [evaluate(arg, row) for arg in expr.args]
    if expr.op == "and":
        return False if False in args else None if None in args else True
    if expr.op == "or":
        return True if True in args else None if None in args else False
    if expr.op == "coalesce":
        return next((arg for arg in args if arg is not None), None)
    if expr.op in ("least", "greatest"):
        there = [arg for arg in args if arg is not None]
        return (min if expr.op == "least" else max)(there, key=key) if there else None
    if expr.op == "is_null":
        return args[0] is None
    if expr.op == "is_not_null":
        return args[0] is not None
    if expr.op == "is_same":
        return args[0] is None and args[1] is None or None not in args and key(args[0]) == key(args[1])
    if expr.op == "isin" and len(args) == 1:
        return False
    if expr.op == "isin":
        found = None if args[0] is None else any(key(args[0]) == key(a) for a in args[1:] if a is not None)
        return None if found is None or not found and None in args[1:] else found
    if None in args:
        return None
    return STRICT[expr.op](*args, *expr.params)


def key(value: Any) -> Any:
    """Ordered as values are: NaN equals itself and is the greatest number."""
    if isinstance(value, float) and math.isnan(value):
        return (1, 0)
    return value if isinstance(value, str | datetime.date) else (0, value)


def number(value: Any) -> Any:
    return float(value) if isinstance(value, decimal.Decimal) else value


def mixed(call: Any) -> Any:
    """Arithmetic in which a Float makes everything a Float."""

    def run(left: Any, right: Any) -> Any:
        if float in (type(left), type(right)) and not isinstance(left, datetime.date):
            left, right = float(left), float(right)
        return call(left, right)

    return run


def divide(call: Any) -> Any:
    return mixed(lambda left, right: None if right == 0 else call(left, right))


def move(left: Any, right: Any) -> Any:
    if isinstance(left, datetime.datetime):
        return left + datetime.timedelta(microseconds=right)
    if isinstance(left, datetime.date):
        return left + right * DAY
    return left + right


def minus(left: Any, right: Any) -> Any:
    if isinstance(right, datetime.datetime):
        return left - right
    if isinstance(right, datetime.date):
        return (left - right).days
    return move(left, -right)


def add_months(value: Any, months: int) -> Any:
    total = value.year * 12 + value.month - 1 + months
    year, month = divmod(total, 12)
    for day in range(value.day, 0, -1):
        try:
            return value.replace(year=year, month=month + 1, day=day)
        except ValueError:
            continue
    raise AssertionError


def floor_mod(left: Any, right: Any) -> Any:
    if isinstance(left, decimal.Decimal) or isinstance(right, decimal.Decimal):
        rest = decimal.Decimal(left) % decimal.Decimal(right)
        return rest + right if rest != 0 and (rest < 0) != (right < 0) else rest
    return left % right


def floor_div(left: Any, right: Any) -> Any:
    if isinstance(left, decimal.Decimal) or isinstance(right, decimal.Decimal):
        return int((decimal.Decimal(left) - floor_mod(left, right)) / right)
    return left // right


def compare(test: Any) -> Any:
    def run(left: Any, right: Any) -> bool:
        if float in (type(left), type(right)):
            left, right = number(left), number(right)
        return bool(test(key(left), key(right)))

    return run


def rank(value: Any, descending: bool) -> int:
    """An int that orders as the value does; the words of numbers do."""
    word = literal_word(value, Float) if isinstance(value, float) else int(value)
    return ~word if descending else word


STRICT: dict[str, Any] = {
    "key": lambda a: a + 0.0 if isinstance(a, float) else a, "rank": rank,
    "text_word": lambda text, at: int.from_bytes(text.encode()[7 * at : 7 * at + 7].ljust(7, b"\0")),
    "interval_length": lambda length, unit, fractional: length // datetime.timedelta(microseconds=1),
    "add": mixed(move), "sub": mixed(minus), "mul": mixed(lambda a, b: a * b),
    "div": divide(lambda a, b: float(a) / float(b)), "floordiv": divide(floor_div), "mod": divide(floor_mod),
    "neg": lambda a: -a, "abs": abs, "sign": lambda a: 1 if key(a) > (0, 0) else -1 if a < 0 else 0,
    "eq": compare(lambda a, b: a == b), "ne": compare(lambda a, b: a != b), "lt": compare(lambda a, b: a < b),
    "le": compare(lambda a, b: a <= b), "gt": compare(lambda a, b: a > b), "ge": compare(lambda a, b: a >= b),
    "not": lambda a: not a,
    "length": len, "lower": str.lower, "upper": str.upper, "concat": lambda *parts: "".join(parts),
    "strip": str.strip, "startswith": str.startswith, "endswith": str.endswith, "contains": lambda a, b: b in a,
    "replace": lambda text, old, new: text.replace(old, new) if old else text,
    "substring": lambda text, start, length: text[max(start - 1, 0) : max(start - 1 + length, 0)],
    "year": lambda d: d.year, "month": lambda d: d.month, "day": lambda d: d.day, "weekday": lambda d: d.weekday(),
    "quarter": lambda d: (d.month + 2) // 3, "hour": lambda d: d.hour, "minute": lambda d: d.minute,
    "second": lambda d: d.second, "add_days": lambda d, n: d + n * DAY, "add_months": add_months,
    "bit_and": lambda a, b: a & b, "bit_or": lambda a, b: a | b, "bit_xor": lambda a, b: a ^ b, "bit_not": lambda a: ~a,
    "shift_right": lambda a, b: a >> b,
}  # fmt: skip
