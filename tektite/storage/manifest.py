"""The manifest: the versioned log of live sections and source positions.

Version n is one file, created only if absent. Of two engines on one store exactly one creates it; the other gets a
`ConflictError` and stops. A version holds the *change* from version n - 1 and, every so often, the complete *state*. A reader
starts from the newest complete state and applies the changes after it. A version counts as soon as it exists; every file that
it names was durable before.

    tektite-manifest FORMAT LENGTH SHA-256     one line, about the bytes after it
    {"version": ..., "change": ..., "freed": ..., "state": ...}

`freed` names the files that lost their last live section. They are deleted before the version itself.

Each version has a spare copy, in case the first is damaged.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from tektite.errors import ConflictError, FaultError, IncorrectError, NotFoundError, UnsupportedError
from tektite.storage.batchfile import FileInfo, Section
from tektite.storage.store import Store

FOLDER = "manifest"
FORMAT = 1
CHECKPOINT_EVERY = 32
"""Versions from one checkpoint to the next. Opening reads at most as many files."""

_HEADER = re.compile(rb"tektite-manifest (\d+) (\d+) ([0-9a-f]{64})\n")
_NAME = re.compile(r"(\d{16})\.(?:json|spare)")


def version_name(version: int) -> str:
    """The file name of a version."""
    return f"{FOLDER}/{version:016d}.json"


def spare_name(version: int) -> str:
    """The file name of a version's spare copy."""
    return f"{FOLDER}/{version:016d}.spare"


@dataclass(frozen=True)
class SectionReference:
    """A section by the name of its file and its position in it."""

    file: str
    index: int


@dataclass(frozen=True)
class Live(SectionReference):
    """A live section."""

    section: Section


@dataclass
class ManifestChange:
    """The changes of one version. Empty fields change nothing.

    * `arrangements` sets an arrangement's description (any JSON object; `InputDescription` makes an input's). None drops
      the arrangement with all its batches.
    * `lows` are the first epochs that arrangements have not closed.
    * `remove` lists sections that end with this version, because sections in `add` hold their rows, merged.
    * `positions` are those of followed sources: any JSON that says where to continue reading.
    """

    add: list[FileInfo] = field(default_factory=list)
    remove: list[SectionReference] = field(default_factory=list)
    arrangements: dict[str, dict[str, Any] | None] = field(default_factory=dict)
    lows: dict[str, int] = field(default_factory=dict)
    positions: dict[str, dict[str, Any] | None] = field(default_factory=dict)
    epoch: int | None = None
    shards: int | None = None
    owner: dict[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        plain: dict[str, Any] = {
            "add": [info.to_json() for info in self.add],
            "remove": [[reference.file, reference.index] for reference in self.remove],
            "arrangements": self.arrangements,
            "lows": self.lows,
            "positions": self.positions,
            "epoch": self.epoch,
            "shards": self.shards,
            "owner": self.owner,
        }
        return {key: value for key, value in plain.items() if value not in (None, [], {})}

    @staticmethod
    def from_json(plain: dict[str, Any]) -> ManifestChange:
        return ManifestChange(
            [FileInfo.from_json(info) for info in plain.get("add", ())],
            [SectionReference(file, index) for file, index in plain.get("remove", ())],
            plain.get("arrangements", {}),
            plain.get("lows", {}),
            plain.get("positions", {}),
            plain.get("epoch"),
            plain.get("shards"),
            plain.get("owner"),
        )


@dataclass
class ManifestState:
    """Everything that a version says. Treat it as a value; `after` makes the next one."""

    version: int = 0
    id: str = ""
    """The random id of this version; the next version contains it."""
    engine: str = ""
    shards: int = 0
    epoch: int = 0
    written: float = 0.0
    owner: dict[str, Any] = field(default_factory=dict)
    arrangements: dict[str, dict[str, Any]] = field(default_factory=dict)
    lows: dict[str, int] = field(default_factory=dict)
    positions: dict[str, dict[str, Any]] = field(default_factory=dict)
    files: dict[str, FileInfo] = field(default_factory=dict)
    dead: dict[str, list[int]] = field(default_factory=dict)
    """The positions of sections that are not live, for each file that has some."""

    def live(self, arrangement: str, shard: int) -> list[Live]:
        """The live batches of an arrangement's shard, oldest first."""
        return self.batches().get((arrangement, shard), [])

    def batches(self) -> dict[tuple[str, int], list[Live]]:
        """The live batches of every (arrangement, shard) that has some, oldest first."""
        found: dict[tuple[str, int], list[Live]] = {}
        for live in self.sections("batch"):
            found.setdefault((live.section.arrangement, live.section.shard), []).append(live)
        for several in found.values():
            several.sort(key=lambda live: (live.section.lower, live.section.upper))
        return found

    def texts(self) -> list[Live]:
        """The live sets of texts, in the order of their files' names."""
        return sorted(self.sections("texts"), key=lambda live: (live.file, live.index))

    def sections(self, kind: str) -> Iterator[Live]:
        """All live sections of a kind."""
        for name, info in self.files.items():
            dead = self.dead.get(name, ())
            for index, section in enumerate(info.sections):
                if section.kind == kind and index not in dead:
                    yield Live(name, index, section)

    def after(self, change: ManifestChange, written: float, identity: str = "") -> ManifestState:
        """The state of the next version. A change that does not fit this state is an error."""
        new = ManifestState(
            self.version + 1,
            identity,
            self.engine,
            self.shards if change.shards is None else change.shards,
            self.epoch if change.epoch is None else change.epoch,
            written,
            self.owner if change.owner is None else change.owner,
            dict(self.arrangements),
            {name: low for name, low in self.lows.items() if change.arrangements.get(name, ...) is not None}
            | change.lows,
            dict(self.positions),
            dict(self.files),
            {name: list(places) for name, places in self.dead.items()},
        )
        gone = {name for name, described in change.arrangements.items() if described is None}
        removed = list(change.remove)
        removed += [live for live in self.sections("batch") if live.section.arrangement in gone and live not in removed]
        for reference in removed:
            new._remove(reference)
        for name, described in change.arrangements.items():
            new.arrangements.pop(name, None)
            if described is not None:
                new.arrangements[name] = described
        for source, position in change.positions.items():
            new.positions.pop(source, None)
            if position is not None:
                new.positions[source] = position
        for info in change.add:
            new._add(info)
        return new

    def _add(self, info: FileInfo) -> None:
        if info.name in self.files:
            raise IncorrectError(f"the manifest has the file {info.name} already: it would count twice")
        for section in info.sections:
            if section.kind == "batch" and section.arrangement not in self.arrangements:
                raise IncorrectError(f"file {info.name} holds rows of {section.arrangement!r}, which was not declared")
        self.files[info.name] = info

    def _remove(self, reference: SectionReference) -> None:
        info = self.files.get(reference.file)
        dead = self.dead.get(reference.file, [])
        if info is None or reference.index in dead or reference.index >= len(info.sections):
            raise IncorrectError(f"section {reference.index} of {reference.file} is not live: it cannot be removed")
        dead = [*dead, reference.index]
        self.dead[reference.file] = dead
        if len(dead) == len(info.sections):
            del self.dead[reference.file], self.files[reference.file]

    def to_json(self) -> dict[str, Any]:
        plain = dict(vars(self))
        plain["files"] = [info.to_json() for info in self.files.values()]
        return plain

    @staticmethod
    def from_json(plain: dict[str, Any]) -> ManifestState:
        files = {info["name"]: FileInfo.from_json(info) for info in plain["files"]}
        return ManifestState(**(plain | {"files": files}))


def encode(body: dict[str, Any]) -> bytes:
    """A version's file."""
    data = json.dumps(body, separators=(",", ":"), sort_keys=True).encode()
    return f"tektite-manifest {FORMAT} {len(data)} {hashlib.sha256(data).hexdigest()}\n".encode() + data


def decode(where: str, content: bytes) -> dict[str, Any]:
    """The body of a version's file. A damaged file is an error."""
    header = _HEADER.match(content)
    if header is None:
        raise FaultError(f"manifest file {where} is damaged: it does not begin like a version")
    if int(header[1]) > FORMAT:
        raise UnsupportedError(
            f"manifest file {where} has format {int(header[1])}; this version of Tektite reads formats up to {FORMAT}: upgrade it"
        )
    data = content[header.end() :]
    if len(data) != int(header[2]):
        raise FaultError(f"manifest file {where} is damaged: it has {len(data)} bytes instead of {int(header[2])}")
    if hashlib.sha256(data).hexdigest() != header[3].decode():
        raise FaultError(f"manifest file {where} is damaged: its bytes have changed")
    body: dict[str, Any] = json.loads(data)
    return body


class Manifest:
    """The versions of one store, for one reader or writer. `state` is the newest version that it knows."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.state = ManifestState()
        self.healed: list[int] = []
        """Versions that were read from their spare copies."""
        self._attempt: tuple[ManifestChange, ManifestState, bytes] | None = None

    @staticmethod
    def open(store: Store) -> Manifest:
        """The manifest of a store, read up to its newest version. A store without a version has state 0."""
        manifest = Manifest(store)
        manifest.refresh()
        return manifest

    def versions(self) -> list[int]:
        """The numbers of existing versions, including those with only a spare copy, ascending."""
        names = map(_NAME.fullmatch, self.store.sizes(FOLDER))
        return sorted({int(match[1]) for match in names if match})

    def refresh(self) -> ManifestState:
        """Read up to the newest version."""
        for attempt in range(3):
            try:
                self.state = self.load()
                break
            except NotFoundError as error:
                if attempt == 2:
                    raise FaultError(f"the manifest is damaged: {error}") from None
                # Otherwise an old version was deleted meanwhile.
        return self.state

    def load(self, version: int | None = None) -> ManifestState:
        """The state of a version; by default the newest one."""
        there = self.versions()
        if not there and version is None:
            return ManifestState()
        last = there[-1] if version is None else version
        if last not in there:
            known = f"those from {there[0]} to {there[-1]}" if there else "none"
            raise NotFoundError(f"storage {self.store.url} has no version {last}: it has {known}")
        behind: list[dict[str, Any]] = []
        for number in range(last, -1, -1):
            body = self.read(number)
            if body.get("state") is not None:
                state = ManifestState.from_json(body["state"])
                break
            behind.append(body)
        for body in reversed(behind):
            if body["after"] != state.id:
                where = f"{self.store.url}/{version_name(body['version'])}"
                raise FaultError(
                    f"manifest file {where} is damaged: it does not follow the version before it. Files of two storages "
                    "were mixed"
                )
            state = state.after(ManifestChange.from_json(body["change"]), body["written"], body["id"])
        return state

    def read(self, version: int) -> dict[str, Any]:
        """The body of one version: its change, and the state if it is a checkpoint."""
        name = version_name(version)
        try:
            return decode(f"{self.store.url}/{name}", self.store.read(name))
        except (FaultError, NotFoundError) as error:
            try:
                body = decode(f"{self.store.url}/{name}", self.store.read(spare_name(version)))
            except (FaultError, NotFoundError):
                raise error from None
            if version not in self.healed:
                self.healed.append(version)
            return body

    def changes(self, after: int) -> Iterator[tuple[int, ManifestChange]]:
        """The versions after `after` with their changes, oldest first."""
        for number in self.versions():
            if number > after:
                yield number, ManifestChange.from_json(self.read(number)["change"])

    def commit(self, change: ManifestChange) -> ManifestState:
        """Create the next version. If another writer created it first, this writer is fenced for good: `ConflictError`.

        After any other error (a full disk, a lost network) the version may exist or not. Commit the same `change` object
        again to resolve that.
        """
        if self._attempt is None or self._attempt[0] is not change:
            self._attempt = (change, *self._next(change))
        _, new, content = self._attempt
        name = version_name(new.version)
        if not self.store.create(name, content) and self.store.read(name) != content:
            winner = decode(f"{self.store.url}/{name}", self.store.read(name))
            owner = winner["change"].get("owner") or self._owner_behind()
            raise ConflictError(
                f"storage {self.store.url}: another engine ({describe_owner(owner)}) has written version {new.version}. "
                "This engine has lost the storage and writes nothing more; what it reported as durable is kept"
            )
        self.state, self._attempt = new, None
        # The spare helps against damage. It is not part of the promise: it need not be durable, and may fail.
        with suppress(OSError):
            self.store.write(spare_name(new.version), [content], durable=False)
        return new

    def _next(self, change: ManifestChange) -> tuple[ManifestState, bytes]:
        """The state after a change, and the file that contains it."""
        written, identity = time.time(), uuid4().hex
        new = (self.state if self.state.version else ManifestState(engine=uuid4().hex)).after(change, written, identity)
        body: dict[str, Any] = {"version": new.version, "id": identity, "after": self.state.id, "written": written}
        body["change"] = change.to_json()
        body["freed"] = sorted(self.state.files.keys() - new.files.keys())
        if new.version % CHECKPOINT_EVERY == 1:
            body["state"] = new.to_json()
        return new, encode(body)

    def roll_back(self, state: ManifestState, version: int) -> None:
        """Make an earlier state the newest one, as a version that needs no earlier version."""
        self.state = replace(state, version=version, id=uuid4().hex, written=time.time())
        body = {"version": version, "id": self.state.id, "after": "", "written": self.state.written, "change": {}}
        content = encode(body | {"rolled_back_to": state.version, "state": self.state.to_json()})
        if not self.store.create(version_name(version), content):
            raise ConflictError(f"storage {self.store.url}: another engine has written version {version}")
        self.store.write(spare_name(version), [content], durable=False)

    def heal(self) -> list[str]:
        """Restore versions that were read from their spare copies; their names."""
        for version in self.healed:
            content = self.store.read(spare_name(version))
            if not self.store.create(version_name(version), content):
                self.store.write(version_name(version), [content])
        names, self.healed = [version_name(version) for version in self.healed], []
        return names

    def _owner_behind(self) -> dict[str, Any]:
        try:
            return self.load().owner
        except (FaultError, NotFoundError):
            return {}


def describe_owner(owner: dict[str, Any]) -> str:
    """An engine in human-readable form: its process and machine."""
    return f"process {owner['process']} on {owner['host']}" if "process" in owner else "of unknown origin"
