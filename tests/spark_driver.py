"""A driver that tests kill: it loads history once, then follows a folder of files, one file an epoch, and says what it does.

python spark_driver.py FOLDER    exits when everything in the folder has been followed
"""

from __future__ import annotations

import sys
from pathlib import Path

import tektite as tk
import tektite.spark

COLUMNS = "k int, v string, d int"


def main(folder: Path) -> None:
    spark = tektite.spark.session(
        master="local[1,4]",
        memory="512m",
        config={
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.shuffle.partitions": "1",
            "spark.local.dir": str(folder / "local"),
        },
    )
    spark.sparkContext.setLogLevel("OFF")
    with tk.Engine(spark=spark, storage=folder / "store", shards=2) as engine:
        table = engine.input("t", k=tk.Int, v=tk.String)
        view = engine.install("n", table.count(by="v"), on_change=lambda _: print("epoch", engine.epoch, flush=True))
        view.publish()
        print("ready", flush=True)
        table.load(spark.read.schema(COLUMNS).json(str(folder / "history")), diff="d", once="history")
        print("loaded", flush=True)
        stream = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).json(str(folder / "files"))
        table.follow(stream, diff="d", trigger={"availableNow": True}).await_termination()
        print("done", flush=True)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
