"""The benchmark of program analysis: both forms of an analysis agree, before and after assignments go."""

from __future__ import annotations

from benchmarks import program_analysis


def test_both_forms_have_equal_answers_and_removals_change_them() -> None:
    records = list(program_analysis.run(functions=12, removals=3))
    found = {(record["analysis"], record["form"]): (record["rows"], record["rows_left"]) for record in records}
    for analysis in ("dataflow", "points-to", "null through memory"):
        assert found[analysis, "plain"] == found[analysis, "shared"]
        assert found[analysis, "plain"][0] > found[analysis, "plain"][1]
