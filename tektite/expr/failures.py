"""The rows that a program fails on, found exactly: the slow path, for chunks in which the kernel has met a failure.

An error is a value of the row. It passes through every step that reads it, except

* `false AND error` and `error AND false`, which are false; `true OR error` and `error OR true`, which are true;
* a choice (CASE, IF, COALESCE), which has the error of its condition and of the branch that is taken.

A row fails if its predicate is an error, or if the predicate is true and an output is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tektite.expr.steps import CONSTANT, FALLIBLE, INPUT, Step
from tektite.expr.text import Words
from tektite.kernels.expr import steps as ops
from tektite.kernels.expr.checked import checked_step
from tektite.values.words import NULL

RunStep = Callable[[Step, list[Words], int], Words]
"""Runs one step over the words of its operands, for so many rows."""


@dataclass(frozen=True)
class Evaluated:
    """A step over some rows: its words, and for each row the number of the step that failed, 0 if none did."""

    words: Words
    errors: Words


@dataclass(frozen=True)
class CheckedRows:
    """The result of a program for some rows: the rows that pass, by number, their outputs, and the rows that fail."""

    passing: Words
    outputs: Words
    failing: Words


@dataclass(frozen=True)
class FoundFailure:
    """The step that a row fails in, and its operands."""

    step: Step
    operands: tuple[int, ...]


class CheckedProgram:
    """Evaluates typed expressions step by step, with an error for each row."""

    def __init__(self, outputs: Sequence[Step], predicate: Step | None, run_step: RunStep) -> None:
        """`run_step` runs a step that cannot fail over the words of its operands."""
        self.outputs = outputs
        self.predicate = predicate
        self.run_step = run_step
        roots = [*outputs] if predicate is None else [predicate, *outputs]
        self.steps = in_order(roots)
        self.numbers = {id(step): number for number, step in enumerate(self.steps, start=1)}

    def rows(self, columns: Words) -> CheckedRows:
        """Filter and map rows, given as data columns x rows."""
        found, failed, passed = self._evaluate(columns)
        passing = np.flatnonzero(passed & (failed == 0))
        outputs = np.empty((len(self.outputs), len(passing)), np.int64)
        for at, output in enumerate(self.outputs):
            outputs[at] = found[id(output)].words[passing]
        return CheckedRows(passing, outputs, np.flatnonzero(failed))

    def failure(self, columns: Words) -> FoundFailure | None:
        """The failure of the first of some rows; None if it does not fail."""
        found, failed, _ = self._evaluate(columns[:, :1])
        if not failed[0]:
            return None
        step = self.steps[int(failed[0]) - 1]
        return FoundFailure(step, tuple([int(found[id(arg)].words[0]) for arg in step.args]))

    def _evaluate(self, columns: Words) -> tuple[dict[int, Evaluated], Words, npt.NDArray[np.bool_]]:
        """Every step's results, the error of each row, and whether it passes the predicate."""
        n = columns.shape[1]
        found: dict[int, Evaluated] = {}
        for step in self.steps:
            found[id(step)] = self._step(step, [found[id(arg)] for arg in step.args], columns)
        failed = np.zeros(n, np.int64)
        passed = np.ones(n, np.bool_)
        if self.predicate is not None:
            truth = found[id(self.predicate)]
            failed = truth.errors
            passed = (truth.words == 1) & (failed == 0)
        for output in self.outputs:
            failed = np.where(passed & (failed == 0), found[id(output)].errors, failed)
        return found, failed, passed

    def _step(self, step: Step, args: list[Evaluated], columns: Words) -> Evaluated:
        n = columns.shape[1]
        none = np.zeros(n, np.int64)
        if step.op == INPUT:
            return Evaluated(columns[step.extra], none)
        if step.op == CONSTANT:
            return Evaluated(self.run_step(step, [], n), none)
        # An error has no word: NULL stands in for it, and does not reach a result that has no error.
        words = [np.where(arg.errors != 0, NULL, arg.words) for arg in args]
        errors = none
        for arg in args:
            errors = np.where(errors != 0, errors, arg.errors)
        if step.op in FALLIBLE:
            left, right = words[0], words[1] if len(words) > 1 else none
            result, failed = checked_step(
                step.op, np.ascontiguousarray(left), np.ascontiguousarray(right), int(step.extra)
            )
            errors = np.where((errors == 0) & (failed != 0), self.numbers[id(step)], errors)
            return Evaluated(result, errors)
        result = self.run_step(step, words, n)
        if step.op == ops.AND:
            errors = np.where(result == 0, 0, errors)
        elif step.op == ops.OR:
            errors = np.where(result == 1, 0, errors)
        elif step.op == ops.SELECT:
            branch = np.where(words[0] == 1, args[1].errors, args[2].errors)
            errors = np.where(args[0].errors != 0, args[0].errors, branch)
        elif step.op == ops.COALESCE:
            second = np.where(words[0] == NULL, args[1].errors, 0)
            errors = np.where(args[0].errors != 0, args[0].errors, second)
        return Evaluated(result, errors)


def in_order(roots: Sequence[Step]) -> list[Step]:
    """Every step of some expressions, operands first. A chain of choices is as deep as it is long, so there is no recursion."""
    found: dict[int, Step] = {}
    waiting = list(reversed(roots))
    while waiting:
        step = waiting[-1]
        missing = [arg for arg in step.args if id(arg) not in found]
        if missing:
            waiting.extend(reversed(missing))
        else:
            waiting.pop()
            found.setdefault(id(step), step)
    return list(found.values())
