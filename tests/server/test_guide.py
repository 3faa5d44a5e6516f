"""The description in docs/how-to/server.md is one that a server starts with."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import psycopg

from tektite.server.plan import read_server
from tests.support.server import running

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "server.md"


def test_description_of_the_guide_is_served(tmp_path: Path) -> None:
    (described,) = re.findall(r"```yaml\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    for name, content in {"shop.yaml": described, "server.crt": "", "server.key": ""}.items():
        (tmp_path / name).write_text(content)
    plan = read_server(tmp_path / "shop.yaml")
    plan.check()
    plan = replace(plan, address="127.0.0.1", port=0, http_port=0, certificate=None, private_key=None)
    with (
        running(plan) as served,
        psycopg.connect(served.conninfo(password="secret"), autocommit=True) as client,
    ):
        client.execute("INSERT INTO orders VALUES (1, 'bob', 5), (2, 'bob', 6)")
        assert client.execute("SELECT * FROM per_customer").fetchall() == [("bob", 11)]
