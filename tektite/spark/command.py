"""The command `tektite run`: reads a pipeline, runs it, and reports progress on standard error."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tektite.errors import TektiteError
from tektite.pipeline import read_pipeline
from tektite.spark.run import Metrics, run, stopped_by_signals
from tektite.spark.soundness import check_pipeline


def say(text: str) -> None:
    """A line for people."""
    print(f"tektite: {text}", file=sys.stderr, flush=True)


def run_file(path: Path, make_engine: Callable[..., Any], metrics: Path | None, check: bool) -> int:
    """Run the pipeline in a file; returns the exit code."""
    stop = threading.Event()
    try:
        pipeline = read_pipeline(path)
        if check:
            check_pipeline(pipeline, make_engine)
            say(f"pipeline {pipeline.name}: {len(pipeline.tables)} tables, {len(pipeline.views)} views: sound")
            return 0
        with stopped_by_signals(stop, say):
            found = run(pipeline, make_engine, say, stop)
    except TektiteError as error:
        say(f"error: {error}")
        return 1
    for line in lines(found):
        say(line)
    if metrics is not None:
        metrics.write_text(json.dumps(found.to_json(), indent=2) + "\n")
    return 0


def lines(metrics: Metrics) -> list[str]:
    """Metrics in human-readable form."""
    loaded, followed = sum(metrics.loaded.values()), sum(metrics.followed.values())
    return [
        f"pipeline {metrics.name} {'stopped' if metrics.stopped else 'done'} after {metrics.seconds:.1f} s: "
        f"{loaded} rows loaded in {metrics.load_seconds:.1f} s, {followed} rows followed, "
        f"{metrics.epochs} epochs, {metrics.durable} of them durable, {metrics.bytes / 2**20:.1f} MiB of indexes",
        *(
            f"stream {name}: {metrics.followed[name]} rows in {epochs} epochs, {metrics.epoch_seconds.get(name, 0.0):.3f} s each"
            for name, epochs in metrics.followed_epochs.items()
        ),
        *(f"view {name}: {updates} updates held" for name, updates in metrics.updates.items()),
    ]
