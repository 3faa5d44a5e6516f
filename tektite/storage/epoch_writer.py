"""EpochWriter: makes closed epochs durable, in a thread of its own.

`append` passes on what an epoch changed and returns at once. The thread writes, syncs and commits it. Epochs that have piled
up meanwhile go into one version.

Promises:

* Epochs become durable in the order in which they were appended, each as a whole or not at all.
* `durable` never names an epoch that a power cut could still lose.
* Epochs never wait for merging or deleting files.
* The batches that a version adds without removing others hold exactly what its epochs changed, at the times of the changes.

A write that fails (a full disk) is retried until it succeeds. Waiting epochs stay in memory, up to a bound at which `admit`
refuses more. Losing the storage to another engine is final.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tektite.errors import ConflictError, FaultError, TektiteError
from tektite.storage.batchfile import FOLDER, BatchSection, FileInfo, Shape, TextSection, write_file
from tektite.storage.clean_up import outdated_files
from tektite.storage.compaction import due_run, merged_batch
from tektite.storage.files import Files
from tektite.storage.manifest import Live, Manifest, ManifestChange, ManifestState
from tektite.trace.batch import Batch
from tektite.trace.times import Frontier
from tektite.values.dictionary import START, Dictionary, Mark

_ALONE = 1 << 20
"""A batch of this many bytes gets its own file, so that the file can be deleted with the batch."""
_CLEAN_EVERY = 64
_THREAD = "tektite-storage"
_AFTER_FAILURE = 5.0
"""Seconds until a failed merge is retried."""
_RETRY = (0.05, 5.0)
"""Seconds to wait after the first failure, and at most. The waiting time doubles."""


Rewrite = Callable[[ManifestState], tuple[list[Live], list[FileInfo]]]


@dataclass
class DurableChange:
    """The changes of one closing of epochs. They become durable together."""

    epoch: int
    rows: list[BatchSection] = field(default_factory=list)
    files: list[FileInfo] = field(default_factory=list)
    """Files that others have already written durably."""
    rewrite: Rewrite | None = None
    """Rewrites stored sections: from the newest version to the sections to replace and the new files."""
    known: tuple[Mark, Mark] | None = None
    """`files` contain the texts that were added to the dictionary between these marks."""
    arrangements: dict[str, dict[str, Any] | None] = field(default_factory=dict)
    lows: dict[str, int] = field(default_factory=dict)
    positions: dict[str, dict[str, Any] | None] = field(default_factory=dict)

    @property
    def alone(self) -> bool:
        """Whether it needs a version of its own."""
        return bool(self.files) or self.rewrite is not None or None in self.arrangements.values()

    @property
    def bytes(self) -> int:
        """Memory that waits to be written."""
        return sum(rows.batch.bytes for rows in self.rows)


@dataclass
class _Merging:
    """A merge in the background: its inputs, and the file that will replace them."""

    inputs: list[Live]
    result: Future[FileInfo]


@dataclass
class _Attempt:
    """Epochs that are becoming a version. Once it has a change, retries use the same change."""

    taken: list[DurableChange]
    change: ManifestChange | None = None
    mark: Mark = START
    merging: _Merging | None = None


class EpochWriter:
    """Writes epochs to a store in the background."""

    def __init__(
        self,
        manifest: Manifest,
        files: Files,
        dictionary: Dictionary,
        retention: float,
        bound: int,
        on_stop: Callable[[], None],
    ) -> None:
        self.manifest = manifest
        self.files = files
        self.store = manifest.store
        self.retention = retention
        self.bound = bound
        self._dictionary = dictionary
        self._mark = dictionary.mark()
        self._changed = threading.Condition()
        self._queue: list[DurableChange] = []
        self._waiting_bytes = 0
        self._appended = 0
        self._written = 0
        self._attempts = 0
        self._error: Exception | None = None
        self._lost: TektiteError | None = None
        self._closing = False
        self._urgent = False
        self._beside = ThreadPoolExecutor(1, f"{_THREAD}-merge")
        self._merging: _Merging | None = None
        self._no_merge_before = 0.0
        self._cleaning: Future[None] | None = None
        self._until_clean = _CLEAN_EVERY
        self.durable = manifest.state.epoch
        self._on_stop = on_stop
        self._thread = threading.Thread(target=self._run, name=_THREAD, daemon=True)
        self._thread.start()

    @property
    def written_texts(self) -> Mark:
        """The mark up to which the newest version has the dictionary's texts."""
        return self._mark

    # ------------------------------------------------------------------ the engine's side

    def admit(self) -> None:
        """Wait until there is room for one more epoch. Raises if there will be none, or if the storage is lost."""
        with self._changed:
            if self._lost is not None:
                raise self._lost
            while self._waiting_bytes > self.bound:
                if self._error is not None:
                    raise self._trouble(f"{len(self._queue)} epochs wait in memory, which is as many as are kept there")
                self._changed.wait()
                if self._lost is not None:
                    raise self._lost

    def append(self, appended: DurableChange) -> None:
        """Queue an epoch for writing."""
        with self._changed:
            self._queue.append(appended)
            self._waiting_bytes += appended.bytes
            self._appended += 1
            self._changed.notify_all()

    def sync(self, timeout: float | None = None) -> None:
        """Wait until everything appended so far is durable. Raises if a write fails meanwhile; retries continue."""
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            wanted, attempts = self._appended, self._attempts
            self._urgent = True
            self._changed.notify_all()
            while self._written < wanted:
                if self._lost is not None:
                    raise self._lost
                if self._error is not None and self._attempts > attempts:
                    raise self._trouble("nothing is lost: it is kept in memory and will be tried again")
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    raise FaultError(f"storage {self.store.url}: not everything was durable after {timeout} seconds")
                self._changed.wait(left)

    def close(self) -> None:
        """Write what waits, then stop. Closing twice is harmless.

        The writer's own thread cannot wait for itself: if garbage collection makes it close, it stops later.
        """
        ours = threading.current_thread().name.startswith(_THREAD)
        try:
            if not self._closing and not ours:
                self.sync()
        finally:
            with self._changed:
                self._closing = True
                self._changed.notify_all()
            if not ours:
                self._thread.join()
                self._beside.shutdown()

    def _trouble(self, what: str) -> FaultError:
        error = FaultError(f"storage {self.store.url} cannot be written: {self._error}; {what}")
        error.__cause__ = self._error
        return error

    # ------------------------------------------------------------------ the writer's side

    def _run(self) -> None:
        try:
            self._write_epochs()
        finally:
            self._on_stop()

    def _write_epochs(self) -> None:
        pause = _RETRY[0]
        attempt: _Attempt | None = None
        while True:
            with self._changed:
                while not (attempt or self._closing or self._work_waits()):
                    self._changed.wait()
                if self._closing and (self._error is not None or not (attempt or self._work_waits())):
                    return
                attempt = attempt or _Attempt(self._take())
            try:
                if attempt.change is None:
                    attempt.change = self._write(attempt)
                if attempt.change.to_json():
                    self.manifest.commit(attempt.change)
                self._committed(attempt)
            except OSError as error:
                with self._changed:
                    self._error = error
                    self._attempts += 1
                    self._urgent = False
                    self._changed.notify_all()
                    self._changed.wait_for(lambda: self._closing or self._urgent, pause)
                pause = min(2 * pause, _RETRY[1])
            except Exception as error:
                self._give_up(error)
                return
            else:
                attempt, pause = None, _RETRY[0]

    def _work_waits(self) -> bool:
        return bool(self._queue) or (self._merging is not None and (self._closing or self._merging.result.done()))

    def _take(self) -> list[DurableChange]:
        """The epochs for the next version: all that wait. Some go alone:

        * one that drops an arrangement, because a later one may use the name again;
        * one that adds whole files, because later ones may be merged with them;
        * one that rewrites sections, because these must not change meanwhile.
        """
        alone = next((n for n, appended in enumerate(self._queue) if appended.alone), None)
        count = len(self._queue) if alone is None else max(alone, 1)
        taken, self._queue = self._queue[:count], self._queue[count:]
        return taken

    def _committed(self, attempt: _Attempt) -> None:
        self._mark = attempt.mark
        if attempt.merging is not None:
            self._merging = None
        with self._changed:
            self._written += len(attempt.taken)
            self._waiting_bytes -= sum(appended.bytes for appended in attempt.taken)
            self._attempts += 1
            self._error = None
            self.durable = self.manifest.state.epoch
            self._changed.notify_all()
        self._work_beside()

    def _give_up(self, error: Exception) -> None:
        if not isinstance(error, ConflictError):
            cause = error
            error = FaultError(f"storage {self.store.url}: writing stopped for good: {type(cause).__name__}: {cause}")
            error.__cause__ = cause
        assert isinstance(error, TektiteError)
        with self._changed:
            self._lost = error
            self._changed.notify_all()

    def _write(self, attempt: _Attempt) -> ManifestChange:
        """Write the files of an attempt; returns the change that commits them."""
        change = ManifestChange()
        fresh: dict[tuple[str, int, Shape], list[Batch]] = {}
        for appended in attempt.taken:
            change.epoch = appended.epoch
            change.arrangements |= appended.arrangements
            change.lows |= appended.lows
            change.positions |= appended.positions
            change.add += appended.files
            for rows in appended.rows:
                fresh.setdefault((rows.arrangement, rows.shard, rows.shape), []).append(rows.batch)
            if appended.rewrite is not None:
                removed, written = appended.rewrite(self.manifest.state)
                change.remove += removed
                change.add += written
        merging = self._merging
        rewritten = any(appended.rewrite is not None for appended in attempt.taken)
        if merging is not None and not rewritten and (self._closing or merging.result.done()):
            attempt.merging = merging
            self._replace(merging, change)
        sections: list[BatchSection | TextSection] = []
        for (arrangement, shard, shape), batches in fresh.items():
            batch = merged_batch(batches, shape, ()) if len(batches) > 1 else batches[0]
            if batch.n:
                sections.append(BatchSection(arrangement, shard, shape, batch))
        texts, attempt.mark = self._dictionary.since(self._mark)
        for known in [appended.known for appended in attempt.taken if appended.known is not None]:
            first, second = (max(mark.texts - self._mark.texts, 0) for mark in known)
            texts = pa.chunked_array([*texts.slice(0, first).chunks, *texts.slice(second).chunks], texts.type)
        if len(texts):
            sections.append(TextSection(texts))
        epoch = self.manifest.state.epoch if change.epoch is None else change.epoch
        change.add += self._write_sections(sections, epoch)
        return change

    def _write_sections(self, sections: list[BatchSection | TextSection], epoch: int) -> list[FileInfo]:
        """Small sections share a file, which costs one sync. Large ones get their own."""
        large = [s for s in sections if (s.batch.bytes if isinstance(s, BatchSection) else s.texts.nbytes) >= _ALONE]
        small = [s for s in sections if s not in large]
        groups = [[section] for section in large] + ([small] if small else [])
        return [write_file(self.store, epoch, "epoch", place, group) for place, group in enumerate(groups)]

    # ------------------------------------------------------------------ beside the epochs

    def _replace(self, merging: _Merging, change: ManifestChange) -> None:
        """Put the result of a merge in place of its inputs, if all of them still exist."""
        try:
            info = merging.result.result()
        except OSError:  # for example, the disk is full
            self._no_merge_before = time.monotonic() + _AFTER_FAILURE
            return
        dropped = {name for name, described in change.arrangements.items() if described is None}
        there = set(self.manifest.state.sections(merging.inputs[0].section.kind))
        if there.issuperset(merging.inputs) and merging.inputs[0].section.arrangement not in dropped:
            change.add.append(info)
            change.remove += merging.inputs
        else:
            with suppress(OSError):
                self.store.delete([f"{FOLDER}/{info.name}"])

    def _work_beside(self) -> None:
        """Start a merge that is due if none runs, and a clean-up from time to time."""
        if self._closing or sys.is_finalizing() or not threading.main_thread().is_alive():
            return  # the process can start no more threads
        if self._merging is None and time.monotonic() >= self._no_merge_before:
            inputs = self._smallest_due()
            if inputs:
                self._merging = _Merging(inputs, self._beside.submit(self._merge, inputs))
                self._merging.result.add_done_callback(lambda _: self._notify())
        self._until_clean -= 1
        if self._until_clean <= 0 and (self._cleaning is None or self._cleaning.done()):
            self._until_clean = _CLEAN_EVERY
            self._cleaning = self._beside.submit(self._clean)

    def _smallest_due(self) -> list[Live]:
        """The live sections to merge next; of several choices the smallest."""
        state = self.manifest.state
        choices = []
        for lives in [*state.batches().values(), state.texts()]:
            run = due_run([live.section.rows for live in lives])
            if run is not None:
                chosen = lives[run[0] : run[1]]
                choices.append((sum(live.section.rows for live in chosen), chosen))
        return min(choices, key=lambda choice: choice[0], default=(0, []))[1]

    def _merge(self, inputs: list[Live]) -> FileInfo:
        """Write the file that can replace live sections."""
        state, first = self.manifest.state, inputs[0].section
        section: BatchSection | TextSection
        if first.kind == "texts":
            section = TextSection.joined(self.files.open(state.files[live.file]).texts(live.index) for live in inputs)
        else:
            # The last durable epoch: no reader of the files asks for earlier ones.
            low = max(state.lows.get(first.arrangement, 0) - 1, 0)
            since: Frontier = ((low,),) if first.shape[1] == 1 else ()
            batch = merged_batch([self.files.batch(state, live) for live in inputs], first.shape, since)
            section = BatchSection(first.arrangement, first.shard, first.shape, batch)
        return write_file(self.store, state.epoch, "merge", first.shard, [section])

    def _clean(self) -> None:
        # What cannot be deleted is found again at the next clean-up.
        with suppress(OSError, TektiteError):
            self.store.delete(outdated_files(self.store, self.manifest.state, self.retention).names)

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()
