"""EpochWriter: makes closed epochs durable, in a thread of its own.

`append` passes on what an epoch changed and returns at once. The thread writes, syncs and commits it. Epochs that have piled
up meanwhile go into one version.

Promises:

* Epochs become durable in the order in which they were appended, each as a whole or not at all.
* `durable` never names an epoch that a power cut could still lose.
* Epochs never wait for merging or deleting files.
* The batches that a version adds without removing others hold exactly what its epochs changed, at the times of the changes.

A write that fails (a full disk, no memory) is retried until it succeeds. Waiting epochs stay in memory, up to a bound at
which `admit` refuses more. Losing the storage to another engine is final.

There is no lock, so that an interrupt (Ctrl-C) may end any call of the engine's side. Each field belongs to one side, which
alone changes it. Changes go to the writer through a queue; one that comes a second time, because its caller could not know
that it had arrived, is recognised by its number. Whoever waits does so on a latch of its own.
"""

from __future__ import annotations

import sys
import threading
import time
from _thread import LockType, allocate_lock
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any

import pyarrow as pa

from tektite.errors import ConflictError, FaultError, TektiteError
from tektite.storage.batchfile import FOLDER, BatchSection, FileInfo, TextSection, write_file
from tektite.storage.clean_up import outdated_files
from tektite.storage.compaction import due_run, merged_section
from tektite.storage.files import Files
from tektite.storage.manifest import FOLDER as VERSIONS
from tektite.storage.manifest import Live, Manifest, ManifestChange, ManifestState
from tektite.storage.steady_clock import Ages
from tektite.storage.text_sections import TextCompaction, live_texts
from tektite.trace.batch import Batch
from tektite.trace.merge import merge_all
from tektite.trace.spine import BatchShape
from tektite.values.dictionary import Dictionary
from tektite.values.text_space import Mark

_ALONE = 1 << 20
"""A batch of this many bytes gets its own file, so that the file can be deleted with the batch."""
_CLEAN_EVERY = 64
_THREAD = "tektite-storage"
_AFTER_FAILURE = 5.0
"""Seconds until a failed merge is retried."""
_LOOK_AGAIN = 0.5
"""Seconds after which whoever waits for the writer sees whether it still runs."""
_RETRY = (0.05, 5.0)
"""Seconds to wait after the first failure, and at most. The waiting time doubles."""


ManifestRewrite = Callable[[ManifestState], tuple[list[Live], list[FileInfo]]]


@dataclass
class DurableChange:
    """The changes of one closing of epochs. They become durable together."""

    epoch: int
    rows: list[BatchSection] = field(default_factory=list)
    files: list[FileInfo] = field(default_factory=list)
    """Files that others have already written durably."""
    rewrite: ManifestRewrite | None = None
    """Rewrites stored sections: from the newest version to the sections to replace and the new files."""
    known: tuple[Mark, Mark] | None = None
    """`files` contain the texts that were added to the dictionary between these marks."""
    arrangements: dict[str, dict[str, Any] | None] = field(default_factory=dict)
    lows: dict[str, int] = field(default_factory=dict)
    positions: dict[str, dict[str, Any] | None] = field(default_factory=dict)
    number: int = 0
    """Its place among all changes, from 1 on; see `EpochWriter.number`."""
    total: int = 0
    """The bytes of all changes up to it."""

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
    is_look: bool = False
    """Whether the result has all texts that are needed."""


@dataclass
class _Attempt:
    """Epochs that are becoming a version. Once it has a change, retries use the same change."""

    taken: list[DurableChange]
    change: ManifestChange | None = None
    mark: Mark | None = None
    merging: _Merging | None = None
    is_committed: bool = False


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
        self._seen = Ages()
        self._seen.corrected(self.store.ages(VERSIONS))
        self.bound = bound
        self._dictionary = dictionary
        self._mark: Mark | None = None
        """Up to where the dictionary's texts are stored; None if none was added since those of the storage were loaded."""
        self._inbox: SimpleQueue[DurableChange | None] = SimpleQueue()
        """What has been appended; None wakes the writer."""
        self._latches: deque[LockType] = deque()
        """Released when the writer has done something."""
        # Of the engine's side:
        self._numbered = 0
        self._appended = 0
        """The number of the newest change that was appended, and the bytes of all of them."""
        self._appended_bytes = 0
        # Of the writer's side:
        self._queue: list[DurableChange] = []
        self._received = 0
        self._written = 0
        """The number of the newest change that is durable, and the bytes of all up to it."""
        self._written_bytes = 0
        self._attempts = 0
        self._error: OSError | MemoryError | None = None
        self._lost: TektiteError | None = None
        self._stopped = FaultError(f"storage {self.store.url}: writing stopped for good: there was no memory")
        """What is raised if the writer could not even say why it ended."""
        self._closing = False
        self._discard = False
        self._urgent = False
        self._maintained = (-1, -1)
        """How many changes had been appended, and how many texts there were, when it was last asked to maintain the files."""
        self._wants_work = False
        """Whether it is to look for merges though no epoch has to be written, and then to clean up."""
        self._looks_again = False
        """Whether it is to look at the texts though the last look has left many."""
        self._beside = ThreadPoolExecutor(1, f"{_THREAD}-merge")
        self._merging: _Merging | None = None
        self._text_compaction = TextCompaction()
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
        return self._dictionary.loaded if self._mark is None else self._mark

    @property
    def appended(self) -> int:
        """The number of the newest change that was appended."""
        return self._appended

    @property
    def written(self) -> int:
        """The number of the newest change that is durable."""
        return self._written

    @property
    def is_stopped(self) -> bool:
        """Whether nothing more will be written."""
        return self._lost is not None

    def _is_running(self) -> bool:
        """Whether the writer's thread has not ended. An interrupt in `is_alive` or `join` lets Python 3.11 and 3.12 take a thread
        for ended that runs; such a one is still listed.
        """
        return self._thread.is_alive() or self._thread in threading.enumerate()

    # ------------------------------------------------------------------ the engine's side

    def admit(self) -> None:
        """Wait until there is room for one more epoch. Raises if there will be none, or if the storage is lost."""
        while True:
            runs = self._is_running()
            latch = None if self._appended_bytes - self._written_bytes <= self.bound else self._latch()
            if self._lost is not None or not runs:
                raise self._lost or self._stopped
            if latch is None or self._appended_bytes - self._written_bytes <= self.bound:
                return
            if self._error is not None:
                waiting = self._appended - self._written
                raise self._trouble(f"{waiting} epochs wait in memory, which is as many as are kept there")
            self._wait(latch, None)

    def number(self, change: DurableChange) -> None:
        """Give a change its place behind all that were numbered before. It is appended before the next one is, or never."""
        change.total = self._appended_bytes + change.bytes
        change.number = self._numbered = self._numbered + 1

    def append(self, change: DurableChange) -> None:
        """Queue an epoch for writing. May be repeated."""
        if not change.number:
            self.number(change)
        self._inbox.put(change)
        self._appended, self._appended_bytes = change.number, change.total

    def sync(self, timeout: float | None = None) -> None:
        """Wait until everything appended so far is durable. Raises if a write fails meanwhile; retries continue.

        A storage that is lost after that, in a merge for instance, is no error here: `admit` says it before the next epoch.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        wanted, attempts = self._appended, self._attempts
        self._urgent = True
        self._inbox.put(None)
        while True:
            runs = self._is_running()
            latch = self._latch()
            lost = self._lost  # read first: what was written before the storage was lost is durable
            if self._written >= wanted:
                return
            if lost is not None:
                raise lost
            if not runs:
                raise self._stopped
            if self._error is not None and self._attempts > attempts:
                raise self._trouble("nothing is lost: what waits is kept in memory and will be tried again")
            if deadline is not None and time.monotonic() >= deadline:
                raise FaultError(f"storage {self.store.url}: not everything was durable after {timeout} seconds")
            self._wait(latch, deadline)

    def maintain(self) -> None:
        """Merge and clean up what is due, one after the other, though no epoch follows. Returns at once."""
        found = self._appended, self._dictionary.texts
        if self._maintained != found:
            self._maintained = found
            self._looks_again = True
            self._wants_work = True  # second: the writer, which sees it, does all that it stands for
            self._inbox.put(None)

    def close(self, discard: bool = False) -> None:
        """Write what waits, if that can be written and is not to be discarded, then stop. Closing twice is harmless.

        The writer's own thread cannot wait for itself: if garbage collection makes it close, it stops later.
        """
        ours = threading.current_thread().name.startswith(_THREAD)
        try:
            if not self._closing and not ours and not discard:
                self.sync()
        finally:
            self._discard = discard
            self._closing = True
            self._inbox.put(None)
            if not ours:
                self._thread.join()
                while self._is_running():  # and was taken for ended
                    time.sleep(_LOOK_AGAIN / 100)
                self._on_stop()  # again: a thread that lacked memory may have ended without it
                self._beside.shutdown()

    def _latch(self) -> LockType:
        """A lock that is released when the writer next does something."""
        latch = allocate_lock()
        latch.acquire()
        self._latches.append(latch)
        return latch

    def _wait(self, latch: LockType, deadline: float | None) -> None:
        """Wait until the writer has done something, or has ended, or a deadline has passed. A writer that lacks memory even to
        say that it ends releases no latch.
        """
        seconds = _LOOK_AGAIN
        while seconds > 0 and self._is_running() and not latch.acquire(timeout=seconds):
            if deadline is not None:
                seconds = min(_LOOK_AGAIN, deadline - time.monotonic())

    def _trouble(self, what: str) -> FaultError:
        error = FaultError(f"storage {self.store.url} cannot be written: {self._error}; {what}")
        error.__cause__ = self._error
        return error

    # ------------------------------------------------------------------ the writer's side

    def _run(self) -> None:
        try:
            self._write_epochs()
        except BaseException as error:
            self._give_up(error)
        finally:
            self._on_stop()

    def _write_epochs(self) -> None:
        pause = _RETRY[0]
        attempt: _Attempt | None = None
        while True:
            self._receive(0)
            while not (attempt or self._closing or self._work_waits()):
                self._receive(None)
            if self._closing and (self._discard or self._error is not None or not (attempt or self._work_waits())):
                return
            try:
                attempt = attempt or self._take()
                if attempt.change is None:
                    attempt.change = self._write(attempt)
                if not attempt.is_committed:
                    if attempt.change.to_json():
                        self.manifest.commit(attempt.change)
                    attempt.is_committed = True
                self._committed(attempt)
            except (OSError, MemoryError) as error:
                self._error = error
                self._urgent = False
                self._attempts += 1
                self._tell()
                until = time.monotonic() + pause
                while not (self._closing or self._urgent) and (left := until - time.monotonic()) > 0:
                    self._receive(left)
                pause = min(2 * pause, _RETRY[1])
            else:
                attempt, pause = None, _RETRY[0]
                with suppress(
                    OSError, MemoryError, RuntimeError
                ):  # merging can wait, also for a thread that can be started
                    self._work_beside()

    def _receive(self, seconds: float | None) -> None:
        """Wait until something arrives, or for some seconds; then take in all that has arrived."""
        with suppress(Empty):
            change = self._inbox.get(timeout=seconds) if seconds != 0 else self._inbox.get_nowait()
            while True:
                if change is not None and change.number > self._received:
                    self._queue.append(change)
                    self._received = change.number
                change = self._inbox.get_nowait()

    def _tell(self) -> None:
        """Let everybody who waits look again."""
        with suppress(IndexError):
            while True:
                self._latches.popleft().release()

    def _work_waits(self) -> bool:
        if self._merging is None:
            return bool(self._queue) or (self._wants_work and not self._closing)
        return bool(self._queue) or self._closing or self._merging.result.done()

    def _take(self) -> _Attempt:
        """The epochs for the next version: all that wait. They leave the queue when they are committed. Some go alone:

        * one that drops an arrangement, because a later one may use the name again;
        * one that adds whole files, because later ones may be merged with them;
        * one that rewrites sections, because these must not change meanwhile.
        """
        alone = next((n for n, appended in enumerate(self._queue) if appended.alone), None)
        count = len(self._queue) if alone is None else max(alone, 1)
        return _Attempt(self._queue[:count])

    def _committed(self, attempt: _Attempt) -> None:
        self._mark = attempt.mark
        if attempt.merging is not None:
            self._merging = None
        self.durable = self.manifest.state.epoch
        self._error = None
        self._attempts += 1
        if attempt.taken:
            self._written_bytes = attempt.taken[-1].total
            self._written = attempt.taken[-1].number
            self._queue = [change for change in self._queue if change.number > self._written]
        self._tell()

    def _give_up(self, cause: BaseException) -> None:
        error: TektiteError
        if isinstance(cause, ConflictError):
            error = cause
        else:
            error = FaultError(f"storage {self.store.url}: writing stopped for good: {type(cause).__name__}: {cause}")
            error.__cause__ = cause
        self._lost = error
        self._tell()

    def _write(self, attempt: _Attempt) -> ManifestChange:
        """Write the files of an attempt; returns the change that commits them."""
        change = ManifestChange()
        fresh: dict[tuple[str, int, BatchShape], list[Batch]] = {}
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
            batch = merge_all(batches, shape, (), self.files.memory) if len(batches) > 1 else batches[0]
            if batch.n:
                sections.append(BatchSection(arrangement, shard, shape, batch))
        attempt.mark = self._mark
        if (
            not self._dictionary.is_loading
        ):  # otherwise nobody has added any, and nobody waits for those that are loaded
            before = self.written_texts
            texts, attempt.mark = self._dictionary.since(before)
            for known in [appended.known for appended in attempt.taken if appended.known is not None]:
                first, second = (max(mark.texts - before.texts, 0) for mark in known)
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
        except (OSError, MemoryError):  # for example, the disk is full
            self._no_merge_before = time.monotonic() + _AFTER_FAILURE
            return
        dropped = {name for name, described in change.arrangements.items() if described is None}
        there = set(self.manifest.state.sections(merging.inputs[0].section.kind))
        if there.issuperset(merging.inputs) and merging.inputs[0].section.arrangement not in dropped:
            change.add.append(info)
            change.remove += merging.inputs
            if merging.is_look:
                self._text_compaction.looked(self.manifest.state, info.sections[0].rows, self._dictionary.texts)
        else:
            with suppress(OSError):
                self.store.delete([f"{FOLDER}/{info.name}"])

    def _work_beside(self) -> None:
        """Start a merge that is due if none runs, and a clean-up from time to time."""
        wanted, self._wants_work = self._wants_work, False
        if self._closing or sys.is_finalizing() or not threading.main_thread().is_alive():
            return  # the process can start no more threads
        if self._merging is None and self._looks_again:
            self._looks_again = False
            self._text_compaction.look_again()
        if self._merging is None and time.monotonic() >= self._no_merge_before:
            state, compaction = self.manifest.state, self._text_compaction
            inputs = self._smallest_due()
            looked_at = [] if inputs else compaction.due_texts(state, self._dictionary.texts)
            inputs = inputs or looked_at or compaction.due_batches(state)
            if inputs:
                merge = self._look if looked_at else self._merge
                self._merging = _Merging(inputs, self._beside.submit(merge, inputs), bool(looked_at))
                self._merging.result.add_done_callback(lambda _: self._inbox.put(None))
        self._until_clean -= 1
        if wanted and self._merging is not None:
            self._wants_work = True  # never false: it may have been asked for again meanwhile
        elif wanted:
            self._until_clean = 0
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
        state = self.manifest.state
        section = merged_section(self.files, state, inputs)
        return write_file(self.store, state.epoch, "merge", inputs[0].section.shard, [section])

    def _look(self, inputs: list[Live]) -> FileInfo:
        """Write the file that can replace all sections of texts: those that somebody needs."""
        section = live_texts(self.files, lambda: self.manifest.state, inputs, self._dictionary)
        return write_file(self.store, self.manifest.state.epoch, "merge", 0, [section])

    def _clean(self) -> None:
        # What cannot be deleted is found again at the next clean-up.
        with suppress(OSError, TektiteError):
            self.store.delete(outdated_files(self.store, self.manifest.state, self.retention, self._seen).names)
