"""Tasks of `graph_tasks` in GraphX, which comes with Spark: reach by its shortest paths, wcc by its connected components.

GraphX is called through Java: no row crosses to Python. The graph is read and cached before anything is timed, so a figure is the
algorithm alone. GraphX has no paths with weights, and keeps no answer up to date: after a change it computes anew.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.on_spark.common import answered, opened
from benchmarks.workloads import Words

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GRAPHX = ("reach", "wcc")
"""Tasks that GraphX has."""

BLOCK = 1 << 18
"""Edges that are written at once."""


def by_graphx(src: Words, dst: Words, tasks: Sequence[str], workers: int, memory: str) -> dict[str, tuple[float, int]]:
    """For each task the seconds of the better of two runs, and the rows of the answer."""
    found = {}
    with tempfile.TemporaryDirectory() as folder, opened(f"local[{workers}]", memory) as spark:
        graph = _loaded(spark, _written(src, dst, folder), workers)
        for task in tasks:
            runs = [answered(partial(_computed, spark, graph, task)) for _ in range(2)]
            found[task] = min(seconds for seconds, _ in runs), _rows(spark, runs[0][1], str(Path(folder) / task))
    return found


def _written(src: Words, dst: Words, folder: str) -> str:
    """A file with an edge in each line."""
    file = Path(folder) / "edges"
    with file.open("w") as out:
        for start in range(0, len(src), BLOCK):
            part = slice(start, start + BLOCK)
            out.write("".join([f"{a} {b}\n" for a, b in zip(src[part].tolist(), dst[part].tolist(), strict=True)]))
    return str(file)


def _loaded(spark: SparkSession, file: str, workers: int) -> Any:
    """The graph in memory."""
    java: Any = spark._jvm
    level = java.org.apache.spark.storage.StorageLevel.MEMORY_ONLY()
    context = spark.sparkContext._jsc.sc()
    graph = java.org.apache.spark.graphx.GraphLoader.edgeListFile(context, file, False, 2 * workers, level, level)
    graph.edges().count()
    graph.vertices().count()
    return graph


def _computed(spark: SparkSession, graph: Any, task: str) -> Any:
    """The vertices of an answer, all of them computed."""
    java: Any = spark._jvm
    number = java.scala.reflect.ClassTag.Int()
    library = java.org.apache.spark.graphx.lib
    if task == "wcc":
        vertices = library.ConnectedComponents.run(graph, number, number).vertices()
    else:
        root = java.java.util.List.of(0)
        landmarks = java.scala.jdk.javaapi.CollectionConverters.asScala(root).toSeq()
        vertices = library.ShortestPaths.run(
            graph.reverse(), landmarks, number
        ).vertices()  # it finds paths *to* a node
    vertices.count()
    return vertices


def _rows(spark: SparkSession, vertices: Any, folder: str) -> int:
    """How many nodes have an answer: a label, or a map of distances that is not empty."""
    vertices.saveAsTextFile(folder)
    return spark.read.text(folder).filter("value NOT LIKE '%Map()%'").count()
