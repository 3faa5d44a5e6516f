"""Graphs: algorithms, pattern queries and questions with arguments that are kept up to date while nodes and edges come and go.

Written in the public interface of `tektite` alone, as any program could be. A function of this package takes a `Graph` and
returns a collection: install it, join it, or write SQL over its view. All of them look edges up in the same two indexes, by
source and by target.

graph          Graph: edges and nodes as collections, the indexes of them, and steps along edges
checks         edges and nodes that are refused: dangling ends, negative weights, loops, NULL
rows           rows in whatever form a program has them, as Arrow tables
sources        graphs from data frames, NetworkX, Parquet, edge lists and Spark
neighbours     neighbours, degrees, neighbourhoods of k hops
paths          reachability, breadth-first search, shortest paths
components     weakly and strongly connected components
levels         topological levels, and whether a graph has a cycle
ranks          PageRank, for the whole graph and for each of some sources
cores          k-cores
triangles      triangles and clustering coefficients
communities    label propagation
property_graph  PropertyGraph: nodes and edges of several kinds, each with properties
pattern/       pattern queries: the MATCH of SQL/PGQ
questions      look-ups, walks and short paths for queries with arguments
greedy         colouring, matching: what takes one node or edge after the other
"""

from typing import NoReturn

from tektite import ArgumentQuery
from tektite.graph.communities import label_propagation
from tektite.graph.components import scc, wcc
from tektite.graph.cores import k_core
from tektite.graph.graph import Graph
from tektite.graph.greedy import colouring, maximal_matching
from tektite.graph.levels import acyclic, levels
from tektite.graph.neighbours import degree, k_hop, neighbours
from tektite.graph.paths import bfs, reach, sssp
from tektite.graph.pattern.graph_table import graph_table
from tektite.graph.property_graph import EdgeTable, NodeTable, PropertyGraph
from tektite.graph.questions import look_up, short_paths, walks
from tektite.graph.ranks import pagerank, personalised_pagerank
from tektite.graph.sources import from_edge_list, from_frame, from_networkx, from_parquet, from_spark
from tektite.graph.triangles import clustering, triangles

__all__ = [
    "ArgumentQuery",
    "EdgeTable",
    "Graph",
    "NodeTable",
    "PropertyGraph",
    "acyclic",
    "bfs",
    "clustering",
    "colouring",
    "degree",
    "from_edge_list",
    "from_frame",
    "from_networkx",
    "from_parquet",
    "from_spark",
    "graph_table",
    "k_core",
    "k_hop",
    "label_propagation",
    "levels",
    "look_up",
    "maximal_matching",
    "neighbours",
    "pagerank",
    "personalised_pagerank",
    "reach",
    "scc",
    "short_paths",
    "sssp",
    "triangles",
    "walks",
    "wcc",
]

OTHER_NAMES = {
    "clustering_coefficient": "graph.clustering(g)",
    "communities": "graph.label_propagation(g, rounds)",
    "connected_components": "graph.wcc(g)",
    "core_number": "graph.k_core(g, k)",
    "dijkstra": "graph.sssp(g, sources)",
    "label_propagation_communities": "graph.label_propagation(g, rounds)",
    "neighbors": "graph.neighbours(g)",
    "page_rank": "graph.pagerank(g)",
    "personalized_pagerank": "graph.personalised_pagerank(g, sources)",
    "shortest_path": "graph.sssp(g, sources), or graph.bfs(g, sources) without weights",
    "shortest_paths": "graph.sssp(g, sources), or graph.bfs(g, sources) without weights",
    "strongly_connected_components": "graph.scc(g)",
    "topological_sort": "graph.levels(g)",
    "triangle_count": "graph.triangles(g)",
    "weakly_connected_components": "graph.wcc(g)",
}
"""Names of algorithms in other libraries, each with the call to write here."""


def __getattr__(name: str) -> NoReturn:
    instead = f"; use {OTHER_NAMES[name]}" if name in OTHER_NAMES else ""
    raise AttributeError(f"module 'tektite.graph' has no attribute {name!r}{instead}")
