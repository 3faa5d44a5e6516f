"""Functions and casts that look something up in the catalogs, for the tools of PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from tektite.errors import NotFoundError
from tektite.expr import Expr, concat, lit, when
from tektite.sql.catalog import privileges
from tektite.sql.catalog.array_text import VECTORS, array_elements, array_text, is_array
from tektite.sql.catalog.constant_lookup import looked_up
from tektite.sql.catalog.contents import OWNER, CatalogContents, RelationEntry, quoted_name
from tektite.sql.catalog.pg_types import BY_OID, INTEGERS, REGISTERED, own_type, type_named
from tektite.sql.catalog.settings import SERVER_VERSION, listed
from tektite.sql.parse.instead import CLAUSES, instead
from tektite.sql.parse.postgres_spelling import ARRAY_OF, ELEMENT
from tektite.values import types
from tektite.values.types import Type

if TYPE_CHECKING:
    from tektite.sql.bind.scalar import Scalars

TEXTS = ("name", "char", "sql_identifier", "character_data", "yes_or_no", "pg_node_tree", "bpchar")
"""Types that are texts here."""
Function = Callable[["Scalars", exp.Func, list[Expr]], Expr]


def is_text(value: Expr) -> bool:
    """Whether an expression is a constant text."""
    return value.op == "lit" and isinstance(value.params[1], str)


def is_nothing(value: Expr) -> bool:
    """Whether an expression is NULL, as parameters are while a statement is only described."""
    return value.op == "lit" and value.params[1] is None


# ---------------------------------------------------------------------- casts


def pg_cast(scalars: Scalars, node: exp.Cast) -> Expr | None:
    """A cast to a type that only PostgreSQL's catalogs have, or of an oid that is shown as a name to a text; None for others."""
    to = node.args["to"]
    target = said_type(to)
    if target in REGISTERED:
        return registered(scalars, target, scalars.bind(node.this), node)
    if target in INTEGERS and to.this == exp.DataType.Type.USERDEFINED:
        value = scalars.bind(node.this)
        found = value if scalars.type(value, node) == types.Int else value.cast(types.Int)
        return scalars.context.declare(found, target)
    if target in TEXTS and to.this in (exp.DataType.Type.USERDEFINED, exp.DataType.Type.NAME):
        value = scalars.bind(node.this)
        return scalars.context.declare(value.cast(types.String), target)
    if is_array(target) and scalars.context.reads_system():  # elsewhere an array is a list
        value = scalars.bind(node.this)
        if is_nothing(value):
            value = lit(None, types.String)
        if scalars.type(value, node) != types.String:
            raise scalars.unsupported(f"a cast to {target.removeprefix('_')}[] of anything but a text", node)
        return scalars.context.declare(value, target)
    if target in ("text", "varchar"):
        value = scalars.bind(node.this)
        if scalars.context.declared(value) in REGISTERED:
            return name_of_oid(scalars, scalars.context.declared(value), value)
    return None


def said_type(to: exp.DataType) -> str:
    """PostgreSQL's name of the type that a cast names; empty if it has none."""
    if to.this == exp.DataType.Type.ARRAY and to.expressions and to.args.get("nested"):
        inner = said_type(to.expressions[0])
        return f"_{inner or 'text'}"
    if not isinstance(to.this, exp.DataType.Type):  # INTERVAL with units, which is a tree of its own
        return ""
    name = str(to.args.get("kind") or "").strip('"') if to.this == exp.DataType.Type.USERDEFINED else to.this.value
    name = name.lower().removeprefix("pg_catalog.")
    if name in ("sql_identifier", "character_data", "yes_or_no", "cardinal_number"):
        return name
    found = type_named(name)
    return "" if found is None else found.name


def registered(scalars: Scalars, target: str, value: Expr, node: exp.Expr) -> Expr:
    """An oid by a name: a constant that names nothing is a mistake."""
    context = scalars.context
    if scalars.type(value, node) != types.String:
        return context.declare(value.cast(types.Int), target)  # an expression of its own: the oid stays a number
    if not is_text(value):
        return context.declare(looked_up(value, known_names(context.contents(), target), types.Int), target)
    found = oid_named(context.contents(), target, value.params[1])
    if found is None:
        what = {"regclass": "table or view", "regtype": "type", "regnamespace": "schema"}.get(target, "function")
        raise scalars.source.error(f"there is no {what} {value.params[1]!r}", node, NotFoundError)
    return context.declare(lit(found), target)


def oid_named(contents: CatalogContents, target: str, text: str) -> int | None:
    """The oid of what a text names."""
    if text.isdigit():
        return int(text)
    if target == "regclass":
        return contents.relation_oid(text)
    if target == "regtype":
        found = type_named(text)
        return None if found is None else found.oid
    if target == "regnamespace":
        return contents.schemas.get(text)
    return contents.oids.of("function", text.rpartition(".")[2])


def known_names(contents: CatalogContents, target: str) -> dict[str, int]:
    """Oids by the names that are written for them."""
    return {name: oid for oid, name in names_of_oids(contents, target).items()}


def names_of_oids(contents: CatalogContents, target: str) -> dict[int, str]:
    """The names that are written for oids."""
    if target == "regclass":
        return contents.visible_names
    if target == "regtype":
        return {oid: type.shown for oid, type in BY_OID.items()}
    if target == "regnamespace":
        return {oid: name for name, oid in contents.schemas.items()}
    functions = {name for type in BY_OID.values() for name in (type.receive, type.send)}
    return {contents.oids.of("function", name): name for name in functions}


def name_of_oid(scalars: Scalars, target: str, value: Expr) -> Expr:
    """The text of an oid that is shown as a name: the number where nothing has it."""
    names = names_of_oids(scalars.context.contents(), target)
    if value.op == "lit":
        return lit(names.get(value.params[1], str(value.params[1])))
    return looked_up(value, names, types.String, value.cast(types.String))


# ---------------------------------------------------------------------- functions


def of_relations(give: Callable[[RelationEntry], Any], type: Type = types.String) -> Function:
    """A function of a relation's oid, or of its name."""

    def build(scalars: Scalars, node: exp.Func, given: list[Expr]) -> Expr:
        contents = scalars.context.contents()
        rows = {r.oid: give(r) for r in contents.relations}
        key = given[0]
        if scalars.type(key, node) == types.String:
            key = registered(scalars, "regclass", key, node)
        return looked_up(key, {oid: value for oid, value in rows.items() if value is not None}, type)

    return build


def constant(value: Any, type: Type) -> Function:
    """A function that always gives the same."""
    return lambda scalars, node, given: lit(value, type)


def all_bytes(scalars: Scalars, node: exp.Func, given: list[Expr]) -> Expr:
    """The bytes of all relations: an engine is one database."""
    return lit(sum(relation.bytes or 0 for relation in scalars.context.contents().relations))


def is_visible(scalars: Scalars, node: exp.Func, given: list[Expr]) -> Expr:
    """Whether a relation is found by its name alone."""
    hidden = scalars.context.contents().hidden
    return ~given[0].isin(hidden) if hidden else given[0].is_not_null()


def format_type(scalars: Scalars, node: exp.Func, given: list[Expr]) -> Expr:
    """A type as it is written, with the digits of a decimal."""
    oid, modifier = given[0], given[1] if len(given) > 1 else lit(None, types.Int)
    if modifier.op == "lit" and modifier.params[1] is None:
        modifier = lit(-1)
    names = {number: type.shown for number, type in BY_OID.items()}
    digits = modifier.cast(types.Int) - 4
    scale = digits.bit_and(lit(65535)).cast(types.String)
    sized = concat(lit("numeric("), digits.shift_right(lit(16)).cast(types.String), lit(","), scale, lit(")"))
    plain = looked_up(oid, names, types.String)
    return when((oid == 1700) & (modifier > 4), sized).otherwise(plain)


def expression_text(scalars: Scalars, node: exp.Func, given: list[Expr]) -> Expr:
    """PG_GET_EXPR: expressions are kept as texts."""
    return given[0].cast(types.String) if scalars.type(given[0], node) != types.String else given[0]


def index_definition(scalars: Scalars, node: exp.Func, given: list[Expr]) -> Expr:
    """PG_GET_INDEXDEF: the whole index, or one of its columns by its number."""
    found = [r for r in scalars.context.contents().relations if r.kind == "i"]
    whole = looked_up(given[0], {r.oid: r.definition for r in found}, types.String)
    if len(given) < 2 or given[1].op == "lit" and given[1].params[1] == 0:
        return whole
    columns = {(r.oid << 12) + c.number: quoted_name(c.name) for r in found for c in r.columns}
    one = looked_up(given[0] * 4096 + given[1], columns, types.String, lit(None, types.String))
    return when(given[1] == 0, whole).otherwise(one)


def constraint_definition(scalars: Scalars, node: exp.Func, given: list[Expr]) -> Expr:
    contents = scalars.context.contents()
    return looked_up(given[0], {c.oid: c.definition for r in contents.relations for c in r.constraints}, types.String)


def user_by_id(scalars: Scalars, node: exp.Func, given: list[Expr]) -> Expr:
    contents = scalars.context.contents()
    unknown = concat(lit("unknown (OID="), given[0].cast(types.String), lit(")"))
    names = {contents.role_oid(role.name): role.name for role in contents.roles}
    return looked_up(given[0], {OWNER: contents.role_name(OWNER), **names}, types.String, unknown)


def quoted(scalars: Scalars, node: exp.Func, given: list[Expr]) -> Expr:
    """QUOTE_IDENT."""
    escaped = concat(lit('"'), given[0].replace('"', '""'), lit('"'))
    return when(given[0].matches("^[a-z_][a-z0-9_]*$"), given[0]).otherwise(escaped)


def quoted_text(scalars: Scalars, node: exp.Func, given: list[Expr]) -> Expr:
    """QUOTE_LITERAL."""
    return concat(lit("'"), given[0].cast(types.String).replace("'", "''"), lit("'"))


def to_registered(target: str) -> Function:
    """TO_REGCLASS and its like: NULL where nothing has the name."""

    def build(scalars: Scalars, node: exp.Func, given: list[Expr]) -> Expr:
        contents = scalars.context.contents()
        if is_text(given[0]):
            found = lit(oid_named(contents, target, given[0].params[1]), types.Int)
        else:
            found = looked_up(given[0], known_names(contents, target), types.Int)
        return scalars.context.declare(found, target)

    return build


def current_setting(scalars: Scalars, node: exp.Func, given: list[Expr]) -> Expr:
    settings = scalars.context.contents().settings
    if not is_text(given[0]):
        return looked_up(given[0], {name: value for name, value, _ in settings.rows()}, types.String)
    try:
        return lit(settings.show(given[0].params[1]))
    except NotFoundError:
        if len(given) > 1 and given[1].op == "lit" and given[1].params[1]:
            return lit(None, types.String)
        raise


def set_config(scalars: Scalars, node: exp.Func, given: list[Expr]) -> Expr:
    """SET_CONFIG: sets a setting of the session, and gives its value."""
    if len(given) > 1 and (is_nothing(given[0]) or is_nothing(given[1])):
        return lit(None, types.String)
    if len(given) < 2 or not is_text(given[0]) or not is_text(given[1]):
        raise scalars.error("set_config takes a setting and its value as constant texts", node)
    settings = scalars.context.contents().settings
    value = given[1].params[1]
    settings.set(given[0].params[1], listed(given[0].params[1], value))
    return lit(value)


def backend_process(scalars: Scalars, node: exp.Func, given: list[Expr]) -> Expr:
    """PG_BACKEND_PID."""
    return lit(scalars.context.contents().settings.process)


def pretty_size(scalars: Scalars, node: exp.Func, given: list[Expr]) -> Expr:
    """PG_SIZE_PRETTY."""
    found = given[0]
    text = concat(found.cast(types.String), lit(" bytes"))
    for power, unit in enumerate(("kB", "MB", "GB", "TB"), 1):
        size = 1 << (10 * power)
        larger = concat(((found + size // 2) // size).cast(types.String), lit(f" {unit}"))
        text = when(found >= 10 * size, larger).otherwise(text)
    return text


def version(scalars: Scalars) -> Expr:
    """VERSION(): tools read the version of PostgreSQL whose catalogs are shown."""
    return lit(f"PostgreSQL {SERVER_VERSION} (Tektite)")


def object_text(scalars: Scalars, node: exp.Func, given: list[Expr]) -> Expr:
    """JSON_BUILD_OBJECT: the text of an object with constant names."""
    parts: list[Expr] = []
    for at, (name, value) in enumerate(zip(given[::2], given[1::2], strict=False)):
        if not is_text(name) and not is_nothing(name):
            raise scalars.unsupported("json_build_object with names that are not constant", node)
        kind = scalars.type(value, node)
        text = value.cast(types.String)
        if kind.kind not in ("int", "float", "bool", "decimal"):
            text = concat(lit('"'), text.replace("\\", "\\\\").replace('"', '\\"'), lit('"'))
        start = ", " if at else "{"
        parts += [lit(f'{start}"{name.params[1]}" : '), when(value.is_null(), "null").otherwise(text)]
    return concat(*parts, lit("}")) if parts else lit("{}")


# ---------------------------------------------------------------------- arrays


def array_of_text(scalars: Scalars, node: exp.Func, given: list[Expr]) -> Expr:
    """An array made by a query of the system catalogs: elsewhere there are no arrays."""
    if not scalars.context.reads_system():
        what = scalars.source.called(node)
        raise scalars.unsupported("ARRAY(query)" if what == ARRAY_OF else f"aggregate {what}", node)
    noted = scalars.context.element_types()
    inner = [noted[id(part)] for part in node.find_all(exp.Anonymous) if id(part) in noted]
    return scalars.context.declare(given[0], f"_{inner[0]}" if inner else "_text")


def array_element(scalars: Scalars, node: exp.Func, given: list[Expr]) -> Expr:
    """The text of an array's element."""
    kind = scalars.type(given[0], node)
    scalars.context.element_types()[id(node)] = {"bool": "bool", "int": "int8"}.get(kind.kind, "text")
    text = when(given[0], "t").otherwise("f") if kind == types.Bool else given[0].cast(types.String)
    escaped = concat(lit('"'), text.replace("\\", "\\\\").replace('"', '\\"'), lit('"'))
    special = text.matches(r'[,{}"\\\s]|^$|^[Nn][Uu][Ll][Ll]$')
    return when(given[0].is_null(), "NULL").otherwise(when(special, escaped).otherwise(text))


def inside(array: Expr, type: str) -> tuple[Expr, str]:
    """The elements of an array's text without braces, and what separates them."""
    if type in VECTORS:
        return array, " "
    return array.substring(2, array.length() - 2), ","


def array_to_string(scalars: Scalars, node: exp.Func, given: list[Expr]) -> Expr:
    array, separator = given[0], given[1]
    if is_text(array) and is_text(separator):
        return lit(separator.params[1].join(part for part in array_elements(array.params[1]) if part is not None))
    text, between = inside(array, scalars.context.declared(array))
    if is_nothing(separator):
        return lit(None, types.String)
    if not is_text(separator):
        raise scalars.unsupported("array_to_string with a separator that is not constant", node)
    return text.replace(between, separator.params[1])


def array_length(scalars: Scalars, node: exp.Func, given: list[Expr]) -> Expr:
    """The number of elements of an array; NULL for none."""
    array = given[0]
    if is_text(array):
        return lit(len(array_elements(array.params[1])) or None, types.Int)
    text, between = inside(array, scalars.context.declared(array))
    return when(text != "", text.length() - text.replace(between, "").length() + 1).otherwise(None)


def array_upper(scalars: Scalars, node: exp.Func, given: list[Expr]) -> Expr:
    """The last subscript: those of vectors begin with 0."""
    found = array_length(scalars, node, given)
    return found - 1 if scalars.context.declared(given[0]) in VECTORS else found


def array_remove(scalars: Scalars, node: exp.Func, given: list[Expr]) -> Expr:
    array, unwanted = given[0], given[1]
    if is_text(array) and unwanted.op == "lit":
        gone = str(unwanted.params[1])
        return scalars.context.declare(
            lit(array_text(e for e in array_elements(array.params[1]) if e != gone)), "_text"
        )
    if not is_text(unwanted):
        raise scalars.unsupported("array_remove of what is not constant", node)
    text, between = inside(array, scalars.context.declared(array))
    doubled = concat(lit(between), text.replace(between, between * 2), lit(between))
    kept = doubled.replace(f"{between}{unwanted.params[1]}{between}", "").replace(between * 2, between).strip(between)
    return scalars.context.declare(concat(lit("{"), kept, lit("}")), "_text")


def in_array(scalars: Scalars, value: Expr, array: Expr, node: exp.Expr) -> Expr | list[Expr]:
    """Whether an array's text has an element; the elements, if they are constant."""
    declared = scalars.context.declared(array)
    if is_text(array):
        kind = scalars.type(value, node)
        found = [lit(element) for element in array_elements(array.params[1])]
        return [element if kind == types.String else element.cast(kind) for element in found]
    if scalars.type(array, node) != types.String:
        raise scalars.unsupported("this use of ANY or ALL", node)
    text, between = inside(array, declared or "_text")
    sought = concat(lit(between), value.cast(types.String), lit(between))
    return concat(lit(between), text, lit(between)).position(sought) > 0


def subscript(scalars: Scalars, node: exp.Bracket) -> Expr:
    """One element of an array of the catalogs."""
    array = scalars.bind(node.this)
    declared = scalars.context.declared(array)
    if len(node.expressions) != 1 or scalars.type(array, node) != types.String or not is_array(declared):
        what = f"a subscript of {scalars.type(array, node)}"
        raise scalars.unsupported(what, node, instead=instead(CLAUSES, what))
    at = scalars.bind(node.expressions[0])
    number = at + 1 if declared in VECTORS else at
    kind = element_type(declared)
    if is_text(array) and at.op == "lit":
        elements = array_elements(array.params[1])
        found = at.params[1] - (0 if declared in VECTORS else 1)
        text = lit(elements[found] if 0 <= found < len(elements) else None, types.String)
    else:
        inner, between = inside(array, declared)
        text = inner.split_part(lit(between), number)
        text = when(text != "", text).otherwise(None)
    return text if kind == types.String else text.cast(kind)


def element_type(declared: str) -> Type:
    """The type of the elements of an array."""
    inner = {"int2vector": "int2", "oidvector": "oid"}.get(declared, declared.removeprefix("_"))
    return own_type(inner)


# ---------------------------------------------------------------------- the table

_TRUE, _FALSE, _NULL = constant(True, types.Bool), constant(False, types.Bool), constant(None, types.String)
FUNCTIONS: dict[str, Function] = {
    "format_type": format_type, "pg_get_expr": expression_text, "pg_get_indexdef": index_definition,
    "pg_get_constraintdef": constraint_definition, "pg_get_userbyid": user_by_id, "quote_ident": quoted,
    "quote_literal": quoted_text,
    "pg_get_viewdef": of_relations(lambda r: r.definition if r.kind in "vm" else None),
    "pg_table_is_visible": is_visible,
    **dict.fromkeys(("pg_type_is_visible", "pg_function_is_visible", "pg_collation_is_visible", "pg_opclass_is_visible",
                     "pg_operator_is_visible", "pg_statistics_obj_is_visible", "pg_conversion_is_visible",
                     "pg_opfamily_is_visible", "pg_ts_config_is_visible", "pg_ts_dict_is_visible", "pg_ts_parser_is_visible",
                     "pg_ts_template_is_visible", "pg_relation_is_publishable",
                     "has_function_privilege", "has_sequence_privilege", "has_tablespace_privilege", "has_type_privilege"),
                    _TRUE),
    "has_table_privilege": privileges.of_table, "has_any_column_privilege": privileges.of_table,
    "has_column_privilege": privileges.of_column, "has_schema_privilege": privileges.of_schema,
    "has_database_privilege": privileges.of_database, "pg_has_role": privileges.of_role,
    **dict.fromkeys(("pg_is_in_recovery", "pg_is_other_temp_schema"), _FALSE),
    **dict.fromkeys(("obj_description", "col_description", "shobj_description", "pg_get_function_result",
                     "pg_get_function_arguments", "pg_get_function_sqlbody", "pg_get_function_identity_arguments",
                     "pg_get_functiondef",
                     "pg_get_ruledef", "pg_get_triggerdef", "pg_get_partkeydef", "pg_get_serial_sequence",
                     "pg_get_statisticsobjdef_columns", "pg_get_partition_constraintdef"), _NULL),
    **dict.fromkeys(("pg_relation_size", "pg_table_size", "pg_total_relation_size"),
                    of_relations(lambda r: r.bytes, types.Int)),
    **dict.fromkeys(("pg_database_size", "pg_tablespace_size"), all_bytes),
    "pg_indexes_size": of_relations(lambda r: 0, types.Int),
    "pg_size_pretty": pretty_size, "pg_encoding_to_char": constant("UTF8", types.String),
    "pg_char_to_encoding": constant(6, types.Int), "getdatabaseencoding": constant("UTF8", types.String),
    "pg_advisory_unlock_all": constant("", types.String), "pg_tablespace_location": constant("", types.String),
    "to_regclass": to_registered("regclass"), "to_regtype": to_registered("regtype"),
    "to_regnamespace": to_registered("regnamespace"), "current_setting": current_setting, "set_config": set_config,
    "json_build_object": object_text, ARRAY_OF: array_of_text, ELEMENT: array_element, "array_to_string": array_to_string,
    "array_length": array_length, "cardinality": array_length, "array_upper": array_upper,
    "array_lower": constant(1, types.Int), "array_remove": array_remove, "pg_my_temp_schema": constant(0, types.Int),
    "pg_backend_pid": backend_process,
}  # fmt: skip
"""Functions of the catalogs by name. There are no comments, functions, rules and triggers: what is asked of them is NULL."""


def session_value(scalars: Scalars, name: str) -> Expr:
    """A session's value of a word such as current_user."""
    if name == "current_user":
        return scalars.context.current_user()
    contents = scalars.context.contents()
    path = [schema for schema in contents.settings.search_path if schema in contents.schemas]
    values = {
        "current_schema": path[0] if path else None,
        "current_database": contents.settings.database,
        "current_catalog": contents.settings.database,
        "session_user": contents.settings.login,
    }
    return lit(values[name], types.String)


def current_schemas(scalars: Scalars, implicit: Expr) -> Expr:
    """CURRENT_SCHEMAS: the search path; with the schema that is searched without being named, if wanted."""
    contents = scalars.context.contents()
    path = [schema for schema in contents.settings.search_path if schema in contents.schemas]
    system = ["pg_catalog"] if implicit.op == "lit" and implicit.params[1] else []
    return scalars.context.declare(lit(array_text([*system, *path])), "_name")


# Functions that are called without a value. All others have one at least.
WITHOUT_VALUES = frozenset({
    "getdatabaseencoding", "json_build_object", "pg_advisory_unlock_all", "pg_backend_pid", "pg_is_in_recovery",
    "pg_my_temp_schema",
})  # fmt: skip
