"""PostgreSQL's types: which of them a column of ours is, and what of ours a column of a system relation is."""

from __future__ import annotations

from dataclasses import dataclass

from tektite.values import types
from tektite.values.types import DecimalType, ListType, Type

_TYPES = """
16 bool 1 b B 0 1000 boolean
17 bytea -1 b U 0 1001 bytea
18 char 1 b Z 0 1002 "char"
19 name 64 b S 18 1003 name
20 int8 8 b N 0 1016 bigint
21 int2 2 b N 0 1005 smallint
22 int2vector -1 b A 21 1006 int2vector
23 int4 4 b N 0 1007 integer
24 regproc 4 b N 0 1008 regproc
25 text -1 b S 0 1009 text
26 oid 4 b N 0 1028 oid
27 tid 6 b U 0 1010 tid
28 xid 4 b U 0 1011 xid
29 cid 4 b U 0 1012 cid
30 oidvector -1 b A 26 1013 oidvector
114 json -1 b U 0 199 json
194 pg_node_tree -1 b Z 0 0 pg_node_tree
700 float4 4 b N 0 1021 real
701 float8 8 b N 0 1022 double_precision
705 unknown -2 p X 0 0 unknown
1033 aclitem 12 b U 0 1034 aclitem
1042 bpchar -1 b S 0 1014 character
1043 varchar -1 b S 0 1015 character_varying
1082 date 4 b D 0 1182 date
1083 time 8 b D 0 1183 time_without_time_zone
1114 timestamp 8 b D 0 1115 timestamp_without_time_zone
1184 timestamptz 8 b D 0 1185 timestamp_with_time_zone
1186 interval 16 b T 0 1187 interval
1700 numeric -1 b N 0 1231 numeric
2202 regprocedure 4 b N 0 2207 regprocedure
2205 regclass 4 b N 0 2210 regclass
2206 regtype 4 b N 0 2211 regtype
2249 record -1 p P 0 2287 record
2277 anyarray -1 p P 0 0 anyarray
2278 void 4 p P 0 0 void
2950 uuid 16 b U 0 2951 uuid
3802 jsonb -1 b U 0 3807 jsonb
4089 regnamespace 4 b N 0 4090 regnamespace
"""


UNDERLINED = ("date", "time", "timestamp", "timestamptz", "interval", "numeric", "json", "jsonb", "uuid", "record")
"""Types whose functions have an underline in their names."""


@dataclass(frozen=True)
class PgType:
    """A type of PostgreSQL. `shown` is how it is written; `element` and `array` are oids."""

    oid: int
    name: str
    length: int
    kind: str
    category: str
    element: int
    array: int
    shown: str

    @property
    def receive(self) -> str:
        """The function that reads the type's binary form, by whose name clients such as ADBC know how to read it."""
        if self.category == "A" and self.name.startswith("_"):
            return "array_recv"
        return f"{self.name}_recv" if self.name in UNDERLINED else f"{self.name}recv"

    @property
    def send(self) -> str:
        """The function that writes the type's binary form."""
        return self.receive.replace("recv", "send")


def _parsed() -> dict[str, PgType]:
    found = {}
    for line in _TYPES.strip().splitlines():
        oid, name, length, kind, category, element, array, shown = line.split()
        words = shown.replace("_", " ") if "_" in shown and shown != name else shown
        made = PgType(int(oid), name, int(length), kind, category, int(element), int(array), words)
        found[name] = made
        if made.array:
            found[f"_{name}"] = PgType(made.array, f"_{name}", -1, "b", "A", made.oid, 0, f"{words}[]")
    return found


PG_TYPES = _parsed()
"""The types that columns of tables and of system relations have, and arrays of them, by name."""
BY_OID = {type.oid: type for type in PG_TYPES.values()}
ALSO_CALLED = {
    "boolean": "bool", "bigint": "int8", "smallint": "int2", "integer": "int4", "int": "int4", "real": "float4",
    "double precision": "float8", "character varying": "varchar", "character": "bpchar", "char": "bpchar",
    "timestamp without time zone": "timestamp", "timestamp with time zone": "timestamptz", "decimal": "numeric",
    "string": "text", "float": "float8", "double": "float8", '"char"': "char",
}  # fmt: skip
_OWN = {"int": "int8", "float": "float8", "bool": "bool", "string": "text", "date": "date", "timestamp": "timestamp",
        "decimal": "numeric", "time": "time", "timestamptz": "timestamptz", "interval": "interval", "json": "json",
        "uuid": "uuid", "blob": "bytea", "struct": "record", "oid": "oid"}  # fmt: skip
INTEGERS = ("int2", "int4", "int8", "oid", "xid", "cid", "regproc", "regclass", "regtype", "regnamespace", "regprocedure",
            "cardinal_number")  # fmt: skip
_FROM = {"bool": types.Bool, "float4": types.Float, "float8": types.Float, "timestamptz": types.Timestamp,
         "timestamp": types.Timestamp, "time_stamp": types.Timestamp, **dict.fromkeys(INTEGERS, types.Int)}  # fmt: skip


OID = Type("oid")
"""The type of elements of arrays of oids, which parameters may be."""
REGISTERED = ("regclass", "regtype", "regnamespace", "regproc")
"""Oids that are shown as names."""


def pg_type(type: Type) -> PgType:
    """PostgreSQL's type for one of our types.

    >>> pg_type(types.Decimal(12, 2)).name, pg_type(types.Int).shown
    ('numeric', 'bigint')
    """
    if isinstance(type, ListType):  # PostgreSQL's arrays of arrays are arrays of more dimensions
        while isinstance(type, ListType):
            type = type.element
        return PG_TYPES[f"_{_OWN[type.kind]}"]
    return PG_TYPES[_OWN[type.kind]]


def type_modifier(type: Type) -> int:
    """The digits of a decimal as PostgreSQL keeps them beside a column's type; -1 for other types."""
    return (type.precision << 16 | type.scale) + 4 if isinstance(type, DecimalType) else -1


def own_type(name: str) -> Type:
    """The type of ours that holds values of a column of a system relation: arrays and everything unknown are texts."""
    return _FROM.get(name, types.String)


def shown_type(type: Type) -> str:
    """A type of ours as PostgreSQL writes it, with digits."""
    shown = pg_type(type).shown
    return f"{shown}({type.precision},{type.scale})" if isinstance(type, DecimalType) else shown


def type_named(text: str) -> PgType | None:
    """The type that a name means, however it is written."""
    name = text.strip().lower()
    name = name.removeprefix("pg_catalog.")
    array = name.endswith("[]")
    base = name.removesuffix("[]")
    base = ALSO_CALLED.get(base, base).strip('"')
    return PG_TYPES.get(f"_{base}" if array else base)
