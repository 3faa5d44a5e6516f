"""Figure 8 of *Shared Arrangements*: goals with one argument against indexes that are there, beside full evaluation.

Each of the two has a process of its own: in one that another has grown, memory need not be touched for the first time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal

import numpy as np

import tektite as tk
from benchmarks.datalog import RULES
from benchmarks.graphs import Edges, graph, same_generation_graph
from benchmarks.maintained import WrongAnswer
from benchmarks.measure import Laps, Others, ccdf, memory
from benchmarks.plots import Record, draw_bars, figure
from benchmarks.workloads import r

NAME = "fig8"
DESCRIPTION = "tc(x, ?), tc(?, x) and sg(x, ?): medians and maxima over random arguments, one dataflow for all of them"

Strategy = Literal["auto", "goal", "full"]
GOALS = {"tc-from": "tc($x, ?)", "tc-to": "tc(?, $x)", "sg-with": "sg($x, ?)"}
SEED = 8
WARM = "gnp-50-0.05"


def run(
    graphs: Sequence[str] = ("tree-8", "grid-30", "gnp-500-0.01"),
    goals: Sequence[str] = ("tc-from", "tc-to", "sg-with"),
    arguments: int = 100,
    strategy: Strategy = "auto",
    workers: int = 1,
    beside: bool = True,
    check: bool = True,
) -> Iterator[dict[str, Any]]:
    """For each graph and goal a record of the goals and, unless `beside` is false, one of the full evaluation, which the
    answers are compared with.
    """
    for wanted in graphs:
        for goal in goals:
            name = same_generation_graph(wanted) if goal.startswith("sg") else wanted
            nodes = int(graph(name).max()) + 1
            draws = (r(SEED, np.arange(arguments, dtype=np.uint64)) % np.uint64(nodes)).astype(np.int64)
            goals_record, answered = alone(asked, name, goal, draws, strategy, workers)
            yield {"graph": name, "goal": goal} | goals_record
            if not beside:
                continue
            record, counts = alone(evaluated, name, goal, draws, workers)
            yield (
                {"graph": name, "goal": goal}
                | record
                | {
                    "median_share": goals_record["p50_us"] / record["seconds"] / 1e6,
                    "max_share": goals_record["max_us"] / record["seconds"] / 1e6,
                    "cpu_max_share": goals_record["cpu_max_us"] / record["cpu_seconds"] / 1e6,
                }
            )
            if check and counts != answered:
                raise WrongAnswer(f"{goal} on {name}: {sum(answered)} answers instead of {sum(counts)}")


Measured = tuple[dict[str, Any], list[int]]
"""A record, and how many answers each argument has."""


def alone(measured: Callable[..., Measured], *given: Any) -> Measured:
    """What a function measures in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(measured, *given).result()


def asked(name: str, goal: str, draws: Edges, strategy: Strategy, workers: int) -> Measured:
    """Ask for every argument, after a run that does not count: it loads the kernels."""
    ask(graph(WARM), goal, draws[:1], strategy, workers, Laps())
    edges = graph(name)
    others, laps = Others(), Laps()
    answered, how = ask(edges, goal, draws, strategy, workers, laps)
    record = {"phase": "goals", "facts": sum(answered), "how": how} | laps.figures()
    record |= {"cpu_max_us": max(laps.cpu) * 1e6} | memory() | others.figures() | {"ccdf": ccdf(laps.seconds)}
    return record, answered


def evaluated(name: str, goal: str, draws: Edges, workers: int) -> Measured:
    """Evaluate in full, after a run that does not count."""
    full(graph(WARM), goal, draws[:0], workers, Laps())
    edges = graph(name)
    others, whole = Others(), Laps()
    counts = full(edges, goal, draws, workers, whole)
    record: dict[str, Any] = {"phase": "full"} | whole.total() | memory() | others.figures()
    return record, counts


def prepared(edges: Edges, workers: int) -> tk.Engine:
    """An engine with the edges loaded and the rules registered."""
    engine = tk.Engine(workers, autocommit=False)
    table = engine.create_table("edge", {"x": tk.Int, "y": tk.Int}, mode="set")
    table.insert(edges)
    engine.advance()
    for rules in RULES.values():
        engine.datalog(rules)
    return engine


def ask(edges: Edges, goal: str, draws: Edges, strategy: Strategy, workers: int, laps: Laps) -> tuple[list[int], str]:
    """Ask for one argument after the other, each alone, by changes of one query's arguments; how many answers each had."""
    counts = []
    with prepared(edges, workers) as engine:
        query = engine.query(GOALS[goal], strategy=strategy)
        query.insert(x=-1)  # a node that is not there, once beforehand, so that the dataflow and its indexes are
        engine.advance()
        query.remove(x=-1)
        engine.advance()
        engine.settle()
        for argument in draws.tolist():
            query.insert(x=argument)
            with laps.lap():
                engine.advance()
                engine.settle()
            counts.append(query.snapshot().num_rows)
            query.remove(x=argument)
            engine.advance()
            engine.settle()
        return counts, query.explain().split(":", 1)[1].split(",")[0].strip()


def full(edges: Edges, goal: str, draws: Edges, workers: int, laps: Laps) -> list[int]:
    """Evaluate the predicate in full, and count the facts for each argument."""
    with prepared(edges, workers) as engine:
        predicate = goal.split("-")[0]
        with laps.lap():
            view = engine.view(predicate)
            engine.settle()
        column = view.snapshot().columns[1 if goal == "tc-to" else 0].to_numpy()
        found = np.bincount(column, minlength=int(edges.max()) + 1)
        return [int(found[argument]) for argument in draws]


def plot(records: list[Record], path: Path) -> None:
    """Medians and maxima of the goals beside the full evaluation."""
    names = list(dict.fromkeys(f"{record['goal']}\n{record['graph']}" for record in records))

    def values(phase: str, key: str, scale: float) -> list[float | None]:
        found = {f"{r['goal']}\n{r['graph']}": r[key] / scale for r in records if r["phase"] == phase}
        return [found.get(name) for name in names]

    size = (max(7.6, 1.2 * len(names)), 4.8)
    with figure(path, 1, "Figure 8: goals with one argument, beside full evaluation", size) as (axes,):
        series = {
            "median": values("goals", "p50_us", 1e6),
            "maximum": values("goals", "max_us", 1e6),
            "full evaluation": values("full", "seconds", 1.0),
        }
        draw_bars(axes, names, series, "seconds")
        axes.tick_params(axis="x", labelsize=7)
