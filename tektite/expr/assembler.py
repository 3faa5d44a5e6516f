"""The assembler: turns the steps of typed expressions into the words of a program.

Equal steps become one, constant parts are computed, and few registers hold all values. What it makes is `Parts`; a
`tektite.expr.program.RowProgram` runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np

from tektite.errors import IncorrectError
from tektite.expr.guards import Guard, guard_of
from tektite.expr.steps import CONSTANT, FALLIBLE, INPUT, READS_TEXTS, Step, TextFunction, can_fail
from tektite.expr.text import Memo, TextDictionary, Words, memo_for, set_table
from tektite.kernels.expr import steps as ops
from tektite.kernels.expr.program import COLUMN, REGISTER, WORD
from tektite.values.python_values import array_of_text, array_of_texts
from tektite.values.shared_values import shared
from tektite.values.types import Bool, Type

LEAVES = (CONSTANT, INPUT)

Parts = tuple[Words, tuple[Type, ...], Sequence[Step], Sequence[Memo | None], Sequence[Any], Guard | None]
"""The parts of a program, except the dictionary and the text."""


class Assembler:
    """Turns typed steps into a program.

    Values are numbered as they are made; equal steps over equal values are one value. Registers are assigned last: a
    value's register is free after its last use, so that few registers are used and they stay in cache.
    """

    def __init__(self, dictionary: TextDictionary, evaluate: Callable[[Step, TextDictionary], int]) -> None:
        """`evaluate` gives the word of a step over constants."""
        self.dictionary = dictionary
        self.evaluate = evaluate
        self.constants: dict[int, int] = {}  # word -> value
        self.inputs: dict[int, int] = {}  # column -> value
        self.made: dict[tuple[int, ...], int] = {}  # (op, operands, extra) -> value
        self.steps: list[tuple[int, int, int, int, int, int]] = []  # (op, value, a, b, c, extra)
        self.sources: list[Step] = []
        self.values = 0
        self.memos: list[Memo | None] = []
        self.cells: list[Words] = []
        self.memo_numbers: dict[object, int] = {}
        self.buffers: list[Any] = []
        self.texts: set[int] = set()  # the ids of constant texts
        self.interned: dict[str, int] = {}  # the ids of texts that were interned together
        self.folded: dict[int, Step] = {}  # by id: the trees outlive the assembler
        self.none = self.constant(0)  # the value that stands for "no operand"

    def new_value(self) -> int:
        self.values += 1
        return self.values - 1

    def constant(self, word: int) -> int:
        if word not in self.constants:
            self.constants[word] = self.new_value()
        return self.constants[word]

    def word_of(self, extra: int | str) -> int:
        """The word of a constant; a text becomes its id."""
        if isinstance(extra, str):
            known = self.interned.get(extra)
            extra = int(self.dictionary.add(array_of_text(extra))[0]) if known is None else known
            self.texts.add(extra)
        return extra

    def words_of(self, extras: Sequence[int | str]) -> list[int]:
        """The words of many constants; texts become ids together."""
        texts = [extra for extra in extras if isinstance(extra, str)]
        if len(texts) > 1:
            self.interned.update(zip(texts, self.dictionary.add(array_of_texts(texts)).tolist(), strict=True))
        return list(map(self.word_of, extras))

    def kept_texts(self) -> Words:
        """The ids of all constant texts so far. Their texts stay as long as this array does."""
        ids = np.array(sorted(self.texts), np.int64)
        if len(ids):
            self.dictionary.pin(ids)
        return ids

    def fold(self, step: Step) -> Step:
        """The same step with every constant part computed. A part that fails stays, and fails when it runs."""
        # a chain of choices is as deep as it is long: pending steps are in a list, not on the stack
        folded = self.folded
        waiting = [] if step.op in LEAVES else [step]
        while waiting:
            part = waiting[-1]
            before = len(waiting)
            for arg in part.args:
                if arg.op not in LEAVES and id(arg) not in folded:
                    waiting.append(arg)
            if len(waiting) == before:
                waiting.pop()
                if id(part) not in folded:
                    args = tuple([folded.get(id(arg), arg) for arg in part.args])
                    folded[id(part)] = self._computed(Step(part.op, part.type, args, part.extra, part.source))
        return folded.get(id(step), step)

    def _computed(self, step: Step) -> Step:
        """The constant that a step over constants computes."""
        if all(arg.op == CONSTANT for arg in step.args):
            try:
                word = self.evaluate(step, self.dictionary)
            except IncorrectError:
                return step
            if step.type.interned:
                self.texts.add(word)
            return Step(CONSTANT, step.type, (), word, step.source)
        return step

    def value(self, step: Step, guard: int) -> int:
        """Emit the instructions of a step, unless they exist. Failures count only where `guard` is 1; with `none`,
        everywhere.
        """
        if step.op in LEAVES:
            return self._leaf(step)
        waiting = [self._value(step, guard)]
        found: int | None = None
        while True:
            try:
                below, narrowed = waiting[-1].send(found)
            except StopIteration as ended:
                waiting.pop()
                found = int(ended.value)
                if not waiting:
                    return found
            else:
                waiting.append(self._value(below, narrowed))
                found = None

    def _leaf(self, step: Step) -> int:
        if step.op == CONSTANT:
            return self.constant(self.word_of(step.extra))
        if step.extra not in self.inputs:
            self.inputs[step.extra] = self.new_value()
        return self.inputs[step.extra]

    def _value(self, step: Step, guard: int) -> Generator[tuple[Step, int], int | None, int]:
        """`value` of one step. Yields its operands, each with a guard, when it needs them."""
        chooses = step.op in (ops.SELECT, ops.COALESCE)
        decides = step.op in (ops.AND, ops.OR) and step.fallible
        args = [self.none] * max(3, len(step.args))
        # Where no guard depends on a value, what is chosen last, which may be a long chain, comes first: the others need not wait
        # in registers for it.
        order = list(range(len(step.args)))
        if chooses and not step.fallible:
            order.reverse()
        if decides:  # what cannot fail first: where it decides, a failure of the other does not count
            order.sort(key=lambda i: step.args[i].fallible)
        for i in order:
            arg = step.args[i]
            if arg.op in LEAVES:
                args[i] = self._leaf(arg)
                continue
            narrowed = guard
            if arg.fallible and ((chooses and i > 0) or (decides and i == order[1])):
                narrowed = self._narrowed(step.op, args[order[0]], i, guard)
            value = yield arg, narrowed
            assert value is not None
            args[i] = value
        extra = step.extra
        if step.op in (ops.MAP1, ops.MAP2, ops.MAP3, ops.MEMBER, *READS_TEXTS):
            extra = self.memo(step)
        if step.op in FALLIBLE:
            unguarded = (step.op, args[0], args[1], self.none, extra)
            if guard != self.none and unguarded in self.made:
                return self.made[unguarded]
            args[2] = guard
        return self.emit(step, args, extra)

    def emit(self, step: Step, args: list[int], extra: int) -> int:
        key = (step.op, *args, extra)
        if key not in self.made:
            self.made[key] = self.new_value()
            self.steps.append((step.op, self.made[key], args[0], args[1], args[2], extra))
            self.sources.append(step)
        return self.made[key]

    def _narrowed(self, op: int, first: int, position: int, guard: int) -> int:
        """The guard of a branch: where it is taken."""
        none = self.none
        if op == ops.COALESCE:
            taken = self.emit(Step(ops.IS_NULL, Bool), [first, none, none], 0)
        elif op == ops.AND:  # where the other operand is not false
            negated = self.emit(Step(ops.NOT, Bool), [first, none, none], 0)
            taken = self.emit(Step(ops.NOT_TRUE, Bool), [negated, none, none], 0)
        elif op == ops.OR:
            taken = self.emit(Step(ops.NOT_TRUE, Bool), [first, none, none], 0)
        elif position == 1:
            taken = first
        else:
            taken = self.emit(Step(ops.NOT_TRUE, Bool), [first, none, none], 0)
        return taken if guard == none else self.emit(Step(ops.AND, Bool), [guard, taken, none], 0)

    def memo(self, step: Step) -> int:
        """The number of the memo, set or text access that a step uses."""
        key: object = step.extra
        if isinstance(step.extra, TextFunction):
            if key not in self.memo_numbers:
                memo = memo_for(step.extra, self.dictionary)
                self.memos.append(memo)
                self.cells.append(memo.cell)
                self.memo_numbers[key] = len(self.memos) - 1
            return self.memo_numbers[key]
        if step.op in READS_TEXTS:
            words = [len(step.extra), *step.extra]
            key = (step.op, *words)
        else:
            words = self.words_of(step.extra)
            key = frozenset(words)
        if key not in self.memo_numbers:
            table = np.array(words, np.int64) if step.op in READS_TEXTS else set_table(words)
            cell = np.array([table.ctypes.data], np.int64)
            self.buffers.append(table)
            self.memos.append(None)
            self.cells.append(cell)
            self.memo_numbers[key] = len(self.memos) - 1
        return self.memo_numbers[key]

    def assemble(self, outputs: list[Step], predicate: Step | None) -> Parts:
        """The parts of the program that computes these outputs for the rows where the predicate is true."""
        truth = -1
        if predicate is not None and (predicate.op != CONSTANT or predicate.extra != 1):
            truth = self.value(predicate, self.none)
        first = len(self.steps)
        specs = []
        for output in outputs:
            if output.op == CONSTANT:
                specs.append((WORD, self.word_of(output.extra)))
            elif output.op == INPUT:
                specs.append((COLUMN, output.extra))
            else:
                value = self.value(output, self.none)
                if value in {step[1] for step in self.steps[:first]}:
                    # computed for the predicate: copy it to the output
                    value = self.emit(Step(ops.COPY, output.type), [value, self.none, self.none], 0)
                specs.append((REGISTER, value))
        words = self._layout(specs, truth, first)
        self.buffers.extend(self.cells)
        if self.texts:
            self.buffers.append(self.kept_texts())
        types = shared(tuple([output.type for output in outputs]))
        guard = None if truth < 0 or predicate is None else guard_of(predicate, self.word_of)
        # Steps are looked up where one fails, or lacks a text. Most small programs do neither.
        asked = self.memos or any([step.op in READS_TEXTS or can_fail(step) for step in self.sources])
        return words, types, tuple(self.sources) if asked else (), tuple(self.memos), tuple(self.buffers), guard

    def _layout(self, specs: list[tuple[int, int]], truth: int, first: int) -> Words:
        """The program's words: assigned registers, and sections in order."""
        registers = {value: i for i, value in enumerate(self.constants.values())}
        for value in self.inputs.values():
            registers[value] = len(registers)
        width = len(registers)
        for kind, value in specs:  # an output's register is the output's memory: no other value may use it
            if kind == REGISTER and value not in registers:
                registers[value] = width
                width += 1
        fixed = set(registers)
        last_use = {}
        for k, step in enumerate(self.steps):
            last_use.update(dict.fromkeys(step[2:5], k))
        if truth >= 0:
            last_use[truth] = max(last_use.get(truth, 0), first)
        free: list[int] = []
        expiring: dict[int, list[int]] = {}
        for k, step in enumerate(self.steps):
            value = step[1]
            if value not in fixed:
                if free:
                    registers[value] = free.pop()
                else:
                    registers[value] = width
                    width += 1
                expiring.setdefault(last_use.get(value, k), []).append(registers[value])
            # after the result is placed: it must not overlap an operand
            free.extend(expiring.pop(k, ()))
        before = {step[1] for step in self.steps[:first]}
        later = {operand for step in self.steps[first:] for operand in step[2:5]}
        kept = sorted(registers[value] for value in before & later)
        words = [len(self.constants), len(self.inputs), len(self.memos), len(specs), len(kept), width,
                 first, len(self.steps), registers[truth] if truth >= 0 else -1, 0]  # fmt: skip
        words += self.constants
        for column, value in self.inputs.items():
            words += (column, int(value in later))
        words += [cell.ctypes.data for cell in self.cells]
        for kind, value in specs:
            words += (kind, registers[value] if kind == REGISTER else value)
        words += kept
        for op, value, a, b, c, extra in self.steps:
            words += (op, registers[value], registers[a], registers[b], registers[c], extra)
        return np.array(words, np.int64)
