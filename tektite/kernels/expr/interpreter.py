"""The interpreter of expression programs: rows in, selected and computed rows out, one block of rows at a time.

A program is one int64 array:

    program[0..9]    number of constants, inputs, memos, outputs, kept registers, registers;
                     number of steps of the predicate, of all steps; the predicate's register (-1: none); 0
    constants        their words: registers 0, 1, ...; constant 0 is the word 0 and stands for "no operand"
    inputs           (column, whether the outputs' steps read it): the next registers
    memos            addresses of cells that hold the address of a memo table, a set or a pattern
    outputs          (kind, value): COLUMN number, WORD, or REGISTER number
    kept             registers that the predicate's steps write and the outputs' steps read
    steps            (op, result, a, b, c, extra): the predicate's, then the outputs'

A register is a block of words at an address. A constant is filled in once, a stored input column is used in place, and a
computed output is written to its final place. The result has the rows where the predicate is 1. Outputs' steps run on these
rows only, so a row that is filtered out cannot fail. A failure under a guard (operand c of a step that can fail) counts only
where the guard is 1.

First the predicate runs over all rows and leaves a bit for each. Then the output is allocated at its exact size. If all rows
pass, plain columns, times and diffs share the input's memory.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner, kernel
from tektite.kernels.expr.memo import add_missing, find
from tektite.kernels.expr.steps import (
    ADD,
    ADD_MONTHS,
    BIT_AND,
    CHECK_PARSED,
    FLOAT_TO_INT,
    LIKE,
    MAP1,
    MAP2,
    MEMBER,
    MUL_FLOOR,
    SHIFT_RIGHT,
    TEXT_WORD,
    step,
)
from tektite.kernels.layout.memory import load, read, store
from tektite.kernels.layout.pages import address_of, empty_words
from tektite.kernels.layout.rows import address, copy_words, count, new_head, set_constant, set_stored, step_of
from tektite.kernels.layout.scratch import keep, scratch
from tektite.kernels.text.like import like_block, text_word_block
from tektite.values.words import NULL

BLOCK = 1024  # a register is 8 KiB: a handful fit the first-level cache, dozens the second
HEADER = 10
STEP = 6
COLUMN, WORD, REGISTER = range(3)

SHARES, OWNS, FAILED, MISSING = range(4)  # how a run ended; the first two are success

# The functions that the kernel calls take addresses. Of arrays, Numba would count the references at every branch, and the
# compiler would take longer for that than for everything else.


@inner
def map_block(op, n, d, a, b, c, memo, table, missing):
    """Map n rows through a memo table. Arguments that it lacks go into the set of missing ones, and map to NULL."""
    for i in range(n):
        x = load(a, i)
        y = 0
        z = 0
        null = x == NULL
        if op != MAP1:
            y = load(b, i)
            null |= y == NULL
            if op != MAP2:
                z = load(c, i)
                null |= z == NULL
        result = NULL
        if not null:
            at = find(table, x, y, z)
            if at >= 0:
                result = load(table, at)
            else:
                add_missing(missing, memo, x, y, z)
        store(d, i, result)


@inner
def member_block(n, d, a, b, table):
    """Whether a is in a set: 1, or the default b."""
    for i in range(n):
        x = load(a, i)
        result = NULL
        if x != NULL:
            result = 1 if find(table, x, 0, 0) >= 0 else load(b, i)
        store(d, i, result)


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
def run_steps(program, start, stop, n, registers, tables, texts, missing):
    """Run steps over n rows. Returns (failed step or -1, its row): the failure in the first row that has one, whose
    operands are then missing[2] and [3].

    A step that failed somewhere runs again row by row, to find the first row that failed under its guard.
    There is one call of `step` for both, since every further one takes long to compile. Failures do not count
    while arguments are missing: they may come of the NULLs that stand in for results.
    """
    failed = -1
    row = n
    for k in range(start, stop, STEP):
        op = load(program, k)
        d = load(registers, load(program, k + 1))
        a = load(registers, load(program, k + 2))
        b = load(registers, load(program, k + 3))
        guard = load(program, k + 4)
        c = load(registers, guard)
        extra = load(program, k + 5)
        if op < MAP1:
            at = 0
            size = n
            while True:
                bad = step(op, size, d + at, a + at, b + at, c + at, extra)
                if size != n or n == 1:
                    if bad and at < 8 * row and (guard == 0 or load(c + at, 0) == 1):
                        row = at >> 3
                        failed = k
                        store(missing, 2, load(a + at, 0))  # later steps may take their registers
                        store(missing, 3, load(b + at, 0))
                        break
                    at += 8
                elif not bad:
                    break
                size = 1
                if at >= 8 * row:
                    break
        elif op == MEMBER:
            member_block(n, d, a, b, load(tables, extra))
        elif op == LIKE:
            like_block(n, d, a, load(tables, extra), extra, texts, missing)
        elif op == TEXT_WORD:
            text_word_block(n, d, a, load(tables, extra), extra, texts, missing)
        else:
            map_block(op, n, d, a, b, c, extra, load(tables, extra), missing)
    if load(missing, 0) > 0:
        failed = -1
    return failed, row


@inner
def point_inputs(source, program, registers, start, m, blocks, block):
    """Let the registers of stored input columns hold m rows from `start` on: where they lie, or, if the column is
    narrow, as words in `blocks`. Constant columns were filled in once.
    """
    constants = load(program, 0)
    for j in range(load(program, 1)):
        column = load(program, HEADER + constants + 2 * j)
        by = step_of(source, column)
        if by == 8:
            store(registers, constants + j, address(source, column) + 8 * start)
        elif by != 0:
            place = blocks + 8 * block * (constants + j)
            copy_words(address(source, column), by, start, start + m, place, 8)
            store(registers, constants + j, place)


@inner
def fill_registers(source, program, registers, constant, blocks, block):
    """Give every register a block of scratch memory, fill in constants, and find out which ones are constant."""
    constants, inputs, width = load(program, 0), load(program, 1), load(program, 5)
    for r in range(width):
        store(registers, r, blocks + 8 * block * r)
        store(constant, r, 0)
    for r in range(constants):
        store(constant, r, 1)
        word = load(program, HEADER + r)
        for i in range(block):
            store(blocks, r * block + i, word)
    for j in range(inputs):
        column = load(program, HEADER + constants + 2 * j)
        if step_of(source, column) == 0:
            r = constants + j
            store(constant, r, 1)
            word = load(source, 5 + 3 * column)
            for i in range(block):
                store(blocks, r * block + i, word)
    start = HEADER + constants + 2 * inputs + load(program, 2) + 2 * load(program, 3) + load(program, 4)
    for k in range(start, start + STEP * load(program, 7), STEP):
        same = load(constant, load(program, k + 2)) & load(constant, load(program, k + 3))
        if not can_fail(load(program, k)):  # the guard of what can fail does not change its result
            same &= load(constant, load(program, k + 4))
        store(constant, load(program, k + 1), same)


@inner
def run_predicate(source, program, start, stop, rows, registers, tables, texts, missing, bits, blocks, block):
    """The predicate over all rows, a bit each. Returns (rows that pass, failed step or -1, its row in its block, the
    block's first row)."""
    truth = load(program, 8)
    passed = 0
    for first in range(0, rows, BLOCK):
        m = min(rows - first, BLOCK)
        point_inputs(source, program, registers, first, m, blocks, block)
        failed, row = run_steps(program, start, stop, m, registers, tables, texts, missing)
        if failed >= 0:
            return passed, failed, row, first
        words = load(registers, truth)
        for i in range(0, m, 64):
            word = 0
            for j in range(min(64, m - i)):
                bit = 1 if load(words, i + j) == 1 else 0
                word |= bit << j
                passed += bit
            store(bits, (first + i) >> 6, word)
    return passed, -1, 0, 0


@inner
def select_bits(bits, first, m, selection):
    """Write the positions of the bits that are set among m from `first` on; their number."""
    picked = 0
    for i in range(0, m, 64):
        word = load(bits, (first + i) >> 6)
        if word != 0:
            for j in range(min(64, m - i)):
                store(selection, picked, i + j)
                picked += (word >> j) & 1
    return picked


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
def compact_registers(program, registers, constant, selection, picked, blocks, block):
    """Bring the selected rows of what the outputs read to the front of registers in `blocks`."""
    constants, inputs = load(program, 0), load(program, 1)
    for j in range(inputs):
        r = constants + j
        if load(program, HEADER + constants + 2 * j + 1) != 0 and load(constant, r) == 0:
            place = blocks + 8 * block * r
            gather(load(registers, r), 8, place, selection, picked)
            store(registers, r, place)
    at_kept = HEADER + constants + 2 * inputs + load(program, 2) + 2 * load(program, 3)
    for j in range(load(program, 4)):
        words = load(registers, load(program, at_kept + j))
        gather(words, 8, words, selection, picked)


@inner
def run_outputs(
    source, nd, rest, program, rows, whole, head, registers, constant, tables, texts, missing, bits, selection, blocks, block
):  # fmt: skip
    """Compute the outputs and, unless all rows passed, gather the other columns, into the memory that `head` names.

    Returns (failed step or -1, its row in its block, its row).
    """
    outputs, kept = load(program, 3), load(program, 4)
    at_outputs = HEADER + load(program, 0) + 2 * load(program, 1) + load(program, 2)
    at_steps = at_outputs + 2 * outputs + kept
    at_second = at_steps + STEP * load(program, 6)
    at_end = at_steps + STEP * load(program, 7)
    written = 0
    for first in range(0, rows, BLOCK):
        m = min(rows - first, BLOCK)
        picked = m if whole else select_bits(bits, first, m, selection)
        if picked == 0:
            continue
        point_inputs(source, program, registers, first, m, blocks, block)
        for part in range(0 if kept > 0 else 1, 2):  # the predicate's steps again, if the outputs need their results
            size = m
            if part == 1:
                size = picked
                if picked < m:
                    compact_registers(program, registers, constant, selection, picked, blocks, block)
                for j in range(outputs):
                    if load(program, at_outputs + 2 * j) == REGISTER and load(head, 4 + 3 * j) != 0:
                        store(registers, load(program, at_outputs + 2 * j + 1), load(head, 3 + 3 * j) + 8 * written)
            begin = at_steps if part == 0 else at_second
            end = at_second if part == 0 else at_end
            failed, row = run_steps(program, begin, end, size, registers, tables, texts, missing)
            if failed >= 0:
                return failed, row, first + (row if size == m else load(selection, row))
        if not whole:
            for j in range(outputs + rest):
                if load(head, 4 + 3 * j) != 0:
                    column = nd + j - outputs
                    if j < outputs:
                        if load(program, at_outputs + 2 * j) != COLUMN:
                            continue
                        column = load(program, at_outputs + 2 * j + 1)
                    target = load(head, 3 + 3 * j) + 8 * written
                    by = step_of(source, column)
                    gather(address(source, column) + by * first, by, target, selection, picked)
        written += picked
    return -1, 0, 0


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
def place_columns(source, nd, nt, nf, lo, program, constant, passed, clamp, head):
    """Fill in the head of the result: columns of the input, constants, and columns to be written.

    The address of a column to be written is its position in the buffer, in words; its step is -1 until the buffer
    is there. Returns the size of the buffer.
    """
    outputs = load(program, 3)
    at_outputs = HEADER + load(program, 0) + 2 * load(program, 1) + load(program, 2)
    whole = passed == count(source)
    size = 0
    for j in range(outputs + nt + nf):
        kind = COLUMN
        item = nd + j - outputs
        if j < outputs:
            kind = load(program, at_outputs + 2 * j)
            item = load(program, at_outputs + 2 * j + 1)
        write = False
        if kind == WORD:
            set_constant(head, j, item)
        elif kind == REGISTER:
            write = load(constant, item) == 0
            for other in range(j):  # an earlier output in the same register
                if write and load(program, at_outputs + 2 * other) == REGISTER:
                    if load(program, at_outputs + 2 * other + 1) == item:
                        head[3 + 3 * j] = head[3 + 3 * other]
                        head[4 + 3 * j] = -1
                        write = False
        elif step_of(source, item) == 0:
            word = load(source, 5 + 3 * item)
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


@kernel("Tuple((int64, int64[::1], int64[::1]))(int64, int64, int64, int64, int64, int64, int64, int64[::1])")
def run_program(source, nd, nt, nf, lo, most, texts, words):
    """Run a program on the rows at `source`: (how it ended, buf, head). `texts` is where a program that matches patterns
    finds texts by their ids (see `tektite.kernels.text.strings`).

    SHARES: `head` describes the rows, some of whose columns are the input's memory, others lie in `buf`.
    OWNS: the same, but no column is the input's. FAILED: `buf` is (step, row, operand, operand).
    MISSING: `buf` holds arguments that memos lack, and ids that `texts` lacks, at most `most`, a power of two, laid out as
    `add_missing` says; Python evaluates or finds them and runs the program again.
    """
    program = address_of(words)
    constants, inputs, memos, outputs, width = words[0], words[1], words[2], words[3], words[5]
    at_inputs = HEADER + constants
    at_memos = at_inputs + 2 * inputs
    at_outputs = at_memos + memos
    at_steps = at_outputs + 2 * outputs + words[4]
    at_second = at_steps + STEP * words[6]
    at_end = at_steps + STEP * words[7]
    filters = words[8] >= 0
    computes = at_end > at_steps or filters
    n = count(source)
    columns = outputs + nt + nf
    if nt == 0:
        lo = NULL

    # When every input column is constant, one row stands for all.
    rows = min(n, 1)
    for j in range(inputs):
        if step_of(source, load(program, at_inputs + 2 * j)) != 0:
            rows = n
    block = min(rows, BLOCK)

    # Working memory, all of it: registers, which of them are constant, tables, selection, bits, blocks.
    room = 0
    if memos > 0:
        room = 1
        while room < min(rows * memos, most):
            room *= 2
    missing = np.zeros(4 + 6 * room, np.int64)
    missing[1] = room
    if not computes:
        width = 0
        block = 0
    memory, (registers, constant, tables, selection, bits, blocks) = scratch(
        (width, width, memos, block, (rows + 63) >> 6 if computes else 0, width * block)
    )

    ended = OWNS
    failed, row, original = -1, 0, 0
    passed = n
    if computes:
        fill_registers(source, program, registers, constant, blocks, block)
        for j in range(memos):
            store(tables, j, load(load(program, at_memos + j), 0))
        if filters:
            passed, failed, row, first = run_predicate(
                source, program, at_steps, at_second, rows, registers, tables, texts, address_of(missing), bits, blocks, block
            )  # fmt: skip
            original = first + row
            if rows < n:
                passed *= n
    whole = passed == n

    head = new_head(passed, columns)
    size = 0
    clamp = False
    if failed < 0 and passed > 0:
        clamp = has_earlier(source, nd, lo)
        size = place_columns(source, nd, nt, nf, lo, program, constant, passed, clamp, head)
    buf = empty_words(size)
    for j in range(columns):
        if head[4 + 3 * j] == -1:
            set_stored(head, j, address_of(buf) + 8 * head[3 + 3 * j])
        elif head[4 + 3 * j] != 0:
            ended = SHARES

    if failed < 0 and passed > 0:
        if computes and (at_end > at_second or not whole):
            failed, row, original = run_outputs(
                source, nd, nt + nf, program, rows, whole, head[1], registers, constant, tables,
                texts, address_of(missing), bits, selection, blocks, block,
            )  # fmt: skip
        if clamp:
            epochs = head[3 + 3 * outputs]
            origin = address(source, nd) if whole else epochs
            by = step_of(source, nd) if whole else 8
            for i in range(passed):
                store(epochs, i, max(read(origin, by, i), lo))
        for j in range(outputs):
            if words[at_outputs + 2 * j] == REGISTER and head[4 + 3 * j] == 0:
                set_constant(head, j, load(load(registers, words[at_outputs + 2 * j + 1]), 0))
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
        buf[0] = failed - at_steps
        buf[1] = original
        buf[2] = missing[2]
        buf[3] = missing[3]
    elif passed == 1 and ended == OWNS:
        buf = np.empty(0, np.int64)
    keep(memory)
    return ended, buf, head
