"""The benchmarks of TPC-H run at a tiny scale, check their answers, and draw their figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import fig1, fig4b, fig12, fig13
from tests.support.nightly import few_of

pytestmark = pytest.mark.slow

SCALE = 0.01  # below it the generator makes partsupp with keys that are there twice


def drawn(module: object, records: list[dict], path: Path, **fixed: object) -> bool:
    module.plot([fixed | record for record in records], path)  # type: ignore[attr-defined]
    return path.read_bytes().startswith(b"\x89PNG")


def test_update_rates_are_measured_for_each_query(tmp_path: Path) -> None:
    records = list(fig12.run(scale=SCALE, queries=(1, 3, 11, 15), batch=20_000))
    assert [record["query"] for record in records] == [1, 3, 11, 15, "geometric mean"]
    assert all(record["updates_per_s"] > 0 for record in records)
    assert drawn(fig12, records, tmp_path / "fig12.png", scale=SCALE, batch=20_000)


def test_rates_over_kept_relations_are_measured_too() -> None:
    (record, _) = fig12.run(scale=SCALE, queries=(5,), batch=20_000, history=True)
    assert record["rows"] > 0


def test_one_batch_is_measured_beside_another_system(tmp_path: Path) -> None:
    records = list(fig13.run(scale=SCALE, queries=(6, 15), workers=1, rounds=1, spark=False))
    assert [(record["query"], record["system"]) for record in records] == [
        (6, "tektite"), (6, "DuckDB"), (15, "tektite"), (15, "DuckDB"),
    ]  # fmt: skip
    assert drawn(fig13, records, tmp_path / "fig13.png", scale=SCALE, workers=1)


def test_physical_batches_do_not_change_the_answer(tmp_path: Path) -> None:
    records = list(fig4b.run(scale=SCALE, queries=(3,), batches=(1, 100, 10_000), duration=0.2))
    assert [record["batch"] for record in records] == [1, 100, 10_000]
    assert drawn(fig4b, records, tmp_path / "fig4b.png", scale=SCALE)


@pytest.mark.parametrize("history", few_of([False, True], False))
def test_sides_agree_while_queries_come_and_go(tmp_path: Path, history: bool) -> None:
    sides = ("shared", "not shared", "lean")
    records = list(fig1.run(scale=SCALE, sides=sides, active=4, batch=6_000, history=history))
    *panels, ratios = records
    assert {(record["panel"], record["side"]) for record in panels} == {
        (panel, side) for panel in ("1a", "1b", "1c") for side in sides
    }
    assert ratios["panel"] == "ratios" and ratios["install_median"] > 0
    assert drawn(fig1, records, tmp_path / "fig1.png", scale=SCALE, active=4, history=history)
