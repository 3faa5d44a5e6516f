"""Tests of behaviour are declared once for all executors: a module that makes engines uses the fixture, or says here why not."""

from __future__ import annotations

from pathlib import Path

LOCAL = {
    "engine/test_memory.py": "bytes of this process",
    "engine/test_memory_account.py": "bytes of this process",
    "house/test_mutations.py": "rules of the engine that are broken in this process",
    "plan/test_one_plan.py": "plans, of which nothing runs",
    "plan/test_rules.py": "plans, of which nothing runs",
    "sql/test_errors.py": "statements that are refused before anything runs",
    "sql/test_bad_sql.py": "statements that are refused before anything runs",
    "sql/test_depth.py": "how far statements are read",
    "sql/test_rules.py": "plans, of which nothing runs",
    "storage/test_storage.py": "what the storage keeps, whoever computes with it",
    "storage/test_command.py": "what the storage keeps",
    "storage/test_damage.py": "what the storage keeps",
    "storage/test_failing.py": "what the storage keeps",
    "storage/test_kills.py": "what the storage keeps",
    "storage/test_merging.py": "what the storage keeps",
    "storage/test_owners.py": "what the storage keeps",
    "storage/test_remote.py": "what the storage keeps",
}


def test_modules_that_make_engines_run_on_every_executor() -> None:
    here = Path(__file__).parents[1]
    texts = {
        path.relative_to(here).as_posix(): path.read_text(encoding="utf-8")
        for path in here.rglob("test_*.py")
        if here / "spark" not in path.parents
    }
    alone = {name for name, text in texts.items() if "tk.Engine" in text and "executor" not in text}
    assert alone == set(LOCAL), "use the fixture `executor`, or say in LOCAL why not"
