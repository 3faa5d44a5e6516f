"""Figure 1 of *Shared Arrangements*: TPC-H queries that arrive and retire at random while the relations load, over shared
arrangements and each over its own: installation latency (a), update latency (b), memory over time (c).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.maintained import WrongAnswer
from benchmarks.measure import MIB, Others, ccdf, percentile
from benchmarks.plots import Record, draw_ccdf, figure
from benchmarks.tpch import QUERIES, query
from benchmarks.tpch.answers import alike, place
from benchmarks.tpch.sides import NOT_SHARED, SHARED, Remote, Turn

NAME = "fig1"
DESCRIPTION = "TPC-H queries arrive and retire while relations load: installation, updates and memory, shared or not"


def run(
    scale: float = 0.1,
    queries: Sequence[int] = QUERIES,
    sides: Sequence[str] = (SHARED, NOT_SHARED),
    active: int = 10,
    batch: int = 100_000,
    arrivals: int = 3,
    history: bool = False,
    seed: int = 1,
    check: bool = True,
) -> Iterator[dict[str, Any]]:
    """Records for the figure's three panels, of each side.

    In each round `arrivals` times a query retires, if `active` ones run, and another arrives; then the next `batch` rows of
    all relations together are loaded. The sides take each step of this in turns. Without `history` lineitem is a stream
    that a query sees from its arrival on. A third side, lean, is not in the paper: see benchmarks/tpch/sides.py.
    """
    chance = random.Random(seed)
    remotes = {side: Remote(scale, side, history, batch) for side in sides}
    rounds = [remote.ready() for remote in remotes.values()][0]
    running: list[int] = []
    installs: dict[str, list[tuple[int, Turn]]] = {side: [] for side in sides}
    updates: dict[str, list[Turn]] = {side: [] for side in sides}
    timeline: dict[str, list[tuple[int, float, float]]] = {side: [] for side in sides}
    others = Others()
    for step in range(rounds):
        order = sides if step % 2 else sides[::-1]
        for _ in range(arrivals):
            if len(running) >= active:
                gone = running.pop(chance.randrange(len(running)))
                if check:
                    compare(gone, {side: remotes[side].do("answer", gone) for side in sides})
                for side in order:
                    remotes[side].do("retire", gone)
            fresh = chance.choice([number for number in queries if number not in running])
            for side in order:
                installs[side].append((fresh, remotes[side].do("install", fresh)))
            running.append(fresh)
        for side in order:
            turn = remotes[side].do("step")
            updates[side].append(turn)
            timeline[side].append((step, turn.indexed / MIB, turn.resident / MIB))
    for remote in remotes.values():
        remote.close()
    for group, chosen in groups(queries).items():
        for side in sides:
            found = [turn for number, turn in installs[side] if number in chosen]
            if found:
                yield {"panel": "1a", "side": side, "queries_that": group} | latency(found) | others.figures()
    for side in sides:
        yield {"panel": "1b", "side": side, "queries_that": "any"} | latency(updates[side]) | others.figures()
    for side in sides:
        indexed = [mib for _, mib, _ in timeline[side]]
        yield {
            "panel": "1c",
            "side": side,
            "indexed_mib": max(indexed),
            "mean_indexed_mib": sum(indexed) / len(indexed),
            "rss_mib": max(resident for *_, resident in timeline[side]),
            "timeline": timeline[side],
        }


def groups(queries: Sequence[int]) -> dict[str, list[int]]:
    """The queries by what they derive from, and all of them."""
    derived = [number for number in queries if "lineitem" in query(number).relations]
    rest = [number for number in queries if number not in derived]
    return {"derive from lineitem": derived, "do not": rest, "any": list(queries)}


def latency(turns: Sequence[Turn]) -> dict[str, Any]:
    """The figures of a distribution."""
    ordered, cpu = sorted(turn.seconds for turn in turns), sorted(turn.cpu for turn in turns)
    return {
        "count": len(ordered),
        "p50_us": percentile(ordered, 0.5) * 1e6,
        "p99_us": percentile(ordered, 0.99) * 1e6,
        "max_us": ordered[-1] * 1e6,
        "cpu_p50_us": percentile(cpu, 0.5) * 1e6,
        "cpu_p99_us": percentile(cpu, 0.99) * 1e6,
        "ccdf": ccdf(ordered),
    }


def compare(number: int, turns: dict[str, Turn]) -> None:
    """All sides must give the same answer; of a LIMIT, as many rows."""
    (first, ours), *others = [(side, sorted(turn.answer, key=place)) for side, turn in turns.items()]
    for side, theirs in others:
        same = "limit" in query(number).select or all(all(map(alike, a, b)) for a, b in zip(ours, theirs, strict=False))
        if len(ours) != len(theirs) or not same:
            raise WrongAnswer(f"q{number:02d}: {len(ours)} rows {first}, {len(theirs)} {side}, or other ones")


def plot(records: list[Record], path: Path) -> None:
    """The three panels side by side."""
    title = f"Figure 1: TPC-H at scale factor {records[0]['scale']:g}, {records[0]['active']} active queries"
    title += ", all of lineitem" if records[0]["history"] else ", lineitem a stream"
    with figure(path, 3, title) as (left, middle, right):
        anything = [r for r in records if r.get("queries_that") == "any"]
        draw_ccdf(left, [r for r in anything if r["panel"] == "1a"], lambda r: r["side"], "installations")
        draw_ccdf(middle, [r for r in anything if r["panel"] == "1b"], lambda r: r["side"], "updates")
        left.set_title("a: query installation")
        middle.set_title("b: update processing")
        for number, record in enumerate(r for r in records if r["panel"] == "1c"):
            side, found = record["side"], record["timeline"]
            steps = [step for step, *_ in found]
            right.plot(steps, [mib for _, mib, _ in found], color=f"C{number}", label=f"{side}, indexed")
            right.plot(steps, [mib for *_, mib in found], color=f"C{number}", linestyle=":", label=f"{side}, process")
        right.set_title("c: memory")
        right.set_xlabel("parts loaded")
        right.set_ylabel("MiB")
        right.set_yscale("log", base=2)
        right.grid(True, alpha=0.3)
        right.legend(fontsize=8)
