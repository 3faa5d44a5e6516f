"""The interpreter of expression programs: rows in, selected and computed rows out, one block of rows at a time.

A program (see program.py) has steps of a predicate and steps of outputs. The result has the rows where the predicate is 1.
Outputs' steps run on these rows only, so a row that is filtered out cannot fail. A failure under a guard (operand c of a step
that can fail) counts only where the guard is 1.

First the predicate runs over all rows and leaves a bit for each. Then the output is allocated at its exact size. If all rows
pass, plain columns, times and diffs share the input's memory.

Short names: rows have `nd` data, `nt` time and `nf` diff columns; `lo` is the least epoch.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner, kernel
from tektite.kernels.expr.program import COLUMN, REGISTER, WORD, input_column, output_item, output_kind, program_of
from tektite.kernels.expr.registers import Registers, fill_registers, is_constant, place_of
from tektite.kernels.expr.run import BLOCK, Lookups, run_outputs, run_predicate
from tektite.kernels.layout.memory import load, read, store
from tektite.kernels.layout.pages import address_of, empty_words
from tektite.kernels.layout.rows import address, count, new_head, set_constant, set_stored, step_of, value
from tektite.kernels.layout.scratch import keep, scratch
from tektite.values.words import NULL

SHARES, OWNS, FAILED, MISSING = range(4)  # how a run ended; the first two are success


@inner
def has_earlier(source, column, lo):
    """Whether a stored column has a word below lo."""
    if lo == NULL or step_of(source, column) == 0:
        return False
    words = address(source, column)
    by = step_of(source, column)
    for i in range(count(source)):
        if read(words, by, i) < lo:
            return True
    return False


@inner
def _describe_result(source, nd, nt, nf, lo, program, registers, passed, clamp, head):
    """Fill in the head of the result: columns of the input, constants, and columns to be written.

    The address of a column to be written is its position in the buffer, in words; its step is -1 until the buffer
    is there. Returns the size of the buffer.
    """
    outputs = program.outputs
    whole = passed == count(source)
    size = 0
    for j in range(outputs + nt + nf):
        kind = COLUMN
        item = nd + j - outputs
        if j < outputs:
            kind = output_kind(program, j)
            item = output_item(program, j)
        write = False
        if kind == WORD:
            set_constant(head, j, item)
        elif kind == REGISTER:
            write = not is_constant(registers, item)
            for other in range(j):  # an earlier output in the same register
                if write and output_kind(program, other) == REGISTER:
                    if output_item(program, other) == item:
                        head[3 + 3 * j] = head[3 + 3 * other]
                        head[4 + 3 * j] = -1
                        write = False
        elif step_of(source, item) == 0:
            word = value(source, item, 0)
            set_constant(head, j, max(word, lo) if j == outputs and nt > 0 else word)
        elif whole and not (clamp and j == outputs):
            set_stored(head, j, address(source, item), step_of(source, item))
        else:
            write = True
        if write:
            head[3 + 3 * j] = size
            head[4 + 3 * j] = -1
            size += passed
    return size


@inner
def _rows_to_run(source, program):
    """How many rows a program runs on. When every input column is constant, one row stands for all."""
    for j in range(program.inputs):
        if step_of(source, input_column(program, j)) != 0:
            return count(source)
    return min(count(source), 1)


@inner
def _new_missing(rows, memos, most):
    """An empty set for arguments that memos lack, `most` of them at most (see `add_missing`)."""
    room = 0
    if memos > 0:
        room = 1
        while room < min(rows * memos, most):
            room *= 2
    missing = np.zeros(4 + 6 * room, np.int64)
    missing[1] = room
    return missing


@kernel("Tuple((int64, int64[::1], int64[::1]))(int64, int64, int64, int64, int64, int64, int64, int64[::1])")
def run_program(source, nd, nt, nf, lo, most, texts, words):
    """Run a program on the rows at `source`: (how it ended, buf, head). `texts` is where a program that matches patterns
    finds texts by their ids (see `tektite.kernels.text.strings`).

    SHARES: `head` describes the rows, some of whose columns are the input's memory, others lie in `buf`.
    OWNS: the same, but no column is the input's. FAILED: `buf` is (step, row, operand, operand).
    MISSING: `buf` holds arguments that memos lack, and ids that `texts` lacks, at most `most`, a power of two, laid out as
    `add_missing` says; Python evaluates or finds them and runs the program again.
    """
    program = program_of(address_of(words))
    outputs = program.outputs
    filters = program.predicate >= 0
    computes = program.end > program.first_step or filters
    n = count(source)
    columns = outputs + nt + nf
    if nt == 0:
        lo = NULL

    rows = _rows_to_run(source, program)
    missing = _new_missing(rows, program.memos, most)
    width = program.registers if computes else 0
    block = min(rows, BLOCK) if computes else 0
    memory, (places, constant, tables, selection, bits, blocks) = scratch(
        (width, width, program.memos, block, (rows + 63) >> 6 if computes else 0, width * block)
    )
    registers = Registers(places, constant, blocks, block)
    lookups = Lookups(tables, texts, address_of(missing))

    ended = OWNS
    failed, row, original = -1, 0, 0
    passed = n
    if computes:
        fill_registers(source, program, registers)
        for j in range(program.memos):
            store(tables, j, load(load(program.at, program.first_memo + j), 0))
        if filters:
            passed, failed, row, first = run_predicate(source, program, rows, registers, lookups, bits)
            original = first + row
            if rows < n:
                passed *= n
    whole = passed == n

    head = new_head(passed, columns)
    size = 0
    clamp = False
    if failed < 0 and passed > 0:
        clamp = has_earlier(source, nd, lo)
        size = _describe_result(source, nd, nt, nf, lo, program, registers, passed, clamp, head)
    buf = empty_words(size)
    for j in range(columns):
        if head[4 + 3 * j] == -1:
            set_stored(head, j, address_of(buf) + 8 * head[3 + 3 * j])
        elif head[4 + 3 * j] != 0:
            ended = SHARES

    if failed < 0 and passed > 0:
        if computes and (program.end > program.first_output_step or not whole):
            failed, row, original = run_outputs(
                source, nd, nt + nf, program, rows, whole, head[1], registers, lookups, bits, selection
            )
        if clamp:
            epochs = head[3 + 3 * outputs]
            origin = address(source, nd) if whole else epochs
            by = step_of(source, nd) if whole else 8
            for i in range(passed):
                store(epochs, i, max(read(origin, by, i), lo))
        for j in range(outputs):
            if output_kind(program, j) == REGISTER and head[4 + 3 * j] == 0:
                set_constant(head, j, load(place_of(registers, output_item(program, j)), 0))
        if passed == 1 and ended == OWNS:  # a single row needs no memory of its own
            for j in range(columns):
                if head[4 + 3 * j] != 0:
                    set_constant(head, j, load(head[3 + 3 * j], 0))

    if missing[0] > 0:
        ended = MISSING
        buf = missing
    elif failed >= 0:
        ended = FAILED
        buf = np.empty(4, np.int64)
        buf[0] = failed - program.first_step
        buf[1] = original
        buf[2] = missing[2]
        buf[3] = missing[3]
    elif passed == 1 and ended == OWNS:
        buf = np.empty(0, np.int64)
    keep(memory)
    return ended, buf, head
