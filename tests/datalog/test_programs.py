"""The programs of `programs/`, one folder for each topic, give what their folders state: run once, and kept up to date."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import datalog_folders
from tests.support.datalog_folders import ProgramFolder

pytestmark = pytest.mark.executors

FOLDERS = datalog_folders.folders()
ACCEPTED = [folder for folder in FOLDERS if not folder.refused]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_program_writes_and_prints_what_its_folder_has(folder: ProgramFolder, tmp_path: Path) -> None:
    assert datalog_folders.run(folder, tmp_path) == []


@pytest.mark.executors(stages=["goals_of_recursion", "aggregates_of_outer_values", "components"], spark=["components"])
@pytest.mark.parametrize("folder", ACCEPTED, ids=lambda folder: folder.name)
def test_program_keeps_its_answers_while_facts_come_and_go(folder: ProgramFolder, tmp_path: Path) -> None:
    assert datalog_folders.maintained(folder, tmp_path, workers=2) == []
