"""Functions of a text and a constant regular expression."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from tektite.expr import Expr

if TYPE_CHECKING:
    from tektite.sql.bind.scalar import Scalars


def of_pattern(scalars: Scalars, node: exp.Expr) -> Expr:
    """Functions of a text and a regular expression."""
    value = scalars.bind(node.this)
    flags = constant_text(scalars, node, "flag", "modifiers", "options", "parameters")
    flags += "i" * isinstance(node, exp.RegexpILike)
    pattern = regular_expression(
        scalars, node, flags.replace("g", "", 1) if isinstance(node, exp.RegexpReplace) else flags
    )
    if isinstance(node, exp.RegexpReplace):
        replacement = constant_text(scalars, node, "replacement")
        check_pattern(scalars, node, lambda: pc.replace_substring_regex(pa.array([""]), pattern, replacement))
        return value.regexp_replace(pattern, replacement, "g" in flags)
    if isinstance(node, exp.RegexpExtract):
        group = scalars.bind(node.args["group"])
        if group.op != "lit" or type(group.params[1]) is not int or group.params[1] < 0:
            raise scalars.unsupported("a group of a regular expression that is not a constant number", node)
        return value.regexp_extract(pattern, group.params[1])
    return value.matches(pattern if isinstance(node, exp.RegexpLike | exp.RegexpILike) else rf"\A(?:{pattern})\z")


def regular_expression(scalars: Scalars, node: exp.Expr, flags: str = "") -> str:
    """The pattern of a function, with flags in front; one that cannot be read is told now, not row by row."""
    if set(flags) - set("cis"):
        raise scalars.unsupported(f"regular expression option {''.join(sorted(set(flags) - set('cis')))!r}", node)
    pattern = constant_text(scalars, node, "expression")
    chosen = "".join(sorted(set(flags) - {"c"}))
    found = f"(?{chosen}){pattern}" if chosen else pattern
    check_pattern(scalars, node, lambda: pc.match_substring_regex(pa.array([""]), found))
    return found


def check_pattern(scalars: Scalars, node: exp.Expr, trial: Callable[[], object]) -> None:
    """Refuse a pattern or a replacement that a trial finds wrong."""
    try:
        trial()
    except pa.ArrowInvalid as error:
        raise scalars.error(
            str(error).replace("Invalid regular expression", "invalid regular expression"), node
        ) from None


def constant_text(scalars: Scalars, node: exp.Expr, *names: str) -> str:
    """The constant text that one of some arguments must be; empty if there is none."""
    tree = next((node.args[name] for name in names if node.args.get(name) is not None), None)
    if tree is None:
        return ""
    value = scalars.bind(tree)
    if value.op != "lit" or not isinstance(value.params[1], str):
        name = node.sql_name().lower() if isinstance(node, exp.Func) else "similar to"
        raise scalars.unsupported(f"{name} of anything but constants beside its text", tree)
    return str(value.params[1])
