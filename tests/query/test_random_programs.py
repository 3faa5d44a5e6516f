"""Every view equals brute force at every epoch, whatever the program, its history and the way this is delivered."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import tektite as tk
from tektite.engine.core import core_of
from tests.support.brute import Bag, Brute, Row, bag
from tests.support.executors import examples, make_engine
from tests.support.nightly import by_day_or_night
from tests.support.programs import KEYED, History, Program
from tests.support.row_changes import row_changes

pytestmark = [pytest.mark.slow, pytest.mark.executors]

SEEDS = st.integers(0, 2**32 - 1)
MOST = settings.default.max_examples if settings.default is not None else 100
"""Examples that the profile asks for."""


@dataclass
class Watched:
    """A view with everything that its changes have said so far."""

    number: int
    view: tk.View
    start: int
    changes: tk.Changes
    said: list[tuple[Row, int, int]] = field(default_factory=list)
    checked: int = 0


class World:
    """One engine with a program, its history, and the views that are installed."""

    def __init__(self, seed: int, operators: int, epochs: int, **options: object) -> None:
        self.engine = make_engine(**options)  # type: ignore[arg-type]
        self.program = Program(self.engine, seed, operators)
        self.program.grow()
        self.history = History(seed, epochs)
        self.watched: list[Watched] = []
        self.waiting = {name: list(log) for name, log in self.history.updates.items()}
        self.answers: dict[tuple[int, int], Bag] = {}
        self.count = 0

    def install(self, number: int, key: list[str] | None = None) -> Watched:
        """Install collection `number` of the pool and follow its changes."""
        collection = self.program.pool[number][0]
        view = self.engine.install(f"view {self.count}", collection, order_by=key or [])
        self.count += 1
        found = Watched(number, view, view.first, row_changes(view))
        self.watched.append(found)
        self.program.pool[number] = (view, self.program.pool[number][1])
        return found

    def want(self, number: int, epoch: int) -> Bag:
        """What a collection of the program should be at an epoch."""
        known = self.answers.get((number, epoch))
        if known is None:
            contents = {source: self.history.at(name, epoch) for name, source in self.program.inputs.items()}
            plan = self.program.pool[number][0].operator
            known = self.answers[number, epoch] = Brute(contents, core_of(self.engine).dictionary).value(plan)
        return known

    def deliver(self, name: str, before: int, rng: random.Random) -> None:
        """Hand an input all updates before an epoch, and some later ones, in any order."""
        log = self.waiting[name]
        if name in KEYED:
            # Of one epoch, all or nothing: the order of arrival counts.
            epochs = {time for _, time, _ in log if time < before or rng.random() < 0.1}
            for row, time, diff in [u for u in log if u[1] in epochs]:
                source = self.program.inputs[name]
                (source.insert if diff > 0 else source.remove)([row], time=time)
            self.waiting[name] = [u for u in log if u[1] not in epochs]
            return
        early = [time < before or rng.random() < 0.2 for _, time, _ in log]
        now = [u for u, chosen in zip(log, early, strict=True) if chosen]
        self.waiting[name] = [u for u, chosen in zip(log, early, strict=True) if not chosen]
        rng.shuffle(now)
        if now:
            self.program.inputs[name].update(
                [row for row, _, _ in now], times=[time for _, time, _ in now], diffs=[diff for _, _, diff in now]
            )

    def check(self) -> None:
        """Compare every view with brute force, at each epoch that has closed since the last time."""
        for w in self.watched:
            w.said += [tuple(change) for change in w.changes]
            low = core_of(w.view).low
            for epoch in range(max(w.checked, w.start), low):
                want = self.want(w.number, epoch)
                got = bag((row, diff) for row, time, diff in w.said if time <= epoch)
                assert got == want, self.complaint(w, epoch, got, want, "changes")
            if low == w.start and low:
                with pytest.raises(tk.IncorrectError, match="no answer yet"):
                    w.view.rows()
            elif low:
                got = w.view.multiplicities()
                want = self.want(w.number, low - 1)
                assert got == want, self.complaint(w, low - 1, got, want, "snapshot")
            w.checked = low

    def complaint(self, w: Watched, epoch: int, got: Bag, want: Bag, what: str) -> str:
        wrong = {row: (got.get(row, 0), want.get(row, 0)) for row in {*got, *want} if got.get(row) != want.get(row)}
        lines = "\n".join(self.program.lines)
        name = self.program.names.get(id(self.program.pool[w.number][0]), "?")
        log = "\n".join(f"{name}: {log}" for name, log in self.history.updates.items())
        return f"{what} of {w.view.name} ({name}) at {epoch}: row: (got, want) {wrong}\n{lines}\n{log}"


@contextmanager
def world(seed: int, operators: int, epochs: int, **options: object) -> Iterator[World]:
    made = World(seed, operators, epochs, **options)
    try:
        yield made
    finally:
        made.engine.close()


def run_at_random(w: World, rng: random.Random) -> None:
    """Deliver a history with installations, drops and unequal progress; check after every step."""
    epochs = w.history.epochs
    pool = len(w.program.pool)
    w.install(pool - 1)
    while any(source.next_epoch < epochs for source in w.program.inputs.values()):
        if len(w.watched) < 3 and rng.random() < 0.4:
            w.install(rng.randrange(pool))
        elif w.watched and rng.random() < 0.1:
            gone = rng.choice(w.watched)
            if not any(core_of(gone.view) in core_of(v.view).flow.sources for v in w.watched):
                w.watched.remove(gone)
                w.program.pool[gone.number] = (
                    tk.Collection(w.engine, core_of(gone.view).definition), w.program.pool[gone.number][1],
                )  # fmt: skip
                gone.view.drop()
        if rng.random() < 0.5:
            to = min(max(s.next_epoch for s in w.program.inputs.values()) + rng.choice([1, 1, 2, 4]), epochs)
            for name in w.program.inputs:
                w.deliver(name, to, rng)
            w.engine.advance(to)
        else:
            name = rng.choice(list(w.program.inputs))
            source = w.program.inputs[name]
            to = min(source.next_epoch + rng.choice([1, 1, 2, 5]), epochs)
            w.deliver(name, to, rng)
            if to > source.next_epoch:
                source.advance(to)
        if rng.random() < 0.2:
            w.engine.idle()
        w.check()
    w.install(rng.randrange(pool))
    w.check()


@pytest.mark.executors("stages", "spark")
def test_every_view_equals_brute_force_at_every_epoch() -> None:
    @settings(max_examples=examples(by_day_or_night(3, 15) * MOST))
    @given(seed=SEEDS, operators=st.integers(1, 8), epochs=st.integers(1, 10))
    def check(seed: int, operators: int, epochs: int) -> None:
        rng = random.Random(~seed)
        options = {
            "workers": rng.choice([1, 1, 2, 3]),
            "merging": rng.choice(["eager", "default", "lazy"]),
            "turn": rng.choice([0.05, 0.05, 0.0]),
        }
        note(str(options))
        with world(seed, operators, epochs, **options) as w:
            run_at_random(w, rng)

    check()


def changes_of(seed: int, operators: int, epochs: int, stops: list[int], **options: object) -> list[dict[object, int]]:
    """All changes of the program's last collections, consolidated, when the epochs are closed at these stops."""
    with world(seed, operators, epochs, **options) as w:
        numbers = range(max(len(w.program.pool) - 3, 0), len(w.program.pool))
        watched = [w.install(number) for number in numbers]
        for stop in stops:
            for name in w.program.inputs:
                w.deliver(name, stop, random.Random(seed))
            w.engine.advance(stop)
            for v in watched:
                v.said += [tuple(change) for change in v.changes]
        return [bag(((row, time), diff) for row, time, diff in v.said) for v in watched]


def test_changes_depend_neither_on_batching_nor_on_merging_nor_on_workers(executor: str) -> None:
    @settings(max_examples=by_day_or_night(1, 4) * MOST if executor == "threads" else examples(MOST))
    @given(seed=SEEDS, operators=st.integers(1, 8), epochs=st.integers(2, 10))
    def check(seed: int, operators: int, epochs: int) -> None:
        rng = random.Random(~seed)
        one_by_one = list(range(1, epochs + 1))
        some = sorted({*rng.sample(one_by_one, len(one_by_one) // 2), epochs})
        reference = changes_of(seed, operators, epochs, one_by_one)
        assert changes_of(seed, operators, epochs, [epochs], workers=2, merging="lazy") == reference
        assert changes_of(seed, operators, epochs, some, workers=3, merging="eager", turn=0.0) == reference
        assert changes_of(seed, operators, epochs, one_by_one, merging="lazy") == reference

    check()


def test_views_go_on_when_an_input_has_ended(executor: str) -> None:
    """Inputs are closed one after the other; what they hold stays, and nobody waits for them."""

    @settings(max_examples=by_day_or_night(1, 4) * MOST if executor == "threads" else examples(MOST))
    @given(seed=SEEDS, operators=st.integers(1, 6), epochs=st.integers(3, 10))
    def check(seed: int, operators: int, epochs: int) -> None:
        rng = random.Random(~seed)
        with world(seed, operators, epochs, workers=rng.choice([1, 2])) as w:
            ending = {name: rng.randint(1, epochs) for name in (*w.program.inputs,)}
            for name, end in ending.items():
                w.history.updates[name] = [u for u in w.history.updates[name] if u[1] < end]
            w.waiting = {name: list(log) for name, log in w.history.updates.items()}
            w.install(len(w.program.pool) - 1)
            for epoch in range(1, epochs + 1):
                for name, source in w.program.inputs.items():
                    if not source.closed:
                        w.deliver(name, epoch, rng)
                w.engine.advance(epoch)
                w.check()
                for name, source in w.program.inputs.items():
                    if ending[name] <= epoch and not source.closed:
                        source.finish()
                        w.check()
                if rng.random() < 0.2:
                    w.install(rng.randrange(len(w.program.pool)))
                    w.check()

    check()
