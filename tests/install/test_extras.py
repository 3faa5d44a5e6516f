"""The wheel in fresh environments: with each extra alone, at both ends of the versions that it asks for, on other CPythons.

Environments are made from what the package index has, so this is for the night, and for machines that reach an index.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.server import running_server

pytestmark = [pytest.mark.nightly, pytest.mark.slow]

BASE = """
import tektite as tk
with tk.Engine() as engine:
    engine.sql("CREATE TABLE t (a int, b text)")
    engine.sql("INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, 'x')")
    engine.sql("CREATE MATERIALIZED VIEW v AS SELECT b, count(*) AS n FROM t GROUP BY b")
    assert sorted(engine.view("v").rows()) == [("x", 2), ("y", 1)]
    engine.datalog('p(x) :- t(x, "x").')
    assert sorted(engine.view("p").rows()) == [(1,), (3,)]
import sys
assert "numba" not in sys.modules
"""
PANDAS = """
import pandas, tektite as tk
with tk.Engine() as engine:
    table = engine.create_table("t", {"a": tk.Int, "b": tk.String})
    table.insert(pandas.DataFrame({"a": [1, 2], "b": ["x", None]}))
    assert table.to_pandas().sort_values("a")["a"].tolist() == [1, 2]
"""
SPARK = """
import warnings
warnings.simplefilter("error", UserWarning)
import pandas, tektite as tk
from tektite.spark import session
spark = session()
rows = spark.createDataFrame(pandas.DataFrame({"a": [1, 2, 3]}))
with tk.Engine(spark=spark) as engine:
    table = engine.create_table("t", {"a": tk.Int})
    table.load(rows)
    assert sorted(table.rows()) == [(1,), (2,), (3,)]
    assert engine.install("v", table).to_spark().toPandas()["a"].sum() == 6
spark.stop()
"""
SERVER = """
import uvloop, subprocess, sys
from tektite.server.command import serve_file
assert subprocess.run([sys.executable, "-m", "tektite", "serve", "--check"]).returncode == 0
"""
DEMO = "import matplotlib, psutil, pyspark, pandas; import tektite"
CLIENT = """
import os, tektite as tk
with tk.connect(os.environ["URL"]) as engine:
    engine.sql("CREATE TABLE t (a int)")
    engine.sql("INSERT INTO t VALUES (1), (2)")
    view = engine.create_view("v", "SELECT count(*) AS n FROM t")
    assert view.rows() == [(2,)]
"""
NOTEBOOK = """
import tektite as tk
with tk.Engine() as engine:
    table = engine.create_table("t", {"a": tk.Int})
    widget = engine.create_view("v", table.count()).show()
    table.insert([(1,)])
    widget.close()
"""
OPENTELEMETRY = """
import tektite as tk
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
spans, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(spans))
with tk.Engine() as engine:
    exported = engine.export_spans(provider)
    engine.create_table("t", {"a": tk.Int}).insert([(1,)])
    exported.stop()
assert spans.get_finished_spans()
"""

PROMISES = {
    "": BASE,
    "client": CLIENT,
    "demo": DEMO,
    "notebook": NOTEBOOK,
    "opentelemetry": OPENTELEMETRY,
    "pandas": PANDAS,
    "server": SERVER,
    "spark": SPARK,
}
PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]


def lowest(extra: str) -> list[str]:
    """The lowest versions that the package asks for, with an extra.

    >>> "numpy==2.0.*" in lowest(""), "pandas==2.2.*" in lowest("pandas")
    (True, True)
    """
    found = []
    for wanted in [*PROJECT["dependencies"], *(PROJECT["optional-dependencies"][extra] if extra else ())]:
        asked = re.match(r"([\w-]+)>=([\d.]+)", wanted)
        if asked is None:  # other extras of the package itself
            found += [one for other in re.findall(r"\w+", wanted.partition("[")[2]) for one in lowest(other)]
        else:
            numbers = asked[2].split(".")
            found.append(
                f"{asked[1]}=={'.'.join((*numbers, '0')[:2])}.*" if len(numbers) < 3 else f"{asked[1]}=={asked[2]}"
            )
    return list(dict.fromkeys(found))


def environment(folder: Path, python: str, *packages: str) -> str:
    """The interpreter of a fresh environment with these packages."""
    subprocess.run([python, "-m", "venv", str(folder)], check=True)
    made = str(folder / "bin" / "python")
    done = subprocess.run([made, "-m", "pip", "install", "-q", *packages], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return made


def run(python: str, program: str) -> None:
    keep = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "TEKTITE_CACHE_DIR")}
    with running_server() as server:  # a program may ask one
        keep["URL"] = server.web_url
        done = subprocess.run([python, "-c", program], cwd="/", env=keep, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_extra_is_tried() -> None:
    assert PROMISES.keys() - {""} == PROJECT["optional-dependencies"].keys() - {"dev"}


@pytest.mark.parametrize("extra", PROMISES)
def test_each_extra_alone_does_what_it_promises(wheel: Path, tmp_path: Path, extra: str) -> None:
    python = environment(tmp_path / "venv", sys.executable, f"{wheel}[{extra}]" if extra else str(wheel))
    run(python, BASE)
    run(python, PROMISES[extra])


@pytest.mark.parametrize("extra", PROMISES)
def test_lowest_versions_that_the_package_asks_for_suffice(wheel: Path, tmp_path: Path, extra: str) -> None:
    python = environment(
        tmp_path / "venv", sys.executable, f"{wheel}[{extra}]" if extra else str(wheel), *lowest(extra)
    )
    run(python, BASE)
    run(python, PROMISES[extra])


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_one_wheel_serves_other_cpythons(wheel: Path, tmp_path: Path, version: str) -> None:
    places = (f".pyenv/versions/{version}.*/bin/python", f".local/share/uv/python/cpython-{version}.*/bin/python")
    found = [str(path) for place in places for path in Path.home().glob(place)]
    python = next(iter(found), shutil.which(f"python{version}"))
    if python is None or subprocess.run([python, "-c", "import venv"], capture_output=True).returncode:
        pytest.skip(f"this machine has no CPython {version}")
    run(environment(tmp_path / "venv", python, str(wheel)), BASE)
