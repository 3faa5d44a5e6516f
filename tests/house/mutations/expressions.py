"""Faults of expressions: types, programs, texts."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import tektite as tk
from tektite.expr import guards
from tektite.kernels.expr import steps as ops
from tests.house.mutations.fault import Fault, altered, being, misled

LARGEST = 2**63 - 1


def computed(rows: list[Any], columns: dict[str, tk.Type], **outputs: Any) -> list[Any]:
    """The rows of a projection."""
    with tk.Engine(autocommit=False) as engine:
        table = engine.create_table("t", columns)
        table.insert(rows)
        engine.advance()
        return sorted(engine.install("v", table.select(**outputs)).rows())


def at_most_includes_the_bound() -> None:
    assert computed([(3,), (4,)], {"x": tk.Int}, y=tk.col("x") <= 3) == [(False,), (True,)]


def decimals_of_two_scales_are_added_as_numbers() -> None:
    columns = {"a": tk.Decimal(6, 1), "b": tk.Decimal(8, 2)}
    assert computed([(Decimal("1.5"), Decimal("1.50"))], columns, y=tk.col("a") + tk.col("b")) == [(Decimal("3.00"),)]


def a_branch_that_is_not_taken_cannot_fail() -> None:
    safe = tk.when(tk.col("x") < LARGEST, tk.col("x") + 1).otherwise(0)
    assert computed([(LARGEST,), (1,)], {"x": tk.Int}, y=safe) == [(0,), (2,)]


def coalesce_takes_the_first_value() -> None:
    assert computed([(None, 2), (1, 2)], {"a": tk.Int, "b": tk.Int}, y=tk.coalesce(tk.col("a"), tk.col("b"))) == [
        (1,),
        (2,),
    ]


def constants_are_computed() -> None:
    assert computed([(1,)], {"x": tk.Int}, y=tk.lit(2) * 3 + tk.col("x")) == [(7,)]


def substrings_begin_at_one() -> None:
    with tk.Engine(autocommit=False) as engine:
        assert engine.sql("SELECT substring('basalt', 2, 3) AS s").rows() == [("asa",)]


def an_escaped_percent_is_itself() -> None:
    like = tk.col("s").like("a!%b", "!")
    assert computed([("a%b",), ("axb",)], {"s": tk.String}, s="s", y=like) == [("a%b", True), ("axb", False)]


def null_is_no_member_and_no_stranger() -> None:
    with tk.Engine(autocommit=False) as engine:
        assert engine.sql("SELECT 1 NOT IN (2, NULL) AS a, 2 IN (2, NULL) AS b").rows() == [(None, True)]


def a_filter_moves_through_what_it_reads() -> None:
    with tk.Engine(autocommit=False) as engine:
        engine.sql("CREATE TABLE t (x int); INSERT INTO t VALUES (1), (5)")
        assert engine.sql("SELECT y FROM (SELECT x + 1 AS y FROM t) AS s WHERE y > 3").rows() == [(6,)]


def null_does_not_hide_a_failing_row() -> None:
    with tk.Engine() as engine:
        table = engine.create_table("t", {"k": tk.Int, "v": tk.String})
        view = engine.install("v", table.filter((tk.col("k") == 3) & (tk.col("v").cast(tk.Int) > 1)))
        table.insert([(None, "bad")])
        assert view.error is not None


FAULTS = [
    Fault("at most is below", "tektite.expr.typing COMPARISONS[le]", being(ops.LT), at_most_includes_the_bound),
    Fault("decimals are added digit by digit", "tektite.expr.typing Resolver.aligned",
          lambda there: lambda self, left, right: (left, right), decimals_of_two_scales_are_added_as_numbers),
    Fault("every branch is computed", "tektite.expr.steps FALLIBLE", being(frozenset()), a_branch_that_is_not_taken_cannot_fail),
    Fault("coalesce takes the last value", "tektite.expr.typing RULES[coalesce]",
          misled(lambda self, expr, *values: (self, expr, *reversed(values))), coalesce_takes_the_first_value),
    Fault("constants are off by one", "tektite.expr.program evaluate_constant", altered(lambda word: word + 1),
          constants_are_computed),
    Fault("substrings begin at zero", "tektite.expr.text FUNCTIONS[substring]",
          misled(lambda text, start, *length: (text, start + 1, *length)), substrings_begin_at_one),
    Fault("an escape is a character", "tektite.expr.like PATTERNS[like]",
          lambda there: lambda pattern, escape=None: there(pattern), an_escaped_percent_is_itself),
    Fault("NULL is left out of lists", "tektite.expr.typing RULES[isin]",
          misled(lambda self, expr, value, *items: (self, expr, value, *items[:1])), null_is_no_member_and_no_stranger),
    Fault("a comparison with NULL decides", "tektite.expr.assembler guard_of", lambda there: guards._guard,
          null_does_not_hide_a_failing_row),
    Fault("what is read through a projection stays as it was", "tektite.expr.ast Expr.substitute",
          lambda there: lambda self, replacements: self, a_filter_moves_through_what_it_reads),
]  # fmt: skip
