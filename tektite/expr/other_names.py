"""What other libraries call the methods of expressions: an unknown name is answered with ours."""

from __future__ import annotations

METHODS = {
    "apply": "Collection.map_batches(function)",
    "asc": "descending=False of sort(...) and over(...)",
    "astype": "cast(type)",
    "clip": "tk.least(tk.greatest(x, low), high)",
    "desc": "descending=True of sort(...) and over(...)",
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

TEXT_METHODS = {
    "cat": "join(separator), or + of texts",
    "concat": "join(separator), or + of texts",
    "count_matches": "matches(pattern)",
    "find": "position(part)",
    "isdigit": "matches('^[0-9]+$')",
    "ljust": "pad_end(length)",
    "replace": "replace_all(old, new)",
    "rjust": "pad_start(length)",
    "split": "split_part(separator, part)",
    "strptime": "to_date() or to_datetime()",
    "to_integer": "col(...).cast(int)",
    "to_timestamp": "to_datetime()",
}
DATE_METHODS = {
    "dayofweek": "weekday()",
    "dayofyear": "ordinal_day()",
    "floor": "truncate(unit)",
    "normalize": "truncate('day')",
    "offset_by": "add_days(days), add_months(months), or + timedelta(...)",
    "round": "truncate(unit)",
    "timestamp": "epoch()",
    "total_days": "the difference of two dates, which is in days",
    "total_seconds": "the difference of two timestamps, which is in microseconds",
    "weekofyear": "week()",
}


def advice(name: str, names: dict[str, str]) -> str:
    """What to write in place of a name; empty if nobody knows."""
    return f"; use {names[name]}" if name in names else ""
