"""Tests of behaviour are declared once for all executors: a module that makes engines makes them by the factory and says on
which executors its tests run, or says here why not.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.support.executors import EXECUTORS, chosen, runs_on

HERE = Path(__file__).parents[1]
LOCAL = {
    "sql/test_rights_beside_postgres.py": "what users may do, which is decided before anything runs",
    "sql/test_direct.py": "which statements need no plan in this process",
    "sql/test_describe.py": "what statements take and give, before anything runs",
    "plan/test_depth.py": "plans that are refused before anything runs",
    "engine/test_graph_cache.py": "graphs that this process uses again",
    "engine/test_memory_of_views.py": "what views take in this process",
    "engine/test_away.py": "threads of this process that wait for each other",
    "engine/test_heavy_installs.py": "threads of this process that wait for each other",
    "engine/test_who_works.py": "threads of this process that wait for each other",
    "server/test_finisher.py": "threads of this process that wait for each other",
    "sql/test_long_statements.py": "threads of this process that wait for each other",
    "sql/test_system_rights.py": "what system relations of this process tell users",
    "storage/test_loaded_texts.py": "when the texts of this process are loaded",
    "client/test_wrong_kind_of_block.py": "what clients refuse before anything runs",
    "query/test_operators_and_names.py": "what is refused, before anything runs",
    "client/test_protocol.py": "what any client offers, in this process or another",
    "engine/test_texts.py": "what the dictionary of this process keeps",
    "engine/test_declarations.py": "what is refused and what is kept, before anything runs",
    "query/test_what_calls_take.py": "what is refused, before anything runs, and what it is answered with",
    "query/test_first_guesses.py": "messages, before anything runs",
    "query/test_typed_lines.py": "what is understood and what is refused, before anything runs",
    "engine/test_former_names.py": "what former names declare, before anything runs",
    "engine/test_autocommit.py": "who closes epochs, wherever that is computed",
    "engine/test_interrupts.py": "what an interrupt leaves in this process",
    "engine/test_interrupted_readers.py": "what an interrupt leaves in this process",
    "dataflow/test_kept_results.py": "when traces of this process keep no batches",
    "engine/test_signals.py": "what signals do to this process",
    "engine/test_small_epochs.py": "what this process does in C, beside the same in Python",
    "engine/test_small_writes.py": "what this process does in C, beside the same in Python",
    "engine/test_spans.py": "when this process does something",
    "sql/test_tpch_parameters.py": "prepared queries of TPC-H; sql/test_statements.py prepares on every executor",
    "engine/test_memory.py": "bytes of this process",
    "engine/test_memory_account.py": "bytes of this process",
    "engine/test_memory_limit.py": "bytes of this process",
    "engine/test_clock.py": "a thread of this process",
    "engine/test_live_widget.py": "a thread of this process, and a kernel of its own",
    "engine/test_touched_views.py": "which dataflows sweep in this process",
    "graph/test_refused.py": "graphs that are refused before anything runs",
    "graph/test_sources.py": "what is loaded, whoever computes with it",
    "plan/test_one_plan.py": "plans, of which nothing runs",
    "plan/test_rules.py": "plans, of which nothing runs",
    "query/test_guessed_calls.py": "calls, which an engine answers before anything runs",
    "query/test_refused.py": "queries that are refused before anything runs",
    "query/test_wrong_types.py": "queries that are refused before anything runs",
    "runtime/test_shard.py": "an executor of its own",
    "sql/test_errors.py": "statements that are refused before anything runs",
    "sql/test_postgres_habits.py": "how statements are read; sql/test_statements.py prepares on every executor",
    "sql/test_depth.py": "how far statements are read",
    "sql/test_fuzz.py": "what is made of a text before anything runs; 100,000 of them would take days as jobs",
    "sql/test_rules.py": "plans, of which nothing runs",
    "storage/test_storage.py": "what the storage keeps, whoever computes with it",
    "storage/test_command.py": "what the storage keeps",
    "storage/test_damage.py": "what the storage keeps",
    "storage/test_failing.py": "what the storage keeps",
    "storage/test_kills.py": "what the storage keeps",
    "storage/test_merging.py": "what the storage keeps",
    "storage/test_owners.py": "what the storage keeps",
    "storage/test_remote.py": "what the storage keeps",
    "storage/test_upgrades.py": "what the storage keeps",
    "server/test_durable_catalog.py": "a program beside the server",
    "server/test_embedded.py": "a server in the program's own process",
    "server/test_subscriptions.py": "a query of this process, which does not travel",
    "server/test_system_rights.py": "a server in the program's own process",
    "install/test_wheel.py": "programs of their own, with the installed package",
    "install/test_extras.py": "programs of their own, with the installed package",
}
FOLDERS = {
    "spark": "what Spark does beside running sweeps; its tests name their session",
    "house": "rules of the engine that are broken in this process, and programs that are started",
}
MARKER = "pytest.mark.executors"
LANGUAGE = (
    "datalog/test_bad_input.py",
    "datalog/test_edn_queries.py",
    "datalog/test_formulas.py",
    "datalog/test_souffle.py",
    "datalog/test_souffle_language.py",
    "datalog/test_table_types.py",
    "engine/test_notebooks.py",
    "engine/test_table_edits.py",
    "expr/test_expansions.py",
    "plan/test_match_planning.py",
    "query/test_own_columns.py",
    "query/test_same_plan_as_sql.py",
    "sql/test_alter_table.py",
    "sql/test_constant_sets.py",
    "sql/test_direct_texts.py",
    "sql/test_disclosure.py",
    "sql/test_executed_meanwhile.py",
    "sql/test_guarded_failures.py",
    "sql/test_list_parameters.py",
    "sql/test_policies.py",
    "sql/test_property_graphs.py",
    "sql/test_remembered.py",
    "sql/test_roles.py",
    "sql/test_shared_subscriptions.py",
    "sql/test_sharing.py",
    "sql/test_thresholds.py",
    "sql/test_tool_queries.py",
)
"""What becomes of a text or a call before operators run: their plans are those of other modules. On Spark at night alone."""
SELDOM = dict.fromkeys([(name, "spark") for name in LANGUAGE], "a language") | {
    ("dataflow/test_equal_rows.py", "spark"): "tasks do not see the small buffers that its tests set",
    ("engine/test_many_filters.py", "spark"): "thousands of views are minutes of small jobs: make nightly runs them",
    ("engine/test_texts_random.py", "spark"): "eleven views are minutes of small jobs; spark/test_texts.py has some",
    ("graph/test_patterns.py", "spark"): "patterns are joins and loops: make nightly runs them",
    ("graph/test_sharing.py", "spark"): "what is shared is decided before anything runs: make nightly runs them",
    (
        "query/test_near_windows.py",
        "spark",
    ): "tasks do not see that small groups count as large; stages pack as for Spark",
    ("query/test_equal_intervals.py", "spark"): "what a group shows is the least value: make nightly runs them",
    ("query/test_scc.py", "spark"): "loops in loops are minutes of small jobs: make nightly runs them",
}
MODULES = {
    path.relative_to(HERE).as_posix(): path.read_text(encoding="utf-8")
    for path in HERE.rglob("test_*.py")
    if not {path.relative_to(HERE).parts[0]} & {*FOLDERS}
}
BEHAVIOUR = {name: text for name, text in MODULES.items() if "pytest.mark.executors" in text}


def test_modules_that_make_engines_run_on_every_executor() -> None:
    alone = {name for name, text in MODULES.items() if re.search(r"\btk\.Engine\(", text)}
    assert alone == {*LOCAL}, "make engines by make_engine, with the marker executors, or say in LOCAL why not"


def test_modules_with_the_factory_have_the_marker() -> None:
    without = {name for name, text in MODULES.items() if "make_engine(" in text and name not in BEHAVIOUR}
    assert without == set(), "say `pytestmark = pytest.mark.executors`"


@pytest.mark.parametrize("name", ["stages", "spark"])
def test_each_module_of_behaviour_has_a_test_on_every_executor(name: str) -> None:
    without = {(module, name) for module, text in BEHAVIOUR.items() if name not in named_by_markers(text)}
    assert without == {found for found in SELDOM if found[1] == name}


def is_marker(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "executors" and ast.unparse(call.func) == MARKER


def named_by_markers(text: str) -> set[str]:
    """The executors that the markers of a module name."""
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    markers = [call for call in calls if is_marker(call)]
    arguments = {ast.literal_eval(one) for marker in markers for one in marker.args}
    return arguments | {one.arg for marker in markers for one in marker.keywords if one.arg}


def test_marker_names_executors_for_all_parameters_or_for_those_of_some_ids() -> None:
    module = pytest.mark.executors("stages").mark
    some = pytest.mark.executors(spark=["left join", 3]).mark
    assert chosen([]) == ["threads"]
    assert chosen([module, some], "3") == ["threads", "stages", "spark"]
    assert chosen([module, some], "4") == ["threads", "stages"]
    with pytest.raises(pytest.UsageError, match=r"knows threads, stages, spark, not \['sparks'\]"):
        chosen([pytest.mark.executors("sparks").mark])


def test_other_executors_run_what_no_marker_names_each_test_once_in_as_many_nights() -> None:
    assert [name for name in EXECUTORS if runs_on(name, ["threads", "spark"], "test", {}, 0)] == ["threads", "spark"]
    others = {"stages": 1, "spark": 5}
    assert [name for name in EXECUTORS if runs_on(name, ["threads", "spark"], "test", others, 0)] == ["stages"]
    for test in ("test_a", "test_b", "test_c[stages-7]"):
        assert sum(runs_on("spark", ["threads"], test, others, night * 997) for night in range(5)) == 1
