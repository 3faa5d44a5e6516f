"""Data larger than the memory limit: the same answers, from mapped files; views with limits of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tektite as tk
from tektite.engine.core import core_of
from tektite.runtime.memory_limit import bytes_from, default_limit
from tektite.trace.batch_memory import BatchMemory

TINY = "64 KiB"


def memory_of(engine: tk.Engine) -> BatchMemory:
    found = core_of(engine).memory
    assert found is not None
    return found


def queries(engine: tk.Engine, table: tk.Collection) -> dict[str, tk.Collection]:
    return {
        "all": table.select("b", "a"),
        "some": table.filter(tk.col("a") % 3 == 0).select("a", c=tk.col("b") * 2),
        "count": table.count(by="b"),
        "sums": table.group_by("b").agg(total=tk.sum("a"), most=tk.max("a")),
        "pairs": table.filter(tk.col("b") < 40).join(table.filter(tk.col("a") < 300), left_on="a", right_on="b"),
        "distinct": table.select("b").distinct(),
    }


def expected(rows: Counter[tuple[int, int]]) -> dict[str, Counter[tuple[int, ...]]]:
    found: dict[str, Counter[tuple[int, ...]]] = {name: Counter() for name in ("all", "some", "pairs")}
    groups: dict[int, Counter[int]] = {}
    by_b: dict[int, Counter[int]] = {}
    for (a, b), n in rows.items():
        found["all"][b, a] += n
        if a % 3 == 0:
            found["some"][a, 2 * b] += n
        groups.setdefault(b, Counter())[a] += n
        if a < 300:
            by_b.setdefault(b, Counter())[a] += n
    for (a, b), n in rows.items():
        if b < 40:
            for other, many in by_b.get(a, Counter()).items():
                found["pairs"][a, b, other] += n * many
    found["count"] = Counter({(b, sum(group.values())): 1 for b, group in groups.items()})
    found["sums"] = Counter({(b, sum(a * n for a, n in group.items()), max(group)): 1 for b, group in groups.items()})
    found["distinct"] = Counter({(b,): 1 for b in groups})
    return found


@pytest.mark.parametrize(("seed", "stored", "workers"), [(0, False, 2), (1, True, 1), (2, True, 2)])
def test_random_epochs_beyond_the_limit_answer_as_recomputation_does(
    seed: int, stored: bool, workers: int, tmp_path: Path
) -> None:
    rng = np.random.default_rng(seed)
    options: dict[str, Any] = {"storage": tmp_path / "store"} if stored else {}
    held: Counter[tuple[int, int]] = Counter()
    engine = tk.Engine(workers, memory_limit=TINY, **options)
    table = engine.create_table("t", {"a": tk.Int, "b": tk.Int})
    views: dict[str, tk.View] = {}
    for epoch in range(10):
        many = int(rng.choice([3, 400, 6000]))
        new = rng.integers(0, [5000, 200], (many, 2))
        gone = [row for row in held if rng.random() < 0.05]
        with engine.transaction():
            table.insert(new)
            if gone:
                table.remove(np.array(gone))
        held.update(map(tuple, new.tolist()))
        held.subtract(gone)
        held = +held
        if epoch == 4:
            views = {name: engine.install(name, query) for name, query in queries(engine, table).items()}
        if stored and epoch == 7:
            engine.close()
            engine = tk.Engine(workers, memory_limit=TINY, **options)
            table = engine.table("t")
            views = {name: engine.install(name, query) for name, query in queries(engine, table).items()}
        wanted = expected(held) if views else {}
        for name, view in views.items():
            assert Counter(view.rows()) == wanted[name], (name, epoch)
    memory = memory_of(engine)
    assert memory.mapped > 0
    # Two shards that look at the same moment may both find room.
    assert memory.resident <= workers * memory.kept
    engine.close()


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("mode", ["upsert", "set"])
def test_keyed_tables_beyond_the_limit_hold_the_last_row_of_each_key(mode: Any, workers: int) -> None:
    rng = np.random.default_rng(5)
    engine = tk.Engine(workers, memory_limit=TINY)
    options: dict[str, Any] = {"mode": "upsert", "primary_key": "a"} if mode == "upsert" else {"mode": "set"}
    table = engine.create_table("t", {"a": tk.Int, "b": tk.Int}, **options)
    held: dict[Any, tuple[int, int]] = {}
    for _ in range(4):
        new = rng.integers(0, [24000, 5], (30_000, 2))
        table.insert(new)
        gone = rng.integers(0, [24000, 5], (10_000, 2))
        table.remove(gone)
        for a, b in new.tolist():
            held[a if mode == "upsert" else (a, b)] = (a, b)
        for a, b in gone.tolist():
            held.pop(a if mode == "upsert" else (a, b), None)
        assert Counter(table.rows()) == Counter(held.values())
    assert memory_of(engine).mapped > 0


@pytest.mark.parametrize(
    "made",
    [
        lambda columns: columns,
        lambda columns: np.stack([columns["a"], columns["b"]], 1),
        lambda columns: pa.table(columns),
        lambda columns: pa.table(columns).to_pandas(),
        lambda columns: pa.table(columns).to_reader(max_chunksize=700),
    ],
    ids=["columns", "array", "table", "pandas", "reader"],
)
def test_large_data_is_loaded_in_slices(made: Any) -> None:
    columns = {"a": np.arange(10_000), "b": np.arange(10_000) % 7}
    engine = tk.Engine(memory_limit=TINY)
    table = engine.create_table("t", {"a": tk.Int, "b": tk.Int})
    assert table.insert(made(columns)) == 0
    assert sorted(table.rows()) == [(i, i % 7) for i in range(10_000)]


def test_a_bad_row_of_a_later_slice_is_named_and_nothing_is_written() -> None:
    engine = tk.Engine(memory_limit=TINY)
    table = engine.create_table("t", {"a": tk.Int}, required="a")
    values = pa.array([*range(9000), None])
    with pytest.raises(tk.errors.IncorrectError, match=r"rows are counted from row \d+ of the data on"):
        table.insert(pa.table({"a": values}))
    assert table.rows() == []


LOAD = """
    import os, resource, sys
    import numpy as np
    import tektite as tk
    path, limit, rows, part = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    def own():
        return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("RssAnon")) << 10
    engine = tk.Engine(storage=path, memory_limit=limit)
    before = own()
    resource.setrlimit(resource.RLIMIT_DATA, (before + (200 << 20) + limit,) * 2)
    table = engine.table("t") if "t" in engine.tables else engine.create_table("t", {"a": tk.Int, "b": tk.Int, "c": tk.Int})
    for start in range(0, rows, part):
        numbers = np.arange(start, start + part)
        table.insert({"a": numbers * 7919 % (2**40), "b": numbers, "c": -numbers})
    engine.sync()
    view = engine.install("n", table.count())
    print(view.rows()[0][0], own() - before, flush=True)
    if len(sys.argv) > 5:
        os.kill(os.getpid(), 9)
    engine.close()
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_four_times_the_limit_loads_opens_and_survives_a_kill_within_the_limit(tmp_path: Path) -> None:
    limit, part, parts = 24 << 20, 500_000, 8  # 96 MB of rows
    script = tmp_path / "load.py"
    script.write_text(textwrap.dedent(LOAD))

    def run(*arguments: object) -> list[int]:
        given = [sys.executable, str(script), str(tmp_path / "store"), *map(str, arguments)]
        root = Path(tk.__file__).parents[1]
        done = subprocess.run(
            given, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(root)}, check=False
        )
        assert done.stdout, done.stderr
        return [*map(int, done.stdout.split())]

    rows, own = run(limit, part * parts, part, "kill")
    assert rows == part * parts
    # Beside the limit there is what one insertion gives, and what libraries load at their first use.
    assert own < limit + 3 * 24 * part
    rows, own = run(limit, 0, 1)
    assert rows == part * parts
    assert own < limit


def test_a_view_beyond_its_limit_fails_alone_and_says_its_size() -> None:
    engine = tk.Engine()
    table = engine.create_table("t", {"n": tk.Int})
    squares = engine.install("squares", table.join(table.select(m="n"), how="cross"), limit="1 MiB")
    count = engine.install("count", table.count(), limit="1 MiB")
    table.insert([(n,) for n in range(100)])
    assert engine.failures == {}
    table.insert([(n,) for n in range(100, 2000)])
    engine.settle()
    assert "it keeps" in str(squares.failure) and "MiB, and its limit is 1.0 MiB" in str(squares.failure)
    assert [*engine.failures] == ["squares"]
    with pytest.raises(tk.errors.FaultError, match="limit is 1.0 MiB"):
        squares.rows()
    table.insert([(2000,)])
    assert count.rows() == [(2001,)]
    assert len(engine.table("t").rows()) == 2001


def test_the_limit_counts_an_index_that_is_made_for_the_view() -> None:
    engine = tk.Engine()
    table = engine.create_table("t", {"a": tk.Int, "b": tk.Int})
    numbers = np.arange(200_000)
    table.insert({"a": numbers, "b": numbers * 7919 % 1_000_003})
    joined = table.join(table, left_on="a", right_on="b").count()
    small = engine.install("small", joined, limit="100 KiB")
    assert "its limit is 100.0 KiB" in str(small.failure)
    free = engine.install("free", joined)
    assert free.failure is None
    assert free.rows()


@pytest.mark.parametrize("given", ["much", "1 PB", -1, 0, 1.5, True, "0 MiB"])
def test_what_is_no_amount_of_memory_is_refused(given: Any) -> None:
    with pytest.raises(tk.errors.IncorrectError, match="memory_limit is"):
        tk.Engine(memory_limit=given)
    engine = tk.Engine()
    table = engine.create_table("t", {"n": tk.Int})
    with pytest.raises(tk.errors.IncorrectError, match="limit is"):
        engine.create_view("v", table, limit=given)


def test_amounts_are_bytes_or_texts() -> None:
    amounts = {"2 KiB": 2048, "2kb": 2000, "1.5 MiB": 3 << 19, "3 G": 3 << 30, "7": 7, "7 B": 7}
    assert {text: bytes_from(text, "limit") for text in amounts} == amounts


def test_the_default_is_less_than_the_machine_has() -> None:
    limit = default_limit()
    assert limit is not None
    assert 0 < limit < os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
