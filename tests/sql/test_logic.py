"""The files of `logic/`: one for each construct of the language."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.sql.logic import FOLDER, run

pytestmark = pytest.mark.executors

FILES = sorted(FOLDER.glob("*.slt"))


@pytest.mark.executors(
    stages=["joins", "recursion", "transactions", "windows"],
    spark=["half_joins"],
)  # fmt: skip
@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_file_gives_the_answers_it_states(path: Path) -> None:
    found = run(path)
    assert not found, "\n" + "\n".join(found)
