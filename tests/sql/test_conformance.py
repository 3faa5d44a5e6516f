"""The files of `conformance/`, in the form that other systems keep theirs in; and that the runner tells right from wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.executors import make_engine
from tests.support.sql.sqllogictest import run

FILES = sorted((Path(__file__).parent / "conformance").glob("*.test"))

pytestmark = pytest.mark.executors


@pytest.mark.executors(stages=["select"], spark=["select"])
@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_file_agrees(path: Path) -> None:
    with make_engine() as engine:
        outcome = run(path.read_text(encoding="utf-8"), engine)
    assert not outcome.wrong and not outcome.refused and outcome.right


@pytest.mark.parametrize(
    "record",
    [
        "query I\nSELECT 1\n----\n2",
        "query II\nSELECT 1, 2\n----\n1\t3",
        "query I\nSELECT 1, 2\n----\n1",
        "query I\nSELECT 1\n----\n1 values hashing to 00000000000000000000000000000000",
        "statement error\nSELECT 1",
        "statement ok\nSELECT nope",
    ],
)
def test_a_wrong_answer_is_found(record: str) -> None:
    with make_engine() as engine:
        outcome = run(f"{record}\n\nquery I\nSELECT 7\n----\n7", engine)
    assert len(outcome.wrong) == 1 and outcome.wrong[0].startswith("line 1: ") and outcome.right == 1


def test_what_is_refused_by_name_is_not_wrong() -> None:
    with make_engine() as engine:
        outcome = run(
            "statement ok\nCREATE TABLE t (a INT)\n\nquery I\nSELECT a FROM t TABLESAMPLE 10%\n----\n1", engine
        )
    assert (outcome.right, outcome.wrong) == (1, []) and "TABLESAMPLE" in outcome.refused[0]
