"""Faults of what runs in Spark's tasks, which here run in this process: feeds, last rows, rows as bytes, stages."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tektite as tk
from tektite.runtime.wire import pack_rows, unpack_rows
from tektite.spark.feed import Feed
from tektite.spark.last_rows import settled
from tektite.spark.positions import ReadPositions
from tektite.trace.chunk import Chunk
from tektite.values.dictionary import Dictionary
from tests.house.mutations.fault import Fault, altered, being, misled, nothing, returning
from tests.support.stages import staged

SCHEMA = tk.Schema(k=tk.Int, v=tk.String)


def encoded(feed: Feed, **columns: Any) -> tuple[list[list[int]], int]:
    """The words of a batch, without those of texts, and the last position."""
    words, latest = feed.encode(pa.table(columns), Dictionary())
    return [row.tolist() for at, row in enumerate(words) if at != 1], latest


def operations_mean_what_feeds_say() -> None:
    feed = Feed("t", SCHEMA, "upsert", (0,), operation="op")
    kinds = ["INSERT", "delete", "u", "update_preimage", "+U"]
    (_, found), _ = encoded(feed, k=[1, 2, 3, 4, 5], v=["a"] * 5, op=kinds)
    assert found == [1, -1, 2, -2, 3]


def rows_up_to_a_position_count() -> None:
    feed = Feed("t", SCHEMA, position="at", after=1, upto=3)
    (found, _), latest = encoded(feed, k=[1, 2, 3, 4], v=["a"] * 4, at=[1, 2, 3, 4])
    assert (found, latest) == ([2, 3], 3)


def a_null_in_a_key_is_refused() -> None:
    feed = Feed("t", SCHEMA, "upsert", (0,))
    with pytest.raises(tk.IncorrectError, match="key column 'k' holds a NULL"):
        encoded(feed, k=[None], v=["a"])


def bytes_that_are_no_text_are_refused() -> None:
    feed = Feed("t", SCHEMA)
    broken = pa.StringArray.from_buffers(1, pa.py_buffer(np.array([0, 2], np.int32)), pa.py_buffer(b"\xff\xfe"))
    with pytest.raises(tk.IncorrectError, match="UTF-8"):
        encoded(feed, k=[1], v=broken)


def settle(feed: Feed, rows: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Rows (key, value, operation[, order]) as they are settled where nothing is held."""
    whole = np.array(rows, np.int64).T.copy()
    found = settled(feed, whole, lambda wanted: np.empty((2, 0), np.int64), Dictionary())
    return sorted(map(tuple, found.T.tolist()))


NUMBERS = tk.Schema(k=tk.Int, v=tk.Int)


def rows_that_contradict_each_other_are_refused() -> None:
    feed = Feed("t", NUMBERS, "upsert", (0,))
    with pytest.raises(tk.IncorrectError, match="nothing says which comes last"):
        settle(feed, [(1, 1, 1), (1, 2, 1)])
    assert settle(feed, [(1, 1, 1), (2, 2, 1)]) == [(1, 1, 1), (2, 2, 1)]


def a_later_row_counts() -> None:
    feed = Feed("t", NUMBERS, "upsert", (0,), order="o")
    rows = [(1, 1, 1, 5), (1, 2, 1, 6)]
    assert settle(feed, rows) == rows


def a_chain_of_images_is_counted() -> None:
    feed = Feed("t", NUMBERS, "upsert", (0,), operation="op")
    found = settle(feed, [(1, 1, 1), (1, 1, -2), (1, 2, 3), (1, 2, -2), (1, 3, 3)])
    assert found == [(1, 3, 3)]


def rows_travel_as_they_are() -> None:
    words = np.stack([np.arange(-50, 50), np.arange(100) * 2**40, np.full(100, 7)])
    assert np.array_equal(unpack_rows(pack_rows(Chunk.of_array(words))).to_array(), words)


def records_survive_json() -> None:
    record = ReadPositions(("first",), "at", 7, "query", 3)
    assert ReadPositions.from_json(record.to_json()) == record


def sweeps_in_stages_are_right() -> None:
    """Three shards, and rows that travel between them: into a join, one side of which comes a stage before the other, with texts
    that a task has made, and along a conjunction.
    """
    with tempfile.TemporaryDirectory() as folder, staged(Path(folder), workers=3, turn=60.0) as engine:
        edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int, "label": tk.String})
        degrees = edges.count(by="src", name="n")
        many = degrees.count(by="n", name="src").select("src", twice=tk.col("n") * 2)
        joined = engine.install("joined", degrees.join(many, on="src"))
        loud = (
            edges.select(loud=tk.col("label").upper())
            .count(by="loud", name="n")
            .select("n", soft=tk.col("loud").lower())
        )
        soft = engine.install("soft", loud.max("soft", by="n"))
        hops = [(edges, (a, b, None)) for a, b in ("ab", "bc", "cd")]
        paths = engine.install("paths", tk.match(*hops, joins="delta"))
        rows = [(n, n + 1, f"Edge {n % 4}") for n in range(8)] + [(1, 7, "x")]
        for part in (rows[:5], rows[5:]):
            edges.insert(part)
            engine.advance()
        counts = Counter(src for src, _, _ in rows)
        often = Counter(counts.values())
        wanted = [(src, n, 2 * m) for src, n in counts.items() for m, count in often.items() if count == src]
        assert sorted(joined.rows()) == sorted(wanted)
        assert sorted(soft.rows()) == [(1, "x"), (2, "edge 3")]
        pairs = [(a, b) for a, b, _ in rows]
        two = [(a, b, d) for a, b in pairs for c, d in pairs if b == c]
        assert Counter(paths.rows()) == Counter((*way, d) for way in two for c, d in pairs if way[-1] == c)


SPARK = "tektite.spark"
FAULTS = [
    Fault("every operation inserts", f"{SPARK}.feed Feed._meaning", returning(1), operations_mean_what_feeds_say),
    Fault("positions are not looked at", f"{SPARK}.feed Feed._integers", returning(None), rows_up_to_a_position_count),
    Fault("keys may be NULL", f"{SPARK}.feed Feed.encode",
          misled(lambda self, batch, dictionary: (replace(self, keys=()), batch, dictionary)), a_null_in_a_key_is_refused),
    Fault("any bytes are text", f"{SPARK}.feed Feed._check_texts", nothing, bytes_that_are_no_text_are_refused),
    Fault("nothing contradicts anything", f"{SPARK}.last_rows contradictions", returning(np.empty(0, np.int64)),
          rows_that_contradict_each_other_are_refused),
    Fault("all rows have one key", f"{SPARK}.last_rows key_ends", lambda there: lambda keys: np.array([keys.shape[1] - 1]),
          rows_that_contradict_each_other_are_refused),
    Fault("all rows come at one moment", f"{SPARK}.last_rows moments",
          lambda there: lambda feed, whole: np.zeros(whole.shape[1], np.int64), a_later_row_counts),
    Fault("rows of a key are taken for one", f"{SPARK}.last_rows groups",
          lambda there: lambda keys: np.arange(keys.shape[1]), a_chain_of_images_is_counted),
    Fault("rows travel without their last", "tektite.runtime.wire pack_rows",
          misled(lambda chunk: (chunk.slice(0, chunk.n - 1),)),
          rows_travel_as_they_are),
    Fault("the batch that counts is forgotten", f"{SPARK}.positions ReadPositions.to_json",
          altered(lambda plain: {key: value for key, value in plain.items() if key != "batch"}), records_survive_json),
    Fault("rows stay in the shard that made them", "tektite.runtime.stage_task StageTask._addressed",
          lambda there: lambda self, address, *rest: there(self, address._replace(shard=0), *rest),
          sweeps_in_stages_are_right),
    Fault("an earlier stage is forgotten", "tektite.runtime.stage_task StageTask._catch_up", nothing, sweeps_in_stages_are_right),
    Fault("everything runs in the first stage", "tektite.dataflow.pipelines PipelinesNode.hops", being(0),
          sweeps_in_stages_are_right),
]  # fmt: skip
