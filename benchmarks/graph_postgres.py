"""The queries of Figure 6 in PostgreSQL (Debian's package), on the same graph: prepared statements over a table with two indexes.

Each question is one statement, and `many` questions are asked one after the other by one client, as PostgreSQL answers them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.server import postgres_programs, postgres_server
from benchmarks.workloads import bfs_edges

QUERIES = {
    "look-up": "SELECT value FROM node_values WHERE node = %s",
    "1-hop": "SELECT dst FROM edges WHERE src = %s",
    "2-hop": "SELECT b.dst FROM edges a JOIN edges b ON b.src = a.dst WHERE a.src = %s",
    "4-path": """
        WITH one AS (SELECT DISTINCT dst AS node FROM edges WHERE src = %(src)s),
             two AS (SELECT DISTINCT edges.dst AS node FROM one JOIN edges ON edges.src = one.node),
             back AS (SELECT DISTINCT src AS node FROM edges WHERE dst = %(dst)s),
             more AS (SELECT DISTINCT edges.src AS node FROM back JOIN edges ON edges.dst = back.node)
        SELECT CASE
            WHEN %(src)s = %(dst)s THEN 0
            WHEN EXISTS (SELECT FROM one WHERE node = %(dst)s) THEN 1
            WHEN EXISTS (SELECT FROM two WHERE node = %(dst)s) THEN 2
            WHEN EXISTS (SELECT FROM two JOIN back USING (node)) THEN 3
            WHEN EXISTS (SELECT FROM two JOIN more USING (node)) THEN 4 END""",
}
"""A shortest path of at most four edges is found from both ends, as the standing query finds it."""


def measured(
    nodes: int, edges: int, concurrent: Sequence[int], repetitions: int, draw: Any
) -> Iterator[tuple[str, int, list[float]]]:
    """For each kind and number of questions, the seconds of each repetition; nothing where PostgreSQL is not installed. `draw`
    gives the arguments of so many questions of a kind.
    """
    if postgres_programs() is None:
        return
    import psycopg

    with postgres_server() as url, psycopg.connect(url, autocommit=True) as client:
        client.execute("CREATE TABLE edges (src bigint, dst bigint)")
        client.execute("CREATE TABLE node_values (node bigint, value bigint)")
        with client.cursor().copy("COPY edges FROM STDIN") as copy:
            for start in range(0, edges, 1 << 18):
                src, dst = bfs_edges(nodes, start, min(start + (1 << 18), edges))
                copy.write("".join([f"{a}\t{b}\n" for a, b in zip(src.tolist(), dst.tolist(), strict=True)]))
        with client.cursor().copy("COPY node_values FROM STDIN") as copy:
            for start in range(0, nodes, 1 << 18):
                copy.write("".join([f"{n}\t{3 * n}\n" for n in range(start, min(start + (1 << 18), nodes))]))
        for index in ("edges (src, dst)", "edges (dst, src)", "node_values (node, value)"):
            client.execute(f"CREATE INDEX ON {index}")
        client.execute("VACUUM ANALYZE")
        for kind, query in QUERIES.items():
            for many in concurrent:
                seconds = []
                for turn in range(repetitions + 3):
                    asked = draw(kind, many)
                    start_at = time.perf_counter()
                    for row in asked.tolist():
                        arguments = {"src": row[0], "dst": row[1]} if kind == "4-path" else (row[0],)
                        client.execute(query, arguments, prepare=True).fetchall()
                    if turn >= 3:
                        seconds.append(time.perf_counter() - start_at)
                yield kind, many, seconds
