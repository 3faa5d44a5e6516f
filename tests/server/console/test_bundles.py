"""The files of the console: libraries that belong to the lock file, served with a policy, from this server alone."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tektite.engine.system.relations import RELATIONS
from tektite.server.web.console_files import KINDS, ROOT, console_file
from tests.support.patience import PATIENCE
from tests.support.server import RunningServer

TOOLS = Path(__file__).parents[3] / "tools" / "console"
OURS = sorted(path for path in ROOT.rglob("*") if path.is_file() and "vendor" not in path.parts)


def digest(*paths: Path) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


def test_bundles_belong_to_the_lock_file() -> None:
    manifest = json.loads((ROOT / "vendor" / "manifest.json").read_text())
    advice = "the libraries of the console have changed: run `make console-vendor`, and commit what it writes"
    assert manifest["lock"] == digest(TOOLS / "package-lock.json"), advice
    recipe = [TOOLS / "package.json", TOOLS / "build.mjs", *sorted((TOOLS / "entries").iterdir())]
    assert manifest["recipe"] == digest(*recipe), advice
    found = {path.name: digest(path) for path in (ROOT / "vendor").iterdir() if path.name != "manifest.json"}
    assert manifest["files"] == found, advice


def test_every_library_is_pinned_and_its_licence_is_there() -> None:
    wanted = json.loads((TOOLS / "package.json").read_text())
    assert all(
        re.fullmatch(r"\d+\.\d+\.\d+", each)
        for each in {**wanted["dependencies"], **wanted["devDependencies"]}.values()
    )
    licences = (ROOT / "vendor" / "LICENSES.txt").read_text()
    for name, version in wanted["dependencies"].items():
        assert f"{name} {version} (" in licences


@pytest.mark.parametrize("path", OURS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_names_no_other_host_and_can_be_served(path: Path) -> None:
    text = path.read_text()
    assert re.findall(r"https?://(?!www\.w3\.org/)\S+", text) == []
    assert path.suffix in KINDS
    assert len(text.splitlines()) < 600
    for name in re.findall(r"""(?:from|import\()\s*["'](\.{1,2}/[^"']+)["']""", text):
        assert (path.parent / name).is_file(), f"{name} is not there"


def test_the_catalog_names_every_system_relation() -> None:
    listed = re.search(r"export const SYSTEM = \[(.*?)\]", (ROOT / "catalog.js").read_text(), re.DOTALL)
    assert listed is not None and re.findall(r'"(\w+)"', listed[1]) == list(RELATIONS)


@pytest.mark.parametrize(
    "path", ["/console/../console_files.py", "/console//etc/passwd", "/console/.hidden.js", "/console/", "/x"]
)
def test_other_files_are_not_served(path: str) -> None:
    assert console_file(path) is None


def asked(served: RunningServer, path: str, **headers: str) -> Any:
    request = urllib.request.Request(f"http://127.0.0.1:{served.http_port}{path}", headers=headers)
    return urllib.request.urlopen(request, timeout=PATIENCE)


def test_a_copy_that_is_still_right_is_not_sent_again(served: RunningServer) -> None:
    with asked(served, "/") as answer:
        body, headers = answer.read(), answer.headers
    assert b'<script type="module" src="/console/app.js">' in body
    policy = headers["content-security-policy"]
    assert "script-src 'self';" in policy and "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    with pytest.raises(urllib.error.HTTPError) as caught:
        asked(served, "/", **{"If-None-Match": headers["etag"]})
    assert caught.value.code == 304 and caught.value.read() == b""
    with asked(served, "/console/style.css", **{"Accept-Encoding": "gzip"}) as answer:
        assert gzip.decompress(answer.read()) == (ROOT / "style.css").read_bytes()
    with pytest.raises(urllib.error.HTTPError) as caught:
        asked(served, "/console/nothing.js")
    assert caught.value.code == 404
