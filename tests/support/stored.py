"""A workload for storage tests: three inputs of different semantics that change at random, their brute-force twin, stores that
fail on purpose, and what every recovered engine is compared with.
"""

from __future__ import annotations

import errno
import os
import random
import signal
import threading
import time
from collections import Counter
from pathlib import Path
from typing import IO, Any

import tektite as tk
from tektite.storage.manifest import Manifest, ManifestState
from tektite.storage.store import Lock, PosixStore

WORDS = ["ash", "beech", "cedar", "", "dogwood", "ümlaut", "elm" * 30]

PROGRAM = """
import sys
import tektite as tk
engine = tk.Engine(storage=sys.argv[1], autocommit=False)
numbers = engine.create_table("numbers", {"n": tk.Int})
for n in range(100):
    numbers.insert([(i,) for i in range(100 * n, 100 * n + 100)])
    engine.advance()
"""
"""A program that writes and never closes its engine."""


class Twin:
    """What the inputs hold after each epoch, computed row by row. Deterministic in the seed."""

    def __init__(self, seed: int, epochs: int) -> None:
        self.seed = seed
        self.steps: list[list[tuple[str, str, list[Any]]]] = []
        self.contents: list[dict[str, Counter[Any]]] = []
        edges: Counter[Any] = Counter()
        prices: dict[int, Any] = {}
        members: set[Any] = set()
        self._note(edges, prices, members)
        rng = random.Random(seed)
        for epoch in range(epochs):
            steps: list[tuple[str, str, list[Any]]] = []
            for _ in range(rng.randint(0, 3)):
                kind = rng.choice(["edges", "edges", "prices", "members"])
                remove = rng.random() < 0.3
                count = rng.choice([1, 2, 5, 40])
                if kind == "edges" and remove:
                    there = list(edges.elements())
                    rows = rng.sample(there, min(len(there), count))
                    edges.subtract(rows)
                elif kind == "edges":
                    rows = [(rng.randrange(9), rng.randrange(9)) for _ in range(count)]
                    edges.update(rows)
                elif kind == "prices":
                    rows = [(rng.randrange(12), rng.choice(WORDS) + str(epoch % 5)) for _ in range(count)]
                    if remove:
                        rows = [(key,) for key, _ in rows]
                        for (key,) in rows:
                            prices.pop(key, None)
                    else:
                        prices.update(rows)
                else:
                    rows = [(rng.choice(WORDS), rng.randrange(3)) for _ in range(count)]
                    members = members - set(rows) if remove else members | set(rows)
                if rows:
                    steps.append((kind, "remove" if remove else "insert", rows))
            self.steps.append(steps)
            self._note(edges, prices, members)

    def _note(self, edges: Counter[Any], prices: dict[int, Any], members: set[Any]) -> None:
        self.contents.append({"edges": +Counter(edges), "prices": Counter(prices.items()), "members": Counter(members)})


def declare(engine: tk.Engine) -> None:
    engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
    engine.create_table("prices", {"item": tk.Int, "label": tk.String}, mode="upsert", primary_key="item")
    engine.create_table("members", {"name": tk.String, "rank": tk.Int}, mode="set")


def play(engine: tk.Engine, twin: Twin, epoch: int) -> None:
    """One epoch of the workload."""
    for name, verb, rows in twin.steps[epoch]:
        getattr(engine.table(name), verb)(rows)
    engine.advance(positions={"twin": {"epoch": epoch + 1}})


def check(engine: tk.Engine, twin: Twin) -> None:
    """Everything that the engine holds, and views over it, equal the twin's at the engine's epoch."""
    epoch = engine.next_epoch
    wanted = twin.contents[epoch]
    assert engine.positions == ({"twin": {"epoch": epoch}} if epoch else {})
    for name in wanted:
        table = engine.table(name)
        assert table.next_epoch == epoch
        view = engine.install(f"all {name}", table)
        assert view.multiplicities() == dict(wanted[name]), (name, epoch)
    edges = engine.table("edges")
    hops = engine.install("hops", edges.join(edges, left_on="dst", right_on="src").select("src", dst="dst_right"))
    brute: Counter[Any] = Counter()
    for (a, b), n in wanted["edges"].items():
        for (c, d), m in wanted["edges"].items():
            if b == c:
                brute[a, d] += n * m
    assert hops.multiplicities() == dict(brute)
    for name in ("hops", *(f"all {name}" for name in wanted)):
        engine.drop(name)


def run(path: Any, twin: Twin, start: int, stop: int, **options: Any) -> None:
    """Recover, compare, play some epochs, compare, close."""
    with tk.Engine(storage=path, **options, autocommit=False) as engine:
        assert engine.next_epoch == start
        declare(engine)
        check(engine, twin)
        for epoch in range(start, stop):
            play(engine, twin, epoch)
        check(engine, twin)


def state_of(path: Path) -> ManifestState:
    """What the newest version of a storage says."""
    return Manifest.open(PosixStore(path)).state


class Counting(PosixStore):
    """A store that counts the single steps of writing and does something at a chosen one."""

    def __init__(self, root: str | Path, at: int | None = None) -> None:
        super().__init__(root)
        self.at = at
        self.steps = 0
        self._counting = threading.Lock()

    def is_chosen(self) -> bool:
        """Count a step: of all threads that write, exactly one is told that its step is the chosen one."""
        with self._counting:
            self.steps += 1
            return self.steps == self.at

    def step(self) -> None:
        if self.is_chosen():
            self.strike()

    def strike(self) -> None:
        raise NotImplementedError

    def put(self, file: IO[bytes], part: bytes | memoryview) -> None:
        if not self.is_chosen():
            super().put(file, part)
            return
        half = len(part) // 2
        super().put(file, part[:half])
        file.flush()
        self.strike()
        super().put(file, part[half:])

    def sync(self, file: IO[bytes]) -> None:
        self.step()
        super().sync(file)

    def rename(self, temporary: Path, target: Path) -> None:
        self.step()
        super().rename(temporary, target)
        self.step()

    def link(self, temporary: Path, target: Path) -> None:
        self.step()
        super().link(temporary, target)
        self.step()

    def sync_folder(self, folder: Path) -> None:
        self.step()
        super().sync_folder(folder)

    def delete(self, names: Any) -> None:
        for name in names:
            self.step()
            super().delete([name])


class Killing(Counting):
    """Kills its process, as SIGKILL does, at a step, but lets other threads report what they believe before."""

    def strike(self) -> None:
        time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)


class Full(Counting):
    """A disk that fills up at a step, in the middle of a write, and stays full until it is told otherwise."""

    full = False

    def strike(self) -> None:
        self.full = True

    def put(self, file: IO[bytes], part: bytes | memoryview) -> None:
        super().put(file, part)
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class Unlocked(PosixStore):
    """A store on a file system without locks: the manifest alone keeps writers apart."""

    def lock(self) -> Lock | None:
        return None


class PowerCut(PosixStore):
    """A store beside which lies what would be left of it after a power cut: synced content under synced names."""

    def __init__(self, root: Path, left: Path) -> None:
        super().__init__(root)
        self.left = left
        self._synced: set[int] = set()

    def sync(self, file: IO[bytes]) -> None:
        super().sync(file)
        self._synced.add(os.fstat(file.fileno()).st_ino)

    def sync_folder(self, folder: Path) -> None:
        super().sync_folder(folder)
        target = self.left / folder.relative_to(self.root)
        target.mkdir(parents=True, exist_ok=True)
        there = {entry.name: entry for entry in os.scandir(folder) if entry.is_file()}
        for name in set(os.listdir(target)) - there.keys():
            if (target / name).is_file():
                (target / name).unlink()
        for name, entry in there.items():
            if entry.inode() in self._synced and not (target / name).exists():
                os.link(entry.path, target / name)
            elif not (target / name).exists():
                (target / name).touch()  # the name survived, its content did not
