"""A program that Ctrl-C hits every few milliseconds while it writes, reads, installs, collects texts and opens its storage again.

`python -m tests.support.signal_storm SEED SECONDS PAUSE WORKERS FOLDER` compares everything with recomputation, and ends with an
error if a view fails, or shows or tells something else.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import tektite as tk
from tektite.engine.core import core_of

Rows = Counter[tuple[Any, ...]]


def be_quiet() -> None:
    """Ignore Ctrl-C from here on."""
    while True:
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            return
        except KeyboardInterrupt:
            pass


class Storm:
    """Ctrl-C, again and again: once at most in each try of a call, so that none comes while another one is being dealt with."""

    def __init__(self, pause: float) -> None:
        be_quiet()
        self.interrupts = 0
        self._pause = self._now = pause
        self._is_armed = self._is_sending = False
        threading.Thread(target=self._send, daemon=True).start()

    def _send(self) -> None:
        while True:
            time.sleep(self._now)
            self._is_sending = True
            if self._is_armed:
                self._is_armed = False
                os.kill(os.getpid(), signal.SIGINT)
            self._is_sending = False

    def call(self, function: Callable[[], object], is_done: Callable[[], bool] = lambda: False) -> None:
        """Call a function until it returns, or has done its work before an interrupt came. The more often it is interrupted, the
        longer the next one takes to come: on a machine with other work, no call would end otherwise.
        """
        self._now = self._pause
        while True:
            while self._is_sending:
                time.sleep(0)
            try:
                signal.signal(signal.SIGINT, signal.default_int_handler)
                self._is_armed = True
                function()
                self._is_armed = False
                be_quiet()
                return
            except KeyboardInterrupt:
                be_quiet()
                self.interrupts += 1
                self._now *= 1.2
                if is_done():
                    return


class World:
    """Three tables, views of all kinds over them, and what they should hold and tell."""

    def __init__(self, storm: Storm, seed: int, workers: int, folder: str) -> None:
        self.storm = storm
        self.random = random.Random(seed)
        self.workers = workers
        self.folder = folder
        self.a: Rows = Counter()
        self.u: dict[int, str] = {}
        self.e: Rows = Counter()
        self.installed = 0
        self.open()

    def open(self) -> None:
        """Begin, or begin again with what is stored."""
        engine = self.engine = tk.Engine(self.workers, storage=self.folder, autocommit=False)
        core_of(engine).replanner.rows = 40
        a = self.table_a = engine.create_table("a", {"k": tk.Int, "s": tk.String})
        u = self.table_u = engine.create_table("u", {"k": tk.Int, "t": tk.String}, mode="upsert", primary_key="k")
        e = self.table_e = engine.create_table("e", {"x": tk.Int, "y": tk.Int})
        further = e.select(y="x", z="y")

        def step(reach: tk.Collection) -> tk.Collection:
            return reach.join(further, on="y").select("x", y="z").concat(e).distinct()

        self.views = {
            "joined": engine.install("joined", tk.match((a, ("k", "s")), (u, ("k", "t")))),
            "counted": engine.install("counted", a.count(by="s")),
            "cast": engine.install("cast", a.select(n=tk.col("s").cast(tk.Int))),
            "reach": engine.install("reach", e.iterate(step)),
            "greatest": engine.install("greatest", u.reduce(lambda key, rows: [max(rows)[0]], by="k", t=tk.String)),
            "mapped": engine.install("mapped", a.map_batches(lambda batch: batch, k=tk.Int, s=tk.String)),
        }
        self.views["above"] = engine.install("above", self.views["counted"].filter(tk.col("count") > 1))
        self.told: dict[str, Rows] = {name: Counter() for name in self.views if name != "cast"}
        self.following = {name: self.views[name].subscribe() for name in self.told}

    def write(self) -> None:
        """Change all tables."""
        draw = self.random
        rows = [
            (draw.randrange(30), str(draw.randrange(60)) if draw.random() < 0.97 else f"bad {draw.randrange(5)}")
            for _ in range(draw.choice([1, 5, 50, 500]))
        ]
        self.table_a.insert(rows)
        self.a.update(rows)
        held = list(self.a.elements())
        draw.shuffle(held)
        stay = draw.choice([0, 30, 100, 800])
        gone = [*held[stay:], *(row for row in held[:stay] if draw.random() < 0.5 and not row[1].isdigit())]
        self.table_a.remove(gone)
        self.a.subtract(gone)
        self.a = +self.a
        for _ in range(draw.choice([0, 1, 20])):
            k, text = draw.randrange(40), f"text {draw.random()}"
            self.table_u.insert([(k, text)])
            self.u[k] = text
        for _ in range(draw.choice([0, 1, 3])):
            new = draw.randrange(12), draw.randrange(12)
            self.table_e.insert([new])
            self.e[new] += 1
            if len(self.e) > 14:
                old = draw.choice(list(self.e))
                self.table_e.remove([old])
                self.e[old] -= 1
                self.e = +self.e

    def wanted(self) -> dict[str, Rows]:
        """What the views hold, computed from scratch."""
        joined: Rows = Counter()
        counted: Counter[str] = Counter()
        for (k, s), n in self.a.items():
            counted[s] += n
            if k in self.u:
                joined[k, s, self.u[k]] += n
        reach = set(self.e)
        while more := {(x, z) for x, y in reach for w, z in self.e if y == w} - reach:
            reach |= more
        return {
            "joined": joined, "counted": Counter(counted.items()), "reach": Counter(reach),
            "greatest": Counter(self.u.items()), "mapped": self.a,
            "above": Counter([item for item in counted.items() if item[1] > 1]),
            "cast": Counter([(int(s),) for _, s in self.a.elements() if s.isdigit()]),
        }  # fmt: skip

    def check(self) -> None:
        """Compare all views, and what they told, with that."""
        wanted = self.wanted()
        for name, view in self.views.items():
            assert view.failure is None, (name, view.failure)
            if name == "cast" and not all(s.isdigit() for _, s in self.a):
                try:
                    view.rows()
                except tk.TektiteError:
                    assert view.error is not None
                    continue
                raise AssertionError("a text that is no number was read as one")
            assert Counter(view.rows()) == wanted[name], name
        for name, subscription in self.following.items():
            while (delta := subscription.poll(0)) is not None:
                for *row, diff in zip(*[column.to_pylist() for column in delta.table.columns], strict=True):
                    self.told[name][tuple(row)] += diff
            assert {row: n for row, n in self.told[name].items() if n} == wanted[name], f"told by {name}"

    def step(self) -> None:
        """An epoch, and something else."""
        engine, call = self.engine, self.storm.call
        self.write()
        epoch = engine.next_epoch
        call(engine.advance, lambda: engine.next_epoch > epoch)
        match self.random.randrange(12):
            case 0:
                self.installed += 1
                name = f"further {self.installed}"
                query = self.table_a.join(self.table_u, on="k").count(by="t")
                call(lambda: engine.install(name, query), lambda: name in engine.views)
                call(lambda: engine.drop(name), lambda: name not in engine.views)
            case 1:
                call(engine.idle)
            case 2:
                call(engine.sync)
            case 3:
                core_of(engine).dictionary.limit = 0
            case 4:
                call(engine.close)
                self.open()
            case 5 | 6:
                self.check()
            case _:
                call(lambda: [view.rows() for name, view in self.views.items() if name != "cast"])


def main() -> None:
    """Run until the time is over, and for twenty interrupts at least."""
    seed, seconds, pause, workers, folder = sys.argv[1:]
    storm = Storm(float(pause))
    world = World(storm, int(seed), int(workers), folder)
    until = time.monotonic() + float(seconds)
    while time.monotonic() < until or storm.interrupts < 20:
        world.step()
    world.check()
    world.engine.close()
    print(storm.interrupts, "interrupts")
    sys.stdout.flush()
    os._exit(0)  # Python would end its threads first, while Ctrl-C goes on


if __name__ == "__main__":
    main()
