"""Deletes files and versions that nobody needs.

A reader can rely on a version and its files for the retention period after it stopped being the newest, or while it holds a
lease. Versions are deleted up to a checkpoint that is older than that. The files that a version freed are deleted before it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tektite.storage import batchfile, leases, manifest
from tektite.storage.manifest import Manifest, ManifestChange, ManifestState
from tektite.storage.steady_clock import Ages, steady_time
from tektite.storage.store import TEMPORARY, Store

RETENTION = 300.0
"""Seconds after which readers without a lease are done with an old version."""


@dataclass
class Waste:
    """Names in the store that can be deleted."""

    files: list[str] = field(default_factory=list)
    """Batch files, and leftovers of crashed writers."""
    versions: list[str] = field(default_factory=list)
    """Versions before every reader's start, and expired leases."""

    @property
    def names(self) -> list[str]:
        """All names, in an order that leaves a readable store wherever deletion stops."""
        return [*self.files, *self.versions]


def outdated_files(store: Store, state: ManifestState, retention: float, seen: Ages | None = None) -> Waste:
    """Old versions and the files that they freed, if `state` is the newest version. Cheap enough to call often; who does so gives
    what it has `seen`.
    """
    there = Manifest(store)
    versions = there.versions()
    start = _first_needed(there, versions, state, retention, seen or Ages())
    waste = Waste()
    for version in versions:
        if version < start:
            for name in there.read(version).get("freed", ()):
                if name not in state.files:
                    waste.files.append(f"{batchfile.FOLDER}/{name}")
            # The spare copy goes first: a spare alone would count as the version.
            waste.versions += [manifest.spare_name(version), manifest.version_name(version)]
    return waste


def find_waste(store: Store, state: ManifestState, retention: float) -> Waste:
    """Everything that can be deleted, including files that no version names once they are older than the retention period:
    their writers may be about to commit them. For a store without a writer.
    """
    there = Manifest(store)
    before = steady_time() - retention
    versions, ages = there.versions(), store.ages(manifest.FOLDER)
    old = [version for version in versions if ages.get(f"{version:016d}.json", before) <= before]
    first = min([*leases.leased_versions(store), max(old, default=versions[0])])
    needed = set(there.load(first).files) | set(state.files)
    for version in versions:
        if version > first:
            needed |= {info.name for info in ManifestChange.from_json(there.read(version)["change"]).add}
    waste = Waste(left_over_files(store, retention), outdated_files(store, state, retention).versions)
    for name, at in store.ages(batchfile.FOLDER).items():
        if name not in needed and not name.startswith(TEMPORARY) and at <= before:
            waste.files.append(f"{batchfile.FOLDER}/{name}")
    waste.versions += [name for name, (_, ends) in leases.leases(store).items() if ends <= before]
    return waste


def left_over_files(store: Store, retention: float) -> list[str]:
    """Half-written files of dead writers."""
    now = steady_time()
    return [
        f"{folder}/{name}"
        for folder in (batchfile.FOLDER, manifest.FOLDER, leases.FOLDER)
        for name, at in store.ages(folder).items()
        if name.startswith(TEMPORARY) and now - at >= retention
    ]


def _first_needed(there: Manifest, versions: list[int], state: ManifestState, retention: float, seen: Ages) -> int:
    """The newest checkpoint that is older than the retention period and not after any lease; 0 if there is none."""
    ages = seen.corrected(there.store.ages(manifest.FOLDER))
    needed = min([*leases.leased_versions(there.store), state.version])
    before = steady_time() - retention
    for version in reversed(versions):
        written = ages.get(manifest.version_name(version).rpartition("/")[2])
        if version <= needed and written is not None and written <= before and there.read(version).get("state"):
            return version
    return 0
