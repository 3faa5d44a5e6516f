"""Run moment by moment over random updates at random times, the reduce kernel's output accumulates, at every point of
the grid of times, to the operator applied to the input accumulated at that point.
"""

from __future__ import annotations

import functools
import itertools
import struct
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tektite.kernels.operators.aggregate import AVG, AVG_VALUE, COUNT, COUNT_VALUE, SUM, SUM_VALUE
from tektite.kernels.operators.collect import collect, settle
from tektite.kernels.operators.reduce import AT_LEAST, FINE, FIRST, LAST, LINEAR, TOO_LARGE, reduce
from tests.support.kernel_rows import Row, Rows, check_constants, consolidate, read, table
from tests.support.nightly import by_day_or_night

NULL = -(2**63)
EPOCHS, ROUNDS = 5, 3
Group = dict[Row, list[int]]
Result = dict[Row, int]


def float_word(x: float) -> int:
    (bits,) = struct.unpack("<q", struct.pack("<d", x))
    return bits if bits >= 0 else bits ^ 0x7FFFFFFFFFFFFFFF


@dataclass
class Operator:
    """What the kernel is told, and the same as plain Python on an accumulated group (values -> diffs)."""

    op: int
    params: list[int]
    nv: int
    nf: int
    vo: int
    apply: Callable[[Group], Result]


def first(k: int, nv: int, vo: int, last: bool, ties: int = 0) -> Operator:
    def apply(group: Group) -> Result:
        out: Result = defaultdict(int)
        left = k
        leading: Row = ()
        for v in sorted(group, reverse=last):
            there = max(0, group[v][0])
            if not left and not (ties and v[:ties] == leading):
                break
            out[v[:vo]] += there if ties else min(left, there)
            left -= min(left, there)
            leading = v[:ties] if there else leading
        return {v: m for v, m in out.items() if m}

    return Operator(LAST if last else FIRST, [k, ties], nv, 1, vo, apply)


def at_least(k: int) -> Operator:
    return Operator(AT_LEAST, [k], 1, 1, 0, lambda group: {(): 1} if sum(d[0] for d in group.values()) >= k else {})


def linear_values() -> Operator:
    params = [COUNT, 0, 0, 0, 0, SUM_VALUE, 1, 0, 0, 0, COUNT_VALUE, 1, 0, 0, 0, AVG_VALUE, 0, 0, 0, 1]

    def apply(group: Group) -> Result:
        n = sum(d[0] for d in group.values())
        if not n:
            return {}
        seen = sum(d[0] for v, d in group.items() if v[1] != NULL)
        total = sum(v[1] * d[0] for v, d in group.items() if v[1] != NULL)
        seen0 = sum(d[0] for v, d in group.items() if v[0] != NULL)
        total0 = sum(v[0] * d[0] for v, d in group.items() if v[0] != NULL)
        average = float_word(total0 / (seen0 * 10.0)) if seen0 else NULL
        return {(n, total if seen else NULL, seen, average): 1}

    return Operator(LINEAR, params, 2, 1, 4, apply)


def linear_limbs() -> Operator:
    params = [SUM, 1, 2, 3, 0, COUNT, 3, 0, 0, 0, AVG, 1, 2, -1, 0]

    def apply(group: Group) -> Result:
        n, low, high, seen = (sum(d[f] for d in group.values()) for f in range(4))
        if not n:
            return {}
        total = low + high * 2**32
        return {(total if seen else NULL, seen, float_word(float(total) / n)): 1}

    return Operator(LINEAR, params, 0, 4, 3, apply)


OPERATORS = {
    "min": first(1, 1, 1, False),
    "max": first(1, 1, 1, True),
    "top3": first(3, 2, 2, False),
    "last2 of the leading column": first(2, 2, 1, True),
    "first and its ties": first(1, 2, 2, False, ties=1),
    "last2 and their ties": first(2, 2, 2, True, ties=1),
    "distinct": at_least(1),
    "at least 3": at_least(3),
    "sums of values": linear_values(),
    "sums of limbs": linear_limbs(),
}


def le(a: Row, b: Row) -> bool:
    return all(x <= y for x, y in zip(a, b, strict=True))


def accumulate(rows: list[Row], kc: int, nd: int, nt: int, nf: int, key: Row, t: Row) -> Group:
    """The values of `key` with their diffs, over rows with times <= t."""
    group: Group = defaultdict(lambda: [0] * nf)
    for r in rows:
        if r[:kc] == key and le(r[nd : nd + nt], t):
            for f in range(nf):
                group[r[kc:nd]][f] += r[nd + nt + f]
    return {v: d for v, d in group.items() if any(d)}


class Trace:
    """Batches as a version holds them: now and then merged, with epochs advanced to the sweep's lower one."""

    def __init__(self, width: int, diffs: int, epoch_at: int, choices: np.random.Generator) -> None:
        self.batches: list[list[Row]] = []
        self.width, self.diffs, self.epoch_at, self.choices = width, diffs, epoch_at, choices

    def mint(self, rows: list[Row]) -> None:
        self.batches.append(rows)

    def maintain(self, lo: int) -> None:
        if len(self.batches) > 1 and self.choices.random() < 0.6:
            at = int(self.choices.integers(0, len(self.batches) - 1))
            merged = [r for b in self.batches[at : at + 2] for r in b]
            if self.choices.random() < 0.5:
                c = self.epoch_at
                merged = [(*r[:c], max(r[c], lo), *r[c + 1 :]) for r in merged]
            self.batches[at : at + 2] = [consolidate(merged, self.diffs)]

    def version(self, fold: bool) -> list[Rows]:
        return [Rows(b, self.width, fold) for b in self.batches]


def simulate(
    updates: list[Row], operator: Operator, kc: int, nt: int, nt_in: int, from_output: int, sweeps: list[int],
    seed: int, step: Callable[..., tuple[list[Row], list[Row]]] | None = None,
) -> list[Row]:  # fmt: skip
    """Everything that the operator emits, sweep by sweep and moment by moment."""
    nv, nf, vo = operator.nv, operator.nf, operator.vo
    nd = kc + nv
    choices = np.random.default_rng(seed)
    source = Trace(nd + nt_in + nf, nf, nd, choices)
    mine = Trace(kc + vo + nt + 1, 1, kc + vo, choices)
    shape = np.array([kc, nd, nt, nt_in, nf, vo, from_output, operator.op], np.int64)
    emitted: list[Row] = []
    lo = 0
    for hi in sweeps:
        pending: dict[Row, list[Row]] = defaultdict(list)
        todo: dict[Row, set[Row]] = defaultdict(set)
        for r in updates:
            if lo <= r[nd] < hi:
                pending[r[nd + 1 : nd + nt]].append(r)
        while pending or todo:
            moment = min([*pending, *todo])
            fold = bool(choices.random() < 0.7)
            parts, work_nd = [], []
            delta = consolidate(pending.pop(moment, []), nf)
            before = source.version(fold)
            if delta:
                halves = [delta] if choices.random() < 0.5 else [delta[::2], delta[1::2]]
                for half in halves:
                    parts.append(Rows(half, nd + nt + nf, fold))
                    work_nd.append(nd)
                    source.mint([(*r[: nd + nt_in], *r[nd + nt :]) for r in half])
            if moment in todo:
                rows = sorted((*r, *moment, -1) for r in todo.pop(moment))  # the diff that they were put off with
                parts.append(Rows(rows, kc + nt + 1, fold))
                work_nd.append(kc)
            after, own = source.version(fold), mine.version(fold)
            old = own if from_output else before
            if step is not None:
                rows, later = step(parts, work_nd, after, own, shape, moment, lo, hi)
            else:
                buf, head, todo_buf, todo_head, status = reduce(
                    table(parts), np.array(work_nd, np.int64), table(after), table(old), shape,
                    np.array(operator.params, np.int64), np.array(moment, np.int64), lo, hi,
                )  # fmt: skip
                assert status[0] == FINE
                rows, later = read(head), read(todo_head)
                check_constants(head, range(kc + vo + nt + 1))
                del buf, todo_buf  # a head does not own the memory that it describes
            assert rows == consolidate(rows)
            assert all(lo <= r[kc + vo] < hi and r[kc + vo + 1 : -1] == moment for r in rows)
            assert later == consolidate(later)
            for r in later:
                assert r[-1] == -1 and r[kc + 1 : -1] > moment and lo <= r[kc] < hi
                todo[r[kc + 1 : -1]].add(r[: kc + 1])
            mine.mint(rows)
            emitted += rows
            source.maintain(lo)
            mine.maintain(lo)
        lo = hi
        source.maintain(lo)
        mine.maintain(lo)
    return emitted


def compare(updates: list[Row], emitted: list[Row], operator: Operator, kc: int, nt: int) -> None:
    nd, vo = kc + operator.nv, operator.vo
    keys = {r[:kc] for r in updates} | {r[:kc] for r in emitted}
    for t in itertools.product(range(EPOCHS), *[range(ROUNDS)] * (nt - 1)):
        for key in keys:
            want = operator.apply(accumulate(updates, kc, nd, nt, operator.nf, key, t))
            have = {v: d[0] for v, d in accumulate(emitted, kc, kc + vo, nt, 1, key, t).items()}
            assert have == want, (key, t)


@st.composite
def cases(draw: st.DrawFn, operator: Operator) -> tuple:
    kc = draw(st.integers(0, 2))
    nt = draw(st.integers(1, 3))
    nt_in = draw(st.integers(1, nt))
    from_output = 1 if nt > 1 else draw(st.integers(0, 1))
    key = st.tuples(*[st.sampled_from([NULL, 1, 2])] * kc)
    values = st.tuples(*[st.sampled_from([NULL, -4, 0, 3, 2**40])] * operator.nv)
    rounds = st.tuples(*[st.integers(0, ROUNDS - 1)] * (nt_in - 1), *[st.just(0)] * (nt - nt_in))
    diffs = st.tuples(st.sampled_from([-1, 1, 1, 2]), *[st.integers(-3, 2**24)] * (operator.nf - 1))
    row = st.builds(lambda k, v, e, r, d: (*k, *v, e, *r, *d), key, values, st.integers(0, EPOCHS - 1), rounds, diffs)
    updates = draw(st.lists(row, max_size=25))
    sweeps = sorted(draw(st.sets(st.integers(1, EPOCHS - 1)))) + [EPOCHS]
    return updates, kc, nt, nt_in, from_output, sweeps, draw(st.integers(0, 2**32 - 1))


@pytest.mark.parametrize("name", OPERATORS)
def test_output_accumulates_to_the_operator_at_every_time(name: str) -> None:
    operator = OPERATORS[name]

    @settings(max_examples=by_day_or_night(24, 120), deadline=None)
    @given(cases(operator))
    def check(case: tuple) -> None:
        updates, kc, nt, nt_in, from_output, sweeps, seed = case
        emitted = simulate(updates, operator, kc, nt, nt_in, from_output, sweeps, seed)
        compare(updates, emitted, operator, kc, nt)

    check()


def run_once(
    work: list[Row], old: list[list[Row]], operator: Operator, lo: int, hi: int
) -> tuple[list[Row], np.ndarray]:
    """One step at depth 0 with old results from the input."""
    nd = 1 + operator.nv
    width = nd + 1 + operator.nf
    parts, before = [Rows(work, width)], [Rows(b, width) for b in old]
    shape = np.array([1, nd, 1, 1, operator.nf, operator.vo, 0, operator.op], np.int64)
    out = reduce(
        table(parts), np.array([nd], np.int64), table(before), table(before), shape,
        np.array(operator.params, np.int64), np.empty(0, np.int64), lo, hi,
    )  # fmt: skip
    return read(out[1]), out[4]


@pytest.mark.parametrize("name", ["min", "distinct", "sums of values"])
def test_many_keys_cross_block_boundaries(name: str) -> None:
    operator = OPERATORS[name]
    random = np.random.default_rng(7)

    def some(n: int, epoch: int) -> list[Row]:
        data = random.integers(0, 3000, (n, 1 + operator.nv))
        return consolidate((*(int(x) for x in row), epoch, 1) for row in data)

    old = [some(2000, 0), some(500, 1), [], some(30, 1)]
    work = some(900, 2)
    got, _ = run_once(work, old, operator, 2, 3)
    want = []
    nd = 1 + operator.nv
    groups: dict[Row, tuple[Group, Group]] = defaultdict(lambda: (defaultdict(lambda: [0]), defaultdict(lambda: [0])))
    for r in itertools.chain(*old, work):
        for side in (0, 1) if r[nd] < 2 else (1,):
            groups[r[:1]][side][r[1:nd]][0] += r[-1]
    for key in {r[:1] for r in work}:
        have, now = (operator.apply(g) for g in groups[key])
        want += [(*key, *v, 2, -m) for v, m in have.items()] + [(*key, *v, 2, m) for v, m in now.items()]
    assert got == consolidate(want)


@pytest.mark.parametrize("epochs", [1, 3])
@pytest.mark.parametrize("name", ["min", "distinct", "sums of values"])
def test_work_that_is_a_batch_of_its_history_gives_the_same_as_its_copy(name: str, epochs: int) -> None:
    operator = OPERATORS[name]
    random = np.random.default_rng(epochs)
    nd = 1 + operator.nv
    width = nd + 1 + operator.nf
    shape = np.array([1, nd, 1, 1, operator.nf, operator.vo, 1, operator.op], np.int64)
    found = {}

    def some(n: int, first: int) -> list[Row]:
        data = random.integers(0, 900, (n, nd))
        return consolidate((*map(int, row), first + int(random.integers(0, epochs)), 1) for row in data)

    before, work = Rows(some(800, 0), width), some(700, 3)
    shown = reduce(
        table([before]), np.array([nd], np.int64), table([before]), table([]), shape,
        np.array(operator.params, np.int64), np.empty(0, np.int64), 0, 3,
    )  # fmt: skip
    own = Rows(read(shown[1]), 1 + operator.vo + 2)
    for kind in ("same", "copy"):
        part = Rows(work, width)
        history = [before, part if kind == "same" else Rows(work, width)]
        out = reduce(
            table([part]), np.array([nd], np.int64), table(history), table([own]), shape,
            np.array(operator.params, np.int64), np.empty(0, np.int64), 3, 3 + epochs,
        )  # fmt: skip
        found[kind] = read(out[1]), out[4].tolist()
    assert found["same"] == found["copy"]
    assert found["same"][0]


def test_a_hot_key_with_many_epochs() -> None:
    n = 3000
    for name in ("sums of values", "max", "top3", "last2 and their ties", "distinct"):
        operator = OPERATORS[name]
        work = sorted((1, *[(e * 7919) % n] * operator.nv, e, 1) for e in range(n))
        got, _ = run_once(work, [], operator, 0, n)
        shown: dict[int, list[Row]] = defaultdict(list)
        for r in got:
            shown[r[-2]].append((r[1:-2], r[-1]))
        have: dict[Row, int] = defaultdict(int)
        group: Group = {}
        for e in range(n):
            group[((e * 7919) % n,) * operator.nv] = [1 + (group.get((), [0])[0] if operator.nv == 0 else 0)]
            for v, d in shown[e]:
                have[v] += d
            if e % 500 == 0:
                assert {v: d for v, d in have.items() if d} == operator.apply(group)


def test_a_sum_that_does_not_fit_names_its_key() -> None:
    operator = linear_values()
    work = [(4, 0, 1, 0, 1), (5, 0, 2**62, 0, 2), (6, 0, 1, 0, 1)]
    _, status = run_once(work, [], operator, 0, 1)
    assert list(status) == [TOO_LARGE, 5]


def middle() -> Operator:
    """An operator as a Python function might be: the middle row of a group, and how many rows there are."""

    def apply(group: Group) -> Result:
        rows = [v for v in sorted(group) for _ in range(max(0, group[v][0]))]
        return {(rows[len(rows) // 2][0], len(rows)): 2} if rows else {}

    return Operator(-1, [], 1, 1, 2, apply)


def evaluate_outside(
    operator: Operator, parts: list[Rows], work_nd: list[int], after: list[Rows], own: list[Rows], shape: np.ndarray,
    moment: Row, lo: int, hi: int,
) -> tuple[list[Row], list[Row]]:  # fmt: skip
    """One step through `collect`, Python, and `settle`."""
    kc, vo = int(shape[0]), int(shape[5])
    rounds = np.array(moment, np.int64)
    buf, head, request_buf, request_head, todo_buf, todo_head = collect(
        table(parts), np.array(work_nd, np.int64), table(after), table(own), shape, rounds, lo, hi
    )
    rows, requests = read(head), read(request_head)
    assert requests == sorted(set(requests)) and rows == sorted(rows)
    assert all(r[-1] != 0 for r in rows) and len({r[:-1] for r in rows}) == len(rows)
    wants: list[Row] = []
    for q in range(len(requests)):
        result = operator.apply({r[1:-1]: [r[-1]] for r in rows if r[0] == q})
        wants += [(q, *v, m) for v, m in result.items()]
    results = Rows(wants, vo + 2)
    out_buf, out = settle(int(request_head[1]), results.at, table(own), shape, rounds, lo, hi)
    check_constants(out, range(kc + vo + len(moment) + 2))
    emitted, later = read(out), read(todo_head)
    del buf, request_buf, todo_buf, out_buf  # a head does not own the memory that it describes
    return emitted, later


def test_a_function_evaluated_outside_gives_the_same_as_a_reduce() -> None:
    operator = middle()

    @settings(max_examples=by_day_or_night(30, 150), deadline=None)
    @given(cases(operator))
    def check(case: tuple) -> None:
        updates, kc, nt, nt_in, _, sweeps, seed = case
        step = functools.partial(evaluate_outside, operator)
        emitted = simulate(updates, operator, kc, nt, nt_in, 1, sweeps, seed, step)
        compare(updates, emitted, operator, kc, nt)

    check()
