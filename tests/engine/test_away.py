"""A function of a query that takes its time holds up nobody but those who read what it computes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest

import tektite as tk
from tektite.engine.core import core_of
from tests.support.fault_injection import Injector
from tests.support.patience import PATIENT_TURN

SECONDS = 120
"""After so long a test that hangs fails."""


class Gate:
    """Something that functions of queries wait for, once it is shut."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self._open = threading.Event()
        self._open.set()

    def shut(self) -> None:
        self.reached.clear()
        self._open.clear()

    def open(self) -> None:
        self._open.set()

    def pass_through(self) -> None:
        self.reached.set()
        assert self._open.wait(SECONDS)


Made = Callable[[tk.Collection, Gate], tk.Collection]


def mapped(numbers: tk.Collection, gate: Gate) -> tk.Collection:
    def twice(batch: pa.Table) -> pa.Table:
        gate.pass_through()
        return pa.table({"n": [2 * n for n in batch["n"].to_pylist()]})

    return numbers.map_batches(twice, n=tk.Int)


def flat_mapped(numbers: tk.Collection, gate: Gate) -> tk.Collection:
    def twice(batch: pa.Table) -> Any:
        gate.pass_through()
        return pa.table({"n": [2 * n for n in batch["n"].to_pylist()]}), list(range(batch.num_rows))

    return numbers.flat_map(twice, n=tk.Int)


def reduced(numbers: tk.Collection, gate: Gate) -> tk.Collection:
    def twice(key: tuple[int], rows: list[Any]) -> list[Any]:
        gate.pass_through()
        return [(2 * key[0],)]

    return numbers.select("n", m="n").reduce(twice, by="n", twice=tk.Int).select(n="twice")


def inspected(numbers: tk.Collection, gate: Gate) -> tk.Collection:
    return numbers.inspect(lambda changes: gate.pass_through()).select(n=2 * tk.col("n"))


def in_a_loop(numbers: tk.Collection, gate: Gate) -> tk.Collection:
    def twice(batch: pa.Table) -> pa.Table:
        gate.pass_through()
        return pa.table({"n": [2 * n if n % 2 else n for n in batch["n"].to_pylist()]})

    doubled = numbers.iterate(lambda some: some.concat(numbers).map_batches(twice, n=tk.Int).distinct())
    return doubled.filter(tk.col("n") % 2 == 0)


MADE: dict[str, Made] = {
    "map_batches": mapped, "flat_map": flat_mapped, "reduce": reduced, "inspect": inspected, "loop": in_a_loop,
}  # fmt: skip


class World:
    """Tables, a view whose function can be stopped, and one that has nothing to do with it."""

    def __init__(self, made: Made, workers: int = 1, **options: Any) -> None:
        self.gate = Gate()
        self.engine = tk.Engine(workers=workers, autocommit=True, **{"turn": PATIENT_TURN, **options})
        self.numbers = self.engine.create_table("numbers", {"n": tk.Int})
        self.others = self.engine.create_table("others", {"k": tk.Int, "v": tk.Int})
        self.slow = self.engine.install("slow", made(self.numbers, self.gate))
        self.count = self.engine.install("count", self.others.count(by="k"))
        self.numbers.insert([(1,)])
        self.threads = ThreadPoolExecutor(4)

    @contextmanager
    def stopped(self, n: int = 3) -> Iterator[Any]:
        """A block in which another thread inserts a number, and the function does not return."""
        self.gate.shut()
        writing = self.threads.submit(self.numbers.insert, [(n,)])
        try:
            assert self.gate.reached.wait(SECONDS)
            yield writing
        finally:
            self.gate.open()
        writing.result(SECONDS)

    def close(self) -> None:
        self.gate.open()
        self.engine.close()
        self.threads.shutdown()


@pytest.fixture(params=[(name, workers) for name in MADE for workers in (1, 2)], ids=lambda p: f"{p[0]} {p[1]}")
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    name, workers = request.param
    made = World(MADE[name], workers)
    yield made
    made.close()


def test_others_write_read_and_install_meanwhile(world: World) -> None:
    engine, numbers, others = world.engine, world.numbers, world.others
    with world.stopped():
        others.insert([(1, 10), (1, 11), (2, 20)])
        assert sorted(world.count.rows()) == [(1, 2), (2, 1)]
        with engine.transaction():
            others.remove([(1, 10)])
            numbers.insert([(5,)])
        assert sorted(world.count.rows()) == [(1, 1), (2, 1)]
        assert sorted(numbers.rows()) == [(1,), (3,), (5,)]
        made = engine.install("made", others.join(numbers, left_on="k", right_on="n").count(by="v"))
        assert made.rows() == [(11, 1)]
        assert engine.sql("SELECT sum(v) FROM others").rows() == [(31,)]
        made.drop()
        reader = engine.install("reader", world.slow.count())
        assert world.slow.snapshot(wait=False).to_pylist() == [{"n": 2}]
        assert not world.slow.current
        assert not world.slow.wait(engine.next_epoch - 1, timeout=0.01)
        assert not engine.run()
    assert sorted(world.slow.rows()) == [(2,), (6,), (10,)]
    assert reader.rows() == [(3,)]


def test_who_reads_what_is_computed_waits_for_it(world: World) -> None:
    with world.stopped():
        reading = world.threads.submit(world.slow.rows)
        settling = world.threads.submit(world.engine.settle)
        world.others.insert([(1, 1)])
        assert not reading.done() and not settling.done()
    assert sorted(reading.result(SECONDS)) == [(2,), (6,)]
    settling.result(SECONDS)
    assert world.slow.current


def test_a_view_that_is_being_computed_can_be_dropped(world: World) -> None:
    with world.stopped() as writing:
        world.slow.drop()
        assert "slow" not in world.engine.views
        assert not writing.done()
        again = world.engine.install("slow", world.numbers.count())
        assert again.rows() == [(2,)]
    world.numbers.insert([(7,)])
    assert world.engine.view("slow").rows() == [(3,)]


def test_an_engine_can_be_closed_meanwhile(world: World) -> None:
    with world.stopped():
        closing = world.threads.submit(world.engine.close)
        world.gate.open()
        closing.result(SECONDS)


def test_epochs_that_close_meanwhile_are_told_in_order(world: World) -> None:
    told: list[tuple[int, list[int]]] = []
    listener = world.slow.subscribe(
        lambda delta: told.append((delta.time, sorted(delta.table["n"].to_pylist()))), snapshot=False
    )
    with world.stopped():
        world.numbers.insert([(5,)])
        world.numbers.insert([(7,)])
        assert told == []
    world.slow.rows()
    assert [numbers for _, numbers in told] == [[6], [10], [14]]
    assert [time for time, _ in told] == sorted({time for time, _ in told})
    listener.close()


def test_a_function_may_not_close_epochs_and_reads_the_last_answer() -> None:
    engine = tk.Engine(turn=PATIENT_TURN)
    numbers = engine.create_table("numbers", {"n": tk.Int})
    found: list[Any] = []

    def look(changes: pa.Table) -> None:
        if "own" in engine.views:
            found.append(engine.view("own").snapshot(wait=False)["n"].to_pylist())
            with pytest.raises(tk.ConflictError, match="inside a function that the engine calls"):
                numbers.insert([(9,)])

    own = engine.install("own", numbers.inspect(look))
    numbers.insert([(1,)])
    numbers.insert([(2,)])
    assert sorted(own.rows()) == [(1,), (2,)]
    assert found == [[], [1]]
    engine.close()


@pytest.mark.parametrize("many", [2, 3])
def test_functions_that_wait_for_each_other_are_told(many: int) -> None:
    meeting = threading.Barrier(many)
    first = set[str]()
    """Views whose function is about to meet the others. A function that raises is called again."""

    def reading(other: str) -> Callable[[pa.Table], pa.Table]:
        def read(batch: pa.Table) -> pa.Table:
            if other in first:
                first.remove(other)
                meeting.wait(SECONDS)
                engine.view(other).rows()
            return batch

        return read

    with tk.Engine(turn=PATIENT_TURN) as engine, ThreadPoolExecutor(many) as threads:
        tables = [engine.create_table(f"t{i}", {"x": tk.Int}) for i in range(many)]
        views = [
            engine.install(f"v{i}", table.map_batches(reading(f"v{(i + 1) % many}"), x=tk.Int))
            for i, table in enumerate(tables)
        ]
        first.update(engine.views)
        for write in [threads.submit(table.insert, [(1,)]) for table in tables]:
            write.result(SECONDS)
        failed = [view for view in views if view.failure is not None]
        assert len(failed) == 1
        with pytest.raises(
            tk.FunctionError, match=r"waits for 'v\d', which itself waits for .* neither would ever end"
        ):
            failed[0].rows()
        for table, view in zip(tables, views, strict=True):
            table.insert([(2,)])
            assert (2,) in table.rows()
            if view is not failed[0]:  # those that read what failed have failed on a row
                table.remove([(1,)])
                view.wait(engine.next_epoch - 1)


WAITS: dict[str, Callable[[tk.Engine], object]] = {
    "wait": lambda engine: engine.view("own").wait(engine.next_epoch - 1),
    "wait for a reader": lambda engine: engine.view("reader").wait(engine.next_epoch - 1),
    "settle": lambda engine: engine.settle(),
    "poll": lambda engine: engine.view("own").subscribe(snapshot=False).poll(),
    "next": lambda engine: next(iter(engine.view("reader").subscribe(snapshot=False))),
}


@pytest.mark.parametrize("call", WAITS)
def test_a_function_that_waits_for_what_is_yet_to_happen_is_refused(call: str) -> None:
    found: list[str] = []

    def attempt(batch: pa.Table) -> pa.Table:
        if "reader" in engine.views:
            with pytest.raises(tk.ConflictError) as refused:
                WAITS[call](engine)
            found.append(str(refused.value))
        return batch

    with tk.Engine(turn=PATIENT_TURN) as engine, ThreadPoolExecutor(1) as threads:
        numbers = engine.create_table("numbers", {"n": tk.Int})
        own = engine.install("own", numbers.map_batches(attempt, n=tk.Int))
        reader = engine.install("reader", own.count())
        threads.submit(numbers.insert, [(1,)]).result(SECONDS)
        assert "cannot wait for what is yet to happen" in found[0]
        assert own.rows() == [(1,)] and reader.rows() == [(1,)]


def test_a_lack_of_memory_in_a_function_is_no_error_of_a_row() -> None:
    full = threading.Event()

    def doubled(batch: pa.Table) -> pa.Table:
        if full.is_set():
            raise MemoryError
        return batch

    with tk.Engine(turn=PATIENT_TURN) as engine:
        numbers = engine.create_table("numbers", {"n": tk.Int})
        view = engine.install("v", numbers.map_batches(doubled, n=tk.Int))
        full.set()
        numbers.insert([(1,)])
        full.clear()
        numbers.remove([(1,)])  # the function does not fail on the row that goes
        with pytest.raises(tk.FunctionError, match="doubled raised MemoryError"):
            view.rows()
        assert view.failure is not None


def test_texts_on_their_way_stay() -> None:
    gate = Gate()
    with tk.Engine(turn=PATIENT_TURN) as engine:
        core_of(engine).texts.be_eager()
        words = engine.create_table("words", {"word": tk.String})
        others = engine.create_table("others", {"word": tk.String})

        def loud(batch: pa.Table) -> pa.Table:
            gate.pass_through()
            return pa.table({"word": [f"{word}!" for word in batch["word"].to_pylist()]})

        view = engine.install("loud", words.map_batches(loud, word=tk.String))
        gate.shut()
        with ThreadPoolExecutor(1) as threads:
            writing = threads.submit(words.insert, [("ash",), ("beech",)])
            assert gate.reached.wait(SECONDS)
            for number in range(20):
                others.insert([(f"text {number}",)])
                if number:
                    others.remove([(f"text {number - 1}",)])
            words.remove([("ash",)])
            gate.open()
            writing.result(SECONDS)
        assert view.rows() == [("beech!",)]
        others.insert([("end",)])
        assert view.rows() == [("beech!",)]


def test_rows_that_fail_meanwhile_fail_alone(world: World) -> None:
    texts = world.engine.create_table("texts", {"t": tk.String})
    parsed = world.engine.install("parsed", texts.select(n=tk.col("t").cast(tk.Int)))
    with world.stopped():
        texts.insert([("1",), ("bad",)])
        with pytest.raises(tk.IncorrectError, match="bad"):
            parsed.rows()
        texts.remove([("bad",)])
        assert parsed.rows() == [(1,)]


def test_a_serializable_transaction_waits_and_commits(world: World) -> None:
    engine = world.engine
    session = engine.session()
    session.serializable = True
    session.sql("BEGIN; SELECT count(*) FROM slow")
    session.sql("INSERT INTO others VALUES (4, 4)")
    with world.stopped():
        committing = world.threads.submit(session.sql, "COMMIT")
        world.gate.open()
        with pytest.raises(tk.ConflictError):
            committing.result(SECONDS)  # what it has read has changed


@pytest.mark.parametrize("workers", [1, 2])
def test_many_threads_and_functions_agree_with_what_was_written(workers: int) -> None:
    with tk.Engine(workers=workers, turn=0.001, autocommit=True) as engine:
        tables = [engine.create_table(f"t{i}", {"n": tk.Int}) for i in range(3)]

        def twice(batch: pa.Table) -> pa.Table:
            threading.Event().wait(0)  # lets others go on
            return pa.table({"n": [2 * n for n in batch["n"].to_pylist()]})

        views = [engine.install(f"v{i}", table.map_batches(twice, n=tk.Int)) for i, table in enumerate(tables)]
        both = engine.install("both", views[0].join(views[1], on="n").concat(views[2]).count())
        told: list[int] = []
        engine.install("told", tables[0].map_batches(twice, n=tk.Int)).subscribe(
            lambda delta: told.append(delta.time), snapshot=False
        )

        def write(number: int) -> None:
            for n in range(40):
                tables[number].insert([(n,), (n + 1,)])
                if n % 3 == 0:
                    tables[number].remove([(n + 1,)])
                if n % 5 == number:
                    both.rows()
                if n % 7 == number:
                    name = f"made {number} {n}"
                    assert engine.install(name, views[number].count()).rows()
                    engine.drop(name)

        with ThreadPoolExecutor(3) as threads:
            for done in [threads.submit(write, number) for number in range(3)]:
                done.result(SECONDS)
        held = [n for n in range(40)] + [n + 1 for n in range(40) if n % 3]
        for view in views:
            assert sorted(n for (n,) in view.rows()) == sorted(2 * n for n in held)
        pairs = sum(held.count(n) ** 2 for n in set(held))
        assert both.rows() == [(pairs + len(held),)]
        assert told == sorted(set(told))


LINES = (
    "dataflow/away.py",
    "dataflow/flow.py",
    "dataflow/node.py",
    "engine/lock.py",
    "engine/notices.py",
    "runtime/coordinator.py",
)


def small_world() -> tuple[tk.Engine, tk.Table]:
    engine = tk.Engine(autocommit=False, turn=PATIENT_TURN)
    numbers = engine.create_table("numbers", {"n": tk.Int})
    engine.install("mapped", numbers.map_batches(lambda batch: batch, n=tk.Int))
    numbers.insert([(1,)])
    engine.advance()
    numbers.insert([(2,)])
    return engine, numbers


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_interrupt_leaves_nothing_locked(error: type[BaseException]) -> None:
    engine, _ = small_world()
    injector = Injector(LINES)
    injector.call(engine.advance)
    engine.close()
    for line in range(1, injector.lines + 1, 5):
        engine, numbers = small_world()
        made = Injector(LINES)
        made.call(engine.advance, line, error)
        with ThreadPoolExecutor(1) as threads:  # another thread can go on
            threads.submit(engine.settle).result(SECONDS)
        if engine.next_epoch == 1:
            engine.advance()
        assert sorted(numbers.rows()) == [(1,), (2,)], made.where
        mapped = engine.view("mapped")
        if mapped.failure is None:
            assert sorted(mapped.rows()) == [(1,), (2,)], made.where
        engine.close()


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_interrupted_edit_leaves_nothing_locked(error: type[BaseException]) -> None:
    def act(engine: tk.Engine) -> Callable[[], Any]:
        numbers = engine.create_table("numbers", {"n": tk.Int})
        numbers.insert([(1,), (2,)])
        return lambda: numbers.set(tk.lit(True), n=tk.col("n") + 10)

    with tk.Engine() as engine:
        injector = Injector()
        injector.call(act(engine))
    lines = injector.lines
    edges = [line for line in range(1, lines + 1) if line % 40 == 1]
    with tk.Engine() as engine:
        near = Injector(("engine/table_edits.py", "engine/engine_core.py", "engine/lock.py"))
        near.call(act(engine))
    for injector, line in [(Injector(), at) for at in edges] + [(near, at) for at in range(1, near.lines + 1)]:
        with tk.Engine() as engine:
            injector.call(act(engine), line, error)  # remembered things make later calls a few lines shorter
            assert not core_of(engine).lock.is_undisturbed, injector.where
            with ThreadPoolExecutor(1) as threads:  # another thread can go on
                held = sorted(threads.submit(engine.table("numbers").rows).result(SECONDS))
            assert held in ([(1,), (2,)], [(11,), (12,)]), injector.where


def test_no_change_comes_between_what_an_edit_reads_and_writes() -> None:
    many = 70_000  # so many rows are sorted while others use the engine
    with tk.Engine(autocommit=True) as engine:
        table = engine.create_table("t", {"k": tk.Int, "x": tk.Int})
        table.insert(pa.table({"k": range(many), "x": [0] * many}))

        def add() -> None:
            for _ in range(3):
                table.set(tk.lit(True), x=tk.col("x") + 1)

        with ThreadPoolExecutor() as threads:
            for done in [threads.submit(add) for _ in range(3)]:
                done.result(SECONDS)
        assert engine.install("sums", table.group_by("x").agg(tk.count())).rows() == [(9, many)]


def test_altering_a_table_loses_no_row_that_others_insert() -> None:
    many = 70_000
    with tk.Engine(autocommit=True, turn=0.0) as engine:
        table = engine.create_table("t", {"k": tk.Int})
        table.insert(pa.table({"k": range(many)}))
        inserted = many

        def insert() -> int:
            for number in range(200):
                engine.sql(f"INSERT INTO t (k) VALUES ({many + number})")
            return 200

        with ThreadPoolExecutor() as threads:
            writers = [threads.submit(insert) for _ in range(2)]
            for number in range(4):
                engine.sql(f"ALTER TABLE t ADD COLUMN c{number} INT DEFAULT {number}")
            inserted += sum(writer.result(SECONDS) for writer in writers)
        assert engine.sql("SELECT count(*) FROM t").rows() == [(inserted,)]
