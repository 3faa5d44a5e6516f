"""`spark.read.jdbc` through pgjdbc: Spark reads a table and a view of a server, whole and in parts, and writes a table."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.maven import bring_jars
from tests.support.server import running_server
from tests.support.spark_cluster import ROOT

DRIVER = '    <dependency org="org.postgresql" name="postgresql" rev="42.7.7" transitive="false"/>'

PROGRAM = """
import sys
import tektite.spark

jar, url, folder = sys.argv[1:]
spark = tektite.spark.session(master="local[2]", config={
    "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.jars": jar, "spark.local.dir": folder,
})
spark.sparkContext.setLogLevel("OFF")
options = {"user": "ann", "driver": "org.postgresql.Driver"}
rows = spark.read.jdbc(url, "sales", column="id", lowerBound=0, upperBound=100, numPartitions=3, properties=options)
assert rows.count() == 100 and rows.filter("amount > 50").count() == 49, rows.count()
totals = spark.read.jdbc(url, "totals", properties=options)
assert sorted((row.shop, row.n) for row in totals.collect()) == [("north", 50), ("south", 50)]
query = spark.read.jdbc(url, "(SELECT shop, max(amount) AS most FROM sales GROUP BY shop) AS q", properties=options)
assert sorted(row.most for row in query.collect()) == [98, 99]
totals.withColumnRenamed("n", "m").write.mode("append").jdbc(url, "copied", properties=options)
spark.stop()
print("done")
"""


@pytest.mark.nightly
def test_spark_reads_and_writes_by_jdbc(tmp_path: Path) -> None:
    jars = bring_jars(tmp_path, DRIVER, ["postgresql"])
    (jar,) = jars.glob("postgresql*.jar")
    with running_server() as server:
        server.engine.sql("CREATE TABLE sales (id int PRIMARY KEY, shop varchar, amount int)")
        server.engine.sql("CREATE TABLE copied (shop varchar, m int)")
        server.engine.table("sales").insert([(n, "north" if n % 2 else "south", n) for n in range(100)])
        server.engine.sql("CREATE MATERIALIZED VIEW totals AS SELECT shop, count(*) AS n FROM sales GROUP BY shop")
        url = f"jdbc:postgresql://127.0.0.1:{server.port}/tektite"
        command = [sys.executable, "-c", PROGRAM, str(jar), url, str(tmp_path / "local")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=ROOT, check=False)
        assert done.stdout.endswith("done\n"), done.stdout + done.stderr[-3000:]
        assert sorted(server.engine.sql("SELECT shop, m FROM copied").rows()) == [("north", 50), ("south", 50)]
