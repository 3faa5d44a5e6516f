"""What the benchmark `kernels` calls: one case for each path of a kernel, over inputs of a given size.

As a script, it is a worker for one tree: it reads lines "case size calls" and answers with the processor time of that many calls
of the case, and a digest of what the case returns. It imports `tektite` from the tree that PYTHONPATH names, so the same cases
measure the kernels of another checkout.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import pkgutil
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

import tektite.kernels

Words = np.ndarray[Any, np.dtype[np.int64]]
Results = Sequence[Any]
Case = Callable[[], Results]
"""Calls kernels. Of a tuple among the results the last element is what counts: the others are memory that it uses."""


def named(name: str) -> Any:
    """A kernel or a constant by its name, whatever module has it: another checkout may have it elsewhere."""
    for module in pkgutil.walk_packages(tektite.kernels.__path__, prefix="tektite.kernels."):
        in_a_package = module.name.count(".") == 3  # what builds kernels, and imports Numba, lies above
        if in_a_package and hasattr(found := importlib.import_module(module.name), name):
            return getattr(found, name)
    raise LookupError(f"no module of {tektite.kernels.__path__} has a {name}")


accumulate, accumulate_groups, explode = named("accumulate"), named("accumulate_groups"), named("explode")
advance_merges, merge_rows, merged_head = named("advance_merges"), named("merge_rows"), named("merged_head")
open_merge = named("open_merge")
arriving_rows, copy_out, head_of_array = named("arriving_rows"), named("copy_out"), named("head_of_array")
select_columns = named("select_columns")
build, route, split_epoch = named("build"), named("route"), named("split_epoch")
partition_moments, scale, shift = named("partition_moments"), named("scale"), named("shift")
collect, reduce, settle = named("collect"), named("reduce"), named("settle")
find_candidates, intersect, numbered_keys = named("find_candidates"), named("intersect"), named("numbered_keys")
first_negative, first_repeated, resolve = named("first_negative"), named("first_repeated"), named("resolve")
join, JOIN_STATE = named("join"), named("JOIN_STATE")
COUNT_PRESENT, SUM_INT = named("COUNT_PRESENT"), named("SUM_INT")
operators = importlib.import_module("tektite.kernels.operators.reduce")
aggregate = importlib.import_module("tektite.kernels.operators.aggregate")
fields = importlib.import_module("tektite.kernels.merge.state")
ranges = importlib.import_module("tektite.kernels.operators.range_filter")

CASES: dict[str, Callable[[int], Case]] = {}
HELD = 1_000_000
"""Rows of the arrangements that small batches meet."""
NOTHING = np.empty(0, np.int64)
LIMIT = 1 << 16


def case(make: Callable[[int], Case]) -> Callable[[int], Case]:
    """Enter a function that makes a case of a given size."""
    CASES[make.__name__] = make
    return make


# ---------------------------------------------------------------------- inputs


KEPT: list[Part] = []
"""The parts of the present case: kernels know them by address alone."""


class Part:
    """A rows object, and its memory."""

    def __init__(self, head: Words, memory: object) -> None:
        self.head, self.memory, self.at = head, memory, int(head[1])
        KEPT.append(self)


def words(*parts: Any) -> Words:
    return np.array(parts, np.int64)


def drawn(size: int, below: int, seed: int) -> Words:
    return np.random.default_rng(seed).integers(0, below, size)


def chunk(*columns: Any) -> Part:
    """Rows of these columns; a number is a constant column."""
    size = max(len(column) for column in columns if isinstance(column, np.ndarray))
    array = np.array([np.broadcast_to(np.asarray(column, np.int64), size) for column in columns], np.int64)
    constants = [column for column in columns if not isinstance(column, np.ndarray)]
    places = iter(range(-len(constants), 0))
    spec = [j if isinstance(column, np.ndarray) else next(places) for j, column in enumerate(columns)]
    head = head_of_array(array, size)
    return Part(select_columns(int(head[1]), words(len(columns), *spec, *constants)), (array, head))


def batch(*columns: Any, times: int = 1, diffs: int = 1) -> Part:
    """Rows of these columns, sorted and consolidated."""
    rows = chunk(*columns)
    buf, head = build(words(rows.at), len(columns) - times - diffs, times, diffs, 0)
    return Part(head, buf)


def table(*parts: Part) -> Words:
    return words(*(part.at for part in parts))


@cache
def edges() -> tuple[Part, Part]:
    """A million edges among a hundred thousand nodes, by source and by target."""
    a, b = drawn(HELD, 100_000, 1), drawn(HELD, 100_000, 2)
    return batch(a, b, 0, 1), batch(b, a, 0, 1)


@cache
def held_keys() -> tuple[Part, ...]:
    """Rows of one key column as an arrangement holds them: one large batch and two smaller ones."""
    return tuple(batch(drawn(size, HELD, seed), 0, 1) for seed, size in enumerate((HELD, 4_000, 60)))


@cache
def held_values() -> tuple[Part, ...]:
    """The same with a value column."""
    return tuple(
        batch(drawn(size, HELD // 4, seed), drawn(size, 1_000, 7 + seed), 0, 1)
        for seed, size in enumerate((HELD, 4_000, 60))
    )


# ---------------------------------------------------------------------- sort, merge, seek


@case
def build_keys(size: int) -> Case:
    rows = chunk(drawn(size, 10 * HELD, 3), 5, 1)
    at = table(rows)
    return lambda: (build(at, 1, 1, 1, 0),)


@case
def build_repeated(size: int) -> Case:
    rows = chunk(drawn(size, max(size // 8, 1), 3), 5, drawn(size, 3, 4) - 1)
    at = table(rows)
    return lambda: (build(at, 1, 1, 1, 0),)


@case
def build_wide(size: int) -> Case:
    rows = chunk(drawn(size, 2**60, 3), drawn(size, 2**60, 4), drawn(size, 4, 5), 1)
    at = table(rows)
    return lambda: (build(at, 2, 1, 1, 0),)


def merge_case(a: Part, b: Part, data: int, times: int, frontier: Words) -> Case:
    return lambda: (merge_rows(a.at, b.at, data, times, 1, frontier),)


@case
def merge_keys(size: int) -> Case:
    a, b = (batch(drawn(size, 4 * size, seed), seed, 1) for seed in (1, 2))
    return merge_case(a, b, 1, 1, words([9]).reshape(1, 1))


@case
def merge_behind(size: int) -> Case:
    a, b = (batch(np.arange(size) + seed * size, seed, 1) for seed in (0, 1))
    return merge_case(a, b, 1, 1, np.empty((0, 1), np.int64))


@case
def merge_times(size: int) -> Case:
    a, b = (batch(drawn(size, size, seed), drawn(size, 5, 3 + seed), 1) for seed in (1, 2))
    return merge_case(a, b, 1, 1, words([3]).reshape(1, 1))


@case
def merge_groups(size: int) -> Case:
    a, b = (
        batch(drawn(size, size // 4 + 1, seed), drawn(size, 5, 3 + seed), drawn(size, 4, 5 + seed), 1, times=2)
        for seed in (1, 2)
    )
    return merge_case(a, b, 1, 2, words(3, 2).reshape(1, 2))


@case
def merge_steps(size: int) -> Case:
    a, b = (batch(drawn(size, 2**40, seed), drawn(size, 100, seed + 5), seed, 1) for seed in (1, 2))
    frontier = words([9]).reshape(1, 1)
    room = np.empty((4, 2 * size + 2), np.int64)

    def run() -> Results:
        state = open_merge(a.at, b.at, 2, 1, 1, frontier, 2**62, 2**62)
        rooms = state[fields.FIELDS + fields.ROOM : -4 : fields.PER_COLUMN]
        for j, column in enumerate(room):
            if rooms[j] == fields.NEEDED:
                rooms[j] = column.ctypes.data
        at = words(state.ctypes.data)
        while not advance_merges(at, LIMIT):
            pass
        return ((state, merged_head(state)),)

    return run


def routed(rows: Part, spec: Words, shards: int) -> Results:
    buf, head, offsets = route(rows.at, spec, shards)
    return (buf, head), offsets


@case
def route_two(size: int) -> Case:
    rows = chunk(drawn(size, HELD, 3), drawn(size, HELD, 4), 5, 1)
    spec = words(0)
    return lambda: routed(rows, spec, 2)


@case
def route_pairs(size: int) -> Case:
    rows = chunk(drawn(size, HELD, 3), drawn(size, HELD, 4), 5, 1)
    spec = words(1, 0)
    return lambda: routed(rows, spec, 3)


@case
def moments(size: int) -> Case:
    rows = chunk(drawn(size, HELD, 3), 5, drawn(size, 40, 4), 1)

    def run() -> Results:
        buf, head, offsets, found = partition_moments(rows.at, 1, 2)
        return (buf, head), offsets, found

    return run


@case
def epochs_split(size: int) -> Case:
    rows = chunk(drawn(size, HELD, 3), drawn(size, 10, 4), 1)

    def run() -> Results:
        buf, head, cut = split_epoch(rows.at, 1, 5)
        return (buf, head), cut

    return run


@case
def shifted(size: int) -> Case:
    rows = chunk(drawn(size, HELD, 3), drawn(size, 10, 4), 1)
    return lambda: (shift(rows.at, 1, 5),)


@case
def scaled(size: int) -> Case:
    rows = chunk(drawn(size, HELD, 3), 4, drawn(size, 10, 4))
    return lambda: (scale(rows.at, 2, -1),)


@case
def arriving(size: int) -> Case:
    columns = np.array([drawn(size, HELD, 3), drawn(size, HELD, 4)])
    order = words(1, 0)
    return lambda: (arriving_rows(columns, order, NOTHING, NOTHING, 3, 1),)


# ---------------------------------------------------------------------- reduce


def reduce_case(work: Part, new: Words, old: Words, shape: Words, params: Words, moment: Words = NOTHING) -> Case:
    at, widths = table(work), words(shape[1])

    def run() -> Results:
        buf, head, todo_buf, todo, status = reduce(at, widths, new, old, shape, params, moment, 5, 6)
        return (buf, head), (todo_buf, todo), int(status[0])

    return run


COUNT = words(aggregate.COUNT, 0, 0, 0, 0)


@case
def reduce_count(size: int) -> Case:
    work = batch(drawn(size, HELD, 9), 5, drawn(size, 2, 8) * 2 - 1)
    held = held_keys()
    return reduce_case(work, table(*held, work), table(*held), words(1, 1, 1, 1, 1, 1, 0, operators.LINEAR), COUNT)


@case
def reduce_load(size: int) -> Case:
    work = batch(drawn(size, HELD, 9), 5, 1)
    return reduce_case(work, table(work), NOTHING, words(1, 1, 1, 1, 1, 1, 0, operators.LINEAR), COUNT)


@case
def reduce_sum(size: int) -> Case:
    work = batch(drawn(size, HELD // 4, 9), drawn(size, 1_000, 10), 5, drawn(size, 2, 8) * 2 - 1)
    held = held_values()
    params = words(aggregate.SUM_VALUE, 0, 0, 0, 0, aggregate.COUNT, 0, 0, 0, 0)
    return reduce_case(work, table(*held, work), table(*held), words(1, 2, 1, 1, 1, 2, 0, operators.LINEAR), params)


@case
def reduce_min(size: int) -> Case:
    work = batch(drawn(size, HELD // 4, 9), drawn(size, 1_000, 10), 5, drawn(size, 2, 8) * 2 - 1)
    held = held_values()
    return reduce_case(work, table(*held, work), table(*held), words(1, 2, 1, 1, 1, 1, 0, operators.FIRST), words(1, 0))


@case
def reduce_top(size: int) -> Case:
    work = batch(drawn(size, HELD // 4, 9), drawn(size, 1_000, 10), 5, drawn(size, 2, 8) * 2 - 1)
    held = held_values()
    return reduce_case(work, table(*held, work), table(*held), words(1, 2, 1, 1, 1, 1, 0, operators.FIRST), words(3, 0))


@cache
def held_in_loop() -> tuple[Part, Part]:
    """What a loop has found so far: candidates at rounds 0 to 4, and the nodes first reached at each."""
    nodes, rounds = drawn(HELD, HELD // 2, 1), drawn(HELD, 5, 2)
    reached, places = np.unique(nodes, return_index=True)
    return batch(nodes, 0, rounds, 1, times=2), batch(reached, 0, rounds[places], 1, times=2)


@case
def reduce_distinct_in_loop(size: int) -> Case:
    given, shown = held_in_loop()
    work = batch(drawn(size, HELD, 9), 5, 3, 1, times=2)
    return reduce_case(
        work, table(given, work), table(shown), words(1, 1, 2, 2, 1, 0, 1, operators.AT_LEAST), words(1), words(3)
    )


@case
def reduce_min_in_loop(size: int) -> Case:
    nodes, rounds = drawn(HELD, HELD // 2, 1), drawn(HELD, 3, 2)
    given = batch(nodes, rounds, 0, rounds, 1, times=2)
    reached = np.unique(nodes)
    shown = batch(reached, 1, 0, 0, 1, times=2)
    work = batch(drawn(size, HELD, 9), 4, 5, 3, 1, times=2)
    return reduce_case(
        work, table(given, work), table(shown), words(1, 2, 2, 2, 1, 1, 1, operators.FIRST), words(1, 0), words(3)
    )


@case
def reduce_epochs(size: int) -> Case:
    work = batch(drawn(size, size // 4 + 1, 9), drawn(size, 20, 10), drawn(size, 2, 8) * 2 - 1)
    held = held_keys()
    at, widths, new, old = table(work), words(1), table(*held, work), table(*held)
    shape = words(1, 1, 1, 1, 1, 1, 0, operators.LINEAR)
    return lambda: (reduce(at, widths, new, old, shape, COUNT, NOTHING, 0, 20)[:2],)


@case
def reduce_function(size: int) -> Case:
    work = batch(drawn(size, HELD // 4, 9), drawn(size, 1_000, 10), 5, 1)
    held = held_values()
    at, widths, new = table(work), words(2), table(*held, work)
    shape = words(1, 2, 1, 1, 1, 1, 1, 0)

    def run() -> Results:
        buf, head, request_buf, requests, _, _ = collect(at, widths, new, NOTHING, shape, NOTHING, 5, 6)
        wants = settle(int(requests[1]), int(head[1]), NOTHING, shape, NOTHING, 5, 6)
        return (buf, head), (request_buf, requests), wants

    return run


@case
def accumulators(size: int) -> Case:
    rows = chunk(drawn(size, HELD, 3), drawn(size, 1_000, 4), 5, 1)
    spec = words(1, 0, SUM_INT, 1, COUNT_PRESENT, 1)
    return lambda: (accumulate(rows.at, 2, 1, spec),)


@case
def accumulators_of_groups(size: int) -> Case:
    rows = chunk(drawn(size, 50, 3), drawn(size, 1_000, 4), 5, 1)
    spec = words(1, 0, SUM_INT, 1, COUNT_PRESENT, 1)
    return lambda: (accumulate_groups(rows.at, 2, 1, spec),)


@case
def floats_exploded(size: int) -> Case:
    rows = chunk(drawn(size, HELD, 3), drawn(size, 2**62, 4), 5, 1)
    spec, columns = words(1, 0, COUNT_PRESENT, 1), words(1)

    def run() -> Results:
        buf, head = accumulate(rows.at, 2, 1, spec)
        return ((buf, *explode(int(head[1]), 1, 1, rows.at, columns)),)

    return run


# ---------------------------------------------------------------------- joins


def join_case(
    delta: Words, other: Words, kc: int, data: tuple[int, int], times: tuple[int, int, int], spec: Words
) -> Case:
    def run() -> Results:
        state = np.zeros(JOIN_STATE, np.int64)
        found: list[Any] = []
        while not state[0]:
            found.append(join(delta, other, kc, *data, *times, spec, 5, LIMIT, 0, state))
        return found

    return run


@case
def join_edges(size: int) -> Case:
    delta = batch(drawn(size, 100_000, 9), drawn(size, HELD, 10), 5, 1)
    return join_case(table(delta), table(edges()[0]), 1, (2, 2), (1, 1, 1), words(1, 3))


@case
def join_keys(size: int) -> Case:
    delta = batch(drawn(size, HELD, 9), drawn(size, 50, 10), 5, 1)
    return join_case(table(delta), table(*held_keys()), 1, (2, 1), (1, 1, 1), words(0, 1))


@case
def join_in_loop(size: int) -> Case:
    delta = batch(drawn(size, 100_000, 9), 5, drawn(size, 3, 10), 1, times=2)
    return join_case(table(delta), table(edges()[0]), 1, (1, 2), (2, 1, 2), words(2))


@case
def join_pairs(size: int) -> Case:
    delta = batch(drawn(size, 100_000, 9), drawn(size, 100_000, 10), drawn(size, 9, 1), 5, 1)
    return join_case(table(delta), table(edges()[0]), 2, (3, 2), (1, 1, 1), words(0, 2))


@case
def intersect_triangles(size: int) -> Case:
    forward, backward = edges()
    size = min(size, 100_000)  # each row lists about ten candidates, and then looks them up
    prefix = batch(drawn(size, 100_000, 9), drawn(size, 100_000, 10), 5, 1)
    spec, first = words(0, 1), words(0, 1)

    def run() -> Results:
        held = []
        told: list[int] = []
        for number, part in enumerate((forward, backward)):
            rows = prefix.at
            if number:
                buf, head = numbered_keys(prefix.at, words(number))
                ordered, head = build(words(head[1]), 2, 1, 1, 0)
                held += [buf, ordered, head]
                rows = int(head[1])
            found = find_candidates(rows, 1, number, table(part), first, 1, 1)
            held.append(found)
            told += [found.ctypes.data, 1, 1, 1, 2, 1, 1, 0]
        shapes, state = words(*told), np.zeros(16, np.int64)
        out = []
        while state[0] < 2 * int(prefix.head[0]):
            out.append(intersect(prefix.at, 2, 1, shapes, spec, 5, LIMIT, state))
        return out

    return run


@case
def range_segments(size: int) -> Case:
    size = min(size, 20_000)  # each bound selects about a hundred rows
    values = batch(drawn(HELD, 1_000, 1), drawn(HELD, 100_000, 2), 0, 1)
    low = drawn(size, 90_000, 4)
    keys = drawn(size, 1_000, 3)
    bounds = batch(np.concatenate([keys, keys]), np.concatenate([low, low + 10_000]), 5, np.repeat([-1, 1], size))
    named, sought, spec = table(bounds), table(values), words(0, 1)

    def run() -> Results:
        state = np.zeros(ranges.CURSORS + 1, np.int64)
        out: list[Any] = []
        while not state[ranges.DONE]:
            found = ranges.segments(named, sought, 1, 1, 1, 2, 1, 1, ranges.ABOVE, 5, LIMIT, state)
            while state[ranges.NEXT] * 5 < len(found):
                out.append(ranges.emit_segments(found, spec, 2, 1, 1, LIMIT, state))
        return out

    return run


# ---------------------------------------------------------------------- inputs with constraints


@case
def upserts(size: int) -> Case:
    keys = np.sort(drawn(size, HELD, 5))
    ops = chunk(keys, 5, np.arange(size), 1, drawn(size, 1_000, 6), 0, 1)
    held = batch(np.arange(0, HELD, 2), drawn(HELD // 2, 1_000, 7), 0, 1)
    at = table(held)
    return lambda: (resolve(ops.at, 1, 1, at),)


@case
def removals_checked(size: int) -> Case:
    rows = held_keys()[0]
    all_ = np.empty((3, int(rows.head[0])), np.int64)
    copy_out(rows.at, all_)
    gone = batch(all_[0, np.unique(drawn(size, all_.shape[1], 5))], 5, -1)
    at = table(*held_keys())
    return lambda: (first_negative(gone.at, 1, at),)


@case
def repeats_checked(size: int) -> Case:
    held = batch(np.arange(0, HELD, 2), drawn(HELD // 2, 1_000, 7), 0, 1)
    fresh = batch(np.unique(drawn(size, HELD, 5) | 1), 3, 5, 1)
    at = table(held)
    return lambda: (first_repeated(fresh.at, 1, 2, at),)


# ---------------------------------------------------------------------- the worker


def digest(results: Results) -> str:
    """A hash of the rows under heads, and of other arrays and numbers. A head's second word is its own address."""
    found = hashlib.sha256()
    for result in results:
        if isinstance(result, tuple):
            result = result[-1]
        if isinstance(result, np.ndarray) and result.ndim == 1 and len(result) > 2 and result[1] == result.ctypes.data:
            out = np.empty((int(result[2]), max(int(result[0]), 0)), np.int64)
            if result[0] > 0:
                copy_out(int(result[1]), out)
            found.update(np.ascontiguousarray(result[4::3]).tobytes())
            result = out
        found.update(np.ascontiguousarray(result).tobytes())
    return found.hexdigest()[:16]


def main() -> None:
    """Answer questions until there are none."""
    made: dict[tuple[str, int], tuple[Case, str]] = {}
    for line in sys.stdin:
        name, size, calls = line.split()
        question = name, int(size)
        if question not in made:
            made.clear()
            KEPT.clear()
            run = CASES[name](int(size))
            made[question] = run, digest(run())
        run, found = made[question]
        start = time.process_time_ns()
        for _ in range(int(calls)):
            run()
        print(json.dumps({"ns": time.process_time_ns() - start, "digest": found}), flush=True)


if __name__ == "__main__":
    main()
