"""Tektite on Spark: sessions, and whether a cluster is ready. Needs pyspark, which `import tektite` alone does not load."""

from __future__ import annotations

import importlib.util

from tektite.errors import NotFoundError

if importlib.util.find_spec("pyspark") is None:
    raise NotFoundError("tektite.spark needs pyspark, which is not installed: pip install 'tektite[spark]'")

from tektite.spark.java import find_java
from tektite.spark.preflight import Preflight, preflight
from tektite.spark.session import session

__all__ = ["Preflight", "find_java", "preflight", "session"]
