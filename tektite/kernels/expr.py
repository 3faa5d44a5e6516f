"""The interpreter of expression programs: rows in, selected and computed rows out, one block of rows at a time.

A program is one int64 array:

    program[0..9]    number of constants, inputs, memos, outputs, kept registers, registers;
                     number of steps of the predicate, of all steps; the predicate's register (-1: none); 0
    constants        their words: registers 0, 1, ...; constant 0 is the word 0 and stands for "no operand"
    inputs           (column, whether the outputs' steps read it): the next registers
    memos            addresses of cells that hold the address of a memo table
    outputs          (kind, value): COLUMN number, WORD, or REGISTER number
    kept             registers that the predicate's steps write and the outputs' steps read
    steps            (op, result, a, b, c, extra): the predicate's, then the outputs'

A register is a block of words at an address: a constant is filled in once, a stored input column lies where it is,
a computed output is written where it goes. The rows that come out are those where the predicate is 1. Outputs' steps
run on these alone, so a row that is filtered out cannot fail. What fails under a guard (operand c of a step that can
fail) counts only where the guard is 1.

First the predicate runs over all rows and leaves a bit each; then the output is allocated at its exact size.
When all rows pass, plain columns, times and diffs are the input's memory.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner, kernel
from tektite.kernels.expr_steps import (
    ADD,
    ADD_MONTHS,
    BIT_AND,
    CHECK_PARSED,
    FLOAT_TO_INT,
    MAP1,
    MAP2,
    MEMBER,
    MUL,
    SHIFT_RIGHT,
    step,
)
from tektite.kernels.memo import add_missing, find, new_missing
from tektite.kernels.memory import load, store
from tektite.kernels.rows import address, copy_column, count, mask, new_head, set_constant, set_stored
from tektite.words import NULL

BLOCK = 1024  # a register is 8 KiB: a handful fit the first-level cache, dozens the second
WORDS = BLOCK // 64
HEADER = 10
STEP = 6

COLUMN, WORD, REGISTER = range(3)

SHARES, OWNS, FAILED, MISSING = range(4)  # how a run ended; the first two are success


@inner
def map_block(op, n, d, a, b, c, memo, table, records, index):
    """Map n rows through a memo table; what it lacks goes into the set of missing arguments and maps to NULL."""
    for i in range(n):
        x = load(a, i)
        y = 0
        z = 0
        null = x == NULL
        if op == MAP2:
            y = load(b, i)
            null |= y == NULL
        elif op != MAP1:
            y = load(b, i)
            z = load(c, i)
            null |= (y == NULL) | (z == NULL)
        result = NULL
        if not null:
            at = find(table, x, y, z)
            if at >= 0:
                result = load(table, at)
            else:
                records, index = add_missing(records, index, memo, x, y, z)
        store(d, i, result)
    return records, index


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
    return (
        (op >= ADD and op <= MUL)
        or op == FLOAT_TO_INT
        or (op >= BIT_AND and op <= SHIFT_RIGHT)
        or op == ADD_MONTHS
        or op == CHECK_PARSED
    )


@inner
def run_steps(program, start, stop, n, registers, tables, records, index):
    """Run steps over n rows. Returns (failed step or -1, its row, records, index): the failure in the first row.

    A step that failed somewhere runs again row by row, to find the first row that failed under its guard.
    There is one call of `step` for both, since every further one costs seconds to compile.
    """
    failed = -1
    row = n
    for k in range(start, stop, STEP):
        op = program[k]
        d = registers[program[k + 1]]
        a = registers[program[k + 2]]
        b = registers[program[k + 3]]
        c = registers[program[k + 4]]
        extra = program[k + 5]
        if op < MAP1:
            at = -8
            while True:
                bad = step(op, n if at < 0 else 1, d + max(at, 0), a + max(at, 0), b + max(at, 0), c + max(at, 0), extra)
                if at < 0:
                    if not bad:
                        break
                elif bad and (program[k + 4] == 0 or load(c + at, 0) == 1):
                    row = at >> 3
                    failed = k
                    break
                at += 8
                if at >= 8 * row:
                    break
        elif op == MEMBER:
            member_block(n, d, a, b, tables[extra])
        else:
            records, index = map_block(op, n, d, a, b, c, extra, tables[extra], records, index)
    return failed, row, records, index


@inner
def point_inputs(source, program, first, registers, start):
    """Let the registers of stored input columns point at row `start`. Constant columns were filled in once."""
    constants, inputs = program[0], program[1]
    for j in range(inputs):
        column = program[first + 2 * j]
        if mask(source, column) != 0:
            registers[constants + j] = address(source, column) + 8 * start


@inner
def gather(source, target, selection, m):
    for i in range(m):
        store(target, i, load(source, selection[i]))


@inner
def failure(program, k, start, registers, row, original):
    """What Python needs to name a failure: the step's number, the row, and its operands."""
    report = np.empty(4, np.int64)
    report[0] = k - start
    report[1] = original
    report[2] = load(registers[program[k + 2]], row)
    report[3] = load(registers[program[k + 3]], row)
    return report


@inner
def share_epoch(source, column, lo, head, target, buf, clamp):
    """Put the epoch column, clamped to at least `lo`, into `head`: into `buf` if it is stored and `clamp` says so."""
    if mask(source, column) == 0:
        set_constant(head, target, max(load(source, 5 + 3 * column), lo))
    elif not clamp:
        copy_column(source, column, head, target)
    else:
        where = buf.ctypes.data
        words = address(source, column)
        for i in range(count(source)):
            store(where, i, max(load(words, i), lo))
        set_stored(head, target, where)


@inner
def has_earlier(source, column, lo):
    """Whether a stored column has a word below lo."""
    if lo == NULL or mask(source, column) == 0:
        return False
    words = address(source, column)
    for i in range(count(source)):
        if load(words, i) < lo:
            return True
    return False


@kernel("Tuple((int64, int64[::1], int64[::1]))(int64, int64, int64, int64, int64, int64[::1])")
def run_program(source, nd, nt, nf, lo, program):
    """Run a program on the rows at `source`: (how it ended, buf, head).

    SHARES: `head` describes the rows, some of whose columns are the input's memory, others lie in `buf`.
    OWNS: the same, but no column is the input's. FAILED: `buf` is (step, row, operand, operand).
    MISSING: `buf` holds the arguments that memos lack: their number n, three unused words, n records of
    (memo, word, word, word); Python evaluates them and runs the program again.
    """
    constants, inputs, memos, outputs, kept, width = (
        program[0],
        program[1],
        program[2],
        program[3],
        program[4],
        program[5],
    )
    predicate = program[8]
    at_inputs = HEADER + constants
    at_memos = at_inputs + 2 * inputs
    at_outputs = at_memos + memos
    at_kept = at_outputs + 2 * outputs
    at_steps = at_kept + kept
    at_second = at_steps + STEP * program[6]
    at_end = at_steps + STEP * program[7]
    n = count(source)
    if nt == 0:
        lo = NULL
    columns = outputs + nt + nf

    # Nothing to compute: the head is all there is to write.
    if at_end == at_steps and predicate < 0:
        clamp = has_earlier(source, nd, lo)
        buf = np.empty(n if clamp else 0, np.int64)
        head = new_head(n, columns)
        for j in range(outputs):
            item = program[at_outputs + 2 * j + 1]
            if program[at_outputs + 2 * j] == COLUMN:
                copy_column(source, item, head, j)
            else:
                set_constant(head, j, item)
        if nt > 0:
            share_epoch(source, nd, lo, head, outputs, buf, clamp)
        for j in range(min(nt, 1), nt + nf):
            copy_column(source, nd + j, head, outputs + j)
        return SHARES, buf, head

    # When every input column is constant, one row stands for all.
    alike = True
    for j in range(inputs):
        if mask(source, program[at_inputs + 2 * j]) != 0:
            alike = False
    rows = min(n, 1) if alike else n
    block = min(rows, BLOCK)

    registers = np.empty(width, np.int64)
    constant = np.zeros(width, np.int64)
    scratch = np.empty(width * block + 1, np.int64)  # one more, so that `scratch[0]` exists without rows, too
    for r in range(width):
        registers[r] = scratch.ctypes.data + 8 * block * r
    for r in range(constants):
        constant[r] = 1
        for i in range(block):
            scratch[r * block + i] = program[HEADER + r]
    for j in range(inputs):
        column = program[at_inputs + 2 * j]
        if mask(source, column) == 0:
            constant[constants + j] = 1
            word = load(source, 5 + 3 * column)
            for i in range(block):
                scratch[(constants + j) * block + i] = word
    for k in range(at_steps, at_end, STEP):
        third = 1 if can_fail(program[k]) else constant[program[k + 4]]  # a guard does not change the result
        constant[program[k + 1]] = constant[program[k + 2]] & constant[program[k + 3]] & third
    tables = np.empty(memos, np.int64)
    for j in range(memos):
        tables[j] = load(program[at_memos + j], 0)
    records, index = new_missing(0 if memos == 0 else 64)
    nothing = np.empty(0, np.int64)

    # The predicate over all rows: a bit each.
    passed = n
    bits = np.empty(0, np.int64)
    if predicate >= 0:
        bits = np.zeros((rows + 63) // 64, np.int64)
        passed = 0
        for start in range(0, rows, BLOCK):
            m = min(rows - start, BLOCK)
            point_inputs(source, program, at_inputs, registers, start)
            failed, row, records, index = run_steps(
                program, at_steps, at_second, m, registers, tables, records, index
            )
            if failed >= 0 and records[0] == 0:
                report = failure(program, failed, at_steps, registers, row, start + row)
                scratch[0] = 0
                return FAILED, report, nothing
            truth = registers[predicate]
            for i in range(0, m, 64):
                word = 0
                for j in range(min(64, m - i)):
                    word |= (1 if load(truth, i + j) == 1 else 0) << j
                bits[(start + i) >> 6] = word
            for i in range(m):
                passed += 1 if load(truth, i) == 1 else 0
        if alike:
            passed *= n
        if records[0] > 0 and passed == 0:
            scratch[0] = 0
            return MISSING, records, nothing

    # Which columns of the output are stored, and where in buf.
    whole = passed == n
    clamp = False
    head = new_head(passed, columns)
    size = 0
    if passed > 0:
        for j in range(outputs):
            kind = program[at_outputs + 2 * j]
            item = program[at_outputs + 2 * j + 1]
            if kind == WORD:
                set_constant(head, j, item)
            elif kind == COLUMN:
                if whole or mask(source, item) == 0:
                    copy_column(source, item, head, j)
                else:
                    set_stored(head, j, size)
                    size += passed
            elif constant[item] == 0:
                same = -1  # an earlier output in the same register
                for other in range(j):
                    if program[at_outputs + 2 * other] == REGISTER and program[at_outputs + 2 * other + 1] == item:
                        same = other
                if same >= 0:
                    set_stored(head, j, head[3 + 3 * same])
                else:
                    set_stored(head, j, size)
                    size += passed
        clamp = has_earlier(source, nd, lo)
        for j in range(nt + nf):
            if mask(source, nd + j) == 0:
                word = load(source, 5 + 3 * (nd + j))
                set_constant(head, outputs + j, max(word, lo) if j == 0 else word)
            elif whole and not (j == 0 and clamp):
                copy_column(source, nd + j, head, outputs + j)
            else:
                set_stored(head, outputs + j, size)
                size += passed
    buf = np.empty(size, np.int64)
    base = buf.ctypes.data
    owns = True
    for j in range(columns):
        if head[4 + 3 * j] != 0:
            own = not whole
            if j < outputs:
                own |= program[at_outputs + 2 * j] == REGISTER
            elif j == outputs:
                own |= clamp
            if own:
                head[3 + 3 * j] = base + 8 * head[3 + 3 * j]
            else:
                owns = False

    # The outputs over the rows that passed.
    selection = np.empty(block, np.int64)
    written = 0
    work = at_end > at_second
    for start in range(0, rows if passed > 0 and (work or not whole) else 0, BLOCK):
        m = min(rows - start, BLOCK)
        picked = m
        if not whole:
            picked = 0
            for i in range(0, m, 64):
                word = bits[(start + i) >> 6]
                if word != 0:
                    for j in range(min(64, m - i)):
                        selection[picked] = i + j
                        picked += (word >> j) & 1
            if picked == 0:
                continue
        if work:
            point_inputs(source, program, at_inputs, registers, start)
            if kept > 0:
                failed, row, records, index = run_steps(
                    program, at_steps, at_second, m, registers, tables, records, index
                )
            if picked < m:
                for j in range(inputs):
                    r = constants + j
                    if program[at_inputs + 2 * j + 1] != 0 and constant[r] == 0:
                        place = scratch.ctypes.data + 8 * block * r
                        gather(registers[r], place, selection, picked)
                        registers[r] = place
                for j in range(kept):
                    r = program[at_kept + j]
                    gather(registers[r], registers[r], selection, picked)
            for j in range(outputs):
                if program[at_outputs + 2 * j] == REGISTER and head[4 + 3 * j] != 0:
                    registers[program[at_outputs + 2 * j + 1]] = head[3 + 3 * j] + 8 * written
            failed, row, records, index = run_steps(
                program, at_second, at_end, picked, registers, tables, records, index
            )
            if failed >= 0 and records[0] == 0:
                original = start + (row if picked == m else selection[row])
                report = failure(program, failed, at_steps, registers, row, original)
                scratch[0] = 0
                return FAILED, report, nothing
        if not whole:
            for j in range(outputs):
                if program[at_outputs + 2 * j] == COLUMN and head[4 + 3 * j] != 0:
                    words = address(source, program[at_outputs + 2 * j + 1])
                    gather(words + 8 * start, head[3 + 3 * j] + 8 * written, selection, picked)
            for j in range(nt + nf):
                if head[4 + 3 * (outputs + j)] != 0:
                    target = head[3 + 3 * (outputs + j)] + 8 * written
                    gather(address(source, nd + j) + 8 * start, target, selection, picked)
        written += picked
    if records[0] > 0:
        scratch[0] = 0
        return MISSING, records, nothing

    if passed > 0:
        if clamp:
            words = head[3 + 3 * outputs]
            origin = address(source, nd) if whole else words
            for i in range(passed):
                store(words, i, max(load(origin, i), lo))
        for j in range(outputs):
            if program[at_outputs + 2 * j] == REGISTER and head[4 + 3 * j] == 0:
                set_constant(head, j, load(registers[program[at_outputs + 2 * j + 1]], 0))
    if passed == 1 and owns and size > 0:  # a single row needs no memory of its own
        for j in range(columns):
            if head[4 + 3 * j] != 0:
                set_constant(head, j, load(head[3 + 3 * j], 0))
        buf[0] = 0
        buf = nothing
    scratch[0] = 0
    return OWNS if owns else SHARES, buf, head
