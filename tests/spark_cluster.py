"""Programs that run on a cluster of their own: processes of a local cluster that a test may kill."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark

ROOT = Path(__file__).parents[1]


def run_on_cluster(program: str, folder: Path) -> None:
    """Run a program, which gets the folder as its argument and says "done" in the end."""
    (folder / "program.py").write_text(program)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "SPARK_HOME": str(spark_home(folder))}
    arguments = [sys.executable, str(folder / "program.py"), str(folder)]
    answer = subprocess.run(arguments, capture_output=True, text=True, env=environment, cwd=folder, timeout=900)
    assert answer.stdout.split()[-1:] == ["done"], answer.stdout + answer.stderr[-4000:]


def spark_home(folder: Path) -> Path:
    """Spark as it is installed, in a folder where it may write: a local cluster keeps its executors' files there."""
    home = folder / "spark"
    home.mkdir()
    for entry in Path(pyspark.__file__).parent.iterdir():
        (home / entry.name).symlink_to(entry)
    return home
