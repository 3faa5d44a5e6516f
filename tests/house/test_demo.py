"""The demonstration runs on Spark, its sides agree, and the picture is written."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TINY = ["--plain", "--scale", "0.01", "--queries", "6", "--changes", "100"]

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def start(*options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-u", "-m", "examples.demo", *TINY, *options]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def is_picture(path: Path) -> bool:
    return path.read_bytes().startswith(b"\x89PNG")


def test_sides_agree_and_the_picture_is_written(tmp_path: Path) -> None:
    picture = tmp_path / "new" / "demo.png"
    process = start("--epochs", "2", "--out", str(picture))
    output, _ = process.communicate(timeout=600)
    assert process.returncode == 0, output
    assert "Spark loads orders" in output and "lineitem has 59,575 rows" in output, output
    assert "12 answers compared: all the same on all sides" in output, output
    assert "prepared arrives" in output and "leaves" in output, output
    assert re.search(r"With 6 queries, not sharing takes [\d.]+x the time and [\d.]+x the memory", output), output
    assert f"Picture: {picture}" in output
    assert "tektite serve" in output
    assert is_picture(picture)


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX")
def test_interruption_ends_with_the_summary_so_far(tmp_path: Path) -> None:
    picture = tmp_path / "demo.png"
    process = start("--epochs", "150", "--out", str(picture))
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if "arrives" in line:
            break
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=600)
    assert process.returncode == 0, "".join(seen) + output
    assert "ended by Ctrl-C" in output
    assert "all the same on all sides" in output
    assert is_picture(picture)
