"""A driver that tests kill: it loads history once, then follows a folder of files, one file an epoch, and says what it does.

python spark_driver.py FOLDER                   exits when everything in the folder has been followed
python spark_driver.py FOLDER before|after N    is killed before or after the Nth version that a stream's epochs make
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import tektite as tk
import tektite.spark
from tektite.storage.store import PosixStore

COLUMNS = "k int, v string, d int"


class Deadly(PosixStore):
    """A store that kills its process, and Java with it, around the making of a version."""

    after = False
    left = 0
    """Versions until then; 0 is never."""

    def link(self, temporary: Path, target: Path) -> None:
        self.left -= 1
        if not self.left and not self.after:
            os.killpg(0, signal.SIGKILL)
        super().link(temporary, target)
        if not self.left:
            os.killpg(0, signal.SIGKILL)


def main(folder: Path, when: str = "after", number: str = "0") -> None:
    store = Deadly(folder / "store")
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
    with tk.Engine(spark=spark, storage=tk.Storage(store), workers=2, autocommit=False) as engine:
        table = engine.create_table("t", {"k": tk.Int, "v": tk.String})
        view = engine.install(
            "n", table.count(by="v"), on_change=lambda _: print("epoch", engine.next_epoch, flush=True)
        )
        view.persist()
        print("ready", flush=True)
        table.load(spark.read.schema(COLUMNS).json(str(folder / "history")), diff="d", once="history")
        engine.sync()
        print("loaded", flush=True)
        store.after, store.left = when == "after", int(number)
        stream = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).json(str(folder / "files"))
        table.follow(stream, diff="d", trigger={"availableNow": True}).await_termination()
        print("done", flush=True)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
