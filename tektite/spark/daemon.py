"""The process that forks Python workers, with this package loaded, so that workers need not load it.

Spark starts it as `python -m tektite.spark.daemon MODULE` if a session sets `spark.python.daemon.module`.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Callable
from typing import Any


def load(module: str) -> None:
    """Load what workers of a module need. Those that run tasks also need the compiled kernels."""
    import tektite.spark.bulk
    import tektite.spark.stored
    import tektite.spark.sweep.job  # noqa: F401

    importlib.import_module(module)
    if module == "pyspark.worker":
        from tektite.kernels.ready import ensure_compiled

        ensure_compiled()


def until_nobody_reads(worker: Callable[..., int]) -> Callable[..., int]:
    """Spark's function for a worker, which ends the process without a word once nobody reads what it writes: a query with a
    LIMIT, a stopped stream or a cancelled job has closed the pipe. Spark's daemon would print a traceback.
    """

    def run(*arguments: Any) -> int:
        try:
            return worker(*arguments)
        except (BrokenPipeError, ConnectionResetError):
            os._exit(1)

    return run


if __name__ == "__main__":
    from pyspark import daemon

    load(sys.argv[1])
    daemon.worker = until_nobody_reads(daemon.worker)
    # A worker collects garbage after each of its tasks: a tenth of a second for what is loaded here and never becomes any.
    gc.freeze()
    daemon.manager()
