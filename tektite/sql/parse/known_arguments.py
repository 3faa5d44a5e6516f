"""What of sqlglot's trees is understood: an argument of a node that is not listed here is refused, never ignored."""

from __future__ import annotations

from sqlglot import exp

from tektite.errors import UnsupportedError
from tektite.sql.parse.places import StatementText

CALLED = {"sample": "TABLESAMPLE", "pivots": "PIVOT", "locks": "FOR UPDATE", "laterals": "LATERAL VIEW", "into": "INTO"}
"""What is written where the parser has a word of its own."""
PLAIN = frozenset({"this", "expression", "expressions"})
ARGUMENTS: dict[type[exp.Expr], frozenset[str]] = {
    exp.Literal: frozenset({"is_string"}),
    exp.Alias: frozenset({"alias"}),
    exp.Column: frozenset({"table", "db", "catalog"}),
    exp.Cast: frozenset({"to"}),
    exp.TryCast: frozenset({"to", "safe"}),
    exp.Case: frozenset({"ifs", "default"}),
    exp.If: frozenset({"true", "false"}),
    exp.Between: frozenset({"low", "high"}),
    exp.In: frozenset({"query"}),
    exp.Interval: frozenset({"unit"}),
    exp.Like: frozenset({"negate"}),
    exp.ILike: frozenset({"negate"}),
    exp.DPipe: frozenset({"safe"}),
    exp.Div: frozenset({"typed", "safe"}),
    exp.Window: frozenset({"partition_by", "order", "spec", "alias", "over"}),
    exp.Subquery: frozenset({"alias", "joins", "order", "limit", "offset", "with_"}),
    exp.Select: frozenset(
        {"kind", "distinct", "limit", "offset", "from_", "joins", "where", "group", "having", "qualify", "windows", "order",
         "with_"}
    ),
    **dict.fromkeys(
        (exp.Union, exp.Intersect, exp.Except), frozenset({"distinct", "by_name", "order", "limit", "offset", "with_"})
    ),
    exp.Values: frozenset({"alias", "order", "limit", "offset"}),
    exp.Table: frozenset({"alias", "joins", "db", "catalog"}),
    exp.Lateral: frozenset({"alias"}),
    exp.Join: frozenset({"side", "kind", "on", "using", "method"}),
    exp.Ordered: frozenset({"desc", "nulls_first"}),
    exp.Group: frozenset({"all", "rollup", "cube", "grouping_sets", "totals"}),
    exp.Distinct: frozenset({"on"}),
    exp.Count: frozenset({"big_int"}),
    exp.Star: frozenset({"except_", "replace", "rename"}),
    exp.CTE: frozenset({"alias", "materialized"}),
    exp.With: frozenset({"recursive"}),
    exp.WindowSpec: frozenset({"kind", "start", "start_side", "end", "end_side", "exclude"}),
    exp.Lag: frozenset({"offset", "default"}),
    exp.Lead: frozenset({"offset", "default"}),
    exp.Greatest: frozenset({"ignore_nulls"}),
    exp.Least: frozenset({"ignore_nulls"}),
    exp.DateTrunc: frozenset({"unit"}),
    exp.DateFromParts: frozenset({"year", "month", "day"}),
    exp.TimeToStr: frozenset({"format"}),
    exp.NthValue: frozenset({"offset"}),
    exp.TimestampTrunc: frozenset({"unit"}),
    exp.Trim: frozenset({"position"}),
    exp.Concat: frozenset({"safe", "coalesce"}),
    exp.ConcatWs: frozenset({"safe", "coalesce"}),
    exp.Length: frozenset({"binary", "encoding"}),
    exp.Round: frozenset({"decimals"}),
    exp.Substring: frozenset({"start", "length"}),
    exp.Replace: frozenset({"replacement"}),
    exp.StrPosition: frozenset({"substr"}),
    exp.Pad: frozenset({"fill_pattern", "is_left"}),
    exp.DateDiff: frozenset({"unit", "date_part_boundary"}),
    exp.Repeat: frozenset({"times"}),
    exp.RegexpLike: frozenset({"flag"}),
    exp.RegexpFullMatch: frozenset({"options"}),
    exp.RegexpReplace: frozenset({"replacement", "modifiers", "single_replace"}),
    exp.RegexpExtract: frozenset({"group", "parameters", "null_if_pos_overflow"}),
    exp.GroupConcat: frozenset({"separator"}),
    exp.Quantile: frozenset({"quantile"}),
    exp.SplitPart: frozenset({"delimiter", "part_index"}),
}  # fmt: skip


def check_arguments(source: StatementText, node: exp.Expr) -> None:
    """Refuse a node that says more than we read."""
    known = ARGUMENTS.get(type(node), frozenset())
    for name, value in node.args.items():
        if value and name not in PLAIN and name not in known and not name.startswith("_"):
            said = CALLED.get(name, f"{name.strip('_').upper().replace('_', ' ')} in {node.key.upper()}")
            if isinstance(node, exp.Func):  # its arguments have names of the parser's
                said = f"function {source.called(node)} with these arguments"
            raise source.error(f"{said} is not supported", node, UnsupportedError)
