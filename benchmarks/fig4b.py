"""Figure 4b of *K-Pg*: throughput against physical batch size, where every record has a logical time of its own."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tektite as tk
from benchmarks.measure import Others
from benchmarks.plots import Record, figure
from benchmarks.tpch import QUERIES, Query, query, read_by
from benchmarks.tpch.answers import check_answer
from benchmarks.tpch.maintained import Batch, Encoded, Relations
from tektite.engine.core import core_of

NAME = "fig4b"
DESCRIPTION = "tuples/s of each TPC-H query with physical batches of 1 to 1M records, each record an epoch of its own"


def run(
    scale: float = 0.1,
    queries: Sequence[int] = QUERIES,
    batches: Sequence[int] = (1, 10, 100, 1_000, 10_000, 100_000, 1_000_000),
    preload: float = 0.5,
    duration: float = 2.0,
    check: bool = True,
) -> Iterator[dict[str, Any]]:
    """A record for each query and size of physical batches.

    A share of the data, `preload`, is there before; the rest arrives round-robin, a record an epoch, for about `duration`
    seconds or until there is no more. The first batch does not count if another one follows: the system hands out memory that no
    batch of this size has used before. What is left then comes in one batch, unmeasured, so that the answer can be checked.
    """
    engine = tk.Engine(autocommit=False)
    encoded = Encoded(engine, scale, read_by(queries))
    for number in queries:
        asked = query(number, scale)
        base = None
        for size in batches:
            others = Others()
            records, seconds = measure(engine, encoded, asked, size, preload, duration, check)
            rate = records / seconds
            base = base or rate
            yield {
                "query": number,
                "batch": size,
                "records": records,
                "seconds": seconds,
                "updates_per_s": rate,
                "relative": rate / base,
            } | others.figures()


def measure(
    engine: tk.Engine, encoded: Encoded, asked: Query, size: int, preload: float, duration: float, check: bool
) -> tuple[int, float]:
    """How many records went through in how many seconds, in batches of a size."""
    relations = Relations(engine, encoded, asked.relations, streams=asked.relations)
    view = relations.install(asked)
    total = encoded.rows(asked.relations)
    before, rest = split(encoded, asked, round(total * preload))
    relations.insert(before)
    engine.advance()
    engine.finish(view)
    order, places = arrivals(rest)
    done, counted, seconds = 0, 0, 0.0
    while done < len(order) and seconds < duration:
        stop = min(done + size, len(order))
        epochs = np.arange(engine.next_epoch, engine.next_epoch + stop - done)
        part = slice(done, stop)
        work = [
            (name, np.ascontiguousarray(rest[name][:, places[part][chosen]]), epochs[chosen])
            for at, name in enumerate(rest)
            if (chosen := order[part] == at).any()
        ]
        start = time.perf_counter()
        for name, words, times in work:
            core_of(relations.inputs[name]).update_words(words, times=times)
        engine.advance(to=int(epochs[-1]) + 1)
        engine.finish(view)
        if done or stop == len(order):
            seconds += time.perf_counter() - start
            counted += stop - done
        done = stop
    if check:
        left = {
            name: np.ascontiguousarray(words[:, places[done:][order[done:] == at]])
            for at, (name, words) in enumerate(rest.items())
        }
        relations.insert(left)
        engine.advance()
        check_answer(view, asked, encoded.scale)
    relations.forget(asked)
    relations.drop()
    return counted, seconds


def split(encoded: Encoded, asked: Query, rows: int) -> tuple[Batch, Batch]:
    """The first rows of a query's relations, loaded round-robin, and the rest of them."""
    parts = max(round(encoded.rows(asked.relations) / max(rows, 1)), 1)
    first = next(encoded.batches(asked.relations, parts))
    rest = {name: encoded.words[name][:, first[name].shape[1] if name in first else 0 :] for name in asked.relations}
    return first, rest


def arrivals(rest: Batch) -> tuple[np.ndarray[Any, np.dtype[np.int64]], np.ndarray[Any, np.dtype[np.int64]]]:
    """In which order records arrive, one of each relation in turn: the relation's number, and the row's within it."""
    order = np.concatenate([np.full(words.shape[1], at) for at, words in enumerate(rest.values())])
    places = np.concatenate([np.arange(words.shape[1]) for words in rest.values()])
    sequence = np.lexsort((order, places))
    return order[sequence], places[sequence]


def plot(records: list[Record], path: Path) -> None:
    """Throughput of each query relative to batches of one record, and in absolute terms."""
    numbers = list(dict.fromkeys(record["query"] for record in records))
    with figure(path, 2, f"Figure 4b: physical batching, scale factor {records[0]['scale']:g}, one worker") as places:
        for axes, figure_name, label in zip(
            places,
            ("relative", "updates_per_s"),
            ("throughput, relative to batches of one", "tuples per second"),
            strict=True,
        ):
            for number in numbers:
                found = [record for record in records if record["query"] == number]
                sizes = [record["batch"] for record in found]
                axes.plot(sizes, [record[figure_name] for record in found], marker=".", linewidth=1, label=f"Q{number}")
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_xlabel("records in a physical batch")
            axes.set_ylabel(label)
            axes.grid(True, alpha=0.3)
        places[-1].legend(fontsize=7, ncol=2, loc="upper left", bbox_to_anchor=(1.01, 1.0))
