"""How xdist deals tests out to processes: all tests of a group to one of them, any other test to whoever is free.

The groups are those of the marker `xdist_group`. xdist 3.8 writes them behind the names of tests, where its scheduler looks for
them; pytest 9.2 does not let names be changed, and no test would have a group (pytest-xdist, issue 1386). Here the first worker
writes the groups into a file, which the scheduler reads when all have collected their tests.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from xdist.scheduler import LoadScopeScheduling

_INPUT = "tektite_groups"
_FILE = pytest.StashKey[Path]()


def tell_worker(node: Any) -> None:
    """Tell a worker where to write the groups."""
    stash = node.config.stash
    node.workerinput[_INPUT] = str(stash.setdefault(_FILE, Path(tempfile.gettempdir()) / f"groups-{uuid4().hex}.json"))


def write_groups(config: pytest.Config, items: Iterable[pytest.Item]) -> None:
    """In the first worker, let the scheduler know the groups of tests."""
    told = getattr(config, "workerinput", {})
    if _INPUT in told and told["workerid"] == "gw0":
        groups = {item.nodeid: mark.args[0] for item in items if (mark := item.get_closest_marker("xdist_group"))}
        Path(told[_INPUT]).write_text(json.dumps(groups))


class GroupScheduling(LoadScopeScheduling):
    """Groups are dealt out whole, the largest first; other tests one by one, in their order."""

    _groups: dict[str, str] | None = None

    def _split_scope(self, nodeid: str) -> str:
        if self._groups is None:
            file = self.config.stash[_FILE]
            self._groups = json.loads(file.read_text())
            file.unlink()
        return self._groups.get(nodeid, nodeid)
