"""The registers of a program: blocks of words that its steps read and write.

A constant is filled in once, a stored input column is used in place, and a computed output is written to its final place.
"""

from __future__ import annotations

from typing import NamedTuple

from tektite.kernels.compile import inner
from tektite.kernels.expr.program import (
    HEADER,
    STEP,
    input_column,
    is_read_by_outputs,
)
from tektite.kernels.expr.steps import (
    ADD,
    ADD_MONTHS,
    BIT_AND,
    CHECK_PARSED,
    FLOAT_TO_INT,
    MUL_FLOOR,
    SHIFT_RIGHT,
)
from tektite.kernels.layout.columns import copy_words, fill_words
from tektite.kernels.layout.memory import load, read, store
from tektite.kernels.layout.rows import address, step_of, value


class Registers(NamedTuple):
    """Addresses of: where each register lies, whether it is the same word in all rows, and a block of `size` words of scratch
    memory for each.
    """

    places: int
    constant: int
    blocks: int
    size: int


@inner
def place_of(registers, r):
    """Where register r lies."""
    return load(registers.places, r)


@inner
def set_place(registers, r, place):
    """Let register r lie at an address."""
    store(registers.places, r, place)


@inner
def block_of(registers, r):
    """The scratch memory of register r."""
    return registers.blocks + 8 * registers.size * r


@inner
def is_constant(registers, r):
    """Whether register r is the same word in all rows."""
    return load(registers.constant, r) != 0


@inner
def can_fail(op):
    """Whether a step of this kind can fail."""
    return (
        (op >= ADD and op <= MUL_FLOOR)
        or op == FLOAT_TO_INT
        or (op >= BIT_AND and op <= SHIFT_RIGHT)
        or op == ADD_MONTHS
        or op == CHECK_PARSED
    )


@inner
def _fill(registers, r, word):
    """Make register r constant."""
    store(registers.constant, r, 1)
    fill_words(block_of(registers, r), 8, 0, registers.size, word)


@inner
def fill_registers(source, program, registers):
    """Give every register a block of scratch memory, fill in constants, and find out which ones are constant."""
    for r in range(program.registers):
        set_place(registers, r, block_of(registers, r))
        store(registers.constant, r, 0)
    for r in range(program.constants):
        _fill(registers, r, load(program.at, HEADER + r))
    for j in range(program.inputs):
        column = input_column(program, j)
        if step_of(source, column) == 0:
            _fill(registers, program.constants + j, value(source, column, 0))
    for k in range(program.first_step, program.end, STEP):
        a = load(registers.constant, load(program.at, k + 2))
        same = a & load(registers.constant, load(program.at, k + 3))
        if not can_fail(load(program.at, k)):  # the guard of what can fail does not change its result
            same &= load(registers.constant, load(program.at, k + 4))
        store(registers.constant, load(program.at, k + 1), same)


@inner
def point_inputs(source, program, registers, start, m):
    """Let the registers of stored input columns hold m rows from `start` on: where they lie, or, if the column is
    narrow, as words in scratch memory. Constant columns were filled in once.
    """
    for j in range(program.inputs):
        r = program.constants + j
        column = input_column(program, j)
        by = step_of(source, column)
        if by == 8:
            set_place(registers, r, address(source, column) + 8 * start)
        elif by != 0:
            copy_words(address(source, column), by, start, start + m, block_of(registers, r), 8)
            set_place(registers, r, block_of(registers, r))


@inner
def gather(source, by, target, selection, m):
    """Write the m selected rows of a column of step `by` to the front of `target`."""
    if by == 8:
        for i in range(m):
            store(target, i, load(source, load(selection, i)))
    else:
        for i in range(m):
            store(target, i, read(source, by, load(selection, i)))


@inner
def compact_registers(program, registers, selection, picked):
    """Bring the selected rows of what the outputs read to the front of registers in scratch memory."""
    for j in range(program.inputs):
        r = program.constants + j
        if is_read_by_outputs(program, j) and not is_constant(registers, r):
            gather(place_of(registers, r), 8, block_of(registers, r), selection, picked)
            set_place(registers, r, block_of(registers, r))
    for j in range(program.kept):
        words = place_of(registers, load(program.at, program.first_kept + j))
        gather(words, 8, words, selection, picked)
