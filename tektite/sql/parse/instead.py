"""Advice for unsupported syntax: the supported way to write it, where there is one."""

from __future__ import annotations

STATEMENTS = {
    "ANALYZE": "plans follow what tables and indexes hold: there is nothing to do",
    "ATTACH": "an engine has one storage: COPY, Parquet and sources bring in what others hold",
    "CHECKPOINT": "a commit is durable: there is nothing to do",
    "COMMENT": "what is there to know about a table goes into the program that makes it",
    "INSTALL": "there are no extensions",
    "LISTEN": "SUBSCRIBE tells of the changes of a table, view or query",
    "LOAD": "there are no extensions",
    "MERGE": "INSERT ... ON CONFLICT (key) DO UPDATE changes rows or inserts them, DELETE ... USING removes them",
    "NOTIFY": "INSERT into a table that others SUBSCRIBE to",
    "PRAGMA": "DESCRIBE lists columns, and SET changes settings",
    "SUMMARIZE": "SELECT count(*), min(x), max(x), avg(x) FROM t says it of a column",
    "USE": "SET search_path = name says where names are looked for",
    "DETACH": "engine.close()",
    "REINDEX": "indexes are merged as rows come: there is nothing to do",
    "REFRESH": "a view follows its tables by itself: there is nothing to do",
    "LOCK": "BEGIN ISOLATION LEVEL SERIALIZABLE",
    "CACHE": "CREATE MATERIALIZED VIEW, which keeps the answer",
    "EXPORT": "COPY t TO 'file.parquet', one for each",
    "IMPORT": "COPY t FROM 'file.parquet', one for each",
    "DO": "the statements, one after the other, or a program",
    "CALL": "the statements, one after the other, or a program",
    "VACUUM": "versions that nobody reads go by themselves; `tektite storage vacuum` makes files smaller",
}
"""Statements by their first word."""
NO_NUMBERS = (
    "no column numbers its rows by itself: declare it as an integer and insert the numbers, or ids that programs make, such as "
    "UUIDs; in SQLAlchemy, Column(..., autoincrement=False)"
)
"""Advice for SERIAL and GENERATED ... AS IDENTITY."""
CREATED = {
    "DATABASE": "an engine is one database: CREATE SCHEMA gives names two parts",
    "EXTENSION": "there are no extensions",
    "FUNCTION": "CREATE VIEW names a query, and Python's functions take part by `collection.map`",
    "MACRO": "CREATE VIEW names a query",
    "SEQUENCE": "INSERT ... SELECT coalesce(max(id), 0) + 1 FROM t gives the next number, in one statement",
    "TRIGGER": "a materialized view follows its tables, and SUBSCRIBE tells a program of changes",
    "TYPE": "CHECK (x IN ('a', 'b')) says which values a column has, STRUCT(...) what its fields are",
}
"""Advice for kinds of objects that PostgreSQL can create and Tektite cannot."""
MODIFIERS = {
    "TEMP": "a table lives until DROP TABLE, and WITH names a query for one statement",
    "TEMPORARY": "a table lives until DROP TABLE, and WITH names a query for one statement",
    "UNLOGGED": "Engine() without storage= keeps everything in memory",
}
"""Words between CREATE and what is created."""
FUNCTIONS = {
    **dict.fromkeys(
        ("random", "rand", "uuid", "gen_random_uuid", "setseed", "nextval", "currval"),
        "a view would be another one each time: insert the value that the program makes, or use hash64(id)",
    ),
    "collate": "upper(x) or lower(x) compares without case",
    "approx_count_distinct": "count(DISTINCT x) is exact",
    "pg_sleep": "a statement does not wait",
    "to_char": "strftime(moment, '%Y-%m-%d') shows a moment, and x::varchar a number",
    "to_date": "strptime(text, '%Y-%m-%d')::date reads one",
    "to_number": "text::decimal(18, 2) reads one",
    "age": "moment - moment is the time between them, and date_diff counts units",
    "date_sub": "date_diff counts the borders of units between two moments",
    "format": "|| and concat join texts",
    "printf": "|| and concat join texts",
    "pg_typeof": "typeof(x)",
    "regexp_match": "regexp_extract(text, pattern, group)",
    "to_map": "a struct {'a': 1} has named fields, and a JSON object any",
    "list_filter": "(SELECT array_agg(x) FROM unnest(list) AS e(x) WHERE ...)",
    "list_transform": "(SELECT array_agg(f(x)) FROM unnest(list) AS e(x))",
    **{f"list_{name}": f"(SELECT {name}(x) FROM unnest(list) AS e(x))" for name in ("sum", "avg", "min", "max", "count")},
    "list_aggregate": "(SELECT sum(x) FROM unnest(list) AS e(x))",
    "flatten": "(SELECT array_agg(x) FROM unnest(lists) AS e(l), unnest(l) AS f(x))",
    "unnest": "unnest stands alone in SELECT, or in FROM",
    "generate_series": "it stands in FROM: FROM generate_series(1, 3) AS g(n)",
    "product": "round(exp(sum(ln(x)))) of positive numbers",
    "histogram": "GROUP BY x with count(*)",
    "approx_quantile": "quantile_cont(x, 0.5) is exact",
    "array_cat": "list_concat(a, b)",
    "date_format": "strftime(x, '%Y-%m-%d')",
    "explode": "unnest(list)",
    "from_unixtime": "to_timestamp(x)",
    "hash": "hash64(x)",
    "list_apply": "unnest(list) in a subquery, and array_agg",
    "max": "top rows are QUALIFY row_number() OVER (ORDER BY x DESC) <= n",
    "min": "top rows are QUALIFY row_number() OVER (ORDER BY x) <= n",
    "range": "FROM range(n)",
    "sequence": "FROM range(n)",
    "strlen": "octet_length(x) of a blob, or length(x) in characters",
    "struct_insert": "struct_pack(a := s.a, b := x)",
    "map": "a struct {'a': 1}, or JSON",
    "map_from_entries": "a struct {'a': 1}, or JSON",
    "unix_timestamp": "epoch(x)",
    "read_csv": "COPY t FROM 'file.csv'",
    "read_csv_auto": "COPY t FROM 'file.csv'",
    "read_json": "COPY t FROM 'file.csv', or table.insert(rows) of Python",
    "read_parquet": "COPY t FROM 'file.parquet'",
}  # fmt: skip
"""Functions and aggregates by their name."""
CLAUSES = {
    "TABLESAMPLE": "WHERE hash64(id) % 10 = 0 takes the same tenth of the rows each time",
    "FOR UPDATE": "a transaction that another one was faster than is refused at its COMMIT",
    "GLOB": "LIKE, or a regular expression with regexp_matches",
    "POSITIONAL JOIN": "a join by row_number() OVER (ORDER BY ...) of both sides",
    "a subscript of string": "substring(x, start, length)",
    "BY NAME in INSERT": "INSERT INTO t (a, b) SELECT ... names the columns",
    "LIMIT BY": "QUALIFY row_number() OVER (PARTITION BY x ORDER BY y) <= n",
    "BETWEEN SYMMETRIC": "x BETWEEN least(a, b) AND greatest(a, b)",
    "CROSS APPLY": "CROSS JOIN LATERAL (SELECT ...) AS x",
    "OUTER APPLY": "LEFT JOIN LATERAL (SELECT ...) AS x ON true",
    "a step in a slice of a list": "a list of the places that you want, as in [l[1], l[3]]",
    "LIKE in CREATE TABLE": "CREATE TABLE name AS SELECT * FROM other LIMIT 0 makes a table with the same columns",
    "ORDER BY in DELETE": "DELETE FROM t WHERE id IN (SELECT id FROM t ORDER BY ... LIMIT n)",
    "ORDER BY in UPDATE": "UPDATE t SET ... WHERE id IN (SELECT id FROM t ORDER BY ... LIMIT n)",
    "OVERWRITE in INSERT": "TRUNCATE t and INSERT INTO t, in one transaction",
    "INTO": "CREATE TABLE name AS SELECT ...",
    "LATERAL VIEW": "CROSS JOIN LATERAL unnest(list) AS e(x)",
    "CONNECT BY": "WITH RECURSIVE",
    "GROUP BY TOTALS": "GROUP BY ROLLUP (...)",
    "a subquery in LIMIT": "QUALIFY row_number() OVER (ORDER BY x) <= (SELECT ...)",
    "a list comprehension": "(SELECT array_agg(f(x)) FROM unnest(list) AS e(x) WHERE ...)",
    "ORDER BY in the arguments": "most aggregates take ORDER BY behind their last argument",
    "OVERLAPS": "a.begin < b.end AND b.begin < a.end",
}
"""Clauses and operators by their word."""


def instead(table: dict[str, str], word: str) -> str:
    """The advice to append to "is not supported"; empty if there is none.

    >>> instead(STATEMENTS, "LISTEN")
    ': SUBSCRIBE tells of the changes of a table, view or query'
    >>> instead(STATEMENTS, "SELECTED")
    ''
    """
    found = table.get(word.lower() if table is FUNCTIONS else word)
    if found is None and table is FUNCTIONS:
        found = "Collection.map_batches(function) of Python computes what SQL has no function for"
    return "" if found is None else f": {found}"
