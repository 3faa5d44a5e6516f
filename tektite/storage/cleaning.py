"""Clean-up: deleting what no version needs any longer.

A file may go once the version that took its last live section away is older than the retention period and no lease
holds an earlier version; a file that no version names, once it is older than the retention period, since its writer may
be about to commit it; a version, once a checkpoint behind it is that old and no lease needs it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from tektite.storage import batchfile, leases, manifest
from tektite.storage.manifest import Manifest, State
from tektite.storage.store import TEMPORARY, Store

RETENTION = 300.0
"""Seconds: readers that take no lease are done with an old version by then."""


@dataclass
class Waste:
    """What can be deleted, as names in the store."""

    garbage: list[str] = field(default_factory=list)
    """Batch files without a live section; a later version has to `forget` them."""
    orphans: list[str] = field(default_factory=list)
    """Files that no version names: what crashed writers left behind."""
    versions: list[str] = field(default_factory=list)
    """Versions that every reader starts behind of, and ended leases."""

    @property
    def names(self) -> list[str]:
        """All of it, in an order that leaves a readable store wherever deletion stops."""
        return [*(f"{batchfile.FOLDER}/{name}" for name in self.garbage), *self.orphans, *self.versions]


def find_waste(store: Store, state: State, retention: float, orphans: bool = True) -> Waste:
    """What can be deleted when `state` is the newest version."""
    now = time.time()
    held = leases.leased_versions(store)
    oldest_held = min(held, default=state.version)
    waste = Waste()
    for name, (version, at) in state.garbage.items():
        if now - at >= retention and oldest_held >= version:
            waste.garbage.append(name)
    if orphans:
        known = state.files.keys() | state.garbage.keys()
        for folder in (batchfile.FOLDER, manifest.FOLDER, leases.FOLDER):
            for name, at in store.ages(folder).items():
                left_over = name.startswith(TEMPORARY) or (folder == batchfile.FOLDER and name not in known)
                if left_over and now - at >= retention:
                    waste.orphans.append(f"{folder}/{name}")
    waste.versions += [name for name, (_, ends) in leases.leases(store).items() if ends + retention < now]
    waste.versions += _old_versions(store, min(oldest_held, state.version), now - retention)
    return waste


def _old_versions(store: Store, needed: int, before: float) -> list[str]:
    """The versions in front of the newest checkpoint that is as old as `before` and not behind `needed`."""
    there = Manifest(store)
    ages = store.ages(manifest.FOLDER)
    start = 0
    for version in reversed(there.versions()):
        written = ages.get(manifest.version_name(version).rpartition("/")[2])
        if version <= needed and written is not None and written <= before and there.read(version).get("state"):
            start = version
            break
    old = [name for name in ages if name[:1].isdigit() and int(name.partition(".")[0]) < start]
    # Of each version the spare copy goes first: a spare alone would count as the version.
    ordered = sorted(old, key=lambda name: (name.partition(".")[0], name.endswith(".json")))
    return [f"{manifest.FOLDER}/{name}" for name in ordered]
