"""Jars from Maven Central, brought by the Ivy that is in Spark; they stay in a cache."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pyspark
import pytest

from tektite.spark.java import find_java

MODULE = """
<ivy-module version="2.0">
  <info organisation="tektite" module="tests"/>
  <dependencies defaultconfmapping="default->default">
{}
  </dependencies>
</ivy-module>
"""


def java(classpath: str, *arguments: str) -> list[str]:
    """A command of Java."""
    return [str(find_java() / "bin" / "java"), "-Xmx256m", "-cp", classpath, *arguments]


def bring_jars(folder: Path, dependencies: str, wanted: Sequence[str]) -> Path:
    """The folder with the jars of some dependencies; the test is skipped if one of those wanted cannot be had."""
    base = os.environ.get("TEKTITE_CACHE_DIR") or os.path.expanduser("~/.cache/tektite")
    (folder / "ivy.xml").write_text(MODULE.format(dependencies.strip("\n")))
    ivy = java(str(Path(pyspark.__file__).parent / "jars" / "*"), "org.apache.ivy.Main")
    what = ["-cache", f"{base}/ivy", "-ivy", f"{folder}/ivy.xml", "-confs", "default"]
    where = ["-retrieve", f"{folder}/[artifact]-[revision](-[classifier]).[ext]"]
    brought = subprocess.run([*ivy, *what, *where], capture_output=True, text=True, timeout=600, check=False)
    missing = [name for name in wanted if not list(folder.glob(f"{name}*.jar"))]
    if missing:
        pytest.skip(f"no {missing[0]} to be had from Maven: {(brought.stdout + brought.stderr)[-300:]}")
    return folder
