"""The relations of facts of C programs. `rules/c/facts.dl` declares the same ones to Datalog.

A node is a pointer (a local value `f/load3`, an argument `f/%0`, a global `@g`, a function `@f`), or the memory `*p` that a
pointer leads to, or a part `p.S.2` of the struct that it leads to.
"""

from __future__ import annotations

RELATIONS: dict[str, tuple[str, ...]] = {
    "AssignLocal": ("from", "to"),
    "Dereference": ("pointer", "memory"),
    "FieldAddress": ("pointer", "address", "field"),
    "NullAssignment": ("assignment", "to"),
    "NullTest": ("pointer",),
    "Use": ("place", "pointer", "function"),
    "Object": ("node", "kind"),
    "CallSite": ("call", "function", "callee"),
    "ActualArgument": ("call", "index", "node"),
    "CallResult": ("call", "node"),
    "FormalArgument": ("function", "index", "node"),
    "ReturnedNode": ("function", "node"),
}

NUMBERS = {"index"}
