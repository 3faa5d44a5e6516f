"""Kafka, in and out, with a broker that the test starts from jars of Maven Central."""

from __future__ import annotations

import base64
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.maven import bring_jars, java
from tests.support.server_process import free_port
from tests.support.spark_cluster import ROOT

CONNECTOR = os.environ.get("TEKTITE_KAFKA", "4.2.0")
"""The version of Spark's own connector: the newest one that Maven Central has; it also serves the Spark after it."""
TOKENS = os.environ.get("TEKTITE_KAFKA_TOKENS", "4.0.0")
"""That of the part of it that knows about tokens, which Maven Central has not in every version."""
BROKER = "3.9.2"

DEPENDENCIES = f"""
    <dependency org="org.apache.kafka" name="kafka_2.13" rev="{BROKER}"/>
    <dependency org="org.apache.spark" name="spark-sql-kafka-0-10_2.13" rev="{CONNECTOR}" transitive="false"/>
    <dependency org="org.apache.spark" name="spark-token-provider-kafka-0-10_2.13" rev="{TOKENS}" transitive="false"/>
    <dependency org="org.apache.commons" name="commons-pool2" rev="2.13.1" transitive="false"/>
"""
FOR_SPARK = ("spark-sql-kafka", "spark-token-provider-kafka", "kafka-clients", "commons-pool2")

PROGRAM = """
import json, sys
from collections import Counter
from pathlib import Path
from pyspark.sql import functions as F
import tektite as tk
import tektite.spark

folder, servers, jars = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
spark = tektite.spark.session(master="local[2,4]", config={
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.jars": jars,
    "spark.local.dir": str(folder / "local"),
})
spark.sparkContext.setLogLevel("OFF")
NOW = {"availableNow": True}
broker = {"kafka.bootstrap.servers": servers}


def produce(rows):
    values = [(json.dumps({"k": k, "v": v, "op": op}),) for k, v, op in rows]
    spark.createDataFrame(values, "value string").coalesce(1).write.format("kafka").options(**broker, topic="in").save()


def parsed(reader):
    frame = reader.format("kafka").options(**broker, subscribe="in", startingOffsets="earliest").load()
    row = F.from_json(F.col("value").cast("string"), "k int, v string, op string").alias("row")
    return frame.select(row, "offset").select("row.*", "offset")


def changes():
    found = spark.read.format("kafka").options(**broker, subscribe="out").load()
    kept = [json.loads(row.value) for row in found.selectExpr("CAST(value AS string) AS value").distinct().collect()]
    total = Counter()
    for one in kept:
        total[one["v"], one["count"]] += one["diff"]
    return +total


produce([(k, f"v{k % 3}", "c") for k in range(30)])
with tk.Engine(spark=spark, storage=folder / "store", workers=2, autocommit=False) as engine:
    table = engine.create_table("t", {"k": tk.Int, "v": tk.String}, mode="upsert", primary_key=["k"])
    view = engine.install("n", table.count(by="v"))
    columns = {"operation": "op", "order": "offset", "position": "offset"}
    assert table.load(parsed(spark.read), **columns, upto=19) == 20
    assert Counter(view.rows()) == Counter({("v0", 7): 1, ("v1", 7): 1, ("v2", 6): 1})
    table.follow(parsed(spark.readStream), **columns, trigger=NOW).await_termination()
    assert sorted(view.rows()) == [("v0", 10), ("v1", 10), ("v2", 10)]
    view.write_changes("kafka", options={**broker, "topic": "out"}, trigger=NOW).awaitTermination()
    assert changes() == Counter(view.rows())
# A driver that goes on where the first stopped
with tk.Engine(spark=spark, storage=folder / "store", workers=2, autocommit=False) as engine:
    table = engine.create_table("t", {"k": tk.Int, "v": tk.String}, mode="upsert", primary_key=["k"])
    view = engine.install("n", table.count(by="v"))
    produce([(0, "v0", "d"), (1, "v2", "u"), (100, "v9", "c")])
    assert table.load(parsed(spark.read), **columns) == 0  # the stream has taken over
    table.follow(parsed(spark.readStream), **columns, trigger=NOW).await_termination()
    assert sorted(view.rows()) == [("v0", 9), ("v1", 9), ("v2", 11), ("v9", 1)]
    view.write_changes("kafka", options={**broker, "topic": "out"}, trigger=NOW).awaitTermination()
    assert changes() == Counter(view.rows())
spark.stop()
print("done")
"""


@pytest.fixture(scope="module")
def jars(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The jars of the broker and of Spark's connector, brought by the Ivy that is in Spark; they stay in a cache."""
    return bring_jars(tmp_path_factory.mktemp("jars"), DEPENDENCIES, ("kafka_2.13", *FOR_SPARK))


@pytest.fixture
def broker(jars: Path, tmp_path: Path) -> Iterator[str]:
    """The address of a broker that is its own controller."""
    own, control = free_port(), free_port()
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{control}",
        "listeners": f"PLAINTEXT://127.0.0.1:{own},CONTROLLER://127.0.0.1:{control}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{own}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "log.dirs": str(tmp_path / "logs"),
        "num.partitions": "1",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
    }
    (tmp_path / "broker.properties").write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    name = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    form = java(f"{jars}/*", "kafka.tools.StorageTool", "format", "-t", name, "-c", str(tmp_path / "broker.properties"))
    subprocess.run(form, check=True, capture_output=True, timeout=600)
    with (tmp_path / "broker.log").open("wb") as log:
        process = subprocess.Popen(
            java(f"{jars}/*", "kafka.Kafka", str(tmp_path / "broker.properties")), stdout=log, stderr=log
        )
    try:
        deadline = time.monotonic() + 600
        while True:
            try:
                socket.create_connection(("127.0.0.1", own), 1).close()
                break
            except OSError:
                assert process.poll() is None and time.monotonic() < deadline, (tmp_path / "broker.log").read_text()
                time.sleep(0.2)
        yield f"127.0.0.1:{own}"
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


@pytest.mark.slow
@pytest.mark.nightly
def test_topic_is_backfilled_and_followed_and_changes_are_written_to_another(
    jars: Path, broker: str, tmp_path: Path
) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    for_spark = ",".join(str(jar) for name in FOR_SPARK for jar in jars.glob(f"{name}*.jar"))
    arguments = [sys.executable, str(tmp_path / "program.py"), str(tmp_path), broker, for_spark]
    answer = subprocess.run(arguments, capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=600)
    assert answer.stdout.split()[-1:] == ["done"], answer.stderr[-6000:]
