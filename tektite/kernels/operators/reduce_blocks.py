"""The paths of a reduce that evaluate a whole block of keys at one epoch.

A path leaves the *results* of a block at an address: BLOCK words for each of the `vo` value columns of the output and BLOCK words
that say which keys are there, first for the results that were shown before, then for those to show. `write_block` makes changes
of them.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner
from tektite.kernels.layout.memory import load, read, store
from tektite.kernels.layout.rows import address, step_of, value
from tektite.kernels.operators.aggregate import accumulate_block, accumulate_row, finish_block, group_at
from tektite.kernels.operators.emit import write_block
from tektite.kernels.operators.epochs import HIDDEN, later_work, push_todo, scan_history
from tektite.kernels.operators.sources import (
    diff_of,
    end_row,
    epoch_of,
    first_row,
    head_of,
    is_lone,
    is_shown,
    is_tested,
    move_key,
    shown,
    time_of,
    times_of,
)
from tektite.kernels.operators.values import output_value, top_value
from tektite.kernels.operators.wide import sum_overflows
from tektite.kernels.seek.keys import BLOCK


@inner
def without_known(sources, numbers, many, only):
    """Drop the keys of a block that are shown already and only gain: the output, whose ranges are known, shows each of them once,
    now and later, and no diff of its work is below 1. (Work that was put off has the diff -1.) Nothing changes for such a key, so
    the input need not be read. The other keys move up. Returns how many they are.
    """
    kept = 0
    for j in range(many):
        if _is_shown_once(sources, numbers, j, only) and _only_gains(sources, numbers, j):
            continue
        if kept < j:
            move_key(sources, j, kept, numbers.history, numbers.all)
        kept += 1
    return kept


@inner
def _is_shown_once(sources, numbers, j, only):
    """Whether the output shows key j once, at this moment and later, at epoch `only`."""
    total = 0
    for s in range(numbers.history, numbers.past):
        head = head_of(sources, s)
        diff_at = diff_of(sources, s)
        tested = is_tested(sources, s)
        for i in range(first_row(sources, s, j), end_row(sources, s, j)):
            if tested and not (shown(sources, s, i) and epoch_of(sources, s, i) <= only):
                return False
            total += value(head, diff_at, i)
    return total == 1


@inner
def _only_gains(sources, numbers, j):
    """Whether no diff of key j's work is below 1."""
    for s in range(numbers.past, numbers.all):
        head = head_of(sources, s)
        diff_at = diff_of(sources, s)
        for i in range(first_row(sources, s, j), end_row(sources, s, j)):
            if value(head, diff_at, i) < 1:
                return False
    return True


@inner
def all_shown(sources, numbers, many, only, least, results):
    """Whether two sums are enough for a block's keys: every row is shown and not later than `only`, the sums fit, and the
    output's differences add up to 1 or 0 for each key. If so, writes the results: whether each key was there, by the output, and
    whether it is there now, by the input.
    """
    for j in range(2 * BLOCK):
        store(results, j, 0)
    for s in range(numbers.past):
        head = head_of(sources, s)
        at = address(head, diff_of(sources, s))
        by = step_of(head, diff_of(sources, s))
        side = BLOCK if s < numbers.history else 0
        tested = is_tested(sources, s)
        time_at = time_of(sources, s)
        times = times_of(sources, s)
        for j in range(many):
            total = load(results, side + j)
            for i in range(first_row(sources, s, j), end_row(sources, s, j)):
                if tested and (not is_shown(head, time_at, times, i, sources.rounds) or value(head, time_at, i) > only):
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
def sum_block(sources, numbers, sums, nd, from_output, many):
    """Sum the rows of each key of a block: those of the sources that results are computed from as totals and, where old results
    come from the input, those of its history as former sums. Returns a key whose diffs do not fit a word, or -1.
    """
    bad = -1
    for w in range(many * sums.slots):
        store(sums.totals, w, 0)
    for s in range(numbers.want):
        if s == numbers.past:
            for w in range(many * sums.slots):
                store(sums.former, w, load(sums.totals, w))
        if s >= numbers.past and time_of(sources, s) != nd:
            continue  # work that names keys, and has no values
        head = head_of(sources, s)
        diff_at = diff_of(sources, s)
        if not from_output or not is_tested(sources, s):
            begin = sources.begin + 8 * BLOCK * s
            end = sources.end + 8 * BLOCK * s
            bad = max(bad, accumulate_block(sums, head, is_lone(sources, s), begin, end, many, diff_at))
            continue
        for j in range(many):
            acc = group_at(sums, sums.totals, j)
            for i in range(first_row(sources, s, j), end_row(sources, s, j)):
                if shown(sources, s, i) and not accumulate_row(sums, acc, head, i, diff_at):
                    bad = j
    return bad


@inner
def write_sums(sources, sums, many, had, results, buf, capacity, rows, plus):
    """Write the changes of a block of keys at one epoch, each from its former sum, if it `had` one, to its total. Returns a key
    with a sum that does not fit a word, or -1; then, as `write_block`, the number of rows and whether all diffs are 1.
    """
    large = -1
    if had:
        large = finish_block(sums, sums.former, many, results)
    large = max(large, finish_block(sums, sums.totals, many, results + 8 * BLOCK * (sums.vo + 1)))
    rows, plus = write_block(results, had, many, sources, sums.vo, buf, capacity, rows, plus)
    return large, rows, plus


@inner
def find_tops(sources, numbers, wanted, sweep, nt, from_output, many, results, listed, todo, n_todo):
    """The first or last value of each key of a block at one epoch, one at most, and the one shown before, as results. Returns
    whether the output shows one value of each key at most, and the todo list with the later times of the keys. `listed` is
    scratch memory.
    """
    vo = wanted.vo
    epochs = np.empty(1, np.int64)
    epochs[0] = sweep.only
    list_ = np.empty(2 * nt, np.int64)
    for j in range(many):
        if from_output:
            if scan_history(sources, numbers.past, j, sweep.only) & HIDDEN != 0:
                list_, n = later_work(sources, numbers.past, nt, j, sweep, epochs, 1, list_)
                todo, n_todo = push_todo(todo, n_todo, sources, j, nt, list_, n)
            former = output_value(sources, numbers.history, numbers.past, j, vo, listed, results)
            if former < 0:
                return False, todo, n_todo
        else:
            former = top_value(sources, numbers.history, j, wanted, sweep.only, results)
        store(results, BLOCK * vo + j, former)
        there = top_value(sources, numbers.want, j, wanted, sweep.only, results + 8 * BLOCK * (vo + 1))
        store(results, BLOCK * (2 * vo + 1) + j, there)
    return True, todo, n_todo
