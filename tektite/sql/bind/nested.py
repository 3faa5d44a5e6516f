"""Binding lists, structs and JSON: literals, subscripts, fields, and the functions that DuckDB and PostgreSQL have for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from tektite.expr import Expr, coalesce, lit
from tektite.expr.interned_functions import json_array, json_object
from tektite.sql.parse.dialect import JSON_OF_PAIRS, JSON_PAIR
from tektite.values import types
from tektite.values.types import ListType, StructType

if TYPE_CHECKING:
    from tektite.sql.bind.scalar import Scalars

NestedBuilder = Callable[..., Expr]


def is_list(scalars: Scalars, value: Expr, node: exp.Expr) -> bool:
    """Whether an expression is a list."""
    return isinstance(scalars.type(value, node), ListType)


# ---------------------------------------------------------------------- literals and parts


def array(scalars: Scalars, node: exp.Array) -> Expr:
    """[1, 2] and ARRAY[1, 2]."""
    if len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Query):
        raise scalars.unsupported("ARRAY(query): write (SELECT array_agg(x) FROM (query)), which", node)
    node.args.get("bracket_notation"), node.args.get("value_constructor")
    return scalars.checked(Expr("list", tuple(map(scalars.bind, node.expressions))), node)


def struct(scalars: Scalars, node: exp.Struct) -> Expr:
    """{'a': 1} and struct_pack(a := 1)."""
    names, values = [], []
    for at, part in enumerate(node.expressions, 1):
        named = isinstance(part, exp.PropertyEQ)
        names.append(part.this.name if named else f"f{at}")
        values.append(scalars.bind(part.expression if named else part))
    if len({name.lower() for name in names}) < len(names):
        raise scalars.error("a struct has each field once", node)
    if not names:
        raise scalars.error("a struct needs a field", node)
    return scalars.checked(Expr("struct", tuple(values), tuple(names)), node)


def row(*values: Expr) -> Expr:
    """ROW(1, 2): a struct whose fields are called as PostgreSQL calls them."""
    return Expr("struct", values, tuple(f"f{at}" for at in range(1, len(values) + 1)))


def subscript(scalars: Scalars, node: exp.Bracket, value: Expr) -> Expr | None:
    """An element or a slice of a list, a field of a struct, a part of JSON; None if the value has no parts."""
    kind = scalars.type(value, node)
    if len(node.expressions) != 1 or not isinstance(kind, ListType | StructType) and kind != types.Json:
        return None
    at = node.expressions[0]
    if isinstance(at, exp.Slice):
        if not isinstance(kind, ListType):
            raise scalars.unsupported(f"a slice of {kind}", node)
        low = lit(1) if at.this is None else scalars.bind(at.this)
        high = Expr("list_length", (value,)) if at.expression is None else scalars.bind(at.expression)
        return Expr("list_slice", (value, low, high))
    index = scalars.bind(at)
    if isinstance(kind, ListType):
        return Expr("list_element", (value, index))
    if kind == types.Json:
        return Expr("json_extract", (value, index))
    if index.op != "lit" or not isinstance(index.params[1], str | int):
        raise scalars.unsupported("a field of a struct by anything but a constant", node)
    return Expr("struct_field", (value,), (index.params[1],))


def field(scalars: Scalars, value: Expr, name: str, node: exp.Expr) -> Expr | None:
    """A field of a struct by its name; None if the value is no struct."""
    if isinstance(scalars.type(value, node), StructType):
        return scalars.checked(Expr("struct_field", (value,), (name,)), node)
    return None


# ---------------------------------------------------------------------- lists


def appended(lists: Expr, value: Expr) -> Expr:
    return Expr("list_concat", (coalesce(lists, Expr("list")), Expr("list", (value,))))


def prepended(lists: Expr, value: Expr) -> Expr:
    return Expr("list_concat", (Expr("list", (value,)), coalesce(lists, Expr("list"))))


def concatenated(scalars: Scalars, parts: list[Expr], node: exp.Expr) -> Expr:
    """Lists joined by ||: what is no list is appended or prepended."""
    lists = [part if is_list(scalars, part, node) else Expr("list", (part,)) for part in parts]
    return scalars.checked(Expr("list_concat", tuple(lists)), node)


def list_concat(scalars: Scalars, node: exp.ArrayConcat) -> Expr:
    """LIST_CONCAT: a NULL among lists is an empty one."""
    node.args.get("null_propagation")
    parts = [scalars.bind(part) for part in (node.this, *node.expressions)]
    return Expr("list_concat", tuple(coalesce(part, Expr("list")) for part in parts))


def ordered(order: str) -> NestedBuilder:
    return lambda value: Expr("list_order", (value,), (order,))


def sorted_list(scalars: Scalars, node: exp.Expr) -> Expr:
    """LIST_SORT and LIST_REVERSE_SORT, with NULLs last."""
    first, ascends = node.args.get("nulls_first"), node.args.get("asc")
    if node.args.get("expression") is not None or not all(
        isinstance(given, exp.Boolean | None) for given in (first, ascends)
    ):
        raise scalars.unsupported("list_sort with an order (list_sort(x) ascends, list_reverse_sort(x) descends)", node)
    if first is not None and first.this:
        raise scalars.unsupported("list_sort with NULLS FIRST", node)
    down = ascends is not None and not ascends.this
    return Expr("list_order", (scalars.bind(node.this),), ("descending" if down else "ascending",))


def of_two(op: str) -> Callable[[Scalars, Any], Expr]:
    """A function of a list and a value, which the parser has a node for."""

    def build(scalars: Scalars, node: exp.Expr) -> Expr:
        for argument in ("null_propagation", "ensure_variant", "check_null"):
            node.args.get(argument)
        values = scalars.bind(node.this), scalars.bind(node.expression)
        return {"append": appended, "prepend": prepended}.get(op, lambda a, b: Expr(op, (a, b)))(*values)

    return build


def sliced(scalars: Scalars, node: exp.ArraySlice) -> Expr:
    if node.args.get("is_length") or node.args.get("step") is not None:
        raise scalars.unsupported("array_slice with a step", node)
    return Expr("list_slice", tuple(scalars.bind(node.args[name]) for name in ("this", "start", "end")))


def distinct(scalars: Scalars, node: exp.ArrayDistinct) -> Expr:
    node.args.get("check_null")
    return Expr("list_order", (scalars.bind(node.this),), ("distinct",))


# ---------------------------------------------------------------------- JSON


def extracted(op: str) -> Callable[[Scalars, Any], Expr]:
    """->, ->>, #> and #>>, and the functions that are the same."""

    def build(scalars: Scalars, node: exp.Expr) -> Expr:
        for argument in ("only_json_types", "scalar_only"):
            node.args.get(argument)
        if node.args.get("expressions"):
            raise scalars.unsupported("a path of JSON in several values: write it as one text, '$.a.b', which", node)
        value, path = scalars.bind(node.this), scalars.bind(node.expression)
        kind = scalars.type(value, node)
        if kind not in (types.Json, types.String):
            value = Expr("to_json", (value,))
        return Expr(op, (value, path))

    return build


def json_object_of(scalars: Scalars, node: exp.JSONObject) -> Expr:
    for argument in ("return_type", "encoding", "null_handling", "unique_keys"):
        if node.args.get(argument):
            raise scalars.unsupported("json_object with options", node)
    flat = [scalars.bind(part) for pair in node.expressions for part in (pair.this, pair.expression)]
    return json_object(*flat)


def json_array_of(scalars: Scalars, node: exp.JSONArray) -> Expr:
    for argument in ("return_type", "null_handling", "strict"):
        if node.args.get(argument):
            raise scalars.unsupported("json_array with options", node)
    return json_array(*map(scalars.bind, node.expressions))


def built_object(*values: Expr) -> Expr:
    if len(values) % 2:
        raise ValueError("takes keys and values, one after the other")
    return json_object(*values)


def json_pair(key: Expr, value: Expr) -> Expr:
    """A member of a JSON object as text."""
    quoted = Expr("json_quoted", (key.cast(types.String),))
    return quoted.concat(":", coalesce(Expr("to_json", (value,)).cast(types.String), "null"))


def as_json(value: Expr) -> Expr:
    return Expr("reinterpret", (value,), (types.Json,))


def unary(op: str) -> tuple[int, NestedBuilder]:
    return 1, lambda value: Expr(op, (value,))


def binary(op: str) -> tuple[int, NestedBuilder]:
    return 2, lambda one, other: Expr(op, (one, other))


NAMED: dict[str, tuple[int, NestedBuilder]] = {
    "row": (-1, row),
    "cardinality": unary("list_length"),
    **dict.fromkeys(("list_extract", "list_element", "array_extract"), binary("list_element")),
    **dict.fromkeys(("list_position", "list_indexof", "array_indexof"), binary("list_position")),
    "list_slice": (3, lambda value, low, high: Expr("list_slice", (value, low, high))),
    "list_reverse": (1, ordered("reverse")),
    "list_unique": (1, lambda value: Expr("list_length", (Expr("list_order", (value,), ("distinct",)),))),
    **dict.fromkeys(("to_json", "to_jsonb", "row_to_json", "array_to_json"), unary("to_json")),
    **dict.fromkeys(("json_array_length", "jsonb_array_length"), unary("json_length")),
    **dict.fromkeys(("json_typeof", "jsonb_typeof"), unary("json_typeof")),
    "json_valid": unary("json_valid"),
    **dict.fromkeys(("json_build_array", "jsonb_build_array"), (-1, json_array)),
    **dict.fromkeys(("json_build_object", "jsonb_build_object"), (-1, built_object)),
}
"""Functions that the parser knows by name alone: how many values they take (-1: any number), and what they are."""
INTERNAL: dict[str, tuple[int, NestedBuilder]] = {
    JSON_PAIR: (2, json_pair),
    JSON_OF_PAIRS: (1, lambda text: as_json(lit("{").concat(text, "}"))),
}
"""Functions that the dialect makes JSON_OBJECT_AGG of."""
NODES: dict[type[exp.Expr], Callable[[Scalars, Any], Expr | None]] = {
    exp.Array: array,
    exp.Struct: struct,
    exp.ArrayContains: of_two("list_contains"),
    exp.ArrayPosition: of_two("list_position"),
    exp.ArrayAppend: of_two("append"),
    exp.ArrayPrepend: of_two("prepend"),
    exp.ArrayConcat: list_concat,
    exp.ArraySlice: sliced,
    exp.ArrayDistinct: distinct,
    exp.ArrayReverse: lambda scalars, node: ordered("reverse")(scalars.bind(node.this)),
    exp.ArraySort: sorted_list,
    exp.Split: of_two("text_split"),
    exp.StructExtract: lambda scalars, node: subscript(scalars, exp.Bracket(this=node.this, expressions=[node.expression]),
                                                       scalars.bind(node.this)),
    exp.JSONExtract: extracted("json_extract"),
    exp.JSONExtractScalar: extracted("json_extract_text"),
    exp.JSONBExtract: extracted("json_extract_path"),
    exp.JSONBExtractScalar: extracted("json_extract_path_text"),
    exp.JSONObject: json_object_of,
    exp.JSONArray: json_array_of,
    exp.ParseJSON: lambda scalars, node: Expr("json_minified", (scalars.bind(node.this),)),
    exp.JSONKeys: lambda scalars, node: Expr("json_keys", (scalars.bind(node.this),)),
    exp.JSONType: lambda scalars, node: Expr("json_type", (scalars.bind(node.this),)),
}  # fmt: skip
"""Functions that the parser has nodes for."""
SETS: dict[str, Callable[[Expr], Expr]] = {
    "unnest": lambda value: value,
    **dict.fromkeys(("json_array_elements", "jsonb_array_elements"), lambda value: Expr("json_items", (value,))),
    **dict.fromkeys(("json_object_keys", "jsonb_object_keys"), lambda value: Expr("json_keys", (value,))),
    **dict.fromkeys(("json_each", "jsonb_each"), lambda value: Expr("json_pairs", (value,))),
}
"""Functions that give several rows, with the list of which these are the elements."""
