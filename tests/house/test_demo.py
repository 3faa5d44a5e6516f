"""The demonstration runs on Spark, its two sides agree, and the picture is written."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TINY = ["--plain", "--scale", "0.01", "--queries", "5"]

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def start(*options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-u", "-m", "examples.demo", *TINY, *options]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def is_picture(path: Path) -> bool:
    return path.read_bytes().startswith(b"\x89PNG")


def test_sides_agree_and_the_picture_is_written(tmp_path: Path) -> None:
    picture = tmp_path / "new" / "demo.png"
    process = start("--epochs", "6", "--out", str(picture))
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    assert "Spark loads orders" in output and re.search(r"From a file of 10,0\d\d lineitems", output), output
    assert "5 answers compared: all the same on both sides" in output, output
    assert f"Picture: {picture}" in output
    assert "tektite serve" in output
    assert is_picture(picture)


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX")
def test_interruption_ends_with_the_summary_so_far(tmp_path: Path) -> None:
    picture = tmp_path / "demo.png"
    process = start("--epochs", "600", "--out", str(picture))
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if "arrives" in line:
            break
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, "".join(seen) + output
    assert "ended by Ctrl-C" in output
    assert "all the same on both sides" in output
    assert is_picture(picture)
