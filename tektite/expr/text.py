"""Functions of text, evaluated once for each distinct argument.

A column of text holds ids. A function that needs the texts (substring, lower, order) has a memo: a table from argument words
to the word of the result.

1. A kernel maps whole blocks through the memo and reports missing arguments.
2. Python fetches their texts from the dictionary, evaluates the function with Arrow, and adds results that are texts to the
   dictionary.
3. The kernel runs again.

The order of two text columns is a memo of pairs, so its memory grows with the number of distinct pairs. LIKE and similar
functions need no memo: kernels match patterns with the texts themselves (`tektite.kernels.text.like`).

Memos belong to a dictionary. All programs that use the same function with the same constants share one. A memo is freed with
the last such program, and emptied when none of them is in use. A table that was replaced by a larger one stays until no
kernel that may have started with it runs.
"""

from __future__ import annotations

import datetime
import functools
import re
import threading
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tektite.errors import IncorrectError
from tektite.expr import interned_texts, record_text, scalar_library
from tektite.expr.literals import literal_word, parse, show_word
from tektite.expr.steps import TextFunction
from tektite.kernels.expr.memo import HEADER, memo_insert
from tektite.values.text_space import TextTable
from tektite.values.types import Timestamp, Type
from tektite.values.words import NULL, float_words, word_floats

Words = npt.NDArray[np.int64]
Texts = Any  # an Arrow array, mostly of strings: Arrow's own types would say which kernel takes which

CHUNK = 1 << 20  # texts evaluated at a time; bounds their memory
SMALLEST = 64  # initial slots of a table
WORTH_KEEPING = 1 << 18  # results that are kept even if texts hardly repeat: about 10 MB
NEW_OF = 16  # texts hardly come again where all but one of so many are new: of millions, all equally likely, or each there once


class TextDictionary(Protocol):
    """The methods of a dictionary of texts that `tektite.expr` calls. Ids are never NULL."""

    def lookup(self, ids: Words) -> Texts:
        """The texts of these ids."""

    def add(self, texts: Texts) -> Words:
        """Store these texts; their ids."""

    def text_table(self) -> TextTable:
        """The table in which kernels find texts by id. Call `lookup` first for ids that they do not find there."""

    def pin(self, words: Words) -> None:
        """Keep the texts whose ids are in an array, as long as the array lives."""

    def adding(self) -> AbstractContextManager[Any]:
        """For a block that adds texts and then keeps them."""

    @property
    def lasting(self) -> TextDictionary:
        """The dictionary by which to cache what depends on ids: dictionaries of tasks come and go."""


class Memo:
    """A growing table of a function's results. `cell` holds the address of the current table; `users` are the programs in
    use.
    """

    def __init__(self, function: TextFunction) -> None:
        self.function = function
        self.cell = np.zeros(1, np.int64)
        self._lock = threading.Lock()
        self._tables: list[Words] = []
        self._readers = 0
        self._mostly_new = False
        self.forgotten = 0
        """How often it was emptied."""
        self.users: weakref.WeakSet[Any] = weakref.WeakSet()
        self._use(new_table(len(function.arguments), SMALLEST))

    def _use(self, table: Words) -> None:
        self._tables.append(table)
        self._point()

    def _point(self) -> None:
        """Let programs read the last table. Repeated where that matters: an interrupt may have come before it."""
        self.cell[0] = self._tables[-1].ctypes.data

    def _free(self) -> None:
        """Free all tables but the last. No program reads them."""
        self._point()
        del self._tables[:-1]

    def begin(self) -> None:
        """A program begins to run. Its kernels may read the current table until `end`. If texts hardly repeat, as comments
        do, the results are freed instead of being copied to ever larger tables.
        """
        with self._lock:
            if self._mostly_new and not self._readers and len(self) > WORTH_KEEPING:
                self._begin_anew()
            self._readers += 1

    def end(self, rows: int, learnt: int) -> None:
        """The program has ended: it looked up results for so many rows, and learned so many."""
        with self._lock:
            self._mostly_new = learnt * NEW_OF > rows * (NEW_OF - 1)
            self._readers -= 1
            if not self._readers and len(self._tables) > 1:
                self._free()

    def forget(self) -> None:
        """Start again with an empty table."""
        with self._lock:
            self._begin_anew()

    def _begin_anew(self) -> None:
        self.forgotten += 1
        self._use(new_table(len(self.function.arguments), SMALLEST))
        if not self._readers:
            self._free()

    def __len__(self) -> int:
        return int(self._tables[-1][2])

    def learn(self, arguments: Words, dictionary: TextDictionary) -> None:
        """Evaluate the function for distinct arguments (one row for each position) and store the results."""
        for start in range(0, arguments.shape[1], CHUNK):
            part = np.ascontiguousarray(arguments[:, start : start + CHUNK])
            results = evaluate(self.function, part, dictionary)
            with self._lock:
                table = self._tables[-1]
                slots = int(table[1])
                needed = 2 * (int(table[2]) + part.shape[1])
                if needed > slots:
                    while slots < needed:
                        slots *= 2
                    larger = new_table(len(part), slots)
                    entries = table[HEADER:].reshape(-1, len(part) + 1)
                    entries = entries[entries[:, 0] != NULL]
                    memo_insert(larger, np.ascontiguousarray(entries[:, :-1].T), np.ascontiguousarray(entries[:, -1]))
                    self._use(larger)
                memo_insert(self._tables[-1], part, results)
                self._point()


def new_table(arguments: int, slots: int) -> Words:
    """An empty memo table, in the layout of `tektite.kernels.expr.memo`."""
    table = np.full(HEADER + (arguments + 1) * slots, NULL, np.int64)
    table[:HEADER] = arguments, slots, 0
    return table


def set_table(words: list[int]) -> Words:
    """A table whose arguments are exactly these words: a set."""
    distinct = np.array(sorted(set(words)), np.int64).reshape(1, -1)
    slots = SMALLEST
    while slots < 2 * distinct.shape[1]:
        slots *= 2
    table = new_table(1, slots)
    memo_insert(table, distinct, np.ones(distinct.shape[1], np.int64))
    return table


_memos: weakref.WeakKeyDictionary[TextDictionary, weakref.WeakValueDictionary[TextFunction, Memo]]
_memos = weakref.WeakKeyDictionary()
_memos_lock = threading.Lock()


def memo_for(function: TextFunction, dictionary: TextDictionary) -> Memo:
    """The memo of a function over a dictionary's texts; the same for all callers."""
    with _memos_lock:
        known = _memos.setdefault(dictionary, weakref.WeakValueDictionary())
        memo = known.get(function)
        if memo is None:
            memo = known[function] = Memo(function)
        return memo


def forget_results(dictionary: TextDictionary) -> None:
    """Empty all memos of a dictionary, because it is about to lose texts that nobody uses, and results may be among them."""
    with _memos_lock:
        memos = list(_memos.get(dictionary, {}).values())
    for memo in memos:
        if len(memo):
            memo.forget()


def evaluate(function: TextFunction, arguments: Words, dictionary: TextDictionary) -> Words:
    """The result words for each column of argument words."""
    given: list[Any] = []
    for row, type in zip(arguments, function.arguments, strict=True):
        if type.interned:
            texts = dictionary.lookup(np.ascontiguousarray(row))
            given.append(texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts)
        else:
            given.append(row)
    supply = iter(given)
    filled = [next(supply) if part is None else part for part in function.pattern]
    result = FUNCTIONS[function.name](*filled)
    if isinstance(result, np.ndarray):
        return result.astype(np.int64)
    if function.result.interned:
        words = np.full(len(result), NULL, np.int64)
        there = np.asarray(result.is_valid())
        if there.any():
            words[there] = dictionary.add(result.drop_null().cast(pa.string()))
        return words
    numbers = result.cast(pa.int64())
    words = np.asarray(numbers.fill_null(NULL))
    return words


# -- the functions: each gets Arrow arrays of texts or arrays of words, and constants, in its pattern's order ----------


def _python(texts: Any, count: int) -> list[Any]:
    """A text argument, or a constant, as one value per row."""
    if isinstance(texts, pa.Array):
        return list(texts.to_pylist())
    if isinstance(texts, np.ndarray):
        return list(texts.tolist())
    return [texts] * count


def _by_row(call: Callable[..., Any], type: pa.DataType, *args: Any) -> Texts:
    """Apply a Python function row by row, for calls that Arrow has no kernel for."""
    count = max(len(arg) for arg in args if isinstance(arg, pa.Array | np.ndarray))
    return pa.array(map(call, *(_python(arg, count) for arg in args)), type)


def _compare(left: Any, right: Any) -> Texts:
    # as binary: Arrow then compares bytes, whatever the text type of each side
    left, right = (pc.cast(side, pa.large_binary()) if isinstance(side, pa.Array) else
                   pa.scalar(side.encode(), pa.large_binary()) for side in (left, right))  # fmt: skip
    above = pc.greater(left, right).cast(pa.int64())
    return pc.subtract(above, pc.less(left, right).cast(pa.int64()))


def _like_pattern(pattern: str, escape: str | None) -> str:
    """The pattern in Arrow's form: backslash escapes, and an escape may precede any character."""
    if escape is not None and escape != "\\":
        out, quoted = [], False
        for character in pattern:
            if quoted:
                out.append("\\" + character if character in "%_\\" else character)
                quoted = False
            elif character == escape:
                quoted = True
            else:
                out.append("\\\\" if character == "\\" else character)
        return "".join(out)
    return pattern if escape else pattern.replace("\\", "\\\\")


def _ilike(texts: Texts, pattern: str, escape: str | None = None) -> Texts:
    return pc.match_like(texts, _like_pattern(pattern, escape), ignore_case=True)


def _trim(whitespace: Callable[..., Any], characters: Callable[..., Any]) -> Callable[..., Texts]:
    def trim(texts: Texts, unwanted: str | None = None) -> Texts:
        return whitespace(texts) if unwanted is None else characters(texts, unwanted)

    return trim


def _substring(text: str, start: int, length: int | None = None) -> str:
    begin = start - 1 if start > 0 else (len(text) + start if start < 0 else -1)
    end = len(text) if length is None else begin + max(length, 0)
    return text[max(begin, 0) : max(end, 0)]


def _substrings(texts: Any, start: Any, length: Any = None) -> Texts:
    plain = isinstance(texts, pa.Array) and isinstance(start, int) and (length is None or isinstance(length, int))
    if plain and start > 0:
        return pc.utf8_slice_codeunits(texts, start - 1, None if length is None else start - 1 + max(length, 0))
    return _by_row(_substring, pa.string(), texts, start, length)


def _replace(texts: Any, old: Any, new: Any) -> Texts:
    if isinstance(texts, pa.Array) and isinstance(old, str) and isinstance(new, str):
        return texts if old == "" else pc.replace_substring(texts, old, new)

    def replaced(text: str, o: str, n: str) -> str:
        if not o:
            return text
        _of_length("replace", len(text) + text.count(o) * (len(n) - len(o)))
        return text.replace(o, n)

    return _by_row(replaced, pa.string(), texts, old, new)


def _position(texts: Any, part: Any) -> Texts:
    return _by_row(lambda text, found: text.find(found) + 1, pa.int64(), texts, part)


LONGEST = 1 << 26
"""Characters that a function may make of a short text: more is a mistake rather than a text."""


def _of_length(function: str, length: int) -> int:
    """The length of a text that a function is to make, if it is not too long."""
    if length > LONGEST:
        raise IncorrectError(f"{function} would make a text of {length} characters; at most {LONGEST} are allowed")
    return max(length, 0)


def _repeat(texts: Any, times: Any) -> Texts:
    def repeated(text: str, count: int) -> str:
        _of_length("repeat", len(text) * count)
        return text * max(count, 0)

    return _by_row(repeated, pa.string(), texts, times)


def _split_part(texts: Any, separator: Any, part: Any) -> Texts:
    def piece(text: str, between: str, number: int) -> str:
        pieces = text.split(between) if between else [text]
        at = number - 1 if number > 0 else len(pieces) + number
        return pieces[at] if number and 0 <= at < len(pieces) else ""

    return _by_row(piece, pa.string(), texts, separator, part)


def _pad(left: bool) -> Callable[..., Texts]:
    def pad(text: str, length: int, fill: str) -> str:
        room = _of_length("lpad" if left else "rpad", length) - len(text)
        if room <= 0 or not fill:
            return text[: max(length, 0)]
        filling = (fill * (room // len(fill) + 1))[:room]
        return filling + text if left else text + filling

    return lambda texts, length, fill: _by_row(pad, pa.string(), texts, length, fill)


def named_groups(pattern: str) -> tuple[str, int]:
    """A regular expression with a name for every group, `g1` and so on, as Arrow requires; and the number of groups."""
    parts: list[str] = []
    count = at = 0
    in_class = False
    while at < len(pattern):
        character = pattern[at]
        if character == "\\":
            end = pattern.find("\\E", at + 2) if pattern[at + 1 : at + 2] == "Q" else -1
            taken = pattern[at : end + 2] if end >= 0 else pattern[at : at + 2]
            parts.append(taken)
            at += len(taken)
            continue
        if in_class and pattern.startswith("[:", at) and ":]" in pattern[at:]:
            taken = pattern[at : pattern.index(":]", at) + 2]
            parts.append(taken)
            at += len(taken)
            continue
        if in_class:
            in_class = character != "]" or pattern[at - 1] == "[" or pattern[at - 2 : at] == "[^"
        elif character == "[":
            in_class = True
        elif character == "(" and pattern[at + 1 : at + 2] != "?":
            count += 1
            character = f"(?P<g{count}>"
        elif named := re.compile(r"\(\?P?<\w+>").match(pattern, at):
            count += 1
            character, at = f"(?P<g{count}>", named.end() - 1
        parts.append(character)
        at += 1
    return "".join(parts), count


def _regexp_extract(texts: Texts, pattern: str, group: int) -> Texts:
    named, count = named_groups(pattern)
    if group > count:
        return pc.if_else(pc.is_valid(texts), "", texts)
    found = pc.struct_field(pc.extract_regex(texts, f"(?P<g0>{named})"), f"g{group}")
    return pc.if_else(pc.is_valid(texts), pc.coalesce(found, ""), texts)


def _regexp_replace(texts: Texts, pattern: str, replacement: str, every: bool) -> Texts:
    return pc.replace_substring_regex(texts, pattern, replacement, max_replacements=None if every else 1)


def _like_text(texts: Any, pattern: Any) -> Texts:
    return _by_row(is_like, pa.bool_(), texts, pattern)


def is_like(text: str, pattern: str) -> bool:
    """Whether a text matches a pattern in which % stands for any characters, and _ for one.

    The parts between % are looked for one after the other, each where it stands first: nothing is tried twice.

    >>> is_like("abcd", "a%_d"), is_like("abcd", "%b"), is_like("a", "a%a")
    (True, False, False)
    """
    first, *parts = [
        re.compile("".join(["." if c == "_" else re.escape(c) for c in part]), re.DOTALL) for part in pattern.split("%")
    ]
    if not parts:
        return first.fullmatch(text) is not None
    found = first.match(text)
    for part in parts[:-1]:
        if found is None:
            return False
        found = part.search(text, found.end())
    last = len(pattern) - 1 - pattern.rindex("%")
    return found is not None and len(text) - last >= found.end() and parts[-1].match(text, len(text) - last) is not None


def _of_floats(call: Callable[..., Any]) -> Callable[..., Words]:
    """A function of floats, over words; NULL if the result is not a number but the arguments are."""

    def evaluated(*args: Any) -> Words:
        count = max(len(arg) for arg in args if isinstance(arg, np.ndarray))
        floats = [word_floats(np.broadcast_to(np.asarray(arg, np.int64), count).copy()) for arg in args]
        with np.errstate(all="ignore"):
            result = np.asarray(call(*floats), np.float64)
        wrong = np.isnan(result) & ~np.any([np.isnan(f) for f in floats], axis=0)
        wrong |= np.isinf(result) & np.all([np.isfinite(f) for f in floats], axis=0)
        return np.where(wrong, NULL, float_words(result))

    return evaluated


def _test(call: Callable[[str, str], bool]) -> Callable[..., Texts]:
    """A test of a text against another that is not constant; constants are patterns (`tektite.expr.like`)."""
    return lambda texts, part: _by_row(call, pa.bool_(), texts, part)


def _concat(*parts: Any) -> Texts:
    kind = pa.large_string()
    wide: list[Any] = [part.cast(kind) if isinstance(part, pa.Array) else pa.scalar(part, kind) for part in parts]
    return pc.binary_join_element_wise(*wide, pa.scalar("", kind))


def _show(words: Any, type: Type) -> Texts:
    if not isinstance(words, np.ndarray):
        return interned_texts.shown(words, type)
    return pa.array([show_word(word, type) for word in words.tolist()], pa.string())


def _parse(texts: Texts, type: Type) -> Any:
    if type.interned:
        return interned_texts.parsed(texts, type)
    words = np.full(len(texts), NULL, np.int64)
    for i, text in enumerate(texts.to_pylist()):
        try:
            words[i] = literal_word(parse(text, type), type)
        except (ValueError, OverflowError):
            continue
    return words


def _strptime(texts: Texts, shape: str) -> Words:
    """The moments that texts say in a format of `datetime.strptime`; NULL for a text that says none."""
    words = np.full(len(texts), NULL, np.int64)
    for i, text in enumerate(texts.to_pylist()):
        try:
            moment = datetime.datetime.strptime(text, shape)
            if moment.tzinfo is not None:
                moment = moment.astimezone(datetime.UTC).replace(tzinfo=None)
            words[i] = literal_word(moment, Timestamp)
        except (ValueError, OverflowError):
            continue
    return words


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "compare": _compare,
    "concat": _concat,
    "contains": _test(lambda text, part: part in text),
    "exp": _of_floats(np.exp),
    "endswith": _test(str.endswith),
    "ilike": _ilike,
    "length": pc.utf8_length,
    "like_text": _like_text,
    "ln": _of_floats(np.log),
    "lower": pc.utf8_lower,
    "lpad": _pad(left=True),
    "lstrip": _trim(pc.utf8_ltrim_whitespace, pc.utf8_ltrim),
    "matches": lambda texts, pattern: pc.match_substring_regex(texts, pattern),
    "parse": _parse,
    "position": _position,
    "power": _of_floats(np.power),
    "regexp_extract": _regexp_extract,
    "regexp_replace": _regexp_replace,
    "repeat": _repeat,
    "replace": _replace,
    "reverse": pc.utf8_reverse,
    "rpad": _pad(left=False),
    "rstrip": _trim(pc.utf8_rtrim_whitespace, pc.utf8_rtrim),
    "show": _show,
    "split_part": _split_part,
    "sqrt": _of_floats(np.sqrt),
    "startswith": _test(str.startswith),
    "strptime": _strptime,
    "strip": _trim(pc.utf8_trim_whitespace, pc.utf8_trim),
    "substring": _substrings,
    "upper": pc.utf8_upper,
    **{name: _of_floats(call) for name, call in scalar_library.OF_FLOATS.items()},
    **{name: functools.partial(_by_row, call, kind) for name, (call, kind) in scalar_library.FUNCTIONS.items()},
    **record_text.FUNCTIONS,
    **interned_texts.FUNCTIONS,
}
