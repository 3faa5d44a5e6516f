"""Prints expressions in a form that Python can read."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tektite.expr.ast import Expr

# how each prints, and how tightly it binds in Python, so that Python can read the printed form
INFIX = {
    "eq": ("==", 1), "ne": ("!=", 1), "lt": ("<", 1), "le": ("<=", 1), "gt": (">", 1), "ge": (">=", 1),
    "or": ("|", 2), "and": ("&", 3),
    "add": ("+", 4), "sub": ("-", 4), "mul": ("*", 5), "div": ("/", 5), "floordiv": ("//", 5), "mod": ("%", 5),
}  # fmt: skip
PREFIX = {"neg": "-", "not": "~"}
TIGHTEST = 6
FREE = frozenset(
    {"coalesce", "least", "greatest", "hash64", "concat", "truncdiv", "truncmod", "now", "elapsed"}
)  # printed as functions
NAMESPACED = {"is_among": "is_in",
    "date_part": "dt.part", "strftime": "dt.strftime", "in_zone": "dt.in_zone", "from_zone": "dt.from_zone",
    "strptime": "str.to_datetime", "try_strptime": "str.to_datetime",
    "list_length": "list.len", "list_contains": "list.contains", "list_concat": "list.concat", "list_join": "list.join",
    "struct_field": "struct.field", "json_extract": "json.get", "json_extract_text": "json.text",
}  # fmt: skip
RANKING = frozenset({"row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile"})


LENGTHS = {86_400_000_000: "days", 3_600_000_000: "hours", 60_000_000: "minutes", 1_000_000: "seconds", 1000: "milliseconds",
    1: "microseconds"}  # fmt: skip
"""The units of lengths of time, by their microseconds."""
SKIPPING = {"lag": 2, "lead": 2, "nth_value": 1, "first": 1, "last": 1}
"""How many constants each of these has; one more says that NULLs do not count."""


def printed(found: Expr) -> str:
    """An expression as Python has it."""
    if found.op == "col":
        return str(found.params[0])
    if found.op == "lit":
        value = found.params[1]
        return repr(value) if value is None or isinstance(value, str | bool | int | float) else f"'{value}'"
    if found.op in INFIX:
        sign, binding = INFIX[found.op]
        # comparisons would chain without parentheses, a - (b - c) needs them
        left = binding + 1 if binding == 1 else binding
        return f"{within(found.args[0], left)} {sign} {within(found.args[1], binding + 1)}"
    if found.op in PREFIX:
        return PREFIX[found.op] + within(found.args[0], TIGHTEST)
    if found.op == "case":
        pairs = zip(found.args[0:-1:2], found.args[1:-1:2], strict=True)
        whens = ".".join(f"when({condition}).then({value})" for condition, value in pairs)
        return f"{whens}.otherwise({found.args[-1]})"
    if found.op == "move":
        return f"({within(found.args[0], 4)} + {datetime.timedelta(microseconds=found.params[0])!r})"
    if found.op in ("aggregate", "window", "over"):
        return printed_call(found)
    if found.op == "time_bucket":
        every = datetime.timedelta(microseconds=found.params[0])
        rest = "".join(f", {origin}" for origin in found.args[1:])
        return f"{within(found.args[0], TIGHTEST + 1)}.dt.truncate({every!r}{rest})"
    if found.op == "interval_length":
        unit, fractional = found.params
        return f"{within(found.args[0], TIGHTEST + 1)}.dt.total_{LENGTHS[unit]}({'fractional=True' * fractional})"
    shown = [repr(param) if isinstance(param, str) else str(param) for param in found.params]
    if found.op in FREE:
        return f"{found.op}({', '.join([str(arg) for arg in found.args] + shown)})"
    if found.op == "isin":
        items = [*found.args[1:], *(item for constants in found.params for item in constants.literals())]
        return f"{within(found.args[0], TIGHTEST + 1)}.isin([{', '.join(map(str, items))}])"
    rest = ", ".join([str(arg) for arg in found.args[1:]] + shown)
    if not found.args:  # a list of nothing
        return f"{found.op}({rest})"
    return f"{within(found.args[0], TIGHTEST + 1)}.{NAMESPACED.get(found.op, found.op)}({rest})"


def within(found: Expr, binding: int) -> str:
    """An expression as an operand: in parentheses, if its printed form binds less tightly than `binding`."""
    return f"({found})" if binding_of(found) < binding else str(found)


def binding_of(found: Expr) -> int:
    """The precedence of the printed form of an expression."""
    if found.op in INFIX:
        return INFIX[found.op][1]
    if found.op == "lit" and str(found).startswith("-"):
        return TIGHTEST - 1
    return TIGHTEST if found.op in PREFIX else TIGHTEST + 1


def printed_call(call: Expr) -> str:
    """An aggregate, or a window function, as Python has it."""
    if call.op == "over":
        partition, descending, frame, *exclude = call.params
        by = [str(arg) for arg in call.args[1 : 1 + partition]]
        order = [str(arg) for arg in call.args[1 + partition :]]
        shown = [
            *by,
            *([f"order_by=[{', '.join(order)}]"] if order else []),
            *(["descending=..."] if any(descending) else []),
        ]
        shown += [f"{frame[0]}={frame[1:]}"] if frame else []
        shown += [f"exclude={word!r}" for word in exclude]
        return f"{call.args[0]}.over({', '.join(shown)})"
    kind, *constants = call.params
    shown = [repr(constant) for constant in constants if constant not in (None, ())]
    if len(constants) > SKIPPING.get(kind, len(constants)):
        shown[-1] = "ignore_nulls=True"
    given = ", ".join(shown)
    if call.op == "aggregate" and not call.args or kind in RANKING:
        return f"{kind}({given})"
    return f"{within(call.args[0], TIGHTEST + 1)}.{kind}({given})"
