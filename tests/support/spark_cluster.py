"""Programs on clusters whose processes a test may kill: local clusters, `spark-submit`, a standalone master with workers."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

import tektite as tk
from tektite.spark.java import find_java

ROOT = Path(tk.__file__).parents[1]
QUIET = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}


def spark_home(folder: Path) -> Path:
    """Spark as it is installed, in a folder where it may write: clusters keep their executors' files there."""
    home = folder / "spark"
    home.mkdir()
    for entry in Path(pyspark.__file__).parent.iterdir():
        (home / entry.name).symlink_to(entry)
    return home


def environment(home: Path) -> dict[str, str]:
    """The environment of Spark's programs: this package, this Python, the Java that was found."""
    return os.environ | {
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(home),
        "JAVA_HOME": str(find_java()),
    }


PRELUDE = """
import os, signal, sys
from collections import Counter
from pathlib import Path
import tektite as tk
import tektite.spark

folder = Path(sys.argv[1])
spark = tektite.spark.session(master="local-cluster[2,1,1024]", memory="512m", config={
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.executor.memory": "512m",
    "spark.local.dir": str(folder / "local"),
})
spark.sparkContext.setLogLevel("OFF")


def only_once(name):
    try:
        os.close(os.open(folder / f"done-{name}", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def kill_executor():
    workers = os.getppid()  # the process that workers are forked from; its parent is the executor
    status = Path(f"/proc/{workers}/status").read_text()
    os.kill(int(next(line.split()[1] for line in status.splitlines() if line.startswith("PPid:"))), signal.SIGKILL)
"""
"""What programs begin with: a session on a cluster of two executors, and how to kill the one that a task runs on."""


def run_on_cluster(program: str, folder: Path) -> None:
    """Run a program behind PRELUDE, which gets the folder as its first argument and says "done" in the end."""
    (folder / "program.py").write_text(PRELUDE + program)
    arguments = [sys.executable, str(folder / "program.py"), str(folder)]
    surroundings = environment(spark_home(folder))
    answer = subprocess.run(arguments, capture_output=True, text=True, env=surroundings, cwd=folder, timeout=900)
    assert answer.stdout.split()[-1:] == ["done"], answer.stdout + answer.stderr[-4000:]


def wait_until(condition: Callable[[], object], process: subprocess.Popen[str], seconds: float = 900) -> None:
    """Wait for something that a process does. If it ends or takes too long before, it is killed, and what it said is an error."""
    deadline = time.monotonic() + seconds
    while not condition():
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            raise AssertionError(process.communicate()[1])
        time.sleep(0.1)


def submit(home: Path, master: str, program: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start a program by spark-submit."""
    settings = QUIET | {
        "spark.sql.adaptive.enabled": "false",
        "spark.executorEnv.PYTHONPATH": str(ROOT),
        "spark.executor.memory": "512m",
        "spark.driver.memory": "512m",
        "spark.local.dir": str(program.parent / "local"),
    }
    words = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    return subprocess.Popen(
        [home / "bin" / "spark-submit", "--master", master, *words, program, *arguments],
        env=environment(home), cwd=program.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@dataclass
class Standalone:
    """A standalone master and its workers, each in a process group of its own."""

    home: Path
    folder: Path
    url: str = ""
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start_worker(self) -> subprocess.Popen[bytes]:
        """One more worker, with one core."""
        number = len(self.workers)
        settings = ["-c", "1", "-m", "1g", "-h", "127.0.0.1", "-d", str(self.folder / f"worker{number}")]
        worker = self.launch("org.apache.spark.deploy.worker.Worker", f"worker{number}.log", *settings, self.url)
        self.workers.append(worker)
        self.said(f"worker{number}.log", "Successfully registered with master", worker)
        return worker

    def launch(self, name: str, log: str, *arguments: str) -> subprocess.Popen[bytes]:
        """A program of Spark's."""
        with (self.folder / log).open("wb") as file:
            return subprocess.Popen(
                [self.home / "bin" / "spark-class", name, "--webui-port", "0", *arguments],
                env=environment(self.home), cwd=self.folder, stdout=file, stderr=file, start_new_session=True,
            )  # fmt: skip

    def said(self, log: str, pattern: str, process: subprocess.Popen[bytes]) -> re.Match[str]:
        """Wait until a program says something."""
        deadline = time.monotonic() + 600
        while True:
            text = (self.folder / log).read_text(errors="replace")
            found = re.search(pattern, text)
            if found is not None:
                return found
            assert process.poll() is None and time.monotonic() < deadline, text[-4000:]
            time.sleep(0.1)


@contextmanager
def standalone(folder: Path, workers: int) -> Iterator[Standalone]:
    """A master with some workers, until the block ends."""
    cluster = Standalone(spark_home(folder), folder)
    address = ["--host", "127.0.0.1", "--port", "0"]
    processes = [cluster.launch("org.apache.spark.deploy.master.Master", "master.log", *address)]
    try:
        cluster.url = cluster.said("master.log", r"spark://127\.0\.0\.1:\d+", processes[0]).group()
        for _ in range(workers):
            cluster.start_worker()
        yield cluster
    finally:
        for process in [*processes, *cluster.workers]:
            kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a program and everything that it has started, at once."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
