"""TPC-H: the data of tpchgen-cli, and the 22 queries of the standard's text with their validation parameters."""

from benchmarks.tpch.data import KEYS, RELATIONS, load, round_robin
from benchmarks.tpch.queries import QUERIES, Query, query, read_by, schema

__all__ = ["KEYS", "QUERIES", "RELATIONS", "Query", "load", "query", "read_by", "round_robin", "schema"]
