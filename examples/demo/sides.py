"""The two sides that are compared: each is one engine in its own process, with the same graph and the same queries.

*Shared*: one input of edges; all queries read the arrangements that the engine keeps of it. *Not shared*: each query
loads the edges when it arrives and arranges them for itself, as in a system where an index belongs to one query. Changes
reach all of these queries through one stream, so that taking them in is done once on both sides: what differs
is who keeps an index. A query that needs none, such as one that only counts, keeps none on either side.
"""

from __future__ import annotations

import hashlib
import signal
import time
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import psutil

import tektite as tk
from examples.demo.graph import Graph, Words, as_columns
from examples.demo.queries import KINDS, Query, install, schedule

SHARED, NOT_SHARED = SIDES = ("shared", "not shared")


@dataclass(frozen=True)
class Turn:
    """What a side reports when it has done what it was asked: seconds, memory afterwards, the digest of an answer."""

    seconds: float
    indexed: int
    resident: int
    answer: str = ""


class Side:
    """What both sides do alike. An operation ends when every answer it concerns is complete."""

    def __init__(self, graph: Graph, changes: int) -> None:
        self.engine = tk.Engine()
        self.graph = graph
        self.changes = changes

    def load(self) -> None:
        """Get ready for the first query."""
        raise NotImplementedError

    def install(self, query: Query) -> None:
        """Install a query and read its first answer."""
        raise NotImplementedError

    def nodes(self, query: Query) -> tk.Input:
        """The nodes that a query asks about, as an input of its own."""
        nodes = self.engine.input(f"nodes of {query.name}", node=tk.Int)
        nodes.insert({"node": self.graph.pick(KINDS[query.kind].nodes, query.number)})
        return nodes

    def drop(self, query: Query) -> None:
        """Drop a query, and what was made for it."""
        self.engine.drop(query.name)
        self.engine.drop(f"nodes of {query.name}")

    def update(self, removed: Words, inserted: Words) -> None:
        """Close an epoch with some changes and bring every query up to date."""
        edges = self.engine.table("edges")
        edges.remove(as_columns(removed))
        edges.insert(as_columns(inserted))
        self.engine.advance()
        self.engine.settle()

    def answer(self, query: Query) -> str:
        """A digest of a query's present answer."""
        table = self.engine.view(query.name).snapshot()
        words = np.array([column.to_numpy() for column in table.columns], np.int64)
        ordered = np.ascontiguousarray(words[:, np.lexsort(words)])
        return f"{ordered.shape[1]} rows, {hashlib.sha256(ordered.tobytes()).hexdigest()}"


class Shared(Side):
    """All queries read one input's arrangements."""

    def load(self) -> None:
        edges = self.engine.input("edges", src=tk.Int, dst=tk.Int)
        edges.insert(as_columns(self.graph.edges))
        self.engine.advance()

    def install(self, query: Query) -> None:
        nodes = self.nodes(query)
        self.engine.advance()
        install(self.engine, query, self.engine.table("edges"), nodes).snapshot()


class NotShared(Side):
    """Each query arranges the edges for itself: a stream keeps nothing that others could read."""

    def load(self) -> None:
        self.engine.input("edges", stream=True, src=tk.Int, dst=tk.Int)

    def install(self, query: Query) -> None:
        present = self.engine.input(f"edges for {query.name}", stream=True, src=tk.Int, dst=tk.Int)
        view = install(self.engine, query, present.concat(self.engine.table("edges")), self.nodes(query))
        present.insert(as_columns(self.graph.edges))
        present.close()
        self.engine.advance()
        view.snapshot()

    def drop(self, query: Query) -> None:
        super().drop(query)
        self.engine.drop(f"edges for {query.name}")


class Remote:
    """A side in its own process: `ask` hands it an operation, `wait` returns its report."""

    def __init__(self, side: str, nodes: int, edges: int, seed: int, changes: int) -> None:
        context = get_context("spawn")
        self._here, there = context.Pipe()
        self._process = context.Process(
            target=serve, args=(there, side, nodes, edges, seed, changes), name=f"demo, {side}", daemon=True
        )
        self._process.start()
        there.close()

    def ask(self, operation: str, query: Query | None = None) -> None:
        """Begin an operation: load, install, update, drop or answer."""
        self._here.send((operation, query))

    def wait(self) -> Turn:
        """The report of the operation that was begun."""
        try:
            report = self._here.recv()
        except EOFError:
            raise RuntimeError(f"the process of {self._process.name!r} ended") from None
        if isinstance(report, Exception):
            raise report
        assert isinstance(report, Turn)
        return report

    def do(self, operation: str, query: Query | None = None) -> Turn:
        """An operation from beginning to end."""
        self.ask(operation, query)
        return self.wait()

    def close(self) -> None:
        """End the process."""
        self._here.close()
        self._process.join(5)
        if self._process.is_alive():
            self._process.terminate()
            self._process.join()


def serve(connection: Connection[Any, Any], name: str, nodes: int, edges: int, seed: int, changes: int) -> None:
    """The process of one side: do what is asked until nobody asks any more. The parent decides what Ctrl-C means."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    kind = Shared if name == SHARED else NotShared
    rehearse(kind)
    side = kind(Graph(nodes, edges, seed), changes)
    process = psutil.Process()
    while True:
        try:
            operation, query = connection.recv()
        except EOFError:
            return
        try:
            seconds, answer = perform(side, operation, query)
            connection.send(Turn(seconds, side.engine.bytes, process.memory_info().rss, answer))
        except Exception as error:
            connection.send(error)


def rehearse(kind: type[Side]) -> None:
    """Run every kind of query on a tiny graph: loading compiled kernels into the process is to count for no query."""
    side = kind(Graph(100, 400, 0), 4)
    side.load()
    for query in schedule(len(KINDS), 1):
        side.install(query)
        for _ in range(3):
            side.update(*side.graph.change(4))
        side.drop(query)
    side.engine.close()


def perform(side: Side, operation: str, query: Query | None) -> tuple[float, str]:
    """Do one operation; the seconds it took, and the digest of an answer if it was asked for."""
    if operation == "update":
        removed, inserted = side.graph.change(side.changes)
    start = time.perf_counter()
    match operation, query:
        case "load", _:
            side.load()
        case "update", _:
            side.update(removed, inserted)
        case "install", Query():
            side.install(query)
        case "drop", Query():
            side.drop(query)
        case "answer", Query():
            return 0.0, side.answer(query)
    return time.perf_counter() - start, ""
