"""What DuckDB, PostgreSQL and Spark have and Tektite has not: what to write instead, behind "is not supported"."""

from __future__ import annotations

import re

_FUNCTION = "Collection.map_batches(function) of Python computes what SQL has no function for"
_CALLED = re.compile(r"(?:window )?(?:function|aggregate|table function) \"?(\w+)")

FUNCTIONS = {
    "approx_count_distinct": "count(DISTINCT x) is exact",
    "approx_quantile": "quantile_cont(x, 0.5) is exact",
    "age": "a - b is an interval",
    "array_cat": "list_concat(a, b)",
    "cbrt": "x ** (1.0 / 3)",
    "date_format": "strftime(x, '%Y-%m-%d')",
    "date_sub": "x - INTERVAL 1 DAY, or date_diff('day', a, b)",
    "degrees": "x * 180 / 3.141592653589793",
    "radians": "x * 3.141592653589793 / 180",
    "explode": "unnest(list)",
    "flatten": "unnest(list) in a subquery, and array_agg",
    "format": "concat('a', x), or a || b",
    "printf": "concat('a', x), or a || b",
    "from_unixtime": "to_timestamp(x)",
    "gen_random_uuid": "uuid4() of Python, as a parameter",
    "uuid": "uuid4() of Python, as a parameter",
    "random": "hash64(x) % 100 is the same every time",
    "rand": "hash64(x) % 100 is the same every time",
    "hash": "hash64(x)",
    "md5": "hash64(x), for a key",
    "sha256": "hash64(x), for a key",
    "histogram": "SELECT x, count(*) ... GROUP BY x",
    "initcap": "upper(left(x, 1)) || lower(substring(x, 2))",
    "isnan": "x = 'nan'::double, since a NaN equals itself",
    "isinf": "abs(x) = 'inf'::double",
    "isfinite": "abs(x) < 'inf'::double",
    "list_sum": "unnest(list) in a subquery, and sum",
    "list_avg": "unnest(list) in a subquery, and avg",
    "list_min": "list_sort(x)[1]",
    "list_max": "list_reverse_sort(x)[1]",
    "list_aggregate": "unnest(list) in a subquery, and the aggregate",
    "list_transform": "unnest(list) in a subquery, and array_agg",
    "list_filter": "unnest(list) in a subquery, and array_agg",
    "list_apply": "unnest(list) in a subquery, and array_agg",
    "make_timestamp": "make_date(y, m, d) + make_interval(hours => h)",
    "max": "top rows are QUALIFY row_number() OVER (ORDER BY x DESC) <= n",
    "min": "top rows are QUALIFY row_number() OVER (ORDER BY x) <= n",
    "pi": "3.141592653589793",
    "product": "exp(sum(ln(x))), of numbers above 0",
    "range": "FROM range(n)",
    "generate_series": "FROM generate_series(a, b)",
    "regr_slope": "covar_pop(y, x) / var_pop(x)",
    "regr_intercept": "avg(y) - covar_pop(y, x) / var_pop(x) * avg(x)",
    "regr_r2": "corr(y, x) ** 2",
    "sequence": "FROM range(n)",
    "strlen": "octet_length(x) of a blob, or length(x) in characters",
    "struct_insert": "struct_pack(a := s.a, b := x)",
    "to_map": "a struct {'a': 1}, or JSON",
    "map": "a struct {'a': 1}, or JSON",
    "map_from_entries": "a struct {'a': 1}, or JSON",
    "to_char": "strftime(x, '%Y-%m-%d')",
    "to_date": "strptime(x, '%d.%m.%Y')::date",
    "translate": "replace(x, 'a', 'b'), one after the other",
    "unix_timestamp": "epoch(x)",
    "read_csv": "COPY t FROM 'file.csv'",
    "read_csv_auto": "COPY t FROM 'file.csv'",
    "read_json": "COPY t FROM 'file.csv', or table.insert(rows) of Python",
    "read_parquet": "COPY t FROM 'file.parquet'",
}
"""Functions by name."""
WORDS = {
    "a subscript of string": "substring(x, start, length)",
    "POSITIONAL JOIN": "join row_number() OVER (ORDER BY ...) of both sides",
    "TABLESAMPLE": "WHERE hash64(x) % 100 = 0 takes the same part every time",
    "GLOB": "LIKE, SIMILAR TO or regexp_matches(x, pattern)",
    "SUMMARIZE": "SELECT count(*), min(COLUMNS(*)), max(COLUMNS(*)) FROM t",
    "BY NAME in INSERT": "name the columns: INSERT INTO t (a, b) SELECT ...",
    "CREATE TEMP": "WITH name AS (...), or CREATE VIEW; DROP TABLE removes a table",
    "CREATE TEMPORARY": "WITH name AS (...), or CREATE VIEW; DROP TABLE removes a table",
    "CREATE TYPE": "a varchar with CHECK (x IN ('a', 'b')), or a STRUCT",
    "CREATE SEQUENCE": "numbers from the program, or row_number() OVER (ORDER BY ...)",
    "CREATE MACRO": "CREATE VIEW, PREPARE name AS ..., or the expression itself",
    "CREATE FUNCTION": "CREATE VIEW, PREPARE name AS ..., or Collection.map_batches(function) of Python",
    "CREATE TRIGGER": "CREATE MATERIALIZED VIEW, and SUBSCRIBE",
    "MERGE": "INSERT ... ON CONFLICT DO UPDATE, and UPDATE and DELETE in one transaction",
    "ATTACH": "tk.Engine(storage='folder') opens one; COPY brings data from files",
    "DETACH": "engine.close()",
    "PRAGMA": "DESCRIBE t, SHOW TABLES, or SELECT ... FROM information_schema.columns",
    "INSTALL": "nothing is to be installed",
    "LOAD": "nothing is to be loaded",
    "VACUUM": "nothing is to be done: indexes are merged as rows come",
    "ANALYZE": "nothing is to be done: plans follow what the data is like",
    "CHECKPOINT": "engine.sync() waits until what was written is stored",
    "REINDEX": "nothing is to be done: indexes are merged as rows come",
    "USE": "SET search_path = name",
    "REFRESH": "nothing is to be done: a view follows its tables by itself",
    "LOCK": "BEGIN ISOLATION LEVEL SERIALIZABLE",
    "CACHE": "CREATE MATERIALIZED VIEW, which keeps the answer",
    "EXPORT": "COPY t TO 'file.parquet', one for each",
    "IMPORT": "COPY t FROM 'file.parquet', one for each",
    "DO": "the statements, one after the other, or a program",
    "CALL": "the statements, one after the other, or a program",
}
"""Statements and clauses, by how they begin."""


def instead(message: str) -> str:
    """What to write in place of what an error says is not supported; empty if the error is another, or says it itself.

    >>> instead("function hash is not supported")
    ': write hash64(x)'
    """
    if not message.endswith("is not supported"):
        return ""
    function = _CALLED.match(message)
    if function is not None:
        found = FUNCTIONS.get(function[1].lower())
        return f": write {found}" if found else f": {_FUNCTION}"
    known = next((advice for words, advice in WORDS.items() if message.startswith((f"{words} ", f"{words}("))), None)
    return "" if known is None else f": {known}" if known.startswith("nothing ") else f": write {known}"
