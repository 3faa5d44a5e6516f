"""Runs the steps of a program over all rows, one block at a time: the predicate, then the outputs.

The functions take addresses. Of arrays, Numba would count the references at every branch, and the compiler would take longer for
that than for everything else.
"""

from __future__ import annotations

from typing import NamedTuple

from tektite.kernels.compile import inner
from tektite.kernels.expr.dispatch import step
from tektite.kernels.expr.memo import add_missing, find
from tektite.kernels.expr.program import COLUMN, REGISTER, STEP, output_item, output_kind
from tektite.kernels.expr.registers import compact_registers, gather, place_of, point_inputs, set_place
from tektite.kernels.expr.steps import LIKE, MAP1, MAP2, MEMBER, TEXT_WORD
from tektite.kernels.layout.memory import load, store
from tektite.kernels.layout.rows import address, step_of
from tektite.kernels.text.like import like_block, text_word_block
from tektite.values.words import NULL

BLOCK = 1024  # a register is 8 KiB: a handful fit the first-level cache, dozens the second


class Lookups(NamedTuple):
    """Addresses of what steps look words up in: the tables of memos, texts by their ids, and the set of arguments that these
    lack. The words 2 and 3 of that set are the operands of the step that failed.
    """

    tables: int
    texts: int
    missing: int


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
def run_steps(program, start, stop, n, registers, lookups):
    """Run steps over n rows. Returns (failed step or -1, its row): the failure in the first row that has one, whose
    operands are then in the set of missing arguments.

    A step that failed somewhere runs again row by row, to find the first row that failed under its guard.
    There is one call of `step` for both, since every further one takes long to compile. Failures do not count
    while arguments are missing: they may come of the NULLs that stand in for results.
    """
    tables, texts, missing = lookups.tables, lookups.texts, lookups.missing
    failed = -1
    row = n
    for k in range(start, stop, STEP):
        op = load(program.at, k)
        d = place_of(registers, load(program.at, k + 1))
        a = place_of(registers, load(program.at, k + 2))
        b = place_of(registers, load(program.at, k + 3))
        guard = load(program.at, k + 4)
        c = place_of(registers, guard)
        extra = load(program.at, k + 5)
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
def run_predicate(source, program, rows, registers, lookups, bits):
    """The predicate over all rows, a bit each. Returns (rows that pass, failed step or -1, its row in its block, the
    block's first row)."""
    passed = 0
    for first in range(0, rows, BLOCK):
        m = min(rows - first, BLOCK)
        point_inputs(source, program, registers, first, m)
        failed, row = run_steps(program, program.first_step, program.first_output_step, m, registers, lookups)
        if failed >= 0:
            return passed, failed, row, first
        words = place_of(registers, program.predicate)
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
def run_outputs(source, nd, rest, program, rows, whole, head, registers, lookups, bits, selection):
    """Compute the outputs and, unless all rows passed (`whole`), gather the other columns, into the memory that `head` names.

    Returns (failed step or -1, its row in its block, its row).
    """
    written = 0
    for first in range(0, rows, BLOCK):
        m = min(rows - first, BLOCK)
        picked = m if whole else select_bits(bits, first, m, selection)
        if picked == 0:
            continue
        point_inputs(source, program, registers, first, m)
        # The predicate's steps again, if the outputs need their results.
        for part in range(0 if program.kept > 0 else 1, 2):
            size = m
            begin = program.first_step
            end = program.first_output_step
            if part == 1:
                size = picked
                begin = program.first_output_step
                end = program.end
                if picked < m:
                    compact_registers(program, registers, selection, picked)
                for j in range(program.outputs):
                    if output_kind(program, j) == REGISTER and load(head, 4 + 3 * j) != 0:
                        set_place(registers, output_item(program, j), load(head, 3 + 3 * j) + 8 * written)
            failed, row = run_steps(program, begin, end, size, registers, lookups)
            if failed >= 0:
                return failed, row, first + (row if size == m else load(selection, row))
        if not whole:
            _gather_columns(source, nd, rest, program, head, first, selection, picked, written)
        written += picked
    return -1, 0, 0


@inner
def _gather_columns(source, nd, rest, program, head, first, selection, picked, written):
    """Write the selected rows of a block of the columns that come from the input, `rest` of them times and diffs."""
    for j in range(program.outputs + rest):
        if load(head, 4 + 3 * j) == 0:
            continue
        column = nd + j - program.outputs
        if j < program.outputs:
            if output_kind(program, j) != COLUMN:
                continue
            column = output_item(program, j)
        by = step_of(source, column)
        gather(address(source, column) + by * first, by, load(head, 3 + 3 * j) + 8 * written, selection, picked)
