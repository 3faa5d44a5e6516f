"""The process that forks Python workers, with this package loaded, so that workers need not load it.

Spark starts it as `python -m tektite.spark.daemon MODULE` if a session sets `spark.python.daemon.module`.
"""

from __future__ import annotations

import gc
import importlib
import sys


def load(module: str) -> None:
    """Load what workers of a module need. Those that run tasks also need the compiled kernels."""
    import tektite.spark.bulk
    import tektite.spark.stored
    import tektite.spark.sweep.job  # noqa: F401

    importlib.import_module(module)
    if module == "pyspark.worker":
        from tektite.kernels.ready import ensure_compiled

        ensure_compiled()


if __name__ == "__main__":
    from pyspark import daemon

    load(sys.argv[1])
    # A worker collects garbage after each of its tasks: a tenth of a second for what is loaded here and never becomes any.
    gc.freeze()
    daemon.manager()
