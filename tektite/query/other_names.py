"""What other libraries call the methods of collections: an unknown name is answered with ours."""

from __future__ import annotations

METHODS = {
    "aggregate": "agg(...)",
    "apply": "map_batches(function)",
    "assign": "with_columns(...)",
    "columns": "schema.names",
    "difference": "except_(other)",
    "drop_duplicates": "unique()",
    "dropna": "drop_nulls(...)",
    "dtypes": "schema.types",
    "exceptAll": "except_(other, distinct=False)",
    "extend": "union(other)",
    "fill_null": "with_columns(x=tk.col('x').fill_null(value))",
    "fillna": "with_columns(x=tk.col('x').fill_null(value))",
    "groupBy": "group_by(...)",
    "groupby": "group_by(...)",
    "intersectAll": "intersect(other, distinct=False)",
    "join_where": "join(other, on=condition)",
    "melt": "union(...) of one select for each column",
    "merge": "join(other, on=...)",
    "minus": "except_(other)",
    "mutate": "with_columns(...)",
    "nlargest": "top_k(k, by=...)",
    "nsmallest": "bottom_k(k, by=...)",
    "orderBy": "sort(...)",
    "order_by": "sort(...)",
    "query": "filter(...)",
    "sort_values": "sort(...)",
    "subtract": "except_(other)",
    "unionAll": "union(other)",
    "union_all": "union(other)",
    "value_counts": "group_by(column).count()",
    "where": "filter(...)",
    "withColumn": "with_columns(...)",
    "with_column": "with_columns(...)",
}

OF_GROUPS = {
    **{
        kind: f"agg(tk.{kind}('x'))"
        for kind in ("sum", "mean", "min", "max", "median", "std", "var", "n_unique", "any", "all")
    },
    "aggregate": "agg(...)",
    "apply": "Collection.reduce(function, by=...)",
    "first": "agg(tk.first('x', order_by=...))",
    "having": "agg(...).filter(...)",
    "head": "Collection.top_k(k, by=..., per=...)",
    "last": "agg(tk.last('x', order_by=...))",
    "len": "count()",
    "map_groups": "Collection.reduce(function, by=...)",
    "size": "count()",
    "transform": "select(...) with .over(...)",
}
