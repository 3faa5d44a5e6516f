"""What the paths of a reduce share, and the paths that evaluate a whole block of keys at one epoch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tektite.kernels.compile import inner
from tektite.kernels.layout.memory import load, read, store
from tektite.kernels.layout.rows import address, step_of, value
from tektite.kernels.operators.aggregate import accumulate_block, accumulate_row, finish_block
from tektite.kernels.operators.emit import write_block
from tektite.kernels.operators.epochs import HIDDEN, later_work, push_todo, scan_history
from tektite.kernels.operators.sources import head_of, is_lone, shown, test_of, time_of, times_of
from tektite.kernels.operators.values import output_value, top_value
from tektite.kernels.operators.wide import sum_overflows
from tektite.kernels.seek.keys import BLOCK

# Words of scratch memory in which `output_value` lists rows.
FOUND = 32


class Shape(NamedTuple):
    """What is reduced: numbers of columns, whether old results come from the output, and whether values count from the last."""

    kc: int  # key columns
    nd: int  # data columns of the input
    nt: int  # time columns of the work and the output
    nt_in: int  # time columns of the input
    nf: int  # diff columns of the input that are summed, one for each
    vo: int  # value columns of the output
    from_output: bool
    backward: bool


class Sums(NamedTuple):
    """How sums are kept: whether the operator is LINEAR, how many float columns it sums, how many accumulators a key has, and the
    least multiplicity of AT_LEAST.
    """

    linear: bool
    floats: int
    slots: int
    least: int


class Block(NamedTuple):
    """Addresses of the sources' table, and of what is known of the present block of keys (see sources.py). `results` has room for
    the block's old and new results, `found` is scratch memory of `output_value`.
    """

    table: int
    cursors: int
    begin: int
    end: int
    keys: int
    firsts: int
    results: int
    found: int


class Numbers(NamedTuple):
    """Sources 0..history-1 are the input's, up to past-1 the output's, up to all-1 the work. Results are computed from sources
    0..want-1: where old results come from the input, these are the old input and the work.
    """

    history: int
    past: int
    all: int
    want: int


class SweepBounds(NamedTuple):
    """The address of the moment's rounds, the epochs lo..hi-1, and the one epoch at which all keys are evaluated, or -1."""

    rounds: int
    lo: int
    hi: int
    only: int


@inner
def first_row(block, s, j):
    """The first row of key j in source s."""
    return load(block.begin, s * BLOCK + j)


@inner
def end_row(block, s, j):
    """The end of the rows of key j in source s."""
    return load(block.end, s * BLOCK + j)


@inner
def diff_of(table, s):
    """The first diff column of source s."""
    return time_of(table, s) + times_of(table, s)


@inner
def without_known(table, n_history, n_past, n_all, begin, end, keys, many, kc, rounds, only):
    """Drop the keys of a block that are shown already and only gain: the output, whose ranges are known, shows each of them once,
    now and later, and no diff of its work is below 1. (Work that was put off has the diff -1.) Nothing changes for such a key, so
    the input need not be read. The other keys move up. Returns how many they are.
    """
    kept = 0
    for j in range(many):
        total = 0
        known = True
        for s in range(n_history, n_past):
            head = head_of(table, s)
            time_at = time_of(table, s)
            times = times_of(table, s)
            tested = test_of(table, s) != 0
            for i in range(load(begin, s * BLOCK + j), load(end, s * BLOCK + j)):
                if tested:
                    known &= shown(head, time_at, times, i, rounds) and value(head, time_at, i) <= only
                total += value(head, time_at + times, i)
        known &= total == 1
        if known:
            for s in range(n_past, n_all):
                head = head_of(table, s)
                time_at = time_of(table, s)
                for i in range(load(begin, s * BLOCK + j), load(end, s * BLOCK + j)):
                    known &= value(head, time_at + times_of(table, s), i) > 0
        if known:
            continue
        if kept < j:
            for c in range(kc):
                store(keys, c * BLOCK + kept, load(keys, c * BLOCK + j))
            for s in range(n_history, n_all):
                store(begin, s * BLOCK + kept, load(begin, s * BLOCK + j))
                store(end, s * BLOCK + kept, load(end, s * BLOCK + j))
        kept += 1
    return kept


@inner
def all_shown(table, n_history, n_past, begin, end, many, rounds, only, least, results):
    """Whether two sums are enough for a block's keys: every row is shown and not later than `only`, the sums fit, and the
    output's differences add up to 1 or 0 for each key. If so, writes to `results`, as for `write_block`, whether each key was
    there (by the output, sources n_history..n_past) and is there now (by the input).
    """
    for j in range(2 * BLOCK):
        store(results, j, 0)
    for s in range(n_past):
        head = head_of(table, s)
        time_at = time_of(table, s)
        diff_at = time_at + times_of(table, s)
        at = address(head, diff_at)
        by = step_of(head, diff_at)
        side = BLOCK if s < n_history else 0
        tested = test_of(table, s) != 0
        times = times_of(table, s)
        for j in range(many):
            total = load(results, side + j)
            for i in range(load(begin, s * BLOCK + j), load(end, s * BLOCK + j)):
                if tested and (not shown(head, time_at, times, i, rounds) or value(head, time_at, i) > only):
                    return False
                diff = read(at, by, i)
                if sum_overflows(total, diff):
                    return False
                total += diff
            store(results, side + j, total)
    for j in range(many):
        # Differences at times that are not ordered add up at this one before it corrects them: to 2, or to -1.
        if load(results, j) & ~1 != 0:
            return False
        store(results, BLOCK + j, 1 if load(results, BLOCK + j) >= least else 0)
    return True


@inner
def sum_block(block, shape, numbers, sums, rounds, many, params, acc, prior):
    """Sum the rows of each key of a block: those of the sources that results are computed from in `acc` and, where old results
    come from the input, those of its history in `prior`. Returns a key whose diffs do not fit a word, or -1.
    """
    table = block.table
    bad = -1
    for w in range(many * sums.slots):
        acc[w] = 0
    for s in range(numbers.want):
        if s == numbers.past:
            for w in range(many * sums.slots):
                prior[w] = acc[w]
        if s >= numbers.past and time_of(table, s) != shape.nd:
            continue  # work that names keys, and has no values
        head = head_of(table, s)
        if not shape.from_output or test_of(table, s) == 0:
            at = 8 * BLOCK * s
            wrong = accumulate_block(
                head, is_lone(table, s), block.begin + at, block.end + at, many, shape.kc, diff_of(table, s), shape.nf,
                params, shape.vo, sums.linear, sums.floats, acc, sums.slots,
            )  # fmt: skip
            bad = max(bad, wrong)
            continue
        for j in range(many):
            for i in range(first_row(block, s, j), end_row(block, s, j)):
                if shown(head, shape.nd, times_of(table, s), i, rounds):
                    if not accumulate_row(
                        head, i, shape.kc, diff_of(table, s), shape.nf, params, shape.vo, sums.linear, sums.floats,
                        acc, j * sums.slots,
                    ):  # fmt: skip
                        bad = j
    return bad


@inner
def write_sums(block, shape, sums, many, params, digits, acc, prior, had, buf, capacity, rows, plus):
    """Write the changes of a block of keys at one epoch, each from its old sum, if it `had` one, to its new one. Returns a key
    with a sum that does not fit a word, or -1; then, as `write_block`, the number of rows and whether all diffs are 1.
    """
    large = -1
    if had:
        large = finish_block(
            prior, many, sums.slots, shape.nf, params, shape.vo, sums.linear, sums.least, digits, block.results
        )  # fmt: skip
    wrong = finish_block(
        acc, many, sums.slots, shape.nf, params, shape.vo, sums.linear, sums.least, digits,
        block.results + 8 * BLOCK * (shape.vo + 1),
    )  # fmt: skip
    rows, plus = write_block(block.results, had, many, block.keys, shape.kc, shape.vo, buf, capacity, rows, plus)
    return max(large, wrong), rows, plus


@inner
def find_tops(block, shape, numbers, sweep, many, todo, n_todo):
    """The first or last value of each key of a block at one epoch, one at most, and the one shown before, as results. Returns
    whether the output shows one value of each key at most, and the todo list with the later times of the keys.
    """
    kc, nt, vo = shape.kc, shape.nt, shape.vo
    table, begin, end = block.table, block.begin, block.end
    backward = shape.backward
    epochs = np.empty(1, np.int64)
    epochs[0] = sweep.only
    list_ = np.empty(2 * nt, np.int64)
    for j in range(many):
        if shape.from_output:
            if scan_history(table, numbers.past, begin, end, j, sweep.rounds, sweep.only) & HIDDEN != 0:
                list_, n = later_work(
                    table, numbers.past, nt, begin, end, j, sweep.rounds, sweep.lo, sweep.hi, epochs, 1, list_
                )  # fmt: skip
                todo, n_todo = push_todo(todo, n_todo, block.keys, j, kc, nt, list_, n)
            former = output_value(
                table, numbers.history, numbers.past, begin, end, j, kc, vo, sweep.rounds, block.found, block.results
            )  # fmt: skip
            if former < 0:
                return False, todo, n_todo
        else:
            former = top_value(
                table, numbers.history, begin, end, j, block.cursors, kc, shape.nd, vo, backward, sweep.only,
                sweep.rounds, block.results,
            )  # fmt: skip
        store(block.results, BLOCK * vo + j, former)
        there = top_value(
            table, numbers.want, begin, end, j, block.cursors, kc, shape.nd, vo, backward, sweep.only, sweep.rounds,
            block.results + 8 * BLOCK * (vo + 1),
        )  # fmt: skip
        store(block.results, BLOCK * (2 * vo + 1) + j, there)
    return True, todo, n_todo
