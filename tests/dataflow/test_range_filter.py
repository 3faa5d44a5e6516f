"""The range filter shows the pairs that compare, at every epoch, and touches no row that no bound moved across."""

from __future__ import annotations

import datetime
import decimal
import operator
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tektite as tk
from tektite.dataflow import range_filter
from tektite.kernels.operators.range_filter import CURSORS, DONE, NEXT, OVERFLOWN, emit_segments, segments
from tests.support.executors import make_engine
from tests.support.kernel_rows import Row, Rows, check_constants, consolidate, read, table
from tests.support.nightly import by_day_or_night
from tests.support.row_changes import row_changes

pytestmark = pytest.mark.executors

NULL = -(2**63)
OPS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip

every_op = pytest.mark.parametrize("op", OPS)
every_number_of_workers = pytest.mark.parametrize("workers", [1, 2, 3])


# ---------------------------------------------------------------------- the kernels


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, ...]:
    kc = draw(st.integers(0, 2))
    nd_a, nd_b = kc + 1 + draw(st.integers(0, 1)), kc + draw(st.integers(1, 2))
    nt = draw(st.integers(1, 3))
    nts = draw(st.sampled_from([(nt, nt), (1, nt), (nt, 1)]))
    word = st.sampled_from([NULL, NULL + 1, -1, 0, 1, 2, 3, 2**63 - 1])
    key = st.sampled_from([NULL, 1, 2, 3])

    def parts(nd: int, nt: int) -> list[list[Row]]:
        row = st.tuples(*[key] * kc, *[word] * (nd - kc), *[st.integers(0, 2)] * nt, st.sampled_from([-1, 1, 2]))
        many = draw(st.integers(1, 3))
        return [consolidate(draw(st.lists(row, max_size=draw(st.sampled_from([1, 30]))))) for _ in range(many)]

    spec = draw(st.permutations(range(nd_a)))
    return (parts(nd_a, nts[0]), parts(nd_b, nts[1]), kc, (nd_a, nd_b), nts, nt, draw(st.integers(kc, nd_b - 1)),
            draw(st.sampled_from(list(OPS))), draw(st.booleans()), spec, draw(st.integers(0, 2)),
            draw(st.sampled_from([1, 7, 1000])), draw(st.booleans()), draw(st.booleans()))  # fmt: skip


@settings(max_examples=by_day_or_night(80, 400))
@given(cases())
def test_segments_give_the_pairs_of_a_nested_loop(case: tuple[Any, ...]) -> None:
    a, b, kc, nd, nts, nt, bound_at, op, floats, spec, lo, limit, by_bounds, fold = case
    want = []
    for x in (row for part in a for row in part):
        for y in (row for part in b for row in part):
            v, w = x[kc], y[bound_at]
            if x[:kc] != y[:kc] or NULL in (*x[:kc], v, w):
                continue
            if OPS[op](0 if floats and v == -1 else v, 0 if floats and w == -1 else w):
                tx = (*x[nd[0] : nd[0] + nts[0]], *[0] * (nt - nts[0]))
                ty = (*y[nd[1] : nd[1] + nts[1]], *[0] * (nt - nts[1]))
                times = [max(pair) for pair in zip(tx, ty, strict=True)]
                want.append((*(x[c] for c in spec), max(times[0], lo), *times[1:], x[-1] * y[-1]))

    rows = [Rows(part, nd[0] + nts[0] + 1, fold) for part in a]
    bounds = [Rows(part, nd[1] + nts[1] + 1, fold) for part in b]
    named, sought = (table(bounds), table(rows)) if by_bounds else (table(rows), table(bounds))
    flags = range_filter.COMPARISONS[op] | (range_filter.FLOATS if floats else 0)
    state = np.zeros(CURSORS + len(named), np.int64)
    got: list[Row] = []
    while not state[DONE]:
        found = segments(named, sought, int(by_bounds), kc, bound_at, nd[1], nts[1], nt, flags, lo, limit, state)
        assert not state[OVERFLOWN]
        assert (found[3 :: nt + 4] != 0).all()
        while state[NEXT] * (nt + 4) < len(found):
            _buf, head = emit_segments(found, np.array(spec, np.int64), nd[0], nts[0], nt, limit, state)
            assert 0 < head[0] <= limit
            check_constants(head, range(nd[0], nd[0] + nt + 1))
            got += read(head)
    assert consolidate(got) == consolidate(want)


def test_a_coefficient_that_does_not_fit_is_flagged() -> None:
    rows, bounds = Rows([(5, 0, 1)], 3), Rows([(1, 0, 2**62), (2, 0, 2**62)], 3)
    for flags in range_filter.COMPARISONS.values():
        state = np.zeros(CURSORS + 1, np.int64)
        segments(table([bounds]), table([rows]), 1, 0, 0, 1, 1, 1, flags, 0, 10, state)
        assert state[OVERFLOWN]


@pytest.mark.parametrize("fold", [True, False])
def test_a_product_of_diffs_that_does_not_fit_is_flagged(fold: bool) -> None:
    rows, bounds = Rows([(5, 0, 2**40), (5, 1, 1)], 3, fold), Rows([(1, 0, 2**40)], 3, fold)
    state = np.zeros(CURSORS + 1, np.int64)
    found = segments(table([bounds]), table([rows]), 1, 0, 0, 1, 1, 1, range_filter.COMPARISONS[">"], 0, 10, state)
    _buf, head = emit_segments(found, np.array([0], np.int64), 1, 1, 1, 10, state)
    assert head[0] == -1


# ---------------------------------------------------------------------- the operator


class History:
    """Random updates of some inputs, epoch by epoch, and what each input holds at each of them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.live: dict[str, Counter[Row]] = defaultdict(Counter)
        self.past: list[dict[str, Counter[Row]]] = []

    def change(self, source: tk.Table, rows: Iterable[Row], diff: int, epoch: int) -> None:
        rows = list(rows)
        if rows:
            source.update(rows, times=[epoch] * len(rows), diffs=[diff] * len(rows))
            for row in rows:
                self.live[source.name][row] += diff

    def churn(self, source: tk.Table, make: Callable[[random.Random], Row], epoch: int, more: int, less: float) -> None:
        """Remove a part of the rows, and add `more` new ones."""
        held = self.live[source.name]
        gone = [row for row, count in sorted(held.items(), key=repr) if count > 0 and self.random.random() < less]
        self.change(source, gone, -1, epoch)
        self.change(source, [make(self.random) for _ in range(more)], 1, epoch)

    def close(self) -> None:
        """The epoch is complete."""
        self.past.append({name: +held for name, held in self.live.items()})


def at_each_epoch(changes: tk.Changes, epochs: int) -> list[Counter[Row]]:
    """What a view holds at each epoch, from its changes."""
    by_time = defaultdict(list)
    for row, time, diff in changes:
        by_time[time].append((row, diff))
    held: Counter[Row] = Counter()
    out = []
    for epoch in range(epochs):
        for row, diff in by_time[epoch]:
            held[row] += diff
        out.append(Counter({row: count for row, count in held.items() if count}))
    return out


def passing(rows: Counter[Row], bounds: Counter[Row], op: str, by: int) -> Counter[Row]:
    """The slow twin: rows (key, value, ...) against bounds (key, bound, ...)."""
    out: Counter[Row] = Counter()
    for row, count in rows.items():
        for bound, times in bounds.items():
            if row[:by] == bound[:by] and None not in (*row[:by], row[by], bound[by]) and OPS[op](row[by], bound[by]):
                out[row] += count * times
    return out


def maybe(random: random.Random, word: int) -> int | None:
    return None if random.random() < 0.1 else word


@pytest.mark.executors(
    stages=["0-<-2", "0-<=-1", "0->-3", "0->=-2", "1-<-3", "1-<=-2", "1->=-1", "2->-2"], spark=["0->=-2"]
)
@every_number_of_workers
@every_op
@pytest.mark.parametrize("by", [0, 1, 2])
def test_result_is_exact_at_every_epoch(workers: int, op: str, by: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(range_filter, "PIECE", 5)
    monkeypatch.setattr(range_filter, "PIECES_PER_RUN", 2)
    names = ["k", "l"][:by]
    with make_engine(workers, turn=0.0) as engine:
        rows = engine.create_table("rows", dict.fromkeys([*names, "v", "other"], tk.Int))
        bounds = engine.create_table("bounds", dict.fromkeys([*names, "b", "other"], tk.Int))
        # The columns in another order than the operator keeps them in.
        source = rows.select("other", "v", *names)
        view = engine.install("view", source.filter_by_bound("v", op, bounds, "b", by=names))
        changes = row_changes(view)
        history = History(seed=by)

        def make(random: random.Random) -> Row:
            return (*(maybe(random, random.randrange(3)) for _ in names), maybe(random, random.randrange(20)),
                    random.randrange(2))  # fmt: skip

        epoch = 0
        for step in (1, 1, 3, 1, 5, 2, 8, 1):
            for e in range(epoch, epoch + step):
                history.churn(rows, make, e, more=4 if e else 30, less=0.1)
                history.churn(bounds, make, e, more=2, less=0.3)
                history.close()
            epoch += step
            engine.advance(epoch)
        found = at_each_epoch(changes, epoch)
        for e in range(epoch):
            past = history.past[e]
            want: Counter[Row] = Counter()
            for row, count in passing(past["rows"], past.get("bounds", Counter()), op, by).items():
                want[row[by + 1], row[by], *row[:by]] += count
            assert found[e] == want, e
        late = engine.install("late", rows.filter_by_bound("v", op, bounds, "b", by=names))
        assert late.multiplicities() == passing(history.past[-1]["rows"], history.past[-1]["bounds"], op, by)


@pytest.mark.executors("stages")
@every_op
def test_each_type_compares_as_in_an_expression(op: str) -> None:
    epoch = datetime.datetime(2020, 1, 1)
    values: dict[tk.Type, list[Any]] = {
        tk.Int: [None, -(2**63) + 1, -1, 0, 1, 2**63 - 1],
        tk.Float: [None, float("-inf"), -1.0, -0.0, 0.0, 5e-324, -5e-324, 1.0, float("inf"), float("nan")],
        tk.Bool: [None, False, True],
        tk.Date: [None, epoch.date(), epoch.date() + datetime.timedelta(1)],
        tk.Timestamp: [None, epoch, epoch + datetime.timedelta(microseconds=1)],
        tk.Decimal(5, 2): [None, decimal.Decimal("-1.50"), decimal.Decimal("0.00"), decimal.Decimal("1.25")],
    }
    with make_engine() as engine:
        for i, (type, found) in enumerate(values.items()):
            rows = engine.create_table(f"rows{i}", {"n": tk.Int, "v": type})
            bounds = engine.create_table(f"bounds{i}", {"b": type})
            all_pairs = rows.with_columns(one=1).join(bounds.with_columns(one=1), on="one")
            slow = all_pairs.filter({"<": tk.col("v") < tk.col("b"), "<=": tk.col("v") <= tk.col("b"),
                                     ">": tk.col("v") > tk.col("b"), ">=": tk.col("v") >= tk.col("b")}[op])  # fmt: skip
            view = engine.install(f"view{i}", rows.filter_by_bound("v", op, bounds, "b").select("n"))
            want = engine.install(f"want{i}", slow.select("n"))
            rows.insert([(n, v) for n, v in enumerate(found)])
            for bound in found:
                bounds.insert([(bound,)])
                engine.advance()
                assert view.multiplicities() == want.multiplicities(), (type, bound)
            for bound in found:
                bounds.remove([(bound,)])
                engine.advance()
                assert view.multiplicities() == want.multiplicities(), (type, bound)
            assert view.multiplicities() == {}


@pytest.mark.executors("stages", spark=[2])
@every_number_of_workers
def test_rows_above_the_average_of_their_group(workers: int) -> None:
    with make_engine(workers) as engine:
        rows = engine.create_table("rows", {"k": tk.Int, "v": tk.Int})
        source = rows.with_columns(x=tk.col("v").cast(tk.Float))
        means = rows.group_by("k").agg(n=tk.count(), mean=tk.avg("v"))
        view = engine.install("view", source.filter_by_bound("x", ">", means, "mean", by="k").select("k", "v"))
        whole = rows.group_by().agg(mean=tk.avg("v"))
        overall = engine.install("overall", source.filter_by_bound("x", "<=", whole, "mean").select("k", "v"))
        changes, overall_changes = row_changes(view), row_changes(overall)
        history = History(seed=workers)
        epoch = 0
        for step in (1, 2, 1, 6, 3):
            for e in range(epoch, epoch + step):
                history.churn(rows, lambda r: (r.randrange(4), r.randrange(64)), e, more=8, less=0.2)
                history.close()
            epoch += step
            engine.advance(epoch)
        found, found_overall = at_each_epoch(changes, epoch), at_each_epoch(overall_changes, epoch)
        for e in range(epoch):
            held = history.past[e]["rows"]
            groups: dict[int, list[int]] = defaultdict(list)
            for (k, v), count in held.items():
                groups[k] += [v] * count
            mean = {k: sum(vs) / len(vs) for k, vs in groups.items()}
            total = [v for vs in groups.values() for v in vs]
            assert found[e] == Counter({(k, v): n for (k, v), n in held.items() if v > mean[k]})
            assert found_overall[e] == Counter({r: n for r, n in held.items() if r[1] <= sum(total) / len(total)})


@pytest.mark.executors("stages")
def test_groups_by_floats_are_those_of_equal_numbers() -> None:
    with make_engine() as engine:
        rows = engine.create_table("rows", {"k": tk.Float, "v": tk.Int})
        bounds = engine.create_table("bounds", {"k": tk.Float, "b": tk.Int})
        view = engine.install("view", rows.filter_by_bound("v", "<", bounds, "b", by="k"))
        rows.insert([(-0.0, 1), (0.0, 2), (0.0, 9), (1.0, 1), (None, 1)])
        bounds.insert([(-0.0, 5), (None, 5)])
        engine.advance()
        assert sorted(view.rows()) == [(-0.0, 1), (0.0, 2)]
        assert view.schema == rows.schema
        joined = engine.install("joined", rows.join(bounds, on="k"))
        assert sorted(joined.rows()) == [(-0.0, 1, 5), (0.0, 2, 5), (0.0, 9, 5)]


@pytest.mark.executors("stages")
def test_a_collection_can_bound_itself() -> None:
    with make_engine() as engine:
        rows = engine.create_table("rows", {"k": tk.Int, "v": tk.Int})
        view = engine.install("view", rows.filter_by_bound("v", ">=", rows, "v", by="k"))
        rows.insert([(1, 1), (1, 2), (1, 3), (2, 5)])
        engine.advance()
        assert view.multiplicities() == {(1, 1): 1, (1, 2): 2, (1, 3): 3, (2, 5): 1}
        rows.remove([(1, 2)])
        engine.advance()
        assert view.multiplicities() == {(1, 1): 1, (1, 3): 2, (2, 5): 1}


GAP = 3


def largest(values: Iterable[int]) -> int:
    return max(values, default=-1)


@pytest.mark.executors(stages=[2])
@every_number_of_workers
def test_bounds_of_a_loop_move_round_by_round(workers: int) -> None:
    """Each key's bound grows while values lie close enough behind it."""
    with make_engine(workers) as engine:
        rows = engine.create_table("rows", {"k": tk.Int, "v": tk.Int})
        seeds = engine.create_table("seeds", {"k": tk.Int, "b": tk.Int})

        def step(bounds: tk.Collection) -> tk.Collection:
            near = rows.filter_by_bound("v", "<=", bounds, "b", by="k")
            grown = near.select("k", b=tk.col("v") + GAP)
            return grown.concat(seeds).max("b", by="k")

        view = engine.install("view", seeds.max("b", by="k").iterate(step))
        changes = row_changes(view)
        history = History(seed=10 + workers)
        epoch = 0
        for width in (1, 1, 4, 2, 6):
            for e in range(epoch, epoch + width):
                history.churn(rows, lambda r: (r.randrange(3), r.randrange(40)), e, more=6, less=0.15)
                history.churn(seeds, lambda r: (r.randrange(3), r.randrange(6)), e, more=1, less=0.3)
                history.close()
            epoch += width
            engine.advance(epoch)
        found = at_each_epoch(changes, epoch)
        for e in range(epoch):
            want: Counter[Row] = Counter()
            for k in range(3):
                first = [b for (key, b) in history.past[e]["seeds"] if key == k]
                values = [v for (key, v) in history.past[e]["rows"] if key == k]
                if first:
                    bound = max(first)
                    while (after := max(max(first), largest(v + GAP for v in values if v <= bound))) > bound:
                        bound = after
                    want[k, bound] = 1
            assert found[e] == want, e


@pytest.mark.executors(stages=[3])
@every_number_of_workers
def test_rows_of_a_loop_meet_bounds_from_outside(workers: int) -> None:
    """Values count up as long as they are below a bound that moves between epochs."""
    with make_engine(workers) as engine:
        seeds = engine.create_table("seeds", {"k": tk.Int, "v": tk.Int})
        bounds = engine.create_table("bounds", {"k": tk.Int, "b": tk.Int})

        def step(values: tk.Collection) -> tk.Collection:
            passed = values.filter_by_bound("v", "<", bounds, "b", by="k")
            return passed.select("k", v=tk.col("v") + 1).concat(seeds).distinct()

        view = engine.install("view", seeds.iterate(step))
        changes = row_changes(view)
        history = History(seed=20 + workers)
        epoch = 0
        for width in (1, 1, 4, 2, 6):
            for e in range(epoch, epoch + width):
                history.churn(seeds, lambda r: (r.randrange(3), r.randrange(12)), e, more=2, less=0.3)
                history.churn(bounds, lambda r: (r.randrange(3), r.randrange(12)), e, more=1, less=0.3)
                history.close()
            epoch += width
            engine.advance(epoch)
        found = at_each_epoch(changes, epoch)
        for e in range(epoch):
            want: Counter[Row] = Counter()
            for k, v in history.past[e]["seeds"]:
                top = largest(b for (key, b) in history.past[e]["bounds"] if key == k)
                for reached in range(v, max(v, top) + 1):
                    want[k, reached] = 1
            assert found[e] == want, e


@pytest.mark.executors(stages=[2])
@every_number_of_workers
def test_rows_and_bounds_of_a_loop_in_a_loop(workers: int) -> None:
    """The inner loop counts up to the bound, which the outer loop moves to wherever links lead."""
    with make_engine(workers) as engine:
        seeds = engine.create_table("seeds", {"v": tk.Int})
        links = engine.create_table("links", {"v": tk.Int, "b": tk.Int})

        def outer(bounds: tk.Collection) -> tk.Collection:
            def inner(values: tk.Collection) -> tk.Collection:
                passed = values.filter_by_bound("v", "<", bounds, "b")
                return passed.select(v=tk.col("v") + 1).concat(seeds).distinct()

            reached = seeds.iterate(inner)
            return links.join(reached.distinct(), on="v").select("b").concat(bounds).max("b")

        start = seeds.max("v").select(b=tk.col("v") + 1)
        view = engine.install("view", start.iterate(outer))
        changes = row_changes(view)
        history = History(seed=30 + workers)
        epoch = 0
        for width in (1, 1, 4, 2, 6):
            for e in range(epoch, epoch + width):
                history.churn(seeds, lambda r: (r.randrange(10),), e, more=1, less=0.3)
                history.churn(links, lambda r: (r.randrange(20), r.randrange(30)), e, more=3, less=0.2)
                history.close()
            epoch += width
            engine.advance(epoch)
        found = at_each_epoch(changes, epoch)
        for e in range(epoch):
            seed_values = [v for (v,) in history.past[e]["seeds"]]
            want: Counter[Row] = Counter()
            if seed_values:
                bound = max(seed_values) + 1
                reach = range(min(seed_values), bound + 1)
                while (after := max(bound, largest(b for v, b in history.past[e]["links"] if v in reach))) > bound:
                    bound = after
                    reach = range(min(seed_values), bound + 1)
                want[bound,] = 1
            assert found[e] == want, e


@pytest.mark.executors(stages=["2-<", "3->="])
@every_op
@every_number_of_workers
def test_a_moved_bound_touches_only_the_rows_between(
    op: str, workers: int, executor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if executor == "spark":
        pytest.skip("rows are counted in this process, not in those of Spark")
    written: list[int] = []

    def counting(*arguments: Any) -> Any:
        buf, head = emit_segments(*arguments)
        written.append(int(head[0]))
        return buf, head

    monkeypatch.setattr(range_filter, "emit_segments", counting)
    with make_engine(workers) as engine:
        rows = engine.create_table("rows", {"k": tk.Int, "v": tk.Int})
        bounds = engine.create_table("bounds", {"k": tk.Int, "b": tk.Int}, mode="upsert", primary_key="k")
        view = engine.install("view", rows.filter_by_bound("v", op, bounds, "b", by="k"))
        many = 100_000
        for part in range(5):  # several batches
            rows.insert(np.stack([np.zeros(many // 5, np.int64), np.arange(part, many, 5)], axis=1))
            bounds.insert([(0, 50_000)])
            engine.advance()
        held = Counter(view.multiplicities())
        assert sum(held.values()) == sum(OPS[op](v, 50_000) for v in range(many))
        for bound in (50_003, 49_999, 49_999, 50_002):
            written.clear()
            before, held = held, held.copy()
            bounds.insert([(0, bound)])
            engine.advance()
            held = Counter(view.multiplicities())
            assert sum(written) == (held - before).total() + (before - held).total() <= 4
        written.clear()
        rows.insert([(0, 7), (0, 70_000), (1, 7)])
        engine.advance()
        assert sum(written) == 1
        view.drop()


@pytest.mark.executors("stages", "spark")
def test_overflow_is_reported() -> None:
    with make_engine() as engine:
        rows, bounds = engine.create_table("rows", {"v": tk.Int}), engine.create_table("bounds", {"b": tk.Int})
        view = engine.install("view", rows.filter_by_bound("v", "<", bounds, "b"))
        rows.update([(1,)], diffs=[2**40])
        bounds.update([(2,)], diffs=[2**40])
        engine.advance()
        with pytest.raises(tk.IncorrectError, match="range filter: a product of multiplicities does not fit"):
            view.rows()


def test_mistakes_are_reported_where_they_are_made() -> None:
    with make_engine() as engine:
        rows = engine.create_table("rows", {"k": tk.Int, "v": tk.Int, "d": tk.Decimal(5, 2), "text": tk.String})
        bounds = engine.create_table(
            "bounds", {"k": tk.Int, "b": tk.Int, "f": tk.Float, "d": tk.Decimal(18, 2), "text": tk.String}
        )
        assert rows.filter_by_bound("d", "<", bounds, "d").schema == rows.schema
        for arguments, by, message in [
            (("v", "=", bounds, "b"), "k", "op is <, <=, > or >=, not '='"),
            (("v", "<", 5, "b"), "k", "needs a collection, not int"),
            (("v", "<", bounds, "f"), "k", "'v' is int and 'f' is float; cast one of them"),
            (("d", "<", bounds, "b"), "k", r"'d' is decimal\(5, 2\) and 'b' is int; cast one of them"),
            (("text", "<", bounds, "text"), "k", "column 'text' is text"),
            (("k", "<", bounds, "b"), "k", "column 'k' is constant in a group"),
            (("v", "<", bounds, "b"), ("k", "k"), "filter_by_bound: a column is named twice"),
            (("v", "<", bounds, "b"), "d", "filter_by_bound: 'd' is"),
        ]:
            with pytest.raises(tk.IncorrectError, match=message):
                rows.filter_by_bound(*arguments, by=by)  # type: ignore[arg-type]
        with pytest.raises(tk.NotFoundError):
            rows.filter_by_bound("v", "<", bounds, "missing")
