"""Tests of behaviour are declared once for all executors: a module that makes engines uses the fixture, or says here why not."""

from __future__ import annotations

from pathlib import Path

LOCAL = {
    "test_memory.py": "bytes of this process",
    "test_memory_account.py": "bytes of this process",
    "test_mutations.py": "rules of the engine that are broken in this process",
    "test_sql_errors.py": "statements that are refused before anything runs",
    "sql/test_bad_sql.py": "statements that are refused before anything runs",
    "sql/test_depth.py": "how far statements are read",
    "test_sql_rules.py": "plans, of which nothing runs",
    "test_storage.py": "what the storage keeps, whoever computes with it",
    "test_storage_command.py": "what the storage keeps",
    "test_storage_damage.py": "what the storage keeps",
    "test_storage_failing.py": "what the storage keeps",
    "test_storage_kills.py": "what the storage keeps",
    "test_storage_merging.py": "what the storage keeps",
    "test_storage_owners.py": "what the storage keeps",
    "test_storage_remote.py": "what the storage keeps",
}


def test_modules_that_make_engines_run_on_every_executor() -> None:
    here = Path(__file__).parent
    texts = {
        path.relative_to(here).as_posix(): path.read_text(encoding="utf-8")
        for folder in (here, here / "sql")
        for path in folder.glob("test_*.py")
    }
    alone = {name for name, text in texts.items() if "tk.Engine" in text and "executor" not in text}
    assert alone == set(LOCAL), "use the fixture `executor`, or say in LOCAL why not"
