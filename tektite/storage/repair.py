"""Finds damage in a storage, and repairs what it can.

Repair gives up nothing durable unless it is asked to. Without loss, it restores versions from their spare copies, and
rebuilds a file that a merge made from the files that it replaced, as long as these exist. Otherwise the storage can only go
back to the newest version whose files are all intact (`rollback`); the report says what that loses.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from tektite.errors import FaultError, NotFoundError, TektiteError
from tektite.storage.batchfile import FOLDER, BatchSection, FileInfo, TextSection, pack
from tektite.storage.files import Files
from tektite.storage.manifest import Live, Manifest, ManifestChange, ManifestState, version_name
from tektite.storage.store import Store
from tektite.trace.merge import merge_all


@dataclass
class Finding:
    """A problem: the file, what is wrong with it, and the remedy; empty if there is none without loss."""

    name: str
    problem: str
    remedy: str = ""


@dataclass
class RepairReport:
    """The result of an examination. `state` is the newest readable version, or None."""

    state: ManifestState | None
    newest: int
    findings: list[Finding] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings

    @property
    def hopeless(self) -> list[Finding]:
        """Problems that cannot be repaired without loss."""
        return [finding for finding in self.findings if not finding.remedy]


class Examination:
    """Examines everything that the newest version needs. Changes nothing."""

    def __init__(self, store: Store, files: Files) -> None:
        self.store = store
        self.files = files
        self.manifest = Manifest(store)
        self._verdicts: dict[tuple[str, tuple[int, ...]], str] = {}

    def report(self) -> RepairReport:
        """The damage of the storage."""
        versions = self.manifest.versions()
        if not versions:
            raise NotFoundError(f"{self.store.url} is not a Tektite storage: it has no manifest")
        report = RepairReport(None, versions[-1])
        try:
            report.state = self.manifest.load()
        except (FaultError, NotFoundError) as error:
            report.findings.append(Finding(version_name(versions[-1]), str(error)))
            return report
        for version in self.manifest.healed:
            report.findings.append(
                Finding(version_name(version), "damaged or missing", "restore it from its spare copy")
            )
        for info in report.state.files.values():
            problem = self.problem(report.state, info)
            if problem:
                remedy = "make it again from the files that it replaced" if self.rebuilt(info) is not None else ""
                report.findings.append(Finding(f"{FOLDER}/{info.name}", problem, remedy))
        return report

    def problem(self, state: ManifestState, info: FileInfo) -> str:
        """The damage of a batch file's live sections, as a text; empty if they are intact."""
        dead = state.dead.get(info.name, [])
        known = (info.name, tuple(sorted(dead)))
        if known not in self._verdicts:
            try:
                self.files.open(info).verify(place for place in range(len(info.sections)) if place not in dead)
                self._verdicts[known] = ""
            except (TektiteError, OSError) as error:
                self._verdicts[known] = str(error)
        return self._verdicts[known]

    def rebuilt(self, info: FileInfo) -> list[bytes | memoryview] | None:
        """The content of a file that a merge made, from the files that it replaced, if all of them exist."""
        for version in reversed(self.manifest.versions()):
            try:
                change = ManifestChange.from_json(self.manifest.read(version)["change"])
                if info.name in (added.name for added in change.add):
                    before = self.manifest.load(version - 1)
                    return self._merged_again(info, before, change)
            except (FaultError, NotFoundError):
                return None
        return None

    def _merged_again(
        self, info: FileInfo, before: ManifestState, change: ManifestChange
    ) -> list[bytes | memoryview] | None:
        [section, *others] = info.sections
        if others:
            return None  # it is the only copy of its epoch's rows
        removed = {(reference.file, reference.index) for reference in change.remove}
        lives = before.texts() if section.kind == "texts" else before.live(section.arrangement, section.shard)
        inputs = [live for live in lives if (live.file, live.index) in removed and self._within(live, info)]
        if not inputs or any(self.problem(before, before.files[live.file]) for live in inputs):
            return None
        again: BatchSection | TextSection
        if section.kind == "texts":
            again = TextSection.joined(self.files.open(before.files[live.file]).texts(live.index) for live in inputs)
        else:
            batches = [self.files.batch(before, live) for live in inputs]
            whole = merge_all(batches, section.shape, section.since)
            again = BatchSection(section.arrangement, section.shard, section.shape, whole)
        parts, _, _ = pack([again])
        digest = hashlib.sha256()
        for part in parts:
            digest.update(part)
        return list(parts) if info.name.endswith(f"-{digest.hexdigest()[:32]}.batch") else None

    @staticmethod
    def _within(live: Live, info: FileInfo) -> bool:
        [section] = info.sections
        return section.kind == "texts" or (section.lower <= live.section.lower and live.section.upper <= section.upper)

    def newest_sound(self) -> ManifestState | None:
        """The newest version whose files are all intact."""
        for version in reversed(self.manifest.versions()):
            try:
                state = self.manifest.load(version)
            except (FaultError, NotFoundError):
                continue
            if not any(self.problem(state, info) for info in state.files.values()):
                return state
        return None


def repair(store: Store, files: Files, rollback: bool = False) -> tuple[RepairReport, list[str]]:
    """Repair what can be repaired without loss, and with `rollback` also the rest. Returns what was found and done, as
    sentences.
    """
    examination = Examination(store, files)
    report = examination.report()
    done: list[str] = []
    if report.hopeless and not rollback:
        return report, done
    if report.hopeless:
        sound = examination.newest_sound()
        if sound is None:
            return report, done
        examination.manifest.roll_back(sound, report.newest + 1)
        lost = "" if report.state is None else f"; epochs {sound.epoch} to {report.state.epoch - 1} are lost"
        done.append(f"went back to version {sound.version}, as version {report.newest + 1}{lost}")
        return report, done
    for finding in report.findings:
        if finding.name.startswith(FOLDER):
            assert report.state is not None
            content = examination.rebuilt(report.state.files[finding.name.removeprefix(f"{FOLDER}/")])
            assert content is not None
            store.write(finding.name, content)
            done.append(f"made {finding.name} again")
    done += [f"restored {name}" for name in examination.manifest.heal()]
    return report, done
