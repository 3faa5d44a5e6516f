"""Processes killed at random steps of writing: what they reported as durable is there, and nothing is lost or doubled.

Each case is one storage on which several processes work in turn, all but the last killed with SIGKILL at a step of writing
that is drawn at random: in the middle of a file, before and after each sync, rename, link and deletion, while an engine
recovers, changes the number of shards, merges or cleans up. A process reports each `durable` that it saw before the
kill; its successor must find at least that, and exactly the contents of the epoch that it finds.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

import tektite as tk
from tektite.storage import epoch_writer, manifest
from tektite.storage.store import PosixStore
from tests.support.nightly import size
from tests.support.stored import Killing, Twin, Unlocked, check, declare, play

EPOCHS = 24
KILLS = 3
CASES = size("TEKTITE_KILL_CASES", 12)
"""Storages to try; each sees as many kills as KILLS says. `make soak` raises it."""

pytestmark = [pytest.mark.slow, pytest.mark.soak, pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")]


@contextmanager
def small_constants() -> Iterator[None]:
    """Merges, checkpoints and clean-ups happen within a few epochs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(epoch_writer, "_CLEAN_EVERY", 3)
        patch.setattr(manifest, "CHECKPOINT_EVERY", 4)
        yield


def in_child(work: Callable[[Callable[[int], None]], None]) -> tuple[int, list[int]]:
    """Run `work(report)` in a forked process; how it ended, and the numbers that it reported before."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        code = 1
        try:
            work(lambda number: os.write(writer, f"{number}\n".encode()) and None)
            code = 0
        except BaseException:
            traceback.print_exc(file=sys.stderr)
        finally:
            sys.stderr.flush()
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader) as lines:
        reported = [int(line) for line in lines]
    return os.waitpid(child, 0)[1], reported


def work_on(store: PosixStore, twin: Twin, rng: random.Random, report: Callable[[int], None], epochs: int) -> None:
    """Recover, check what is found, and go on for some epochs."""
    with tk.Engine(rng.choice([1, 1, 1, 2]), storage=tk.Storage(store, retention=0.0), autocommit=False) as engine:
        declare(engine)
        check(engine, twin)
        for epoch in range(engine.next_epoch, min(engine.next_epoch + epochs, len(twin.steps))):
            play(engine, twin, epoch)
            if rng.random() < 0.4:
                engine.sync()
            report(engine.durable)


@pytest.mark.parametrize("case", range(CASES))
def test_killed_at_any_step_nothing_durable_is_lost_and_nothing_doubled(case: int, tmp_path: Path) -> None:
    rng = random.Random(case)
    twin = Twin(case, EPOCHS)
    durable = kills = attempts = 0
    with small_constants():
        while kills < KILLS:
            attempts += 1
            assert attempts < 50
            # Early steps matter as much as late ones: they are those of opening and of the first commits.
            at = rng.choice([rng.randint(1, 12), rng.randint(1, 60), rng.randint(1, 200)])
            store, drawn = Killing(tmp_path, at), random.Random(rng.random())
            status, reported = in_child(lambda report, s=store, d=drawn: work_on(s, twin, d, report, 8))  # type: ignore[misc]
            killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
            assert killed or status == 0, f"attempt {attempts} ended with {status}"
            kills += killed
            durable = max([durable, *reported])
            assert manifest.Manifest.open(PosixStore(tmp_path)).state.epoch >= durable
        work_on(PosixStore(tmp_path), twin, rng, lambda _: None, EPOCHS)
        with tk.Engine(storage=tmp_path, autocommit=False) as engine:
            assert engine.next_epoch == EPOCHS
            check(engine, twin)


def contend(path: Path, twin: Twin, seed: int, report: Callable[[int], None]) -> None:
    """Work on a storage that others work on too: whoever loses it opens it again. Reports the epochs it made durable."""
    rng = random.Random(seed)
    while True:
        try:
            with tk.Engine(storage=tk.Storage(Unlocked(path)), autocommit=False) as engine:
                declare(engine)
                check(engine, twin)
                if engine.next_epoch >= len(twin.steps):
                    return
                for epoch in range(engine.next_epoch, min(engine.next_epoch + rng.randint(1, 4), len(twin.steps))):
                    play(engine, twin, epoch)
                    report(engine.sync())
        except tk.ConflictError:
            time.sleep(rng.uniform(0, 0.02))


@pytest.mark.parametrize("case", range(3))
def test_engines_that_fight_over_a_storage_make_each_epoch_once(case: int, tmp_path: Path) -> None:
    twin = Twin(case, EPOCHS)
    with ThreadPoolExecutor(2) as pool:
        ended = list(
            pool.map(lambda n: in_child(lambda report: contend(tmp_path, twin, 10 * case + n, report)), range(2))
        )
    assert [status for status, _ in ended] == [0, 0]
    made = sorted(epoch for _, reported in ended for epoch in reported)
    assert made == list(range(1, EPOCHS + 1))
    with tk.Engine(storage=tmp_path, autocommit=False) as engine:
        check(engine, twin)


PROGRAM = """
import random, sys
from tests.support.stored import Twin
from tests.storage.test_kills import work_on
from tektite.storage.store import PosixStore
work_on(PosixStore(sys.argv[1]), Twin(99, 4000), random.Random(0), lambda n: print(n, flush=True), 900)
sys.stdin.read()  # until it is killed
"""


def test_program_killed_from_outside_goes_on_where_it_was(tmp_path: Path) -> None:
    rng = random.Random(1)
    twin = Twin(99, 4000)
    root = Path(__file__).parents[2]
    durable = 0
    for _ in range(4):
        program = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(root)},
        )
        assert program.stdin is not None and program.stdout is not None
        first = program.stdout.readline()
        assert first, program.wait()
        time.sleep(rng.uniform(0, 0.3))
        program.send_signal(signal.SIGKILL)
        durable = max([durable, int(first), *(int(line) for line in program.stdout if line.endswith("\n"))])
        assert program.wait() == -signal.SIGKILL
        program.stdin.close()
        with tk.Engine(storage=tmp_path, autocommit=False) as engine:
            assert engine.next_epoch >= durable
            check(engine, twin)
