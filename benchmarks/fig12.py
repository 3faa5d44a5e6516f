"""Figure 12 of *Shared Arrangements*: the rate at which each TPC-H query takes updates in, in large logical batches."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import tektite as tk
from benchmarks.measure import Laps, Others, memory, reset_peak
from benchmarks.plots import Record, draw_bars, figure, short
from benchmarks.tpch import QUERIES, Query, query, read_by
from benchmarks.tpch.maintained import Encoded, Relations

NAME = "fig12"
DESCRIPTION = (
    "tuples/s of each TPC-H query while its relations load round-robin in logical batches, from words in memory"
)

# The paper's figures with one worker, at scale factor 10 on another machine: for the class, not the last percent.
PAPER = {
    1: 9_341_713, 2: 4_388_761, 3: 11_049_606, 4: 9_046_854, 5: 5_802_513, 6: 33_090_863, 7: 7_551_628, 8: 4_949_412,
    9: 2_932_421, 10: 9_708_371, 11: 1_720_655, 12: 11_258_702, 13: 1_446_223, 14: 21_908_762, 15: 5_057_397,
    16: 4_435_818, 17: 5_218_907, 18: 5_854_293, 19: 22_696_357, 20: 16_089_949, 21: 1_968_771, 22: 1_843_397,
}  # fmt: skip


def run(
    scale: float = 0.1,
    queries: Sequence[int] = QUERIES,
    batch: int = 100_000,
    workers: int = 1,
    history: bool = False,
    check: bool = True,
) -> Iterator[dict[str, Any]]:
    """A record for each query, then one for their geometric mean. A tuple counts if the query reads its relation.

    Without `history` the relations are streams, as in the paper: a query keeps what it needs of them. With it every
    relation is kept indexed by its primary key, for queries to come.
    """
    engine = tk.Engine(workers, autocommit=False)
    encoded = Encoded(engine, scale, read_by(queries))
    # The first query to run loads the compiled kernels; let it not be one that is measured.
    measure(engine, encoded, query(queries[0], scale), batch, history, Laps())
    rates = []
    for number in queries:
        asked = query(number, scale)
        reset_peak()
        others, laps = Others(), Laps()
        rows = measure(engine, encoded, asked, batch, history, laps, check)
        figures = laps.figures(rows)
        rates.append(figures["updates_per_s"])
        yield {"query": number, "rows": rows} | figures | memory() | others.figures()
    mean = math.exp(sum(map(math.log, rates)) / len(rates))
    yield {"query": "geometric mean", "updates_per_s": mean, "least_updates_per_s": min(rates)}


def measure(
    engine: tk.Engine, encoded: Encoded, asked: Query, batch: int, history: bool, laps: Laps, check: bool = False
) -> int:
    """Install a query and load its relations, a lap for each batch; how many rows that were."""
    relations = Relations(engine, encoded, asked.relations, () if history else asked.relations)
    view = relations.install(asked)
    rows = encoded.rows(asked.relations)
    for part in list(encoded.batches(asked.relations, max(round(rows / batch), 1))):
        with laps.lap():
            relations.insert(part)
            engine.advance()
            engine.finish(view)
    if check:
        from benchmarks.tpch.answers import check_answer

        check_answer(view, asked, encoded.scale)
    relations.forget(asked)
    relations.drop()
    return rows


def plot(records: list[Record], path: Path) -> None:
    """Rates of all queries beside the paper's."""
    found = {record["query"]: record["updates_per_s"] for record in records}
    numbers = [number for number in found if number in PAPER]
    scale, batch = records[0]["scale"], records[0]["batch"]
    title = f"Figure 12: TPC-H at scale factor {scale:g}, logical batches of {short(batch)}, one worker"
    mean = f"tektite (geometric mean {short(found.get('geometric mean', 0.0))}/s)"
    with figure(path, 1, title, size=(16.0, 5.0)) as (axes,):
        series = {
            mean: [found[number] for number in numbers],
            "paper, scale factor 10": [float(PAPER[number]) for number in numbers],
        }
        draw_bars(axes, [f"Q{number}" for number in numbers], series, "tuples per second")
