"""`tektite serve --check` refuses a description whose server could not start."""

from __future__ import annotations

from pathlib import Path

import pytest

from tektite.server.command import serve_file

TABLES = "tables:\n  orders: {columns: {id: int, amount: float}}\n"
VIEW = 'views:\n  totals: {sql: "SELECT id, sum(amount) AS total FROM orders GROUP BY id"}\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TABLES + VIEW, "sound"),
        (TABLES + VIEW.replace("FROM orders", "FROM ordrs"), "views.totals: there is no table or view 'ordrs'"),
        (TABLES + VIEW.replace("amount", "amont"), "views.totals: there is no column 'amont'"),
        (TABLES + VIEW.replace("GROUP", "GROPU"), "views.totals.sql: "),
        (TABLES.replace("float", "flat") + VIEW, "tables.orders.columns"),
        (VIEW + "storage: stored\n", "sound"),
        (TABLES + VIEW.replace("amount", "amont") + "storage: stored\n", "views.totals: there is no column 'amont'"),
    ],
    ids=["sound", "table", "column", "syntax", "type", "table in a storage", "column with a storage"],
)
def test_views_that_do_not_fit_are_refused(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "server.yaml"
    file.write_text(text)
    code = serve_file(file, {}, "plain", check=True)
    shown = "".join(capsys.readouterr())
    assert message in shown and code == (message != "sound")
    assert not (tmp_path / "stored").exists()
