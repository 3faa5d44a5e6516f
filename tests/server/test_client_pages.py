"""The pages about clients in docs/how-to/clients are true: what they show runs."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE
from tests.support.server import RunningServer

PAGES = Path(__file__).parents[2] / "docs" / "how-to" / "clients"


def blocks(page: str, language: str, served: RunningServer) -> list[str]:
    """The programs of a page, which talk to a server on other ports."""
    found = re.findall(rf"```{language}\n(.*?)```", (PAGES / page).read_text(), re.DOTALL)
    assert found
    ports = {
        "port=5433": f"port={served.port}",
        ":5433": f":{served.port}",
        "localhost:5434": f"127.0.0.1:{served.http_port}",
    }
    for old, new in ports.items():
        found = [text.replace(old, new) for text in found]
    return found


@pytest.mark.parametrize("page", ["python.md", "psycopg.md", "asyncpg.md", "sqlalchemy.md", "pandas.md", "adbc.md"])
def test_page_of_a_python_client_runs(served: RunningServer, page: str, capsys: pytest.CaptureFixture[str]) -> None:
    for text in blocks(page, "python", served):
        exec(compile(text, page, "exec"), {"__name__": "page"})


def test_page_of_javascript_runs(served: RunningServer, tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed")
    (text,) = blocks("javascript.md", "javascript", served)
    (tmp_path / "page.js").write_text(text)
    command = [node, "--experimental-websocket", str(tmp_path / "page.js")]
    asked = subprocess.run([*command[:2], "-p", "typeof WebSocket"], capture_output=True, text=True)
    if asked.stdout.strip() != "function":
        pytest.skip("this version of Node has no WebSocket")
    ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert ran.returncode == 0, ran.stderr
    last = ran.stdout.splitlines()[-1]
    assert "[ '/', 2 ]" in last and "[ '/about', 1 ]" in last


def test_every_page_is_listed() -> None:
    listed = set(re.findall(r"\[[\w.-]+\]\(([\w-]+\.md)\)", (PAGES / "index.md").read_text()))
    assert listed == {path.name for path in PAGES.glob("*.md")} - {"index.md"}
