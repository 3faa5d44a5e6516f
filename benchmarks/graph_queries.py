"""Figures 5 and 6 of *Shared Arrangements*: look-ups, 1-hop, 2-hop and 4-path queries on a random graph, while arguments and
edges change.

Each kind of query is one standing dataflow whose arguments are a table (`tektite.graph.ArgumentQuery`). *Shared*, all kinds
read the same two indexes of one table of edges. *Not shared*, each kind has a table of edges of its own, and every change of
the graph goes to all of them.

With `long`, the last rate goes on for so many seconds, and memory is looked at each second (Figure 5c). With `postgres`,
PostgreSQL (Debian's package) answers the questions of Figure 6 on the same graph.

The paper's graph has 10M nodes and 64M edges: `--param nodes=10_000_000 --param edges=64_000_000 --param rate=100_000`.
"""

from __future__ import annotations

import gc
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import tektite as tk
from benchmarks import graph_postgres
from benchmarks.measure import Laps, Others, ccdf, memory, percentile
from benchmarks.open_loop import TICK, paced
from benchmarks.plots import Record, draw_ccdf, figure, short
from benchmarks.workloads import QUERY_SEED, Words, bfs_edges, r
from tektite import graph

NAME = "graph_queries"
DESCRIPTION = (
    "look-ups, hops and short paths on a random graph: latencies of concurrent queries, and under an open-loop load"
)

KINDS = ("look-up", "1-hop", "2-hop", "4-path")
SIDES = ("shared", "not shared")
NODE, PAIR = {"node": tk.Int}, {"src": tk.Int, "dst": tk.Int}


def run(
    nodes: int = 100_000,
    edges: int = 640_000,
    workers: int = 2,
    sides: Sequence[str] = SIDES,
    concurrent: Sequence[int] = (1, 10, 100, 1_000),
    repetitions: int = 50,
    rate: Sequence[int] = (2_000, 5_000, 10_000, 20_000),
    standing: int = 1_000,
    duration: float = 5.0,
    long: float = 0.0,
    postgres: bool = False,
    check: bool = True,
) -> Iterator[dict[str, Any]]:
    """For each side: a record of the load; one for each kind and number of concurrent queries (Figure 6); then one for each
    `rate`, which is both the changes of queries and the changes of the graph that are offered a second (Figure 5). `standing`
    queries of each kind are there all the time.
    """
    for side in sides:
        if side not in SIDES:
            raise ValueError(f"a side is one of {', '.join(SIDES)}, not {side!r}")
        others, laps = Others(), Laps()
        with laps.lap():
            mix = Mix(nodes, edges, workers, side == "shared")
        yield {"side": side, "phase": "load"} | laps.total(edges) | memory() | mix.size() | others.figures()
        for kind in KINDS:
            for many in concurrent:
                others = Others()
                seconds = mix.ask(kind, many, repetitions)
                yield (
                    {"side": side, "phase": "fig6", "kind": kind, "concurrent": many}
                    | figures(seconds)
                    | others.figures()
                )
        mix.stand(standing)
        for offered in rate:
            mix.offer(offered, 1.0)
            others = Others()
            latencies = mix.offer(offered, duration)
            record = {"side": side, "phase": "fig5", "rate": offered} | figures(latencies)
            yield record | memory() | mix.size() | others.figures() | {"ccdf": ccdf(latencies)}
        for second in range(round(long)):
            others = Others()
            latencies = mix.offer(rate[-1], 1.0)
            record = {"side": side, "phase": "fig5c", "rate": rate[-1], "second": second} | figures(latencies)
            yield record | memory() | mix.size() | others.figures()
        if check:
            mix.check()
        mix.close()
        # The next side is not to find this one's memory in use: it would count as its own.
        del mix
        gc.collect()
    if postgres:
        rows = Arguments(nodes)
        for kind, many, seconds in graph_postgres.measured(nodes, edges, concurrent, repetitions, rows.draw):
            yield {"side": "postgresql", "phase": "fig6", "kind": kind, "concurrent": many} | figures(seconds)


def figures(seconds: Sequence[float]) -> dict[str, float]:
    """Percentiles in milliseconds."""
    ordered = sorted(seconds)
    return {
        "p50_ms": percentile(ordered, 0.5) * 1e3,
        "p99_ms": percentile(ordered, 0.99) * 1e3,
        "max_ms": ordered[-1] * 1e3,
    }


class Arguments:
    """Arguments of queries, at random."""

    def __init__(self, nodes: int) -> None:
        self.nodes, self.drawn = nodes, 0

    def draw(self, kind: str, many: int) -> Words:
        """New arguments of a kind."""
        width = 2 if kind == "4-path" else 1
        places = np.arange(self.drawn, self.drawn + many * width, dtype=np.uint64)
        self.drawn += many * width
        return (r(QUERY_SEED, places) % np.uint64(self.nodes)).astype(np.int64).reshape(many, width)


class Mix:
    """The four kinds of queries over one graph, and the changes of both."""

    def __init__(self, nodes: int, edges: int, workers: int, shared: bool) -> None:
        self.nodes, self.edges, self.swapped = nodes, edges, 0
        self._draw = Arguments(nodes).draw
        self.engine = tk.Engine(workers, autocommit=False)
        self.values = self.engine.create_table(
            "values", {"node": tk.Int, "value": tk.Int}, order_by="node", checked=False
        )
        kinds = KINDS[1:]
        self.tables = [
            self._edge_table("edges" if shared else f"edges of {kind}") for kind in (kinds[:1] if shared else kinds)
        ]
        graphs = [graph.Graph(table, merge=False) for table in self.tables]
        builds: dict[str, Callable[[graph.Graph, tk.Collection], tk.Collection]] = {
            "look-up": lambda _, asked: graph.look_up(self.values, asked, "node"),
            "1-hop": lambda found, asked: graph.walks(found, asked, 1),
            "2-hop": lambda found, asked: graph.walks(found, asked, 2),
            "4-path": lambda found, asked: graph.short_paths(found, asked, 4),
        }
        self.queries: dict[str, graph.ArgumentQuery] = {}
        for at, (kind, build) in enumerate(builds.items()):
            read = graphs[0 if shared or at == 0 else at - 1]
            columns = PAIR if kind == "4-path" else NODE
            self.queries[kind] = graph.ArgumentQuery(self.engine, kind, columns, partial(build, read))
        self.asked: dict[str, Words] = {kind: self._draw(kind, 0) for kind in KINDS}
        loaded = np.arange(nodes, dtype=np.int64)
        self.values.insert(np.stack([loaded, loaded * 3], axis=1))
        found = np.stack(bfs_edges(nodes, 0, edges), axis=1)
        for table in self.tables:
            table.insert(found)
            self.engine.advance()  # one by one, so that their rows are not all there before they are sorted
        self._finish()

    def _edge_table(self, name: str) -> tk.Table:
        columns = {"src": tk.Int, "dst": tk.Int}
        return self.engine.create_table(name, columns, order_by=["src", "dst"], shard_by="src", checked=False)

    def _finish(self) -> None:
        for query in self.queries.values():
            self.engine.finish(query.view)

    def size(self) -> dict[str, float]:
        """Memory of all arrangements."""
        return {"index_mib": self.engine.bytes / (1 << 20)}

    # ------------------------------------------------------------------ figure 6

    def ask(self, kind: str, many: int, repetitions: int) -> list[float]:
        """Seconds from asking `many` new queries of a kind together until all are answered, again and again. The last ones go
        when the next ones come.
        """
        query, seconds = self.queries[kind], []
        before = np.empty((0, self.asked[kind].shape[1]), np.int64)
        for turn in range(repetitions + 3):
            fresh = self._draw(kind, many)
            start = time.perf_counter()
            query.insert(fresh)
            if len(before):
                query.remove(before)
            self.engine.advance()
            self.engine.finish(query.view)
            if turn >= 3:  # the first ones use memory that nothing has used before
                seconds.append(time.perf_counter() - start)
            before = fresh
        query.remove(before)
        self.engine.advance()
        self._finish()
        return seconds

    # ------------------------------------------------------------------ figure 5

    def stand(self, many: int) -> None:
        """Ask `many` queries of each kind, which stand until others take their place."""
        for kind, query in self.queries.items():
            self.asked[kind] = self._draw(kind, many)
            query.insert(self.asked[kind])
        self.engine.advance()
        self._finish()

    def offer(self, rate: int, seconds: float) -> list[float]:
        """Offer `rate` changes of queries and as many of edges a second, tick by tick; the latency of each tick, in seconds.

        Half of all changes are insertions, and as many of the oldest go. Whatever is due goes in together, each tick at its
        own time. A tick's latency runs from when it was due until all four answers have it.
        """
        per_kind = max(round(rate * TICK / 8), 1)  # new ones of each kind; as many go
        per_graph = max(round(rate * TICK / 2), 1)
        tick = max(per_kind * 8 / rate, TICK)
        ticks = max(round(seconds / tick), 1)
        plan = self._changes(ticks, per_kind, per_graph)
        base = self.engine.next_epoch

        def handle(first: int, end: int) -> None:
            for table, rows, diffs, per_tick in plan:
                part = slice(first * per_tick, end * per_tick)
                times = base + np.repeat(np.arange(first, end, dtype=np.int64), per_tick)
                table.update(rows[part], times=times, diffs=diffs[part])
            self.engine.advance(to=base + end)
            self._finish()

        return paced(ticks, tick, handle)

    def _changes(self, ticks: int, per_kind: int, per_graph: int) -> list[tuple[tk.Table, Words, Words, int]]:
        """What every table gets: its rows in the order of time, their diffs, and how many of them belong to a tick."""
        plan = []
        for kind, query in self.queries.items():
            fresh = self._draw(kind, ticks * per_kind)
            all_asked = np.concatenate([self.asked[kind], fresh])
            gone, self.asked[kind] = all_asked[: len(fresh)], all_asked[len(fresh) :]
            plan.append((query.arguments, *_in_turns(fresh, gone), 2 * per_kind))
        many = ticks * per_graph
        first = self.swapped
        added = np.stack(bfs_edges(self.nodes, self.edges + first, self.edges + first + many), axis=1)
        removed = np.stack(bfs_edges(self.nodes, first, first + many), axis=1)
        self.swapped += many
        rows, diffs = _in_turns(added, removed)
        return plan + [(table, rows, diffs, 2 * per_graph) for table in self.tables]

    # ------------------------------------------------------------------ answers

    def check(self, many: int = 20) -> None:
        """Compare the answers of some standing queries with a search of the edges that are there."""
        src, dst = bfs_edges(self.nodes, self.swapped, self.swapped + self.edges)
        order = np.argsort(src, kind="stable")
        src, dst = src[order], dst[order]

        def after(node: int) -> list[int]:
            low, high = np.searchsorted(src, [node, node + 1])
            found: list[int] = dst[low:high].tolist()
            return found

        for kind, query in self.queries.items():
            for row in self.asked[kind][:many].tolist():
                found = Counter(query.answer(*row))
                wanted: Counter[tuple[Any, ...]]
                if kind == "look-up":
                    wanted = Counter([(row[0], row[0] * 3)])
                elif kind == "1-hop":
                    wanted = Counter((row[0], v) for v in after(row[0]))
                elif kind == "2-hop":
                    wanted = Counter((row[0], w) for v in after(row[0]) for w in after(v))
                else:
                    wanted = Counter(_short(row[0], row[1], after))
                if found != wanted:
                    raise AssertionError(f"{kind} of {row}: {found} instead of {wanted}")

    def close(self) -> None:
        self.engine.close()


def _short(src: int, dst: int, after: Callable[[int], list[int]]) -> list[tuple[int, int, int]]:
    """The length of a shortest path if it is at most 4, by a search."""
    level = {src}
    for length in range(5):
        if dst in level:
            return [(src, dst, length)]
        level = {v for node in level for v in after(node)}
    return []


def _in_turns(added: Words, removed: Words) -> tuple[Words, Words]:
    """Rows to add and rows to remove, one of each in turn, and their diffs."""
    rows = np.empty((2 * len(added), added.shape[1]), np.int64)
    rows[0::2], rows[1::2] = added, removed
    return rows, np.tile(np.array([1, -1], np.int64), len(added))


def plot(records: list[Record], path: Path) -> None:
    """Figure 5a and b on the left, figure 6 on the right."""
    nodes, edges = records[0]["nodes"], records[0]["edges"]
    title = f"Figures 5 and 6: {short(nodes)} nodes, {short(edges)} edges, {records[0]['workers']} workers"
    with figure(path, 3, title) as (tails, loads, latencies):
        open_loop = [record for record in records if record["phase"] == "fig5"]
        draw_ccdf(tails, open_loop, lambda found: f"{found['side']}, {short(found['rate'])}/s", "ticks")
        for side in dict.fromkeys(record["side"] for record in open_loop):
            found = [record for record in open_loop if record["side"] == side]
            loads.plot([one["rate"] for one in found], [one["p99_ms"] for one in found], marker="o", label=side)
        for side, kind in dict.fromkeys((one["side"], one["kind"]) for one in records if one["phase"] == "fig6"):
            found = [one for one in records if (one["side"], one.get("kind")) == (side, kind)]
            latencies.plot(
                [one["concurrent"] for one in found], [one["p50_ms"] for one in found], marker="o",
                linestyle="-" if side == "shared" else ":", label=f"{kind}, {side}",
            )  # fmt: skip
        for axes, label, across in ((loads, "p99 (ms)", "changes/s offered, of queries and of edges"),
                                    (latencies, "p50 (ms)", "concurrent queries")):  # fmt: skip
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_xlabel(across)
            axes.set_ylabel(label)
            axes.legend()
