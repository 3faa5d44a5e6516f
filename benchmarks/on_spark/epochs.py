"""Epochs: the smallest one, one of many changes under ten queries, and a loop that absorbs some; beside bare jobs."""

from __future__ import annotations

import cProfile
import pstats
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import tektite as tk
from benchmarks.measure import Others, memory
from benchmarks.on_spark.common import (
    Counted,
    Place,
    Record,
    bare_chain,
    bare_job,
    loaded,
    median,
    pair,
    tables,
    timed,
)
from benchmarks.tpch import query
from benchmarks.tpch.data import folder as tables_folder
from benchmarks.workloads import bfs_edges, bfs_epoch
from tektite.engine.core import core_of

if TYPE_CHECKING:
    pass

JOINS = (3, 4, 5, 7, 8, 9, 10, 12, 14, 19)
"""The queries of TPC-H that join lineitem with others, without subqueries over it that reread it."""


def smallest(place: Place, state: int) -> Iterator[Record]:
    """Epochs of one update under one view of many rows, to visible and to durable."""
    spark = place.spark
    with place.engine("smallest") as engine:
        table = engine.create_table("t", {"k": tk.Int})
        view = engine.install("n", table.count(by="k"))
        table.insert(np.arange(state, dtype=np.int64))
        engine.advance()
        engine.settle()
        engine.sync()
        visible, durable, bare = [], [], []
        others = Others()
        for number in range(50):
            table.insert([(number,)])

            def close() -> None:
                engine.advance()
                engine.finish(view)

            visible.append(timed(close))
            durable.append(visible[-1] + timed(engine.sync))
            bare.append(timed(lambda: bare_job(spark)))
        yield {"phase": "epoch", "state": state, "until": "visible"} | pair(visible, bare) | others.figures()
        yield {"phase": "epoch", "state": state, "until": "durable"} | pair(durable, bare) | memory()


def changes(place: Place, scale: float, sizes: tuple[int, ...], repetitions: int) -> Iterator[Record]:
    """Epochs of changes to lineitem under ten join queries. Half of the changes remove rows, half put other ones there."""
    spark, shards = place.spark, place.shards
    with place.engine("changes") as engine:
        loaded(engine, tables(spark, scale))
        for number in JOINS:
            engine.sql(query(number, scale).materialized)
        engine.settle()
        lineitem = engine.table("lineitem")
        held = parquet.read_table(tables_folder(scale) / "lineitem.parquet")
        levels = exchange_levels(engine)
        for size in sizes:
            visible, durable, bare, jobs = [], [], [], []
            others = Others()
            for repetition in range(repetitions + 1):
                old = held.slice((repetition * size // 2) % (held.num_rows - size), size // 2)
                batch, diffs = altered(old)

                def work(batch: pa.Table = batch, diffs: Any = diffs) -> None:
                    lineitem.update(batch, diffs=diffs)
                    engine.advance()
                    engine.settle()

                if repetition == repetitions:
                    split = kernels_share(engine, work)
                    break
                counted = Counted(spark)
                visible.append(timed(work))
                durable.append(visible[-1] + timed(engine.sync))
                jobs.append(counted.figures())
                lineitem.update(batch, diffs=-diffs)
                engine.advance()
                engine.settle()
                bare.append(timed(lambda: bare_chain(spark, levels, shards)))
            lineitem.update(batch, diffs=-diffs)
            engine.advance()
            engine.settle()
            engine.sync()
            chain = median(bare)
            yield {
                "phase": "changes", "SF": scale, "changes": size, "queries": len(JOINS), "exchanges": levels,
                "seconds": median(visible), "durable_seconds": median(durable), "chain_seconds": chain,
                "bar_seconds": 1.5 * chain + split["kernel_seconds"] / shards,
            } | split | jobs[-1] | memory() | others.figures()  # fmt: skip


def altered(rows: pa.Table) -> tuple[pa.Table, Any]:
    """Changes that remove rows and put back the same ones with another quantity."""
    at = rows.schema.get_field_index("l_quantity")
    quantity = pa.array(np.arange(1, rows.num_rows + 1) % 50 + 1).cast(pa.decimal128(19, 0))
    changed = rows.set_column(at, rows.schema.field(at), quantity.cast(rows.schema.field(at).type))
    return pa.concat_tables([rows, changed]), np.repeat([-1, 1], rows.num_rows)


def kernels_share(engine: tk.Engine, work: Any) -> Record:
    """How long work takes in kernels and around them, with the shards one after the other in one thread."""
    coordinator = core_of(engine).coordinator
    executor = coordinator.executor
    threads: Any = getattr(executor, "here", executor)
    pool, threads._pool, coordinator.executor = threads._pool, None, threads
    profile = cProfile.Profile()
    try:
        start = time.perf_counter()
        profile.runcall(work)
        inline = time.perf_counter() - start
    finally:
        threads._pool, coordinator.executor = pool, executor
    stats: dict[Any, Any] = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    kernels = sum(found[2] for (file, _, _), found in stats.items() if "tektite/kernels/" in file)
    return {"kernel_seconds": kernels, "around_seconds": inline - kernels}


def exchange_levels(engine: tk.Engine) -> int:
    """The longest chain of exchanges by key that a change can pass through, over all dataflows of an engine."""
    from tektite.dataflow.arrange import ArrangeNode

    levels: dict[int, int] = {}
    for flow in core_of(engine).coordinator.flows:
        for member in flow.root.body:
            reached = max(
                [levels.get(id(member), 0), *(levels.get(id(i.trace), 0) for i in flow.imports if i.node is member)]
            )
            if isinstance(member, ArrangeNode) and not member.settled:
                reached += 1
            arranged = getattr(member, "arranged", None) or getattr(member, "output", None)
            targets = [edge.target for edge in member.port.edges] if hasattr(member, "port") else []
            if arranged is not None:
                targets += [reader.node for reader in arranged.readers]
                levels[id(arranged.trace)] = reached
            for target in targets:
                levels[id(target)] = max(levels.get(id(target), 0), reached)
            levels[id(member)] = reached
    return max(levels.values(), default=0)


def loop(place: Place, nodes: int, edges: int, swaps: int) -> Iterator[Record]:
    """What node 0 reaches in a random graph, while edges are swapped for others."""
    spark = place.spark
    with place.engine("loop") as engine:
        table = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int}, order_by="src")
        roots = engine.create_table("roots", {"node": tk.Int})

        def step(reached: tk.Collection) -> tk.Collection:
            further = reached.join(table, left_on="node", right_on="src").select(node="dst")
            return further.concat(roots).distinct()

        view = engine.install("reached", roots.iterate(step, name="reach"))
        roots.insert([(0,)])
        table.insert(np.stack(bfs_edges(nodes, 0, edges), axis=1))
        engine.advance()
        engine.settle()
        engine.sync()
        visible, durable, bare, rounds = [], [], [], []
        others, counted = Others(), Counted(spark)
        for epoch in range(20):
            src, dst, diffs = bfs_epoch(nodes, edges, swaps, epoch, 0)
            before = core_of(view).flow.rounds

            def work(src: Any = src, dst: Any = dst, diffs: Any = diffs) -> None:
                table.update(np.stack([src, dst], axis=1), diffs=diffs)
                engine.advance()
                engine.finish(view)

            visible.append(timed(work))
            durable.append(visible[-1] + timed(engine.sync))
            rounds.append(core_of(view).flow.rounds - before)
        jobs = counted.figures()
        bare = [timed(lambda: bare_job(spark)) for _ in range(20)]
        record = {"phase": "loop", "nodes": nodes, "edges": edges, "changes": 2 * swaps, "rounds": max(rounds)}
        yield record | {"until": "visible"} | pair(visible, bare) | jobs | others.figures()
        yield record | {"until": "durable"} | pair(durable, bare) | jobs | memory()
