"""SQL's functions and types, in terms of ours."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from tektite.errors import TektiteError, UnsupportedError
from tektite.expr import Expr, coalesce, concat, concat_ws, date_functions, greatest, hash64, least, lit, when
from tektite.expr.fold import folded as folded_constant
from tektite.sql.bind import dates, library, moments, nested, numbers, zones
from tektite.sql.bind.patterns import of_pattern
from tektite.sql.catalog import catalog_lookup
from tektite.sql.parse.instead import NO_NUMBERS
from tektite.sql.parse.places import StatementText
from tektite.sql.parse.read_arguments import written
from tektite.values import types
from tektite.values.types import Type

if TYPE_CHECKING:
    from tektite.sql.bind.scalar import Scalars

DType = exp.DataType.Type
TYPES: dict[object, Type] = {
    **dict.fromkeys((DType.INT, DType.BIGINT, DType.SMALLINT, DType.TINYINT, DType.MEDIUMINT), types.Int),
    **dict.fromkeys((DType.UINT, DType.USMALLINT, DType.UTINYINT), types.Int),
    **dict.fromkeys((DType.DOUBLE, DType.FLOAT), types.Float),
    DType.BOOLEAN: types.Bool,
    **dict.fromkeys((DType.DATE, DType.DATE32), types.Date),
    **dict.fromkeys((DType.TIMESTAMP, DType.TIMESTAMPNTZ, DType.DATETIME), types.Timestamp),
    **dict.fromkeys((DType.TIMESTAMPTZ, DType.TIMESTAMPLTZ), types.TimestampTz),
    DType.TIME: types.Time,
    DType.INTERVAL: types.Interval,
    **dict.fromkeys((DType.JSON, DType.JSONB), types.Json),
    DType.UUID: types.Uuid,
    **dict.fromkeys((DType.VARBINARY, DType.BINARY, DType.BLOB), types.Blob),
    **dict.fromkeys((DType.INT128, DType.UBIGINT), types.Decimal(38, 0)),
    **dict.fromkeys((DType.VARCHAR, DType.TEXT, DType.CHAR, DType.NVARCHAR, DType.NCHAR, DType.BPCHAR), types.String),
}


def column_type(source: StatementText, node: exp.DataType) -> Type:
    """The type that SQL's name for it means."""
    node.args.get("nested")  # which the name says already
    if node.this == DType.DECIMAL:
        sizes = [int(param.name) if param.name.isdigit() else -1 for param in node.expressions]
        if len(sizes) > 2 or min(sizes, default=0) < 0:
            raise source.error("type decimal takes the number of digits and the number of decimal places", node)
        precision, scale = (sizes + [0])[:2] if sizes else (18, 3)
        if scale > precision:
            raise source.error(f"type decimal({precision}, {scale}): more places than digits", node)
        try:
            return types.Decimal(precision, scale)
        except ValueError:
            message = f"type decimal({precision}, {scale}): at most 38 digits are supported"
            raise source.error(message, node, UnsupportedError) from None
    if (
        node.this in (DType.ARRAY, DType.LIST)
        and len(node.expressions) == 1
        and isinstance(node.expressions[0], exp.DataType)
    ):
        return types.ListType("list", column_type(source, node.expressions[0]))
    if node.this == DType.STRUCT and node.expressions and all(isinstance(f, exp.ColumnDef) for f in node.expressions):
        fields = tuple((field.name, column_type(source, field.args["kind"])) for field in node.expressions)
        return types.StructType("struct", fields)
    found = TYPES.get(node.this)
    sized = [param.name for param in node.expressions]
    if sized and found not in (
        types.String,
        types.Float,
        None,
    ):  # neither the length of a text nor FLOAT(53) is a limit
        message = f"type {written(node).lower()}: only decimal and varchar have a size here"
        raise source.error(message, node, UnsupportedError)
    if found is None:
        known = "integers, double, decimal, boolean, varchar, date, time, timestamp, timestamptz, interval, lists, structs, "
        known += "json, uuid and bytea"
        name = node.sql("duckdb").lower()
        known = f": {NO_NUMBERS}" if name.endswith("serial") else f"; there are {known}"
        raise source.error(
            f"type {name} is not supported{known}",
            node,
            UnsupportedError,
            condition="undefined-type",
        )
    return found


SQL_NAMES = {
    "int": "BIGINT", "float": "DOUBLE", "bool": "BOOLEAN", "string": "VARCHAR", "date": "DATE", "timestamp": "TIMESTAMP",
    "time": "TIME", "timestamptz": "TIMESTAMP WITH TIME ZONE", "interval": "INTERVAL", "json": "JSON", "uuid": "UUID",
    "blob": "BLOB", "null": '"NULL"',
}  # fmt: skip


def type_name(scalars: Scalars, node: exp.Typeof) -> Expr:
    """TYPEOF: the name of a value's type, as CREATE TABLE takes it."""
    value = scalars.bind(node.this)
    if value.op == "lit" and value.params[1] is None:
        return lit('"NULL"')
    kind = scalars.type(value, node)
    return lit(sql_name(kind))


def sql_name(kind: Type) -> str:
    """The name of a type in CREATE TABLE."""
    if isinstance(kind, types.DecimalType):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if isinstance(kind, types.ListType):
        return f"{sql_name(kind.element)}[]"
    if isinstance(kind, types.StructType):
        return f"STRUCT({', '.join(f'{quoted(name)} {sql_name(field)}' for name, field in kind.fields)})"
    return SQL_NAMES[kind.kind]


def quoted(name: str) -> str:
    """The name of a field, in quotes where it needs them."""
    return name if name.isidentifier() and name == name.lower() else '"' + name.replace('"', '""') + '"'


# ---------------------------------------------------------------------- text


def trimmed(scalars: Scalars, node: exp.Trim) -> Expr:
    """TRIM with its position, and the characters to remove."""
    value = scalars.bind(node.this)
    unwanted = node.args.get("expression")
    characters: str | None = " "
    if unwanted is not None:
        if not isinstance(unwanted, exp.Literal) or not unwanted.is_string:
            raise scalars.unsupported("TRIM of characters that are not constant", node)
        characters = unwanted.this
    where = (node.args.get("position") or "BOTH").upper()
    return {"LEADING": value.lstrip, "TRAILING": value.rstrip}.get(where, value.strip)(characters)


def leading(value: Expr, count: Expr) -> Expr:
    """LEFT: so many characters; all but so many at the end if it is negative."""
    negative = value.substring(1, greatest(value.length() + count, 0))
    if count.op == "lit" and isinstance(count.params[1], int):
        return value.substring(1, count) if count.params[1] >= 0 else negative
    return when(count < 0, negative).otherwise(value.substring(1, count))


def trailing(value: Expr, count: Expr) -> Expr:
    """RIGHT: so many characters from the end; all but so many at the start if it is negative."""
    size = value.length()
    start = when(count < 0, least(-count, size)).otherwise(size - when(count < size, count).otherwise(size))
    return when(count.is_not_null(), value.substring(start + 1)).otherwise(None)


def part_of(value: Expr, start: Expr, length: Expr | None = None) -> Expr:
    """SUBSTRING: so many characters from a place on; those before it if the length is negative."""
    constant = length.params[1] if length is not None and length.op == "lit" else None
    if length is None or length.op == "lit" and not (isinstance(constant, int) and constant < 0):
        return value.substring(start) if length is None else value.substring(start, length)
    end = when(start < 0, value.length() + start + 1).otherwise(start)
    first = greatest(end + length, 1)
    before = value.substring(first, greatest(end - first, 0))
    return when(length < 0, before).otherwise(value.substring(start, length))


# ---------------------------------------------------------------------- the table

Builder = Callable[..., Expr]

SIMPLE: dict[type[exp.Expr], tuple[tuple[str, ...], Builder]] = {
    exp.Upper: (("this",), Expr.upper),
    exp.Lower: (("this",), Expr.lower),
    exp.Substring: (("this", "start", "length"), part_of),
    exp.Abs: (("this",), Expr.abs),
    exp.Floor: (("this",), Expr.floor),
    exp.Ceil: (("this",), Expr.ceil),
    exp.Trunc: (("this",), Expr.trunc),
    exp.Left: (("this", "expression"), leading),
    exp.Right: (("this", "expression"), trailing),
    exp.StartsWith: (("this", "expression"), Expr.startswith),
    exp.EndsWith: (("this", "expression"), Expr.endswith),
    exp.Contains: (("this", "expression"), Expr.contains),
    exp.Replace: (("this", "expression", "replacement"), Expr.replace),
    exp.StrPosition: (("this", "substr"), Expr.position),
    exp.Reverse: (("this",), Expr.reverse),
    exp.Repeat: (("this", "times"), Expr.repeat),
    exp.SplitPart: (("this", "delimiter", "part_index"), Expr.split_part),
    exp.Sqrt: (("this",), Expr.sqrt),
    exp.Ln: (("this",), Expr.ln),
    exp.Exp: (("this",), Expr.exp),
    exp.Pow: (("this", "expression"), Expr.power),
    exp.Nullif: (("this", "expression"), lambda a, b: Expr("case", (a == b, lit(None), a))),
    exp.Year: (("this",), Expr.year),
    exp.Quarter: (("this",), Expr.quarter),
    exp.Month: (("this",), Expr.month),
    exp.Day: (("this",), Expr.day),
    exp.Hour: (("this",), Expr.hour),
    exp.Minute: (("this",), Expr.minute),
    exp.Second: (("this",), Expr.second),
    exp.LastDay: (("this",), date_functions.last_day),
    exp.Dayname: (("this",), date_functions.day_name),
    exp.Monthname: (("this",), date_functions.month_name),
    exp.DateFromParts: (("year", "month", "day"), date_functions.made),
    **library.SIMPLE,
}
OF_CLOCKS = {
    exp.Year, exp.Quarter, exp.Month, exp.Day, exp.Hour, exp.Minute, exp.Second, exp.LastDay, exp.Dayname, exp.Monthname,
}  # fmt: skip
"""Functions of what a clock shows: of a moment, that of the session's zone."""
BITS: dict[type[exp.Expr], Builder] = {
    exp.BitwiseAnd: Expr.bit_and,
    exp.BitwiseOr: Expr.bit_or,
    exp.BitwiseXor: Expr.bit_xor,
    exp.BitwiseLeftShift: Expr.shift_left,
    exp.BitwiseRightShift: Expr.shift_right,
    exp.BitwiseNot: Expr.bit_not,
}
VARIADIC: dict[type[exp.Expr], Builder] = {exp.Coalesce: coalesce, exp.Greatest: greatest, exp.Least: least}
PARTS: dict[type[exp.Expr], str] = {
    exp.Week: "week", exp.WeekOfYear: "week", exp.DayOfWeek: "dow", exp.DayOfWeekIso: "isodow", exp.DayOfMonth: "day",
    exp.DayOfYear: "doy", exp.TimeToUnix: "epoch",
}  # fmt: skip
"""Functions that are a field of their argument."""
ANONYMOUS_PARTS = ("yearweek", "isoyear", "decade", "century", "millennium", "weekday", "millisecond", "microsecond")
BY_NAME: dict[str, tuple[int, Builder]] = {
    "hash64": (-1, hash64),
    "prefix": (2, Expr.startswith),
    "suffix": (2, Expr.endswith),
    **nested.NAMED,
    **moments.NAMED,
    **library.NAMED,
}


def extracted(scalars: Scalars, node: exp.Extract) -> Expr:
    """EXTRACT(field FROM moment)."""
    return dates.extract(scalars, node, node.this.name, node.expression)


def date_truncated(scalars: Scalars, node: exp.DateTrunc | exp.TimestampTrunc) -> Expr:
    """DATE_TRUNC."""
    return dates.truncated(scalars, node, node.args["unit"].name, scalars.bind(node.this))


def date_moved(scalars: Scalars, node: exp.DateAdd) -> Expr | None:
    """DATE_ADD of an interval."""
    if not isinstance(node.expression, exp.Interval):
        return None
    return scalars.bind(exp.Add(this=node.this, expression=node.expression))


def padded(scalars: Scalars, node: exp.Pad) -> Expr:
    """LPAD and RPAD."""
    parts = [node.this, node.expression, node.args.get("fill_pattern")]
    pad = Expr.lpad if node.args.get("is_left") else Expr.rpad
    return pad(*(scalars.bind(part) for part in parts if part is not None))


def logarithm(scalars: Scalars, node: exp.Log) -> Expr:
    """LOG: to base 10, or to the base that comes first."""
    base, value = (lit(10), node.this) if node.expression is None else (scalars.bind(node.this), node.expression)
    return scalars.bind(value).ln() / base.ln()


def joined(scalars: Scalars, node: exp.Concat) -> Expr:
    """CONCAT: NULL counts as an empty text, unlike with ||."""
    parts = [scalars.bind(part) for part in node.expressions]
    return concat(*(coalesce(part.cast(types.String), "") for part in parts))


def joined_with_separator(scalars: Scalars, node: exp.ConcatWs) -> Expr:
    """CONCAT_WS."""
    separator, *parts = map(scalars.bind, node.expressions)
    return concat_ws(separator, *parts)


def constant_of(value: Expr, scalars: Scalars) -> Expr:
    """An expression without columns as the constant that it is, of the same type of PostgreSQL."""
    found = folded_constant(value)
    return value if found is value else scalars.context.declare(found, scalars.context.declared(value))


def of_catalog(name: str) -> Callable[[Scalars, Any], Expr | None]:
    """A function of the system catalogs that the parser has a node for."""

    def build(scalars: Scalars, node: exp.Func) -> Expr | None:
        given = [node.args.get(argument) for argument in list(node.args)]
        trees = [part for value in given for part in (value if isinstance(value, list) else [value])]
        bound = [constant_of(scalars.bind(tree), scalars) for tree in trees if isinstance(tree, exp.Expr)]
        return catalog_lookup.FUNCTIONS[name](scalars, node, bound)

    return build


def of_list(op: str, otherwise: Callable[[Scalars, Any], Expr | None]) -> Callable[[Scalars, Any], Expr | None]:
    """A function of lists, which arrays of the catalogs have as well."""

    def build(scalars: Scalars, node: exp.Func) -> Expr | None:
        value = scalars.bind(node.this)
        if not nested.is_list(scalars, value, node):
            return otherwise(scalars, node)
        other = node.args.get("expression")
        if op == "list_length":
            if other is not None and folded_constant(scalars.bind(other)).params[1:] != (1,):
                raise scalars.unsupported("the length of another dimension than 1", node)
            return Expr(op, (value,))
        if node.args.get("null") is not None:
            raise scalars.unsupported("array_to_string with a text for NULL", node)
        assert other is not None
        return Expr(op, (value, scalars.bind(other)))

    return build


def length(scalars: Scalars, node: exp.Length) -> Expr:
    """LENGTH of a text, LEN of a list."""
    if node.this is None:
        raise scalars.error(f"{scalars.source.called(node)} takes 1 values, not 0", node)
    value = scalars.bind(node.this)
    if nested.is_list(scalars, value, node):
        return Expr("list_length", (value,))
    if scalars.type(value, node) == types.Blob:
        return moments.byte_length(value)
    return value.length()


def named(scalars: Scalars, node: exp.Anonymous) -> Expr | None:
    """A function that the parser knows by its name alone."""
    name = node.name.lower()
    if name == "now":
        return zones.now(scalars, node)
    if name == "date_part" and len(node.expressions) == 2 and node.expressions[0].is_string:
        return dates.extract(scalars, node, node.expressions[0].name, node.expressions[1])
    if name == "try_strptime" and len(node.expressions) == 2:
        return dates.moment_of(scalars, node, name, *node.expressions)
    if name == "octet_length" and len(node.expressions) == 1:
        value = scalars.bind(node.expressions[0])
        return moments.byte_length(value) if scalars.type(value, node) == types.Blob else Expr("utf8_length", (value,))
    if name in ANONYMOUS_PARTS and len(node.expressions) == 1:
        return dates.extract(scalars, node, name, node.expressions[0])
    if name in catalog_lookup.FUNCTIONS and (name not in BY_NAME or scalars.context.reads_system()):
        if not node.expressions and name not in catalog_lookup.WITHOUT_VALUES:
            raise scalars.error(f"{name} needs a value", node)
        return catalog_lookup.FUNCTIONS[name](
            scalars, node, [constant_of(scalars.bind(part), scalars) for part in node.expressions]
        )
    if name not in BY_NAME and name not in nested.INTERNAL:
        return scalars.context.set_function(node)
    arity, builder = BY_NAME[name] if name in BY_NAME else nested.INTERNAL[name]
    if arity >= 0 and len(node.expressions) != arity:
        raise scalars.error(f"{name} takes {arity} values, not {len(node.expressions)}", node)
    return builder(*map(scalars.bind, node.expressions))


SPECIAL: dict[type[exp.Expr], Callable[[Scalars, Any], Expr | None]] = {
    exp.Extract: extracted,
    **dict.fromkeys((exp.DateTrunc, exp.TimestampTrunc), date_truncated),
    exp.DateAdd: date_moved,
    exp.DateDiff: dates.difference,
    exp.DateBin: dates.bucket,
    exp.TimeToStr: dates.text_of,
    exp.StrToTime: dates.read_moment,
    exp.Round: numbers.round_of,
    exp.Sign: numbers.sign_of,
    exp.Typeof: type_name,
    exp.Trim: trimmed,
    exp.Pad: padded,
    exp.Log: logarithm,
    exp.Concat: joined,
    exp.ConcatWs: joined_with_separator,
    **dict.fromkeys(
        (exp.RegexpLike, exp.RegexpILike, exp.RegexpFullMatch, exp.RegexpReplace, exp.RegexpExtract), of_pattern
    ),
    exp.ArrayToString: of_list("list_join", of_catalog("array_to_string")),
    exp.ArraySize: of_list("list_length", of_catalog("array_length")),
    exp.ArrayRemove: of_catalog("array_remove"),
    exp.Length: length,
    **nested.NODES,
    **moments.NODES,
    **library.NODES,
    exp.Anonymous: named,
}
"""Functions that read the parser's tree themselves."""


def fewest(builder: Builder, given: int) -> int:
    """The least number of arguments that a builder needs beside the first `given` ones."""
    parameters = inspect.signature(builder).parameters.values()
    return sum(parameter.default is inspect.Parameter.empty for parameter in parameters) - given


FEWEST = {kind: fewest(builder, 0) for kind, (_, builder) in SIMPLE.items()}
"""How many values each function needs."""


def build(scalars: Scalars, node: exp.Func) -> Expr | None:
    """A function's expression; None if there is no such function. What builders of expressions say to Python programs is said of
    the place in the text.
    """
    try:
        return built(scalars, node)
    except TektiteError as error:
        raise scalars.source.placed(error, node) from None
    except (TypeError, ValueError, OverflowError) as error:
        raise scalars.error(f"{scalars.source.called(node)}: {error}", node) from error


def built(scalars: Scalars, node: exp.Func) -> Expr | None:
    kind = type(node)
    if kind in SPECIAL:
        return SPECIAL[kind](scalars, node)
    if kind in VARIADIC:
        return VARIADIC[kind](*map(scalars.bind, [node.this, *node.expressions]))
    if kind in PARTS:
        return dates.extract(scalars, node, PARTS[kind], node.this)
    if kind not in SIMPLE:
        return None
    arguments, builder = SIMPLE[kind]
    found = [node.args.get(name) for name in arguments]
    if kind is exp.Substring and found[1] is None:
        found[1] = exp.Literal.number(1)  # SUBSTRING(x FOR n)
    while found and found[-1] is None:
        found.pop()
    if len(found) < FEWEST[kind] or None in found:
        least, most = FEWEST[kind], len(arguments)
        wanted = str(most) if least == most else f"{least} to {most}"
        given = len(found) - found.count(None)
        raise scalars.error(f"{scalars.source.called(node)} takes {wanted} values, not {given}", node)
    bound = [scalars.bind(argument) for argument in found if argument is not None]
    if kind in OF_CLOCKS:
        bound = [dates.in_session(scalars, value, node) for value in bound]
    return builder(*bound)
