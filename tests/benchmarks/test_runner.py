"""`python -m benchmarks` runs what it is asked for and writes one JSON object a line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from benchmarks import runner
from benchmarks.anchors import anchors

ROOT = Path(__file__).parents[2]
SMALL = ["--param", "rows=1000", "--param", "keys=10", "--param", "repetitions=1"]
FIGURES = {"seconds", "updates_per_s", "p50_us", "p99_us", "max_us", "rss_mib", "peak_mib"}


def benchmarks(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "benchmarks", *arguments], cwd=ROOT, capture_output=True, text=True)


def test_records_are_written_one_a_line(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    done = benchmarks("floors", *SMALL, "--json", str(path))
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert [record["what"] for record in records] == ["np.sort", "np.bincount", "duckdb group count"]
    for record in records:
        assert record["benchmark"] == "floors"
        assert (record["rows"], record["keys"], record["repetitions"]) == (1000, 10, 1)
        assert record["seconds"] > 0
        assert 0 < record["rss_mib"] <= record["peak_mib"]


def test_several_benchmarks_share_one_file(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text("left over from an earlier run\n")
    done = benchmarks("floors", "floors", *SMALL, "--json", str(path))
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["benchmark"] for line in path.read_text().splitlines()] == ["floors"] * 6


def test_list_names_benchmarks_and_their_parameters() -> None:
    done = benchmarks("--list")
    assert done.returncode == 0
    assert "floors" in done.stdout
    assert "repetitions=3" in done.stdout


def test_unknown_name_is_refused_with_the_known_ones() -> None:
    done = benchmarks("nonesuch")
    assert done.returncode != 0
    assert "nonesuch" in done.stderr and "floors" in done.stderr


def test_unknown_parameter_is_refused_with_the_known_ones() -> None:
    done = benchmarks("floors", "--param", "colour=1")
    assert done.returncode != 0
    assert "colour" in done.stderr and "repetitions" in done.stderr


def test_failing_benchmark_fails_the_command() -> None:
    assert benchmarks("floors", "--param", "repetitions=0").returncode != 0
    assert benchmarks("floors", "floors", "--param", "repetitions=0").returncode != 0


def test_sweep_takes_one_value_and_records_say_which(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run(K: int = 10_000_000, sizes: tuple[int, ...] = (1, 10)) -> Iterator[dict[str, Any]]:
        for size in sizes:
            yield {"Q": size, "p50_us": 70.0}

    module = ModuleType("sweep")
    module.__dict__.update(NAME="join", DESCRIPTION="a sweep over Q", run=run)
    path = tmp_path / "records.jsonl"
    runner.run(module, {"sizes": 1}, path)
    assert json.loads(path.read_text()) == {"benchmark": "join", "K": 10_000_000, "Q": 1, "p50_us": 70.0}
    assert "differential-dataflow 0.23: p50_us 35 (2.00x)" in capsys.readouterr().out


def test_anchors_use_the_figures_that_records_have() -> None:
    for anchor in anchors():
        assert set(anchor) == {"system", "benchmark", "parameters", "figures"}
        assert anchor["figures"] and set(anchor["figures"]) <= FIGURES
        assert not set(anchor["parameters"]) & FIGURES
