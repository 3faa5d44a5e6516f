"""The layout of an expression program: one int64 array.

program[0..9]    number of constants, inputs, memos, outputs, kept registers, registers;
                 number of steps of the predicate, of all steps; the predicate's register (-1: none); 0
constants        their words: registers 0, 1, ...; constant 0 is the word 0 and stands for "no operand"
inputs           (column, whether the outputs' steps read it): the next registers
memos            addresses of cells that hold the address of a memo table, a set or a pattern
outputs          (kind, value): COLUMN number, WORD, or REGISTER number
kept             registers that the predicate's steps write and the outputs' steps read
steps            (op, result, a, b, c, extra): the predicate's, then the outputs'
"""

from __future__ import annotations

from typing import NamedTuple

from tektite.kernels.compile import inner
from tektite.kernels.layout.memory import load

HEADER = 10
STEP = 6
COLUMN, WORD, REGISTER = range(3)


class ProgramLayout(NamedTuple):
    """The address of a program, its numbers of things, and where its parts begin, counted in words."""

    at: int
    constants: int
    inputs: int
    memos: int
    outputs: int
    kept: int
    registers: int
    predicate: int  # the register that says which rows pass, or -1
    first_memo: int
    first_output: int
    first_kept: int
    first_step: int
    first_output_step: int
    end: int


@inner
def program_of(at):
    """The program at an address."""
    constants, inputs, memos, outputs, kept = load(at, 0), load(at, 1), load(at, 2), load(at, 3), load(at, 4)
    first_memo = HEADER + constants + 2 * inputs
    first_output = first_memo + memos
    first_kept = first_output + 2 * outputs
    first_step = first_kept + kept
    return ProgramLayout(
        at, constants, inputs, memos, outputs, kept, load(at, 5), load(at, 8),
        first_memo, first_output, first_kept, first_step, first_step + STEP * load(at, 6), first_step + STEP * load(at, 7),
    )  # fmt: skip


@inner
def input_column(program, j):
    """The column of input j."""
    return load(program.at, HEADER + program.constants + 2 * j)


@inner
def is_read_by_outputs(program, j):
    """Whether the steps of the outputs read input j."""
    return load(program.at, HEADER + program.constants + 2 * j + 1) != 0


@inner
def output_kind(program, j):
    """What output j is: COLUMN, WORD or REGISTER."""
    return load(program.at, program.first_output + 2 * j)


@inner
def output_item(program, j):
    """Which column, word or register output j is."""
    return load(program.at, program.first_output + 2 * j + 1)
