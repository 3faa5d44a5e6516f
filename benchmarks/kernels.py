"""Processor time of single kernels over inputs of several sizes; beside another checkout's kernels, if one is named.

Both checkouts are measured in one run: some processes for each, and turns that alternate, so that other work on the machine is
a burden to both alike. Several processes, because where code and data happen to lie is worth up to a fifth of a call, for as long
as a process lives. A record has the least processor time of a call, in microseconds. Results of both must be the same.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.kernel_cases import CASES

NAME = "kernels"
DESCRIPTION = (
    "single kernels over inputs of 1 to a million rows, in turns with those of another checkout (against=PATH)"
)

HERE = Path(__file__).parent.parent
# A turn takes about so long: long enough for the clock of processor time, short enough for many turns.
TURN_NS = 10_000_000


class Worker:
    """A process that runs cases with the kernels of one checkout."""

    def __init__(self, tree: Path) -> None:
        # Without -P the folder of the script would come first on the path.
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(HERE / "benchmarks" / "kernel_cases.py")],
            env=os.environ | {"PYTHONPATH": str(tree)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def measure(self, case: str, size: int, calls: int) -> tuple[float, str]:
        """Nanoseconds of processor time of a call, and a digest of its results."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{case} {size} {calls}\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the worker of case {case} at size {size} ended with {self._process.wait()}")
        answer = json.loads(line)
        return answer["ns"] / calls, answer["digest"]

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def run(
    sizes: Sequence[int] = (1, 100, 10_000, 1_000_000),
    cases: Sequence[str] = (),
    turns: int = 6,
    processes: int = 3,
    against: str = "",
) -> Iterator[dict[str, Any]]:
    """A record for each case and size. `cases` chooses cases by the beginnings of their names."""
    trees = {"us": HERE} | ({"against_us": Path(against).resolve()} if against else {})
    workers = [(name, Worker(tree)) for _ in range(processes) for name, tree in trees.items()]
    try:
        for case in CASES:
            if not cases or case.startswith(tuple(cases)):
                for size in sizes:
                    yield {"case": case, "size": size} | compare(workers, case, size, turns)
    finally:
        for _, worker in workers:
            worker.close()


def compare(workers: list[tuple[str, Worker]], case: str, size: int, turns: int) -> dict[str, float]:
    """The least times of a case in each checkout, in microseconds, and their ratio."""
    calls = 1
    digests = set()
    for _, worker in workers:
        worker.measure(case, size, 1)
        taken, digest = worker.measure(case, size, 3)
        digests.add(digest)
        calls = max(1, int(TURN_NS / max(taken, 500)))
    if len(digests) > 1:
        raise AssertionError(f"case {case} at size {size}: the two checkouts return different results")
    least: dict[str, float] = {}
    for turn in range(turns):
        for name, worker in workers if turn % 2 else workers[::-1]:
            taken, _ = worker.measure(case, size, calls)
            least[name] = min(taken / 1e3, least.get(name, taken))
    found = {name: round(least[name], 3) for name in dict(workers)}
    if len(found) == 2:
        found["ratio"] = round(found["us"] / found["against_us"], 3)
    return found
