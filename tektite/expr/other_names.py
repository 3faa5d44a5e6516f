"""What other libraries call the methods of expressions: an unknown name is answered with ours."""

from __future__ import annotations

METHODS = {
    "apply": "Collection.map_batches(function)",
    "asc": "order_by= with descending=False",
    "astype": "cast(type)",
    "clip": "tk.least(tk.greatest(x, low), high)",
    "desc": "order_by= with descending=True",
    "dense_rank": "tk.dense_rank().over(order_by=...)",
    "fillna": "fill_null(value)",
    "is_between": "between(low, high)",
    "isna": "is_null()",
    "isnull": "is_null()",
    "is_not_nan": "is_not_null()",
    "len": "count(), or .str.len() of a text",
    "log": "ln()",
    "map_elements": "Collection.map_batches(function)",
    "name": "alias(name)",
    "notna": "is_not_null()",
    "notnull": "is_not_null()",
    "nunique": "n_unique()",
    "pow": "power(exponent), or **",
    "rank": "tk.rank().over(order_by=...)",
    "replace_strict": "tk.when(...).then(...)",
    "rolling_max": "max().over(order_by=..., rows=(-2, 0))",
    "rolling_mean": "mean().over(order_by=..., rows=(-2, 0))",
    "rolling_min": "min().over(order_by=..., rows=(-2, 0))",
    "rolling_sum": "sum().over(order_by=..., rows=(-2, 0))",
    "row_number": "tk.row_number().over(order_by=...)",
    "sort_by": "first(order_by=...) or last(order_by=...)",
    "substr": "substring(start, length)",
    "to_date": ".str.to_date()",
    "where": "filter(condition), before an aggregate",
}


def advice(name: str, names: dict[str, str]) -> str:
    """What to write in place of a name; empty if nobody knows."""
    return f"; use {names[name]}" if name in names else ""
