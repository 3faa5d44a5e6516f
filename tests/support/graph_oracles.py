"""What the algorithms of `tektite.graph` come to, by NetworkX where it has them, and a page of plain Python where it has not.

An oracle takes a graph of NetworkX and the sources that are in it, and returns the rows of the answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import networkx as nx

Answer = set[tuple[Any, ...]]
Oracle = Callable[[Any, list[int]], Answer]
DAMPING = Fraction(17, 20)


def neighbours(graph: Any, _: list[int]) -> Answer:
    pairs = {(u, v) for u, v in graph.edges}
    return pairs if graph.is_directed() else pairs | {(v, u) for u, v in pairs}


def degree(graph: Any, _: list[int]) -> Answer:
    return set(graph.out_degree if graph.is_directed() else graph.degree)


def in_degree(graph: Any, _: list[int]) -> Answer:
    return set(graph.in_degree if graph.is_directed() else graph.degree)


def reach(graph: Any, sources: list[int]) -> Answer:
    return {(node,) for source in sources for node in {source, *nx.descendants(graph, source)}}


def reach_each(graph: Any, sources: list[int]) -> Answer:
    return {(source, node) for source in sources for node in {source, *nx.descendants(graph, source)}}


def bfs(graph: Any, sources: list[int]) -> Answer:
    return (
        set(nx.multi_source_dijkstra_path_length(graph, set(sources), weight=lambda *_: 1).items())
        if sources
        else set()
    )


def bfs_back(graph: Any, sources: list[int]) -> Answer:
    return bfs(graph.reverse() if graph.is_directed() else graph, sources)


def k_hop(graph: Any, sources: list[int]) -> Answer:
    near = {source: nx.single_source_shortest_path_length(graph, source, cutoff=2) for source in sources}
    return {(source, node, far) for source, found in near.items() for node, far in found.items()}


def sssp(graph: Any, sources: list[int]) -> Answer:
    return set(nx.multi_source_dijkstra_path_length(graph, set(sources)).items()) if sources else set()


def sssp_each(graph: Any, sources: list[int]) -> Answer:
    return {(s, node, far) for s in sources for node, far in nx.single_source_dijkstra_path_length(graph, s).items()}


def wcc(graph: Any, _: list[int]) -> Answer:
    return {(node, min(found)) for found in nx.connected_components(graph.to_undirected()) for node in found}


def scc(graph: Any, _: list[int]) -> Answer:
    parts = nx.strongly_connected_components(graph) if graph.is_directed() else nx.connected_components(graph)
    return {(node, min(found)) for found in parts for node in found}


def levels(graph: Any, _: list[int]) -> Answer:
    cyclic = {
        n for part in nx.strongly_connected_components(graph) for n in part if len(part) > 1 or graph.has_edge(n, n)
    }
    behind = {later for node in cyclic for later in {node, *nx.descendants(graph, node)}}
    free = graph.subgraph(set(graph) - behind)
    return {(node, level) for level, found in enumerate(nx.topological_generations(free)) for node in found}


def acyclic(graph: Any, _: list[int]) -> Answer:
    return {(nx.is_directed_acyclic_graph(graph),)}


def k_core(graph: Any, _: list[int]) -> Answer:
    return {(node,) for node in nx.k_core(without_loops(graph), 2)}


def triangles(graph: Any, _: list[int]) -> Answer:
    pairs = without_loops(graph.to_undirected())
    return {tuple(sorted(clique)) for clique in nx.enumerate_all_cliques(pairs) if len(clique) == 3}


def clustering(graph: Any, _: list[int]) -> Answer:
    pairs = without_loops(graph.to_undirected())
    many, shares = nx.triangles(pairs), nx.clustering(pairs)
    return {(node, many[node], round(float(shares[node]), 9)) for node in pairs}


def label_propagation(graph: Any, _: list[int]) -> Answer:
    labels = {node: node for node in graph}
    ends = [end for u, v in graph.edges for end in {(u, v), (v, u)}]
    around: dict[int, list[int]] = {node: [v for u, v in ends if u == node] for node in graph}
    for _round in range(3):
        votes = {node: Counter(labels[v] for v in near) for node, near in around.items()}
        labels = {
            node: min((-many, label) for label, many in found.items())[1] if found else labels[node]
            for node, found in votes.items()
        }
    return set(labels.items())


def colouring(graph: Any, _: list[int]) -> Answer:
    pairs = without_loops(graph.to_undirected())
    return set(nx.greedy_color(pairs, strategy=lambda found, _: sorted(found)).items())


def maximal_matching(graph: Any, _: list[int]) -> Answer:
    taken: set[tuple[int, int]] = set()
    used: set[int] = set()
    for u, v in sorted((u, v) if graph.is_directed() else (min(u, v), max(u, v)) for u, v in graph.edges if u != v):
        if not {u, v} & used:
            taken.add((u, v))
            used |= {u, v}
    assert nx.is_maximal_matching(without_loops(graph.to_undirected()), taken)
    return taken


def pagerank(graph: Any, _: list[int]) -> Answer:
    units = 10**6
    ranks = least_ranks(graph, dict.fromkeys(graph, int((1 - DAMPING) * units)))
    total = sum(ranks.values())
    # The one without SciPy. The ranks of a graph are below the real ones by the documented loss, and so is their sum.
    by_networkx = nx.algorithms.link_analysis.pagerank_alg._pagerank_python
    real = by_networkx(graph, float(DAMPING), tol=1e-12, max_iter=1000, weight=None) if graph else {}
    loss = graph.number_of_edges() * (1 if graph.is_directed() else 2) / float(1 - DAMPING)
    assert sum(abs(ranks[node] - real[node] * total) for node in graph) <= 2 * loss
    return {(node, rank / units) for node, rank in ranks.items()}


def personalised_pagerank(graph: Any, sources: list[int]) -> Answer:
    units, answer = 1000, set()
    for source in sources:
        ranks = least_ranks(graph, {source: int((1 - DAMPING) * units)})
        answer |= {(source, node, rank / units) for node, rank in ranks.items() if rank}
    return answer


def least_ranks(graph: Any, start: dict[int, int]) -> dict[int, int]:
    """The least solution of the equations of PageRank, each share rounded down."""
    arcs = list(graph.edges if graph.is_directed() else graph.to_directed().edges)
    out = Counter(u for u, _ in arcs)
    ranks: dict[int, int] = {}
    while True:
        found = Counter(start)
        for u, v in arcs:
            found[v] += ranks.get(u, 0) * DAMPING.numerator // (out[u] * DAMPING.denominator)
        if found == ranks:
            return ranks
        ranks = dict(found)


def without_loops(graph: Any) -> Any:
    found = graph.copy()
    found.remove_edges_from(list(nx.selfloop_edges(found)))
    return found
