"""Figure 1 of *Shared Arrangements*: TPC-H queries that arrive and retire at random while the relations load, over shared
arrangements and each over its own: installation latency (a), update latency (b), memory over time (c).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measure import MIB, Others, ccdf, percentile
from benchmarks.plots import Record, draw_ccdf, figure
from benchmarks.tpch import QUERIES, RELATIONS, query
from benchmarks.tpch.answers import answer_within, check_rows
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
    whole: bool = False,
    seed: int = 1,
    check: bool = True,
) -> Iterator[dict[str, Any]]:
    """Records for the figure's three panels, of each side.

    In each round `arrivals` times a query retires, if `active` ones run, and another arrives; then the next `batch` rows of
    all relations together are loaded. The sides take each step of this in turns. Without `history` lineitem is a stream
    that a query sees from its arrival on. Loading ends with orders, or with the `whole` of lineitem. A query's answer when
    it retires is compared with DuckDB's over the same rows. A third side, lean, is not in the paper: see
    benchmarks/tpch/sides.py.
    """
    chance = random.Random(seed)
    remotes = {side: Remote(scale, side, history, batch, whole) for side in sides}
    parts = [remote.ready() for remote in remotes.values()][0]
    loaded: list[dict[str, int]] = [dict.fromkeys(RELATIONS, 0)]
    for part in parts:
        loaded.append({name: rows + part.get(name, 0) for name, rows in loaded[-1].items()})
    running: dict[int, int] = {}  # and the round since when
    seen: set[int] = set()
    arrived: dict[str, list[Arrival]] = {side: [] for side in sides}
    updates: dict[str, list[Turn]] = {side: [] for side in sides}
    others = Others()
    for step in range(len(parts)):
        order = sides if step % 2 else sides[::-1]
        for _ in range(arrivals):
            if len(running) >= active:
                gone = chance.choice(list(running))
                since = running.pop(gone)
                if check:
                    window = {name: (0, rows) for name, rows in loaded[step].items()}
                    if not history:
                        window["lineitem"] = (loaded[since]["lineitem"], loaded[step]["lineitem"])
                    theirs = answer_within(query(gone, scale), scale, window)
                    for side in sides:
                        check_rows(list(remotes[side].do("answer", gone).answer), theirs, query(gone, scale))
                for side in order:
                    remotes[side].do("retire", gone)
            fresh = chance.choice([number for number in queries if number not in running])
            for side in order:
                arrived[side].append(Arrival(fresh, fresh in seen, remotes[side].do("install", fresh)))
            running[fresh] = step
            seen.add(fresh)
        for side in order:
            updates[side].append(remotes[side].do("step"))
    for remote in remotes.values():
        remote.close()
    for group, chosen in groups(queries).items():
        for side in sides:
            found = [a.turn for a in arrived[side] if a.query in chosen]
            if found:
                first = [a.turn.seconds for a in arrived[side] if a.query in chosen and not a.again]
                of_query = [
                    (number, 1e6 * median(a.turn.seconds for a in arrived[side] if a.query == number))
                    for number in chosen
                    if any(a.query == number for a in arrived[side])
                ]
                yield {
                    "panel": "1a", "side": side, "queries_that": group, "first_p50_us": 1e6 * median(first),
                    "p50_us_of_query": of_query,
                } | latency(found) | others.figures()  # fmt: skip
    for side in sides:
        yield {"panel": "1b", "side": side, "queries_that": "any"} | latency(updates[side]) | others.figures()
    for side in sides:
        timeline = [(step, turn.indexed / MIB, turn.grown / MIB) for step, turn in enumerate(updates[side])]
        indexed, grown = [mib for _, mib, _ in timeline], [mib for *_, mib in timeline]
        yield {
            "panel": "1c", "side": side, "indexed_mib": max(indexed), "mean_indexed_mib": sum(indexed) / len(indexed),
            "grown_mib": max(grown), "mean_grown_mib": sum(grown) / len(grown), "timeline": timeline,
        }  # fmt: skip
    if SHARED in sides and NOT_SHARED in sides:
        yield {"panel": "ratios"} | ratios(arrived, updates, groups(queries)["derive from lineitem"])


@dataclass(frozen=True)
class Arrival:
    """A query's installation, and whether it had been there before."""

    query: int
    again: bool
    turn: Turn


def ratios(
    arrived: dict[str, list[Arrival]], updates: dict[str, list[Turn]], derived: Sequence[int]
) -> dict[str, float]:
    """Shared beside not shared: how many times faster queries of lineitem are installed (by the median of each side, and the
    median over pairs), and which share of time and memory updates take.
    """
    pairs = [
        (theirs.turn.seconds, ours.turn.seconds)
        for ours, theirs in zip(arrived[SHARED], arrived[NOT_SHARED], strict=True)
        if ours.query in derived
    ]
    ours, theirs = ([turn.seconds for turn in updates[side]] for side in (SHARED, NOT_SHARED))
    found = {
        "install_of_medians": median(t for t, _ in pairs) / median(o for _, o in pairs),
        "install_median": median(t / o for t, o in pairs),
    }
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        found[f"update_{name}"] = percentile(sorted(ours), share) / percentile(sorted(theirs), share)
    for name in ("indexed", "grown"):
        used = {side: [getattr(turn, name) for turn in updates[side]] for side in (SHARED, NOT_SHARED)}
        found[name] = sum(used[SHARED]) / sum(used[NOT_SHARED])
        found[f"{name}_most"] = max(used[SHARED]) / max(used[NOT_SHARED])
    return found


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
            right.plot(
                steps, [mib for *_, mib in found], color=f"C{number}", linestyle=":", label=f"{side}, process growth"
            )
        right.set_title("c: memory")
        right.set_xlabel("parts loaded")
        right.set_ylabel("MiB")
        right.set_yscale("log", base=2)
        right.grid(True, alpha=0.3)
        right.legend(fontsize=8)
