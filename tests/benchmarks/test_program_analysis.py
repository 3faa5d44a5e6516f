"""The benchmark of program analysis: both forms of an analysis agree, before and after assignments go."""

from __future__ import annotations

from pathlib import Path

from benchmarks import program_analysis

JAR = Path(__file__).parents[1] / "examples" / "data" / "java" / "main.jar"


def test_both_forms_have_equal_answers_and_removals_change_them() -> None:
    records = list(program_analysis.run(functions=12, removals=3))
    found = {(record["analysis"], record["form"]): (record["rows"], record["rows_left"]) for record in records}
    for analysis in ("dataflow", "points-to", "null through memory"):
        assert found[analysis, "plain"] == found[analysis, "shared"]
        assert found[analysis, "plain"][0] > found[analysis, "plain"][1]


def test_bodies_that_go_and_come_back_leave_the_answer_as_it_was() -> None:
    (record,) = program_analysis.run(jars=[str(JAR)], contexts=["object2"], removals=3)
    assert record["rows"] == record["rows_left"] > 50
