"""dbt-postgres builds a small project whose models are materialized views, tests it, and builds it again.

dbt pins versions of many packages, so that it has an environment of its own. `TEKTITE_DBT`
names its command, if it is not on the path.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import psycopg
import pytest

from tests.support.server import RunningServer

DBT = os.environ.get("TEKTITE_DBT") or shutil.which("dbt")
PROJECT = Path(__file__).with_name("dbt_project")

PROFILE = """
tektite:
  target: dev
  outputs:
    dev: {{type: postgres, host: 127.0.0.1, port: {port}, user: ann, password: x, dbname: tektite, schema: public, threads: 2}}
"""


@pytest.mark.skipif(
    DBT is None, reason="dbt is not there: pip install dbt-core dbt-postgres elsewhere, and name it in TEKTITE_DBT"
)
def test_dbt_builds_models_as_materialized_views(served: RunningServer, tmp_path: Path) -> None:
    project = shutil.copytree(PROJECT, tmp_path / "project")
    (tmp_path / "profiles.yml").write_text(PROFILE.format(port=served.port))

    def dbt(*command: str) -> str:
        assert DBT is not None
        given = [
            DBT,
            "--no-send-anonymous-usage-stats",
            *command,
            "--project-dir",
            str(project),
            "--profiles-dir",
            str(tmp_path),
        ]
        done = subprocess.run(given, capture_output=True, text=True, timeout=300, cwd=tmp_path, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    with psycopg.connect(served.conninfo(), autocommit=True) as client:
        client.execute(
            "CREATE TABLE sales (shop text, amount int); INSERT INTO sales VALUES ('north', 3), ('south', 4), ('north', 4)"
        )
        assert "PASS=4" in dbt("build")
        assert client.execute("SELECT * FROM large_shops").fetchall() == [("north", 7)]
        client.execute("INSERT INTO sales VALUES ('south', 5)")
        assert sorted(client.execute("SELECT shop FROM large_shops").fetchall()) == [("north",), ("south",)]
        dbt("run")
        assert client.execute("SELECT count(*) FROM pg_matviews").fetchone() == (2,)
