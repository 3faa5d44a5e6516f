"""Programs: compiles expressions for the kernel, and runs them over rows.

`compile(outputs, predicate, columns, dictionary)` types the expressions, shares common subexpressions, computes constants
once, and assigns steps to registers. A program is immutable and may run in several threads at once: each run writes only its
own memory, and memos are thread-safe.
"""

from __future__ import annotations

import ctypes
import re
import threading
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from tektite.errors import FaultError, IncorrectError
from tektite.expr.assembler import Assembler, Parts
from tektite.expr.ast import Expr
from tektite.expr.failures import CheckedProgram, CheckedRows
from tektite.expr.guards import Guard
from tektite.expr.literals import show_word
from tektite.expr.steps import CONSTANT, INPUT, READS_TEXTS, Step, can_fail
from tektite.expr.text import Memo, TextDictionary, Words
from tektite.expr.typing import Columns, resolve
from tektite.kernels.expr import steps as ops
from tektite.kernels.expr.interpreter import FAILED, OWNS, SHARES, run_program
from tektite.kernels.expr.program import STEP
from tektite.kernels.layout.rows import copy_out, head_of_array
from tektite.values import composites
from tektite.values.types import Bool, Int, String, Type
from tektite.values.words import INT_RANGE, NULL

FEW, MANY = 1 << 10, 1 << 20  # missing arguments that a run can report: at first, and after there were too many

IS_NUMBER = re.compile(r"'\s*[+-]?\d+\s*'")
"""A text that says a whole number, as errors show it."""
Failure = {
    ops.ADD: "overflow", ops.SUB: "overflow", ops.MUL: "overflow", ops.MUL_FLOOR: "overflow",
    ops.FLOAT_TO_INT: "value out of range", ops.ADD_MONTHS: "date out of range",
    ops.BIT_AND: "result out of range", ops.BIT_OR: "result out of range", ops.BIT_XOR: "result out of range",
    ops.SHIFT_LEFT: "overflow, or a negative shift", ops.SHIFT_RIGHT: "negative shift",
    ops.CHECK_PARSED: "text does not say such a value",
}  # fmt: skip


SEVERAL_ROWS = "a subquery that is used as a value gives more than one row"
UNREADABLE, TOO_LARGE = "invalid-text-representation", "numeric-value-out-of-range"
_CONDITIONS = {f": {Failure[ops.CHECK_PARSED]}": UNREADABLE, SEVERAL_ROWS: "cardinality-violation"}
_TOO_LARGE = sorted({f": {said}" for op, said in Failure.items() if op != ops.CHECK_PARSED} | {"does not fit"})
_FAILURES = re.compile("|".join([*_CONDITIONS, *_TOO_LARGE]))


def row_condition(message: str) -> str:
    """PostgreSQL's name for the failure of a row, found from its message, which is all that operators keep; empty if no value
    is at fault.

    >>> row_condition("a + b: overflow of int, found 9 and 9"), row_condition("n.cast(int): text does not say such a value: int")
    ('numeric-value-out-of-range', 'invalid-text-representation')
    """
    found = _FAILURES.search(message)
    return "" if found is None else _CONDITIONS.get(found.group(), TOO_LARGE)


class FailingRowError(IncorrectError):
    """An expression fails on some row of a chunk, unless an AND or OR decides without it: `RowProgram.check` finds out."""


class RowProgram:
    """A compiled map and filter. `types` are the types of its outputs."""

    __slots__ = (
        "__weakref__", "_buffers", "_checked", "_checked_texts", "_columns", "_dictionary", "_memos", "_outputs", "_predicate",
        "_read", "_reads_texts", "_steps", "_words", "can_fail", "guard", "types",
    )  # fmt: skip

    def __init__(self, words: Words, types: tuple[Type, ...], steps: Sequence[Step], memos: Sequence[Memo | None],
                 buffers: Sequence[Any], guard: Guard | None, dictionary: TextDictionary, outputs: Sequence[Expr],
                 predicate: Expr | None, columns: Columns) -> None:  # fmt: skip
        self.types = types
        self.guard = guard
        """A necessary condition of its filter, if there is one."""
        self._words = words
        self._buffers = buffers  # keeps alive the cells and sets whose addresses are in the words
        self._steps = steps
        self._memos = memos
        self._read = tuple([memo for memo in memos if memo is not None]) if memos else ()
        self._reads_texts = any(step.op in READS_TEXTS for step in steps)
        self.can_fail = any(map(can_fail, steps))
        """Whether it may fail on a row."""
        self._checked: CheckedProgram | None = None
        self._checked_texts: Words | None = None
        self.wake()
        self._dictionary = dictionary
        self._outputs = outputs
        self._predicate = predicate
        self._columns = columns

    @property
    def parts(self) -> Parts:
        """The parts that it was made of, without the expressions: another program of equal expressions needs no more."""
        return self._words, self.types, self._steps, self._memos, self._buffers, self.guard

    @property
    def remembers(self) -> bool:
        """Whether it caches results of text functions."""
        return bool(self._read)

    def wake(self) -> None:
        """Mark as in use: results of text functions are kept from here on."""
        for memo in self._read:
            memo.users.add(self)

    def sleep(self) -> None:
        """Mark as not in use until `wake`: results of text functions are freed, unless another program uses them."""
        for memo in self._read:
            memo.users.discard(self)
            if not memo.users:
                memo.forget()

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process compiles it again, because its words contain addresses of this process."""
        return compile, (tuple(self._outputs), self._predicate, dict(self._columns), self._dictionary)

    def check(self, columns: Words) -> CheckedRows:
        """Filter and map rows, given as data columns x rows, and find those that fail."""
        return self._as_checked().rows(columns)

    def explain(self, columns: Words) -> str:
        """Explains why the first of some rows fails, given as data columns x rows: the expression, the reason, the values."""
        found = self._as_checked().failure(columns)
        if found is None:
            return str(self)
        left, right, *_ = (*found.operands, 0, 0)
        return self._describe(found.step, left, right)

    def show(self, word: int, type: Type) -> str:
        """A word as text, for errors."""
        if type.interned and word != NULL:
            text = self._dictionary.lookup(np.array([word], np.int64))
            return repr(text[0].as_py() if type == String else composites.values_of(text, type)[0].as_py())
        return "NULL" if word == NULL else show_word(word, type)

    def _as_checked(self) -> CheckedProgram:
        if self._checked is None:
            with self._dictionary.adding():
                outputs, test, assembler = _typed(self._outputs, self._predicate, self._columns, self._dictionary)
                fold = assembler.fold
                run = partial(run_step, self._dictionary)
                self._checked = CheckedProgram(list(map(fold, outputs)), test and fold(test), run)
                self._checked_texts = assembler.kept_texts()
        return self._checked

    def __repr__(self) -> str:
        return f"<Program {self}>"

    def __str__(self) -> str:
        where = "" if self._predicate is None else f" where {self._predicate}"
        return f"select {', '.join(map(str, self._outputs))}{where}"

    def run(self, source: int, nd: int, nt: int, nf: int, lo: int, memory: object = None) -> tuple[object, Words]:
        """The rows at head address `source`, filtered and mapped: (what keeps their memory alive, their head).

        They have nd data, nt time and nf diff columns. The result has the outputs, then the same times with epochs of at
        least `lo`, and the same diffs. `memory` owns the rows; it is part of the result only if the result shares the
        input's memory.
        """
        if not self._read:
            return self._run(source, nd, nt, nf, lo, memory, {})
        learnt: dict[Memo, int] = dict.fromkeys(self._read, 0)
        for memo in learnt:
            memo.begin()
        try:
            return self._run(source, nd, nt, nf, lo, memory, learnt)
        finally:
            for memo, new in learnt.items():
                memo.end(load_word(source), new)

    def _run(
        self, source: int, nd: int, nt: int, nf: int, lo: int, memory: object, learnt: dict[Memo, int]
    ) -> tuple[object, Words]:
        # Each round finishes one level of nested text functions, unless it has more arguments than it can report. A collection of
        # texts that begins while a sweep is outside of the engine's lock empties memos: then all levels are finished again.
        rounds, forgotten = len(self._steps) + 1, self._forgotten()
        most = FEW
        while rounds:
            texts = self._dictionary.text_table() if self._reads_texts else None
            place = 0 if texts is None else texts.address
            ended, buf, head = run_program(source, nd, nt, nf, lo, most, place, self._words)
            if ended == SHARES:
                return (memory, buf), head
            if ended == OWNS:
                return buf, head
            if ended == FAILED:
                raise self._failure(*buf.tolist())
            self._learn(buf, learnt)
            if (now := self._forgotten()) != forgotten:
                rounds, forgotten = len(self._steps) + 1, now
            elif buf[0] < most:
                rounds -= 1
            else:
                most = min(most * FEW, MANY)
        raise FaultError(f"{self}: texts stay unknown after they were evaluated")

    def _forgotten(self) -> int:
        """The number of times that memos were emptied."""
        return sum([memo.forgotten for memo in self._read])

    def _learn(self, missing: Words, learnt: dict[Memo, int]) -> None:
        """Evaluate text functions for arguments that their memos lack, and count them; fetch texts that patterns lack."""
        records = missing[4 : 4 + 4 * int(missing[0])].reshape(-1, 4)
        for number in np.unique(records[:, 0]).tolist():
            memo = self._memos[number]
            rows = records[records[:, 0] == number]
            if memo is None:
                self._dictionary.lookup(np.ascontiguousarray(rows[:, 1]))
                continue
            learnt[memo] += len(rows)
            memo.learn(np.ascontiguousarray(rows[:, 1 : 1 + len(memo.function.arguments)].T), self._dictionary)

    def _failure(self, at: int, row: int, left: int, right: int) -> FailingRowError:
        """The error for a failed step: the expression, what went wrong, the row and its values."""
        step = self._steps[at // STEP]
        message = self._describe(step, left, right, f" in row {row}")
        return FailingRowError(message).about(condition=row_condition(message))

    def _describe(self, step: Step, left: int, right: int, where: str = "") -> str:
        limits = f" ({INT_RANGE})" if step.type == Int else ""
        if step.op == ops.CHECK_PARSED and step.args[1].type != String:
            return f"{step.source}: the result does not fit {'into 64 bits' if step.type == Int else step.type}{where}{limits}"
        if step.op == ops.CHECK_PARSED:
            found = repr(self._dictionary.lookup(np.array([right], np.int64))[0].as_py())
        else:
            found = " and ".join(self.show(word, arg.type) for word, arg in zip((left, right), step.args, strict=False))
        kind = f" of {step.type}" if step.op in (ops.ADD, ops.SUB, ops.MUL, ops.MUL_FLOOR, ops.FLOAT_TO_INT) else ""
        kind = f": {step.type}" if step.op == ops.CHECK_PARSED else kind
        if step.op == ops.CHECK_PARSED and not IS_NUMBER.fullmatch(found):
            limits = ""
        return f"{step.source}: {Failure[step.op]}{kind}{where}, found {found}{limits}"


def load_word(address: int) -> int:
    """The word at an address."""
    return ctypes.c_int64.from_address(address).value


_compiled: weakref.WeakKeyDictionary[TextDictionary, OrderedDict[Any, Parts]]
_compiled = weakref.WeakKeyDictionary()
_compiled_lock = threading.Lock()
REMEMBERED = 2048
"""Programs to cache for each dictionary, at a few kB each: those of some hundred queries."""


def compile(
    outputs: Sequence[Expr], predicate: Expr | None, columns: Columns, dictionary: TextDictionary
) -> RowProgram:
    """Compile a map (and a filter) over columns given as name -> (number, type).

    Compiling the same expressions again reuses the parts of the earlier program: a dashboard's queries come and go.
    """
    tests = () if predicate is None else (predicate,)
    used = dict.fromkeys(name for expression in (*outputs, *tests) for name in expression.columns())
    key = (
        tuple(output.fingerprint for output in outputs),
        tuple(test.fingerprint for test in tests),
        tuple((name, columns[name]) for name in used if name in columns),
    )
    with _compiled_lock:
        remembered = _compiled.setdefault(dictionary.lasting, OrderedDict())
        parts = remembered.get(key)
        if parts is not None:
            remembered.move_to_end(key)
            return RowProgram(*parts, dictionary, outputs, predicate, columns)
    made = _compile(outputs, predicate, columns, dictionary)
    # A memo grows with the texts it has seen, so it lives as long as the queries that use it.
    if all(memo is None for memo in made.parts[3]):
        with _compiled_lock:
            remembered[key] = made.parts
            if len(remembered) > REMEMBERED:
                remembered.popitem(last=False)
    return made


def _compile(
    outputs: Sequence[Expr], predicate: Expr | None, columns: Columns, dictionary: TextDictionary
) -> RowProgram:
    with dictionary.adding():
        typed, test, assembler = _typed(outputs, predicate, columns, dictionary)
        folded = None if test is None else tests_first(assembler.fold(test))
        parts = assembler.assemble(list(map(assembler.fold, typed)), folded)
    return RowProgram(*parts, dictionary, outputs, predicate, columns)


def _typed(
    outputs: Sequence[Expr], predicate: Expr | None, columns: Columns, dictionary: TextDictionary
) -> tuple[list[Step], Step | None, Assembler]:
    """The steps of expressions and of a filter, and what assembles them."""
    typed = [resolve(output, columns) for output in outputs]
    test = None
    if predicate is not None:
        test = resolve(predicate, columns)
        if test.type != Bool and not (test.op == CONSTANT and test.extra == NULL):
            raise IncorrectError(f"the filter {predicate} is of type {test.type}, not bool")
    return typed, test, Assembler(dictionary, evaluate_constant)


def tests_first(step: Step) -> Step:
    """A conjunction with the parts that cannot fail first: they guard the others."""
    if step.op != ops.AND or not step.fallible:
        return step
    parts: list[Step] = []
    waiting = [step]
    while waiting:
        part = waiting.pop()
        if part.op == ops.AND:
            waiting.extend(reversed(part.args))
        else:
            parts.append(part)
    first, *others = sorted(parts, key=lambda part: part.fallible)
    for other in others:
        first = Step(ops.AND, Bool, (first, other), 0, step.source)
    return first


def evaluate_constant(step: Step, dictionary: TextDictionary) -> int:
    """The word of a step over constants: runs its program over one row without columns."""
    program = _program(step, dictionary)
    _, head = program.run(ONE_ROW.ctypes.data, 0, 0, 0, NULL, ONE_ROW)
    return int(head[5])


def compute_column(expr: Expr, words: Words, type: Type, dictionary: TextDictionary) -> Words:
    """The words of an expression over one column of a type, which it calls what it likes."""
    (name,) = expr.columns()
    step = resolve(expr, {name: (0, type)})
    program = _program(step, dictionary)
    given = np.ascontiguousarray(words.reshape(1, -1))
    return _run_over(program, given)


def run_step(dictionary: TextDictionary, step: Step, words: list[Words], rows: int) -> Words:
    """One step over the words of its operands."""
    if step.op == CONSTANT:
        return np.full(rows, Assembler(dictionary, evaluate_constant).word_of(step.extra), np.int64)
    inputs = tuple([Step(INPUT, arg.type, (), at) for at, arg in enumerate(step.args)])
    program = _program(Step(step.op, step.type, inputs, step.extra, step.source), dictionary)
    return _run_over(program, np.ascontiguousarray(np.vstack(words)))


def _run_over(program: RowProgram, given: Words) -> Words:
    """The words of the one output of a program over rows."""
    head = head_of_array(given, given.shape[1])
    kept, made = program.run(int(head[1]), len(given), 0, 0, NULL, given)
    result: Words = np.empty((1, given.shape[1]), np.int64)
    copy_out(int(made[1]), result)
    del kept, head  # the addresses above are good up to here
    return result.reshape(-1)


def _program(step: Step, dictionary: TextDictionary) -> RowProgram:
    """The program of one step."""
    return RowProgram(*Assembler(dictionary, evaluate_constant).assemble([step], None), dictionary, (), None, {})


ONE_ROW = np.array([1, 0, 0], np.int64)
